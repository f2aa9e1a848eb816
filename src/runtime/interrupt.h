// Ctrl-C inside long work. bindings/ installs the hook; loops and blocked waits call the check.
#pragma once

namespace prong {

// Makes the calling thread the one that is interrupted (Python's main thread). The hook throws to
// end the work; null takes it away.
void set_interrupt_hook(void (*hook)());

// On that thread, at most every 20 ms, calls the hook. Costs a load elsewhere.
void check_interrupt();

// Whether check_interrupt can throw on this thread; such a thread must not block for long
// unchecked.
bool is_interruptible();

}  // namespace prong
