// The hook, and the loop over instructions. See evaluator.h.
#include "capture/evaluator.h"

#include <opcode.h>

#include "capture/python_names.h"
#include "capture/python_steps.h"
#include "capture/session.h"
#include "capture/stack_room.h"

namespace prong::capture {

thread_local Term returned_term;
thread_local bool is_walked_by_frame = false;

namespace {

int active_calls = 0;  // under the GIL
thread_local PendingCall pending;

// Not evaluated, so that nobody sees whose memory it uses.
PyObject* interpret_frame(PyThreadState* thread, ProngFrame* frame, int throwflag) {
  thread_recorder().lose_sight();
  return prong_interpret(thread, frame, throwflag);
}

// What the garbage collector calls when it happens to run is no part of the call: as long as it
// computes nothing with tensors, the plan may leave it out.
PyObject* run_finalizer(PyThreadState* thread, ProngFrame* frame, Tracker* t) {
  const uint64_t nodes = thread_recorder().num_recorded();
  PyObject* result = prong_interpret(thread, frame, 0);
  if (thread_recorder().num_recorded() != nodes)
    t->give_up("the garbage collector runs a finalizer that computes with tensors");
  return result;
}

PyObject* hook(PyThreadState* thread, ProngFrame* frame, int throwflag) {
  if (!is_recording()) return prong_interpret(thread, frame, throwflag);
  Tracker* t = current_tracker();
  ForkedBody* const body = ForkedBody::current();
  if (const StackRoom room = stack_room(); room != StackRoom::kEnough) [[unlikely]] {
    if (body) {
      body->drop("calls nest deeply");
      return nullptr;
    }
    if (t) t->give_up("calls nest deeply");
    if (room == StackRoom::kLittle) return interpret_frame(thread, frame, throwflag);
    PyErr_SetString(PyExc_RecursionError, "maximum recursion depth exceeded: the C stack is full");
    return nullptr;
  }
  if (throwflag) {
    const Bytecode* thrown_into = t ? bytecode_of(prong_frame_code(frame)) : nullptr;
    if (!thrown_into || !thrown_into->handlers.empty())
      if (t) t->give_up("an exception is thrown into a generator");
    return interpret_frame(thread, frame, throwflag);
  }
  if (prong_is_resumed_generator(thread, frame)) {
    const GeneratorState* state = t ? t->generator(prong_frame_generator(frame)) : nullptr;
    const Bytecode* code = state ? bytecode_of(prong_frame_code(frame)) : nullptr;
    if (code) return Evaluator(thread, frame, *code, *state).loop();
    if (PyErr_Occurred()) return nullptr;
    if (body) {
      body->drop("a generator from elsewhere goes on");
      return nullptr;
    }
    if (t) t->give_up("a generator from elsewhere goes on");
    return interpret_frame(thread, frame, throwflag);
  }
  if (!prong_is_evaluable(thread, frame)) {
    if (body) {
      body->drop("a coroutine or class body runs");
      return nullptr;
    }
    if (t) t->give_up("a coroutine or class body runs");
    return interpret_frame(thread, frame, throwflag);
  }
  if (t && !body && prong_is_collecting(thread) &&
      pending.function != reinterpret_cast<PyObject*>(prong_frame_function(frame)))
    return run_finalizer(thread, frame, t);
  const Bytecode* code = bytecode_of(prong_frame_code(frame));
  if (!code) return nullptr;
  if (body && code->is_import) {
    body->drop("a module is imported");
    return nullptr;
  }
  if (code->is_import) {
    if (t) t->give_up("a module is imported");
    return interpret_frame(thread, frame, throwflag);
  }
  return Evaluator(thread, frame, *code).run();
}

}  // namespace

HookScope::HookScope() {
  if (active_calls++ == 0) prong_set_evaluator(&hook);
}
HookScope::~HookScope() {
  if (--active_calls == 0) prong_set_evaluator(nullptr);
}

void set_pending_call(const PendingCall& call) { pending = call; }

Evaluator::Evaluator(PyThreadState* thread, ProngFrame* frame, const Bytecode& code)
    : thread_(thread), frame_(frame), code_(code), co_(prong_frame_code(frame)),
      slots_(prong_frame_slots(frame)), sp_(slots_ + code.num_slots),
      terms_(static_cast<size_t>(code.num_slots + code.stack_size)) {}

// Gives the frame to the interpreter: it goes on after `unit`, or handles the error that is set,
// raised there.
PyObject* Evaluator::interpret(int unit, int throwflag) {
  prong_set_position(frame_, unit);
  prong_set_stack_top(frame_, static_cast<int>(sp_ - slots_));
  return interpret_frame(thread_, frame_, throwflag);
}

// Terms of the parameters, from what the caller said; false where they do not fit this frame.
bool Evaluator::bind_arguments() {
  const PendingCall given = std::exchange(pending, PendingCall{});
  Tracker* t = current_tracker();
  if (!t) return false;
  auto* function = prong_frame_function(frame_);
  if (given.function != reinterpret_cast<PyObject*>(function)) return bind_unannounced(*t);
  closure_ = given.closure;
  if (!closure_.is_known()) t->read_function(given.function);
  const auto count = static_cast<size_t>(co_->co_argcount),
             keyword_only = static_cast<size_t>(co_->co_kwonlyargcount);
  std::vector<bool> is_set(count + keyword_only, false);
  std::vector<Term> rest;
  std::vector<PyObject*> rest_objects;
  PyObject* varargs = co_->co_flags & CO_VARARGS ? slots_[count + keyword_only] : nullptr;
  for (size_t i = 0; i < given.count; ++i) {
    if (i < count) {
      const bool is_new = i == 0 && given.makes_self;
      terms_[i] = is_new ? t->make_instance(slots_[0]) : (*given.terms)[i];
      is_set[i] = true;
    } else {
      rest.push_back((*given.terms)[i]);
      rest_objects.push_back(varargs ? PyTuple_GET_ITEM(varargs, static_cast<Py_ssize_t>(i - count))
                                     : nullptr);
    }
  }
  std::vector<Term> extra;
  std::vector<PyObject*> extra_objects;
  std::vector<Kept> extra_keys;
  const Py_ssize_t by_name = given.kwnames ? PyTuple_GET_SIZE(given.kwnames) : 0;
  PyObject* varkeywords = nullptr;
  if (co_->co_flags & CO_VARKEYWORDS)
    varkeywords = slots_[count + keyword_only + (varargs ? 1 : 0)];
  for (Py_ssize_t k = 0; k < by_name; ++k) {
    PyObject* name = PyTuple_GET_ITEM(given.kwnames, k);
    const Term term = (*given.terms)[given.count + static_cast<size_t>(k)];
    bool found = false;
    for (size_t s = static_cast<size_t>(co_->co_posonlyargcount);
         s < count + keyword_only && !found; ++s) {
      if (PyUnicode_Compare(PyTuple_GET_ITEM(co_->co_localsplusnames, static_cast<Py_ssize_t>(s)),
                            name) != 0)
        continue;
      terms_[s] = term;
      is_set[s] = found = true;
    }
    if (found) continue;
    extra.push_back(term);
    extra_objects.push_back(varkeywords ? PyDict_GetItem(varkeywords, name) : nullptr);
    extra_keys.emplace_back(name);
  }
  for (size_t s = 0; s < is_set.size(); ++s)
    if (!is_set[s])  // a default; the call may have made it, as it made the function
      terms_[s] = closure_.is_made() ? t->find(slots_[s]) : t->same(slots_[s]);
  if (varargs) {
    const Term made = t->make(Made::Kind::kTuple, std::move(rest), std::move(rest_objects));
    terms_[count + keyword_only] = made;
    t->own(made, varargs);
  }
  if (varkeywords) {
    const Term d = t->make(Made::Kind::kDict, std::move(extra), std::move(extra_objects));
    terms_[count + keyword_only + (varargs ? 1 : 0)] = d;
    if (d.is_made()) t->made(d).keys = std::move(extra_keys);
    t->own(d, varkeywords);
  }
  return t->is_on();
}

// A frame that C code starts: its function and its arguments have to be known by themselves.
bool Evaluator::bind_unannounced(Tracker& t) {
  PyFunctionObject* f = prong_frame_function(frame_);
  PyObject* function = reinterpret_cast<PyObject*>(f);
  const auto count = static_cast<size_t>(co_->co_argcount + co_->co_kwonlyargcount);
  const bool is_init = PyUnicode_CompareWithASCIIString(f->func_name, "__init__") == 0;
  is_called_by_builtin_ = true;
  Term known = t.find(function);
  if (!known.is_known() && count && slots_[0] && t.is_method_of(function, slots_[0]))
    known = Term::same();
  if (!known.is_known()) {
    t.give_up("Python code runs that nobody called in sight");
    return false;
  }
  if (known.is_made())
    closure_ = known;
  else
    t.read_function(function);
  const auto is_default = [&](PyObject* o) {
    if (known.is_made()) return false;
    for (Py_ssize_t i = 0; f->func_defaults && i < PyTuple_GET_SIZE(f->func_defaults); ++i)
      if (PyTuple_GET_ITEM(f->func_defaults, i) == o) return true;
    return false;
  };
  for (size_t s = 0; s < count; ++s) {
    terms_[s] = t.find(slots_[s]);
    if (terms_[s].is_known()) continue;
    const bool is_new =
        s == 0 && is_init && !t.making.empty() && Py_IS_TYPE(slots_[0], t.making.back());
    if (is_new)
      terms_[s] = t.make_instance(slots_[0]);
    else if (is_default(slots_[s]))
      terms_[s] = t.same(slots_[s]);
    else
      t.give_up("Python code runs that nobody called in sight");
  }
  for (size_t s = count,
              n = s + ((co_->co_flags & CO_VARARGS) != 0) + ((co_->co_flags & CO_VARKEYWORDS) != 0);
       s < n && t.is_on(); ++s) {
    terms_[s] = t.adopt(slots_[s]);
    if (!terms_[s].is_known()) t.give_up("Python code runs that nobody called in sight");
  }
  return t.is_on();
}

PyObject* Evaluator::run() {
  is_tracked_ = bind_arguments();
  return loop();
}

// The interpreter unwinds the frame; who called it may ask whether this is the error that came.
PyObject* Evaluator::leave_by_error(int unit) {
  PyObject* result = interpret(unit, 1);
  if (!result) escaped_error = current_error();
  return result;
}

PyObject* Evaluator::loop() {
  const InChain in_chain(this);
  ProngEntry entry;
  if (prong_enter_frame(thread_, frame_, &entry) < 0) return nullptr;
  prong_set_stack_top(frame_, -1);
  for (;;) {
    const Instruction& i = code_.instructions[next_++];
    if (is_tracked_ && !current_tracker()) {
      is_tracked_ = false;
      forget_objects();
    }
    prong_set_position(frame_, i.unit);
    switch (body_ ? step_on_trial(i) : step(i)) {
    case Next::kGo:
      if (!is_traced()) continue;
      lose("tracing is turned on");
      prong_leave_frame(thread_, &entry);
      return interpret(code_.instructions[next_].first - 1, 0);
    case Next::kYield:
      return suspend(&entry);
    case Next::kGenerator:
      prong_leave_frame(thread_, &entry);
      return make_generator(i);
    case Next::kReturn: {
      PyObject* result = pop();
      returned_term = is_tracked_ ? terms_[static_cast<size_t>(sp_ - slots_)] : Term();
      if (is_called_by_builtin_) see_through(returned_term, result);
      prong_set_stack_top(frame_, static_cast<int>(sp_ - slots_));
      prong_leave_frame(thread_, &entry);
      return result;
    }
    case Next::kError:
      if (const bool is_followed = is_error_followed(i); !is_followed)
        lose("an exception is raised");
      else
        is_escaped_error_followed = is_tracked_ && !code_.handler_at(i.unit);
      if (is_traced()) return hand_over_traced(i.unit, &entry);
      if (handle_error(i.unit, true)) continue;
      prong_leave_frame(thread_, &entry);
      return leave_by_error(i.unit);
    case Next::kReraise:
      if (handle_error(i.unit, false)) continue;
      is_escaped_error_followed = is_tracked_ && raised_term_.is_known();
      while (sp_ > slots_ + code_.num_slots) Py_XDECREF(pop());
      prong_set_stack_top(frame_, code_.num_slots);
      escaped_error = current_error();
      prong_leave_frame(thread_, &entry);
      return nullptr;
    case Next::kDrop:
      prong_set_stack_top(frame_, static_cast<int>(sp_ - slots_));
      prong_leave_frame(thread_, &entry);
      return nullptr;
    case Next::kInterpret:
      if (Tracker* t = tracker())
        t->give_up("a form of " + name_of_opcode(i.opcode) + " that is not followed");
      prong_leave_frame(thread_, &entry);
      return interpret(i.first - 1, 0);
    }
  }
}

Evaluator::Next Evaluator::step(const Instruction& i) {
  if (thread_recorder().reads_exposed() && uses_arrays(i)) [[unlikely]] {
    try {
      thread_recorder().settle(kMemoryIsUsed);
    } catch (...) {
      door().set_error();
      return Next::kError;
    }
  }
  switch (i.opcode) {
  case NOP:
  case PRECALL:
    return Next::kGo;
  case RESUME:
    return breathe();
  case POP_TOP:
    Py_DECREF(pop());
    return Next::kGo;
  case PUSH_NULL:
    push(nullptr, {});
    return Next::kGo;
  case COPY: {
    PyObject* o = top(i.arg);
    Py_XINCREF(o);
    push(o, term(i.arg));
    return Next::kGo;
  }
  case SWAP:
    std::swap(top(1), top(i.arg));
    std::swap(term(1), term(i.arg));
    return Next::kGo;
  case KW_NAMES:
    kwnames_ = PyTuple_GET_ITEM(co_->co_consts, i.arg);
    return Next::kGo;
  case CALL:
    return after_call(call(i));
  case CALL_FUNCTION_EX:
    return after_call(call_unpacked(i));
  case MAKE_FUNCTION:
    return make_function(i);
  case RETURN_VALUE:
    return Next::kReturn;
  case LOAD_ATTR:
    return load_attribute(i, false);
  case LOAD_METHOD:
    return load_attribute(i, true);
  case MATCH_SEQUENCE:
  case MATCH_MAPPING:
  case MATCH_KEYS:
  case MATCH_CLASS:
    return step_match(i);
  case STORE_GLOBAL:
  case DELETE_DEREF:
  case IMPORT_NAME:
  case IMPORT_FROM:
    return step_name(i);
  case RETURN_GENERATOR:
    return Next::kGenerator;
  case YIELD_VALUE:
    return generator_ ? Next::kYield : Next::kInterpret;
  case SEND:
    return send(i);
  case RAISE_VARARGS:
    return raise(i);
  case BEFORE_WITH:
  case WITH_EXCEPT_START:
  case PUSH_EXC_INFO:
  case CHECK_EXC_MATCH:
  case POP_EXCEPT:
  case RERAISE:
    return step_exception(i);
  case LOAD_CONST:
  case LOAD_FAST:
  case STORE_FAST:
  case DELETE_FAST:
  case LOAD_GLOBAL:
  case MAKE_CELL:
  case COPY_FREE_VARS:
  case LOAD_CLOSURE:
  case LOAD_DEREF:
  case STORE_DEREF:
  case STORE_ATTR:
  case LOAD_ASSERTION_ERROR:
    return step_variable(i);
  case JUMP_FORWARD:
  case JUMP_BACKWARD:
  case JUMP_BACKWARD_NO_INTERRUPT:
  case POP_JUMP_FORWARD_IF_TRUE:
  case POP_JUMP_FORWARD_IF_FALSE:
  case POP_JUMP_FORWARD_IF_NONE:
  case POP_JUMP_FORWARD_IF_NOT_NONE:
  case POP_JUMP_BACKWARD_IF_TRUE:
  case POP_JUMP_BACKWARD_IF_FALSE:
  case POP_JUMP_BACKWARD_IF_NONE:
  case POP_JUMP_BACKWARD_IF_NOT_NONE:
  case JUMP_IF_TRUE_OR_POP:
  case JUMP_IF_FALSE_OR_POP:
    return step_jump(i);
  case UNARY_POSITIVE:
  case UNARY_NEGATIVE:
  case UNARY_NOT:
  case UNARY_INVERT:
  case BINARY_OP:
  case COMPARE_OP:
  case IS_OP:
  case CONTAINS_OP:
  case BINARY_SUBSCR:
  case STORE_SUBSCR:
    return step_operator(i);
  case DELETE_SUBSCR:
    return delete_item();
  case DELETE_ATTR:
    return delete_attribute(i);
  default:
    return step_container(i);
  }
}

// Where the interpreter too lets others in: at the start of a frame, and of each turn of a loop.
Evaluator::Next Evaluator::breathe() {
  if (body_ || has_logged_steps())
    return Next::kGo;  // it is short, and what a handler of a signal does is no part of it
  const int waits = prong_breathe(thread_);
  return waits < 0 ? Next::kError : waits ? Next::kInterpret : Next::kGo;
}

// And behind each call: what a signal's handler raises comes from the line that made the call.
Evaluator::Next Evaluator::after_call(Next next) {
  if (next != Next::kGo || body_ || has_logged_steps() || prong_breathe(thread_) >= 0) return next;
  is_escaped_error_followed = false;
  escaped_error = nullptr;
  return Next::kError;
}

// ── names ──

Evaluator::Next Evaluator::load_global(const Instruction& i) {
  PyObject* globals = prong_frame_globals(frame_);
  PyObject* builtins = prong_frame_builtins(frame_);
  if (!PyDict_CheckExact(globals) || !PyDict_CheckExact(builtins)) return Next::kInterpret;
  PyObject* name = PyTuple_GET_ITEM(co_->co_names, i.arg >> 1);
  PyObject* value = PyDict_GetItemWithError(globals, name);
  if (!value && PyErr_Occurred()) return Next::kError;
  const bool is_global = value != nullptr;
  if (!value) {
    value = PyDict_GetItemWithError(builtins, name);
    if (!value)
      return PyErr_Occurred() ? Next::kError : Next::kInterpret;  // which raises NameError
  }
  Term term;
  if (Tracker* t = tracker()) {
    if (is_global) {
      term = t->read_dict(globals, name, value);
    } else {
      t->read_dict(globals, name, nullptr);
      term = t->read_dict(builtins, name, value);
    }
  }
  if (i.arg & 1) push(nullptr, {});
  push(Py_NewRef(value), term);
  return Next::kGo;
}

Evaluator::Next Evaluator::step_variable(const Instruction& i) {
  Tracker* t = tracker();
  switch (i.opcode) {
  case LOAD_CONST:
    push(Py_NewRef(PyTuple_GET_ITEM(co_->co_consts, i.arg)), Term::same());
    return Next::kGo;
  case LOAD_CLOSURE:
  case LOAD_FAST:
    if (!slots_[i.arg]) return Next::kInterpret;  // which raises UnboundLocalError
    push(Py_NewRef(slots_[i.arg]), terms_[static_cast<size_t>(i.arg)]);
    return Next::kGo;
  case STORE_FAST: {
    const Term kept = term();
    PyObject* old = std::exchange(slots_[i.arg], pop());
    terms_[static_cast<size_t>(i.arg)] = kept;
    Py_XDECREF(old);
    return Next::kGo;
  }
  case DELETE_FAST: {
    if (!slots_[i.arg]) return Next::kInterpret;
    PyObject* old = std::exchange(slots_[i.arg], nullptr);
    Py_DECREF(old);
    return Next::kGo;
  }
  case LOAD_GLOBAL:
    return load_global(i);
  case MAKE_CELL: {
    PyObject* held = slots_[i.arg];
    PyObject* cell = PyCell_New(held);
    if (!cell) return Next::kError;
    Term& slot = terms_[static_cast<size_t>(i.arg)];
    if (t) {
      slot = t->make(Made::Kind::kCell, {held ? slot : Term::same()}, {held});
      t->own(slot, cell);
    }
    slots_[i.arg] = cell;
    Py_XDECREF(held);
    return Next::kGo;
  }
  case COPY_FREE_VARS: {
    PyObject* closure = prong_frame_function(frame_)->func_closure;
    const int first = code_.num_slots - i.arg;
    for (int k = 0; k < i.arg; ++k) {
      PyObject* cell = PyTuple_GET_ITEM(closure, k);
      slots_[first + k] = Py_NewRef(cell);
      if (t) terms_[static_cast<size_t>(first + k)] = Term::same();
    }
    if (t && closure_.is_made())
      for (int k = 0; k < i.arg; ++k)
        terms_[static_cast<size_t>(first + k)] = t->made(closure_).items[static_cast<size_t>(k)];
    return Next::kGo;
  }
  case LOAD_DEREF: {
    PyObject* cell = slots_[i.arg];
    PyObject* value = PyCell_GET(cell);
    if (!value) return Next::kInterpret;
    Term term;
    const Term cell_term = terms_[static_cast<size_t>(i.arg)];
    if (t && cell_term.is_same())
      term = t->read_cell(cell, PyTuple_GET_ITEM(co_->co_localsplusnames, i.arg));
    if (t && cell_term.is_made()) term = t->made(cell_term).items[0];
    push(Py_NewRef(value), term);
    return Next::kGo;
  }
  case STORE_DEREF: {
    PyObject* cell = slots_[i.arg];
    const Term cell_term = terms_[static_cast<size_t>(i.arg)], value_term = term();
    PyObject* value = pop();
    if (t && t->is_fragile(value_term)) t->give_up("a variable of a closure holds a generator");
    if (t && cell_term.is_made()) {
      t->made(cell_term).items[0] = value_term;
      t->made(cell_term).objects[0] = value;
    } else if (t && !t->write_cell(cell, value, value_term)) {
      t->give_up("a variable of an enclosing function is assigned something that is not followed");
    }
    PyObject* old = PyCell_GET(cell);
    PyCell_SET(cell, value);
    Py_XDECREF(old);
    return Next::kGo;
  }
  case STORE_ATTR:
    return store_attribute(i);
  default:  // LOAD_ASSERTION_ERROR
    push(Py_NewRef(PyExc_AssertionError), Term::same());
    return Next::kGo;
  }
}

// ── jumps ──

namespace {
// An object of a class without __bool__ and __len__, whose version guards ask for.
bool is_always_true(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  if (door().is_tensor(o) || (type->tp_as_number && type->tp_as_number->nb_bool) ||
      (type->tp_as_mapping && type->tp_as_mapping->mp_length) ||
      (type->tp_as_sequence && type->tp_as_sequence->sq_length))
    return false;
  if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE))
    if (Tracker* t = current_tracker()) t->read_type(type);
  return true;
}
}  // namespace

