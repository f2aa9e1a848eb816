// Evaluates frames of CPython 3.11 instruction by instruction, in the interpreter's own frame, so
// that the interpreter can take over at any point. While it does, calls of opaque code end the
// segment that is being recorded, and the tracker is told where values come from. Called by the
// hook in evaluator.cpp.
#pragma once

#include <memory>
#include <string_view>

#include "capture/bytecode.h"
#include "capture/forked_body.h"
#include "capture/frame_311.h"
#include "capture/tracker.h"

namespace prong::capture {

struct PythonStep;

// Frames go through the evaluator while compiled calls run: counts them. The GIL is held.
class HookScope {
 public:
  HookScope();
  ~HookScope();
};

// What the caller knows of the arguments of a Python function that it is about to call.
struct PendingCall {
  PyObject* function = nullptr;
  const std::vector<Term>* terms = nullptr;  // of positional arguments, then those named by kwnames
  PyObject* kwnames = nullptr;
  size_t count = 0;
  Term closure;             // the function, where the call made it
  bool makes_self = false;  // __init__ of an object that nobody knows yet
};
// The next frame, if it is of that function, takes the terms.
void set_pending_call(const PendingCall& call);

// Says what the arguments of the compiled function itself are; `terms` must live until its frame
// runs.
void set_root_call(Tracker& tracker, PyObject* callable, PyObject* const* args, size_t count,
                   PyObject* kwnames, std::vector<Term>& terms);

// One frame.
class Evaluator {
 public:
  Evaluator(PyThreadState* thread, ProngFrame* frame, const Bytecode& code);
  // A generator's, which goes on.
  Evaluator(PyThreadState* thread, ProngFrame* frame, const Bytecode& code,
            const GeneratorState& state);
  PyObject* run();   // from the start
  PyObject* loop();  // from where it stands

  static Evaluator* innermost();  // whose frame runs; null: none
  PyObject* call_for_tape(PyObject* callable, PyObject* const* args, size_t count,
                          bool is_from_outside);

 private:
  enum class Next : uint8_t {
    kGo,
    kError,
    kReraise,
    kInterpret,
    kReturn,
    kYield,
    kGenerator,
    kDrop,
  };

  Next step(const Instruction& i);
  Term context_variable_term(PyObject* variable, const std::vector<Term>& terms, PyObject* result);
  bool uses_arrays(const Instruction& i);  // foreign_memory.cpp
  Next step_container(const Instruction& i);
  Next step_operator(const Instruction& i);
  Next step_jump(const Instruction& i);
  bool chooses_by_data(PyObject* value);
  Next breathe();
  Next after_call(Next next);
  Next step_variable(const Instruction& i);
  Next step_exception(const Instruction& i);
  Next raise(const Instruction& i);
  Next before_with();
  bool handle_error(int32_t unit, bool is_new);
  bool is_lookup_followed();
  void add_to_traceback(int32_t unit);
  PyObject* hand_over_traced(int32_t unit, ProngEntry* entry);
  bool is_traced() const { return thread_->cframe->use_tracing; }  // by sys.settrace, setprofile
  bool is_error_followed(const Instruction& i);
  Term bound_term(PyObject* object, Term owner, PyObject* found, PyObject* bound);
  Next load_global(const Instruction& i);
  Next load_attribute(const Instruction& i, bool is_method);
  Next for_iter(const Instruction& i);
  Next format_value(const Instruction& i);
  Next build_string(const Instruction& i);
  Term text_term(PyObject* function, PyObject* const* args, const std::vector<Term>& terms,
                 PyObject* result);
  Next unpack(const Instruction& i);
  Next call(const Instruction& i);
  bool make_tuple(int at);
  Next call_unpacked(const Instruction& i);
  Next make_function(const Instruction& i);
  bool bind_arguments();
  Term attribute_term(PyObject* object, Term term, PyObject* name, PyObject* value);
  Next store_attribute(const Instruction& i);
  bool follow_store(PyObject* owner, Term owner_term, PyObject* name, PyObject* value,
                    Term value_term);
  void bind_numbers(PyObject* op, const std::vector<Term>& terms, PyObject* const* args,
                    PyObject* kwnames, bool is_method);
  Term number_term(PyObject* function, Term self, PyObject* self_object, PyObject* const* args,
                   const std::vector<Term>& terms, PyObject* kwnames, PyObject* result);
  std::optional<Term> module_attribute(PyObject* dict, PyObject* name);
  Term instance_attribute(PyObject* object, PyObject* name, PyObject* value);
  Term call_term(PyObject* callable, Term callable_term, PyObject* const* args,
                 const std::vector<Term>& terms, PyObject* kwnames, PyObject* result);
  bool follow_transparent(PyObject* function, Term self, PyObject* const* args,
                          const std::vector<Term>& terms, PyObject* result, Term* out);
  Term made_attribute(PyObject* object, Term owner, PyObject* name, PyObject* value);
  Next store_made_attribute(PyObject* name);
  Next delete_attribute(const Instruction& i);
  bool unpack_iterable(PyObject* source, int before, int after, std::vector<PyObject*>* items,
                       std::vector<Term>* terms);
  void see_through(Term term, PyObject* value);
  PyObject* leave_by_error(int unit);
  PyObject* make_generator(const Instruction& i);
  PyObject* suspend(ProngEntry* entry);
  Next send(const Instruction& i);
  std::optional<bool> has_attribute(PyObject* object, Term owner, PyObject* name);
  Term attribute_call_term(std::string_view word, PyObject* const* args,
                           const std::vector<Term>& terms, PyObject* result);
  Next step_match(const Instruction& i);
  Next match_class(const Instruction& i);
  Next match_keys();
  bool pattern_names(PyObject* type, int positional, PyObject* keywords, bool* is_self,
                     std::vector<PyObject*>* names);
  Next step_name(const Instruction& i);
  Next import_name(const Instruction& i);
  Next step_walk(const Instruction& i);
  Next get_iterator();
  Term iterator_term(PyObject* source, Term s);
  Next update_container(const Instruction& i);
  Next delete_item();
  Term walked_term(Term iterator, PyObject* value);
  std::optional<Term> zip_term(PyObject* function, PyObject* const* args,
                               const std::vector<Term>& terms, PyObject* kwnames);
  Term zipped_term(Term iterator, PyObject* value);
  bool is_error_transparent(PyObject* callable, Term term, PyObject* const* args,
                            const std::vector<Term>& terms);
  bool bind_unannounced(Tracker& t);
  bool has_recorded_step() const;
  std::optional<Term> asked_attribute(PyObject* callable, PyObject* const* args,
                                      const std::vector<Term>& terms, PyObject* result);
  Term core_call_term(CoreFunction function, PyObject* const* args, const std::vector<Term>& terms,
                      PyObject* kwnames, PyObject* result);
  PyObject* make_tensor(PyObject* callable, PyObject* const* args, const std::vector<Term>& terms,
                        PyObject* kwnames, Term* result);
  PyObject* with_index_tensors(PyObject* key, Term k);
  Term subscript_term(PyObject* container, Term c, PyObject* key, Term k, PyObject* value);
  PyObject* invoke(PyObject* callable, Term term, PyObject* const* args, std::vector<Term> terms,
                   PyObject* kwnames, Term* result, PyObject* packed = nullptr,
                   PyObject* packed_by_name = nullptr);

