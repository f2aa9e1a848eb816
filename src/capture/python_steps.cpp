// Which calls may be steps of a plan, and how they are made again. See python_steps.h.
#include "capture/python_steps.h"

#include <string_view>

#include "capture/python_names.h"

namespace prong::capture {

namespace {

using Kind = PythonStep::Kind;

// Of a module that is imported already; borrowed, kept by it. Null: there is none.
PyObject* attribute_of_module(const char* module, const char* name) {
  PyObject* modules = PyImport_GetModuleDict();  // borrowed
  PyObject* found = modules ? PyDict_GetItemString(modules, module) : nullptr;
  Py_XINCREF(found);
  PyObject* value = found ? PyObject_GetAttrString(found, name) : nullptr;
  PyErr_Clear();
  Py_XDECREF(found);
  Py_XDECREF(value);
  return value;
}

PyTypeObject* io_type(const char* name) {
  PyObject* type = attribute_of_module("_io", name);
  return type && PyType_Check(type) ? reinterpret_cast<PyTypeObject*>(type) : nullptr;
}

bool has_own_attribute(PyObject* o, const char* name) {
  PyObject** dict = _PyObject_GetDictPtr(o);
  return dict && *dict && PyDict_GetItemString(*dict, name);
}

// Files, and what buffers them, of the io module's own classes.
bool is_plain_bytes(PyObject* o) {
  static PyTypeObject* const kinds[] = {io_type("BytesIO"), io_type("FileIO"),
                                        io_type("BufferedWriter"), io_type("BufferedRandom")};
  PyTypeObject* type = Py_TYPE(o);
  if (has_own_attribute(o, "write") || has_own_attribute(o, "flush")) return false;
  if (type == kinds[0] || type == kinds[1]) return true;
  if (type != kinds[2] && type != kinds[3]) return false;
  PyObject* raw = PyObject_GetAttrString(o, "raw");
  PyErr_Clear();
  const bool is_file = raw && Py_TYPE(raw) == kinds[1] && !has_own_attribute(raw, "write");
  Py_XDECREF(raw);
  return is_file;
}

// Writing to it runs no code of a program.
bool is_plain_stream(PyObject* o) {
  static PyTypeObject* const text = io_type("TextIOWrapper");
  static PyTypeObject* const memory = io_type("StringIO");
  if (!o || !text || !memory) return false;
  PyTypeObject* type = Py_TYPE(o);
  PyTypeObject* base = PyType_IsSubtype(type, text)     ? text
                       : PyType_IsSubtype(type, memory) ? memory
                                                        : nullptr;
  if (!base) return is_plain_bytes(o);
  if (type->tp_getattro != PyObject_GenericGetAttr) return false;
  for (const char* word : {"write", "flush", "buffer"}) {
    PyObject* name = PyUnicode_InternFromString(word);
    const bool is_own = _PyType_Lookup(type, name) == _PyType_Lookup(base, name);
    Py_DECREF(name);
    if (!is_own || has_own_attribute(o, word)) return false;
  }
  if (base == memory) return true;
  PyObject* buffer = PyObject_GetAttrString(o, "buffer");
  PyErr_Clear();
  const bool is_plain = buffer && is_plain_bytes(buffer);
  Py_XDECREF(buffer);
  return is_plain;
}

bool is_standard_stream_plain(const char* name) {
  PyObject* stream = PySys_GetObject(name);
  return stream == Py_None || is_plain_stream(stream);
}

bool is_print_plain(PyObject* stream) {
  return stream ? is_plain_stream(stream) : is_standard_stream_plain("stdout");
}

// What the module prong._dynamo.steps says; a new reference, None where the call is no step.
PyObject* asked_in_python(const char* function, PyObject* argument) {
  PyObject* module = PyImport_ImportModule("prong._dynamo.steps");
  PyObject* answer = module ? PyObject_CallMethod(module, function, "(O)", argument) : nullptr;
  Py_XDECREF(module);
  PyErr_Clear();
  return answer;
}
bool is_plain_in_python(const char* function, PyObject* argument) {
  PyObject* answer = asked_in_python(function, argument);
  const bool is_plain = answer && answer != Py_None;
  Py_XDECREF(answer);
  return is_plain;
}

bool is_clock(std::string_view name) {
  return is_one_of(name, {"time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic",
                          "monotonic_ns", "process_time", "process_time_ns", "thread_time",
                          "thread_time_ns"});
}

std::optional<Kind> kind_of_builtin(PyCFunctionObject* f, PyObject* const* args, size_t count,
                                    PyObject* kwnames) {
  const std::string_view name = f->m_ml->ml_name, module = module_of(f);
  PyObject* self = f->m_self;
  if (self && !PyModule_Check(self)) {
    static PyObject* const random = attribute_of_module("random", "Random");
    if (reinterpret_cast<PyObject*>(Py_TYPE(self)) == random && random && count == 0 && !kwnames &&
        name == "random" && !has_own_attribute(self, "random"))
      return Kind::kDraw;
    if (is_one_of(name, {"write", "flush"}) && !kwnames && count <= 1 && is_plain_stream(self))
      return Kind::kStream;
    return std::nullopt;
  }
  if (module == "time" && !kwnames && count == 0 && is_clock(name)) return Kind::kClock;
  if (module == "time" && !kwnames && count == 1 && name == "sleep") return Kind::kSleep;
  if (module == "builtins" && name == "print" &&
      is_print_plain(stream_of_print(args, count, kwnames)))
    return Kind::kPrint;
  if (module == "_warnings" && name == "warn" && is_standard_stream_plain("stderr") &&
      is_plain_in_python("warns_plainly", Py_None))
    return Kind::kWarn;
  return std::nullopt;
}

bool is_random_method(std::string_view name) {
  return is_one_of(name, {"randint", "randrange", "uniform", "gauss", "normalvariate",
                          "expovariate", "triangular", "betavariate", "lognormvariate"});
}

}  // namespace

PyObject* stream_of_print(PyObject* const* args, size_t count, PyObject* kwnames) {
  const Py_ssize_t by_name = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t k = 0; k < by_name; ++k) {
    PyObject* value = args[count + static_cast<size_t>(k)];
    if (std::string_view(text_of(PyTuple_GET_ITEM(kwnames, k))) == "file")
      return value == Py_None ? nullptr : value;
  }
  return nullptr;
}