// Is the branch on top of the stack one that values of tensors choose? An assert is none.
bool Evaluator::chooses_by_data(PyObject* value) {
  if (!thread_recorder().observer() || code_.instructions[next_].opcode == LOAD_ASSERTION_ERROR)
    return false;
  if (door().is_exact_tensor(value)) return true;
  Tracker* t = tracker();
  return t && term().is_number() && t->is_read_from_tensor(term());
}

Evaluator::Next Evaluator::step_jump(const Instruction& i) {
  const int32_t after = i.unit + 1;
  switch (i.opcode) {
  case JUMP_FORWARD:
    jump(after + i.arg);
    return Next::kGo;
  case JUMP_BACKWARD:
    if (const Next next = breathe(); next != Next::kGo) return next;
    [[fallthrough]];
  case JUMP_BACKWARD_NO_INTERRUPT:
    jump(after - i.arg);
    return Next::kGo;
  default:
    break;
  }
  const bool is_none_test =
      i.opcode == POP_JUMP_FORWARD_IF_NONE || i.opcode == POP_JUMP_FORWARD_IF_NOT_NONE ||
      i.opcode == POP_JUMP_BACKWARD_IF_NONE || i.opcode == POP_JUMP_BACKWARD_IF_NOT_NONE;
  const bool keeps = i.opcode == JUMP_IF_TRUE_OR_POP || i.opcode == JUMP_IF_FALSE_OR_POP;
  const bool backward =
      i.opcode == POP_JUMP_BACKWARD_IF_TRUE || i.opcode == POP_JUMP_BACKWARD_IF_FALSE ||
      i.opcode == POP_JUMP_BACKWARD_IF_NONE || i.opcode == POP_JUMP_BACKWARD_IF_NOT_NONE;
  if (backward)
    if (const Next next = breathe(); next != Next::kGo) return next;
  PyObject* value = top();
  bool holds;
  if (is_none_test) {
    if (!term().is_known()) lose("a branch on a value of unknown origin");
    holds = (value == Py_None) ==
            (i.opcode == POP_JUMP_FORWARD_IF_NONE || i.opcode == POP_JUMP_BACKWARD_IF_NONE);
  } else {
    if (Tracker* t = tracker()) {
      const Term c = term();
      if (c.is_tensor() && door().is_exact_tensor(value))
        t->set_reading(true);
      else if (c.is_same() && is_dict(value))
        t->read_length(value);
      else if (c.is_same() && PyList_CheckExact(value))
        t->read_list(value);
      else if (c.is_same() && is_always_true(value))
        t->read_type_of(value);
      else if (c.is_number())
        t->pin_truth(c, value);
      else if (!t->is_plain(c, value) &&
               !(c.is_same() && (PyFunction_Check(value) || PyTuple_CheckExact(value))) &&
               !c.is_made())
        t->give_up("a branch on a value that is not the same each time");
      if (c.is_made() && t->made(c).kind == Made::Kind::kIterator)
        t->give_up("a branch on an iterator");
    }
    if (chooses_by_data(value)) {
      try {
        thread_recorder().observer()->on_branch(thread_recorder().has_work());
      } catch (...) {
        door().set_error();
        return Next::kError;
      }
    }
    const int truth = PyObject_IsTrue(value);
    if (Tracker* t = tracker(); t && t->is_reading()) {
      t->set_reading(false);
      if (truth >= 0) t->branched(value, truth != 0);
    }
    if (truth < 0) return Next::kError;
    const bool wants_true = i.opcode == POP_JUMP_FORWARD_IF_TRUE ||
                            i.opcode == POP_JUMP_BACKWARD_IF_TRUE ||
                            i.opcode == JUMP_IF_TRUE_OR_POP;
    holds = (truth != 0) == wants_true;
  }
  if (holds) jump(backward ? after - i.arg : after + i.arg);
  if (!(keeps && holds)) Py_DECREF(pop());
  return Next::kGo;
}

}  // namespace prong::capture