  // evaluate_steps.cpp
  class InChain {  // of the frames that run, for a scope
   public:
    explicit InChain(Evaluator* frame);
    ~InChain();

   private:
    Evaluator* outer_;
  };
  bool is_whole_step(PyObject* callable) const;
  bool describe_frames(std::vector<Kept>* frames, bool* handles);
  bool take_logged(PyObject* callable, PyObject** value);
  std::unique_ptr<PythonStep> describe_step(PyObject* callable, Term term, PyObject* const* args,
                                            const std::vector<Term>& terms, PyObject* kwnames);
  bool call_as_step(PyObject* callable, Term term, PyObject* const* args,
                    const std::vector<Term>& terms, PyObject* kwnames, PyObject** value,
                    Term* result);

  // evaluate_forks.cpp
  Next step_on_trial(const Instruction& i);
  bool has_effect(const Instruction& i);
  bool is_own(Term t) const;
  bool may_call_on_trial(PyObject* callable, Term term, PyObject* const* args,
                         const std::vector<Term>& terms);
  PyObject* fork(PyObject* const* args, const std::vector<Term>& terms, PyObject* kwnames,
                 Term* result);
  Term future_attribute(Term future, PyObject* object, PyObject* value);
  Term future_result(PyObject* method, Term future);

  void push(PyObject* stolen, Term term) {
    terms_[static_cast<size_t>(sp_ - slots_)] = term;
    *sp_++ = stolen;
  }
  PyObject* pop() { return *--sp_; }
  PyObject*& top(int n = 1) { return sp_[-n]; }
  Term& term(int n = 1) { return terms_[static_cast<size_t>(sp_ - slots_ - n)]; }
  void drop(int n) {
    while (n-- > 0) Py_XDECREF(pop());
  }
  void jump(int32_t unit) { next_ = static_cast<size_t>(code_.at_unit[static_cast<size_t>(unit)]); }
  Tracker* tracker() const { return is_tracked_ ? current_tracker() : nullptr; }
  void lose(const char* reason) {
    if (Tracker* t = tracker()) t->give_up(reason);
  }
  PyObject* interpret(int unit, int throwflag);

  Evaluator* outer_ = nullptr;  // whose frame called this one
  PyThreadState* thread_;
  ProngFrame* frame_;
  const Bytecode& code_;
  PyCodeObject* co_;
  PyObject** slots_;
  PyObject** sp_;
  std::vector<Term> terms_;
  size_t next_ = 0;
  PyObject* kwnames_ = nullptr;    // borrowed, for the next CALL
  Term closure_;                   // of a function that the call made: its cells
  PyObject* generator_ = nullptr;  // borrowed: whose frame it is
  bool is_tracked_ = false;
  uint64_t nodes_before_call_ = 0;
  Term raised_term_;        // of the exception that is handled
  int32_t error_unit_ = 0;  // where the error counts as raised, for handlers
  bool is_raise_followed_ = false;
  bool is_called_by_builtin_ = false;
  ForkedBody* body_ = ForkedBody::current();  // that the frame is part of, on trial
};

// Numbers, and lists and tuples of such, that are the same at each call or the plan's numbers.
bool is_data(Tracker& t, Term term, PyObject* value);

// int, float or bool: called with a tensor, they read it.
bool is_number_type(PyObject* callable);

// Must the segment end before this C callable runs? It may look at what was put off, or act where
// order shows.
bool is_opaque(PyObject* callable);

extern thread_local bool is_walked_by_frame;         // the generator that goes on next
extern thread_local PyObject* escaped_error;         // to compare with only
PyObject* current_error();                           // borrowed
extern thread_local bool is_escaped_error_followed;  // of the frame that an error left last
extern thread_local Term returned_term;  // of the frame that ended last, if it was tracked

}  // namespace prong::capture