std::optional<Kind> step_kind(PyObject* callable, PyObject* const* args, size_t count,
                              PyObject* kwnames) {
  if (PyCFunction_Check(callable))
    return kind_of_builtin(reinterpret_cast<PyCFunctionObject*>(callable), args, count, kwnames);
  PyObject* self = PyMethod_Check(callable) ? PyMethod_GET_SELF(callable) : nullptr;
  PyObject* function = self ? PyMethod_GET_FUNCTION(callable) : callable;
  if (!PyFunction_Check(function)) return std::nullopt;
  auto* f = reinterpret_cast<PyFunctionObject*>(function);
  if (!f->func_module || !PyUnicode_Check(f->func_module)) return std::nullopt;
  const std::string_view module = text_of(f->func_module);
  if (module == "random" && self) {
    PyObject* random = attribute_of_module("random", "Random");
    if (reinterpret_cast<PyObject*>(Py_TYPE(self)) != random ||
        !is_random_method(text_of(f->func_name)) || !is_plain_in_python("draws_plainly", callable))
      return std::nullopt;
    return Kind::kNumber;
  }
  if (module != "logging" || !is_plain_in_python("logs_plainly", callable)) return std::nullopt;
  PyObject* given = PyTuple_New(static_cast<Py_ssize_t>(count));
  for (size_t i = 0; given && i < count; ++i)
    PyTuple_SET_ITEM(given, static_cast<Py_ssize_t>(i), Py_NewRef(args[i]));
  PyObject* question = given ? PyTuple_Pack(2, callable, given) : nullptr;
  Py_XDECREF(given);
  const bool logs = question && is_plain_in_python("would_log", question);
  Py_XDECREF(question);
  return logs ? std::optional(Kind::kLog) : std::nullopt;  // else it is followed
}

