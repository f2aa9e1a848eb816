// Generators that the call makes: their frames are evaluated too, each time they go on. What is
// known of their values waits in the tracker meanwhile. See evaluator.h.
#include <opcode.h>

#include "capture/evaluator.h"
#include "capture/session.h"

namespace prong::capture {

// The interpreter makes the generator, which takes the frame with it.
PyObject* Evaluator::make_generator(const Instruction& i) {
  const std::vector<Term> terms = terms_;
  const Term closure = closure_;
  const bool is_fragile = !code_.handlers.empty();
  Tracker* t = tracker();
  PyObject* generator = interpret(i.first - 1, 0);
  returned_term = {};
  if (generator && t && t->is_on())
    returned_term = t->make_generator(generator, {terms, closure, {}}, is_fragile);
  return generator;
}

Evaluator::Evaluator(PyThreadState* thread, ProngFrame* frame, const Bytecode& code,
                     const GeneratorState& state)
    : Evaluator(thread, frame, code) {
  terms_ = state.terms;
  closure_ = state.closure;
  generator_ = prong_frame_generator(frame);
  is_called_by_builtin_ = !std::exchange(is_walked_by_frame, false);
  sp_ = slots_ + prong_stack_top(frame);
  next_ = static_cast<size_t>(code.at_unit[static_cast<size_t>(prong_position(frame)) + 1]);
  Tracker* t = current_tracker();
  is_tracked_ = true;
  term() = t->find(top());  // what was sent
  if (!term().is_known()) t->give_up("a value of unknown origin is sent to a generator");
  is_tracked_ = t->is_on();
}

// Leaves the frame at a yield.
PyObject* Evaluator::suspend(ProngEntry* entry) {
  PyObject* value = pop();
  returned_term = is_tracked_ ? terms_[static_cast<size_t>(sp_ - slots_)] : Term();
  if (Tracker* t = tracker()) {
    see_through(returned_term, value);
    t->keep_generator(generator_, terms_);
  }
  prong_suspend_generator(frame_);
  prong_set_stack_top(frame_, static_cast<int>(sp_ - slots_));
  prong_leave_frame(thread_, entry);
  return value;
}

// Builtin code may take the value, and look at all that it holds.
void Evaluator::see_through(Term term, PyObject* value) {
  Tracker* t = tracker();
  if (t && is_called_by_builtin_) t->pin_all({&term, 1});  // it may compute with numbers
  if (t && term.is_same() && !is_plain_value(value) && !t->vouch(term, value, true))
    t->give_up("a value from outside is given to builtin code");
}

Evaluator::Next Evaluator::send(const Instruction& i) {
  PyObject *value = top(1), *receiver = top(2), *given = nullptr;
  returned_term = {};
  is_escaped_error_followed = false;
  set_pending_call({});
  is_walked_by_frame = PyGen_CheckExact(receiver);
  const PySendResult status = PyIter_Send(receiver, value, &given);
  is_walked_by_frame = false;
  if (status == PYGEN_ERROR) return Next::kError;
  Term made;
  if (Tracker* t = tracker()) {
    const bool is_generator = term(2).is_made() && t->peek(term(2)).kind == Made::Kind::kGenerator;
    if (is_generator && returned_term.is_known())
      made = returned_term;
    else if (status == PYGEN_RETURN && given == Py_None && term(2).is_made())
      made = Term::same();
    else
      made = walked_term(term(2), given);
  }
  drop(status == PYGEN_RETURN ? 2 : 1);
  push(given, made);
  if (status == PYGEN_RETURN) jump(i.unit + 1 + i.arg);
  return Next::kGo;
}

}  // namespace prong::capture
