// Lets the tests that fork the process start threads in the child under ThreadSanitizer.
extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() { return "die_after_fork=0"; }