bool is_step_plain(const PythonStep& step) {
  switch (step.kind) {
  case Kind::kClock:
  case Kind::kDraw:
  case Kind::kSleep:
    return true;
  case Kind::kNumber:
    return is_plain_in_python("draws_plainly", step.callable.get());
  case Kind::kStream:
    return is_plain_stream(PyCFunction_GET_SELF(step.callable.get()));
  case Kind::kPrint:
    return is_print_plain(step.stream.get());
  case Kind::kLog:
    return is_plain_in_python("logs_plainly", step.callable.get());
  case Kind::kWarn:
    return is_plain_in_python("warns_plainly", Py_None);
  }
  return false;
}

// Methods are bound anew at each call.
bool is_same_callable(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (PyMethod_Check(a) && PyMethod_Check(b))
    return PyMethod_GET_FUNCTION(a) == PyMethod_GET_FUNCTION(b) &&
           PyMethod_GET_SELF(a) == PyMethod_GET_SELF(b);
  if (!PyCFunction_Check(a) || !PyCFunction_Check(b)) return false;
  auto *x = reinterpret_cast<PyCFunctionObject*>(a), *y = reinterpret_cast<PyCFunctionObject*>(b);
  return x->m_ml == y->m_ml && x->m_self == y->m_self;
}

std::vector<PyTypeObject*> classes_of_step(Kind kind, PyObject* callable) {
  std::vector<PyTypeObject*> classes;
  const char* asked = kind == Kind::kLog ? "logs_plainly" : "draws_plainly";
  if (kind != Kind::kLog && kind != Kind::kNumber) return classes;
  PyObject* found = asked_in_python(asked, callable);
  for (Py_ssize_t i = 0; found && PyTuple_Check(found) && i < PyTuple_GET_SIZE(found); ++i)
    classes.push_back(reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(found, i)));
  Py_XDECREF(found);  // modules keep the classes
  return classes;
}

// ── frames ──

namespace {

// Of `def call(f, a, k): return f(*a, **k)`; lives on.
PyObject* code_of_call() {
  static PyObject* const code = [] {
    PyObject* space = PyDict_New();
    PyObject* done = space ? PyRun_String("def call(f, a, k):\n return f(*a, **k)\n", Py_file_input,
                                          space, space)
                           : nullptr;
    PyObject* function = done ? PyDict_GetItemString(space, "call") : nullptr;
    PyObject* found = function ? PyObject_GetAttrString(function, "__code__") : nullptr;
    Py_XDECREF(done);
    Py_XDECREF(space);
    return found;
  }();
  return code;
}

// A table of lines that says of all `units`: the first line, columns unknown.
PyObject* one_line_table(Py_ssize_t units) {
  std::string table;
  for (; units > 0; units -= 8) {
    table += static_cast<char>(0x80 | 13 << 3 | (std::min<Py_ssize_t>(units, 8) - 1));
    table += '\0';
  }
  return PyBytes_FromStringAndSize(table.data(), static_cast<Py_ssize_t>(table.size()));
}

}  // namespace

PyObject* make_frame_function(PyCodeObject* code, int line, PyObject* globals) {
  PyObject* call = code_of_call();
  if (!call) return nullptr;
  PyObject* table = one_line_table(Py_SIZE(reinterpret_cast<PyCodeObject*>(call)));
  PyObject* changes =
      table ? Py_BuildValue("{sOsOsOsisO}", "co_filename", code->co_filename, "co_name",
                            code->co_name, "co_qualname", code->co_qualname, "co_firstlineno", line,
                            "co_linetable", table)
            : nullptr;
  Py_XDECREF(table);
  PyObject* replace = changes ? PyObject_GetAttrString(call, "replace") : nullptr;
  PyObject* none = replace ? PyTuple_New(0) : nullptr;
  PyObject* own = none ? PyObject_Call(replace, none, changes) : nullptr;
  Py_XDECREF(changes);
  Py_XDECREF(replace);
  Py_XDECREF(none);
  PyObject* function = own ? PyFunction_New(own, globals) : nullptr;
  Py_XDECREF(own);
  return function;
}

namespace {
thread_local StepLog* open_log = nullptr;
}  // namespace

StepLogScope::StepLogScope(StepLog* log) : saved_(open_log) {
  log->next = 0;
  open_log = log;
}
StepLogScope::~StepLogScope() { open_log = saved_; }

bool has_logged_steps() { return open_log && open_log->next < open_log->entries.size(); }

const StepLog::Entry* logged_step(PyObject* callable) {
  if (!has_logged_steps()) return nullptr;
  const StepLog::Entry& e = open_log->entries[open_log->next];
  if (!is_same_callable(e.callable.get(), callable)) return nullptr;
  ++open_log->next;
  return &e;
}

PyObject* outcome_of(const StepLog::Entry& entry, bool has_frames) {
  if (PyObject* result = entry.result.get()) return Py_NewRef(result);
  PyObject* error = entry.error.get();
  PyObject* trace = PyException_GetTraceback(error);
  for (size_t i = 0; has_frames && i < entry.frames && trace && trace != Py_None; ++i) {
    PyObject* inner = PyObject_GetAttrString(trace, "tb_next");
    Py_SETREF(trace, inner);
  }
  if (trace == Py_None) Py_CLEAR(trace);
  PyException_SetTraceback(error, trace ? trace : Py_None);
  PyErr_Restore(Py_NewRef(PyExceptionInstance_Class(error)), Py_NewRef(error), trace);
  return nullptr;
}

PyObject* take_step(const PythonStep& step, PyObject* const* args) {
  const Py_ssize_t by_name = step.kwnames.get() ? PyTuple_GET_SIZE(step.kwnames.get()) : 0;
  const size_t count = step.args.size() - static_cast<size_t>(by_name);
  if (step.frames.empty())
    return PyObject_Vectorcall(step.callable.get(), args, count, step.kwnames.get());
  PyObject* positional = PyTuple_New(static_cast<Py_ssize_t>(count));
  PyObject* named = PyDict_New();
  bool is_made = positional && named;
  for (size_t i = 0; is_made && i < count; ++i)
    PyTuple_SET_ITEM(positional, static_cast<Py_ssize_t>(i), Py_NewRef(args[i]));
  for (Py_ssize_t k = 0; is_made && k < by_name; ++k)
    is_made = PyDict_SetItem(named, PyTuple_GET_ITEM(step.kwnames.get(), k),
                             args[count + static_cast<size_t>(k)]) == 0;
  Kept callee(step.callable.get());
  for (const Kept& frame : step.frames) {
    if (!is_made || &frame == &step.frames.back()) break;
    // The next one out calls this one with what it is to call.
    PyObject* inner = PyTuple_Pack(3, callee.get(), positional, named);
    Py_SETREF(positional, inner);
    PyObject* none = PyDict_New();
    Py_SETREF(named, none);
    is_made = inner && none;
    callee = Kept(frame.get());
  }
  PyObject* result = nullptr;
  if (is_made) {
    PyObject* outermost[] = {callee.get(), positional, named};
    result = PyObject_Vectorcall(step.frames.back().get(), outermost, 3, nullptr);
  }
  Py_XDECREF(positional);
  Py_XDECREF(named);
  return result;
}

}  // namespace prong::capture
