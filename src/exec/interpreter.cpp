// The interpreter loop of ScriptTask.
#include <cstring>

#include "eager/dispatch.h"
#include "exec/isinstance.h"
#include "exec/run.h"
#include "exec/script_task.h"
#include "runtime/future.h"
#include "runtime/interrupt.h"

namespace prong::exec {

// The operands of an instruction, read out of the registers; they die with this.
class ScriptTask::Arguments {
 public:
  Arguments(const Program& p, IValue* registers, const Instruction& i) : size_(i.num_operands) {
    items_ = size_ <= kInline ? reinterpret_cast<IValue*>(inline_)
                              : static_cast<IValue*>(::operator new(size_ * sizeof(IValue)));
    for (uint32_t k = 0; k < size_; ++k) {
      const uint32_t word = i.operands[k], index = word >> 2;
      switch (static_cast<Access>(word & 3)) {
      case Access::kTake:
        new (&items_[k]) IValue(std::move(registers[index]));
        break;
      case Access::kCopy:
        new (&items_[k]) IValue(registers[index]);
        break;
      case Access::kConstant:
        new (&items_[k]) IValue(p.constants[index]);
        break;
      }
    }
  }
  ~Arguments() {
    for (uint32_t k = 0; k < size_; ++k) items_[k].~IValue();
    if (size_ > kInline) ::operator delete(items_);
  }
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  uint32_t size() const { return size_; }
  IValue& operator[](uint32_t k) { return items_[k]; }
  std::span<IValue> span() { return {items_, size_}; }
  std::vector<IValue> take() {
    return {std::make_move_iterator(items_), std::make_move_iterator(items_ + size_)};
  }

 private:
  static constexpr uint32_t kInline = 10;
  uint32_t size_;
  IValue* items_;
  alignas(IValue) char inline_[kInline * sizeof(IValue)];
};

namespace {

// A look at an operand without taking it.
const IValue& peek(const Program& p, const IValue* registers, uint32_t word) {
  return static_cast<Access>(word & 3) == Access::kConstant ? p.constants[word >> 2]
                                                            : registers[word >> 2];
}

// Holds an exception in a register while a `with` region is left.
struct ErrorBox final : ObjectBase {
  explicit ErrorBox(std::exception_ptr e) : error(std::move(e)) {}
  std::string describe() const override { return "an exception on its way"; }
  std::exception_ptr error;
};

// Thrown by kReraise to unwind(): the exception has its traceback already.
struct Reraise {
  std::exception_ptr error;
};

IValue dict_of(std::span<IValue> args) {
  auto dict = make_ref<DictBox>();
  for (size_t k = 0; k + 1 < args.size(); k += 2) dict->set(args[k], std::move(args[k + 1]));
  return IValue(std::move(dict));
}

IValue& attribute(const IValue& object, const IValue& name, uint32_t slot) {
  PRONG_CHECK(object.is_object(), kAttribute, "'", name_of(object.tag()),
              "' object has no attribute '", name.to_string(), "'");
  auto* o = dynamic_cast<Object*>(object.object());
  PRONG_CHECK(o, kAttribute, "attribute '", name.to_string(), "' of ", object.object()->describe(),
              ", which is no scripted object");
  const auto& attributes = o->cls->attributes();
  if (slot < attributes.size() && slot < o->slots.size() &&
      attributes[slot].name == name.to_string())
    return o->slots[slot];
  return o->slot(name.to_string());
}

[[noreturn]] void wrong_count(size_t got, size_t expected) {
  throw_error(ErrorKind::kValue,
              got < expected
                  ? cat("not enough values to unpack (expected ", expected, ", got ", got, ")")
                  : cat("too many values to unpack (expected ", expected, ")"));
}

void write(IValue* registers, const Instruction& i, IValue value) {
  if (i.num_destinations && i.destinations[0] != kDiscard)
    registers[i.destinations[0]] = std::move(value);
}

Future& future_of(const IValue& v) {
  PRONG_CHECK(!v.is_none(), kRuntime, "wait: the future can't be None");
  PRONG_CHECK(v.is_future(), kType, "wait: expected a Future, got ", name_of(v.tag()));
  return *v.future();
}

const Program& program_of_site(const ForkSite& site, const IValue* receiver) {
  if (site.function) return program_of(*site.function);
  if (site.program) return *site.program;
  auto* o = receiver->is_object() ? dynamic_cast<Object*>(receiver->object()) : nullptr;
  PRONG_CHECK(o, kType, "fork of method '", site.method,
              "' of a value that is no scripted object: ", repr(*receiver));
  Function* method = o->cls->find_method(site.method);
  PRONG_CHECK(method, kAttribute, "'", o->cls->qualified_name, "' object has no method '",
              site.method, "'");
  return program_of(*method);
}

}  // namespace

void ScriptTask::raise(const Program& p, const Instruction& i, const IValue& message) {
  const std::string& name = p.constants[i.immediates[0]].to_string();
  ScriptError error(kind_of_class(name), name,
                    message.is_string() ? message.to_string() : repr(message), {});
  const IValue& python_class = p.constants[i.immediates[1]];
  if (python_class.is_object()) error.set_python_class(Ref<ObjectBase>(python_class.object()));
  throw error;
}

void ScriptTask::call_method(Frame& frame, const Instruction& i, Arguments& args) {
  const std::string& name = frame.program->constants[i.immediates[0]].to_string();
  auto* o = args[0].is_object() ? dynamic_cast<Object*>(args[0].object()) : nullptr;
  PRONG_CHECK(o, kAttribute, "method '", name,
              "' of a value that is no scripted object: ", repr(args[0]));
  Function* method = o->cls->find_method(name);
  PRONG_CHECK(method, kAttribute, "'", o->cls->qualified_name, "' object has no method '", name,
              "'");
  const Program& callee = program_of(*method);
  PRONG_CHECK(callee.num_parameters == args.size(), kType, o->cls->qualified_name, ".", name,
              "() takes ", callee.num_parameters, " arguments, got ", args.size());
  // The object, and with it the class and this program, may go while the method runs.
  kept_.emplace_back(frames_.size(), callee.keeper());
  push(callee, args);
}

void ScriptTask::enter(Arguments& args) {
  if (!args[0].is_object())
    throw_error(ErrorKind::kType,
                cat("'", name_of(args[0].tag()), "' object does not support `with`"));
  ObjectBase* object = args[0].object();
  if (auto* manager = dynamic_cast<ContextManager*>(object)) {
    IValue entered = manager->enter();
    managers_.push_back(manager);
    const Frame& frame = frames_.back();
    write(registers_ + frame.base, frame.program->at(frame.position), std::move(entered));
    return;
  }
  auto* o = dynamic_cast<Object*>(object);
  Function* method = o ? o->cls->find_method("__enter__") : nullptr;
  PRONG_CHECK(method && o->cls->find_method("__exit__"), kAttribute, object->describe(),
              " does not support `with`: it has no methods __enter__ and __exit__");
  push(program_of(*method), args);
}

void ScriptTask::exit(Arguments& args) {
  ObjectBase* object = args[0].object();
  if (auto* manager = dynamic_cast<ContextManager*>(object)) {
    if (!managers_.empty()) managers_.pop_back();
    manager->exit();
    return;
  }
  auto* o = static_cast<Object*>(object);
  const Program& callee = program_of(*o->cls->find_method("__exit__"));
  // __exit__(self, type, value, traceback): the last three are None, as there are no exception
  // values in scripts.
  PRONG_CHECK(callee.num_parameters == 4 || callee.num_parameters == 1, kType,
              o->cls->qualified_name, ".__exit__() takes ", callee.num_parameters,
              " arguments, expected self, type, value, traceback");
  push(callee, args);
}

// Runs until the task ends or is suspended; gives what to run next on this thread. Errors come out
// as C++ exceptions, with the position of the failing instruction in frames_.back().
Ref<Task> ScriptTask::interpret() {
  while (true) {
    Frame& frame = frames_.back();
    const Program& p = *frame.program;
    IValue* registers = registers_ + frame.base;
    const uint32_t* code = p.code.data();
    uint32_t position = frame.position;
    bool same_frame = true;
    while (same_frame) {
      frame.position = position;
      const Instruction i = instruction_at(code + position);
      switch (i.opcode) {
      case Opcode::kOp: {
        Arguments args(p, registers, i);
        write(registers, i, eager::run(*p.ops[i.immediates[0]], args.span()));
        break;
      }
      case Opcode::kHost: {
        Arguments args(p, registers, i);
        write(registers, i, p.host_ops[i.immediates[0]]->fn(args.span()));
        break;
      }
      case Opcode::kMove: {
        Arguments args(p, registers, i);
        for (uint32_t k = 0; k < i.num_destinations; ++k)
          if (i.destinations[k] != kDiscard) registers[i.destinations[k]] = std::move(args[k]);
        break;
      }
      case Opcode::kDrop: {
        for (uint32_t k = 0; k < i.num_operands; ++k) registers[i.operands[k] >> 2] = IValue();
        break;
      }
      case Opcode::kJump: {
        if (i.immediates[0] <= position) check_interrupt();
        position = i.immediates[0];
        continue;
      }
      case Opcode::kJumpUnless: {
        const uint32_t operand = i.operands[0];
        const bool condition = peek(p, registers, operand).to_bool();
        if (static_cast<Access>(operand & 3) == Access::kTake) registers[operand >> 2] = IValue();
        if (condition) break;
        position = i.immediates[0];
        continue;
      }
      case Opcode::kLoopNext: {
        IValue& counter = registers[i.destinations[0]];
        const int64_t next = counter.to_int() + 1;
        const IValue& count = peek(p, registers, i.operands[0]);
        if ((!count.is_none() && next >= count.to_int()) ||
            !peek(p, registers, i.operands[1]).to_bool()) {
          position = i.immediates[0];
          continue;
        }
        counter = IValue(next);
        break;
      }
      case Opcode::kReturn: {
        Arguments args(p, registers, i);
        if (frames_.size() == 1) {
          end_span(frames_.back());
          return finish(std::move(args[0]));
        }
        pop();
        Frame& caller = frames_.back();
        const Instruction call = caller.program->at(caller.position);
        // What a with region's __exit__ gives has no destination.
        for (uint32_t k = 0; k < call.num_destinations; ++k)
          if (call.destinations[k] != kDiscard)
            registers_[caller.base + call.destinations[k]] = std::move(args[k]);
        caller.position += call.length;
        same_frame = false;
        continue;
      }
      case Opcode::kCall: {
        Arguments args(p, registers, i);
        push(program_of(*p.functions[i.immediates[0]]), args);
        same_frame = false;
        continue;
      }
      case Opcode::kCallMethod: {
        Arguments args(p, registers, i);
        call_method(frame, i, args);
        same_frame = false;
        continue;
      }
      case Opcode::kCallPython: {
        Arguments args(p, registers, i);
        IValue result =
            static_cast<PyCallable*>(p.constants[i.immediates[0]].object())->call(args.span());
        write(registers, i, std::move(result));
        break;
      }
      case Opcode::kFork: {
        const Ref<ForkSite>& site = p.fork_sites[i.immediates[0]];
        const Program& callee =
            program_of_site(*site, i.num_operands ? &peek(p, registers, i.operands[0]) : nullptr);
        PRONG_CHECK(callee.num_parameters == i.num_operands, kType, "fork of ", callee.name,
                    "(): it takes ", callee.num_parameters, " arguments, got ", i.num_operands);
        Ref<RefCounted> keep;  // the site keeps a function, but neither its home nor a method
        if (callee.home || (!site->function && !site->program)) keep = callee.keeper();
        Ref<ScriptTask> task = create(callee, std::move(keep), site);
        for (uint32_t k = 0; k < i.num_operands; ++k) {
          const uint32_t operand = i.operands[k];
          IValue& to = task->argument(k);
          if (static_cast<Access>(operand & 3) == Access::kTake)
            to = std::move(registers[operand >> 2]);
          else
            to = peek(p, registers, operand);
        }
        Ref<Future> future = task->make_future();
        submit(std::move(task));
        write(registers, i, IValue(std::move(future)));
        break;
      }
      case Opcode::kWait: {
        IValue* taken = static_cast<Access>(i.operands[0] & 3) == Access::kTake
                            ? &registers[i.operands[0] >> 2]
                            : nullptr;
        Ref<FutureBase> back = arrived();
        if (back && taken) *taken = IValue(static_ref_cast<Future>(back));
        Future& future = future_of(peek(p, registers, i.operands[0]));
        if (!future.is_done()) {
          // If this register were the last to hold the future, the two would hold each other.
          const IValue held = taken ? std::exchange(*taken, IValue()) : IValue();
          leave_thread();
          Ref<Task> next;
          if (await(future, next)) return next;  // nothing of this task may be touched any more
          return_to_thread();
          if (taken) *taken = held;
        }
        IValue value = future.value();
        if (taken) *taken = IValue();
        write(registers, i, std::move(value));
        break;
      }
      case Opcode::kGetAttr: {
        Arguments args(p, registers, i);
        write(registers, i, attribute(args[0], p.constants[i.immediates[0]], i.immediates[1]));
        break;
      }
      case Opcode::kSetAttr: {
        Arguments args(p, registers, i);
        attribute(args[0], p.constants[i.immediates[0]], i.immediates[1]) = std::move(args[1]);
        break;
      }
      case Opcode::kNewObject: {
        auto* info = static_cast<ClassType*>(p.types[i.immediates[0]][0]->class_info());
        write(registers, i, IValue(Ref<ObjectBase>(make_ref<Object>(Ref<ClassType>(info)))));
        break;
      }
      case Opcode::kTuple: {
        Arguments args(p, registers, i);
        write(registers, i, IValue::tuple(args.take()));
        break;
      }
      case Opcode::kNamedTuple: {
        Arguments args(p, registers, i);
        write(registers, i,
              IValue(make_ref<TupleBox>(args.take(), p.tuple_names[i.immediates[0]])));
        break;
      }
      case Opcode::kList: {
        Arguments args(p, registers, i);
        write(registers, i, IValue::list(args.take()));
        break;
      }
      case Opcode::kDict: {
        Arguments args(p, registers, i);
        write(registers, i, dict_of(args.span()));
        break;
      }
      case Opcode::kTupleGet: {
        Arguments args(p, registers, i);
        write(registers, i, args[0].tuple()->items[i.immediates[0]]);
        break;
      }
      case Opcode::kUnpack: {
        Arguments args(p, registers, i);
        const std::vector<IValue>& items = args[0].items();
        if (items.size() != i.num_destinations) wrong_count(items.size(), i.num_destinations);
        for (uint32_t k = 0; k < i.num_destinations; ++k)
          if (i.destinations[k] != kDiscard) registers[i.destinations[k]] = items[k];
        break;
      }
      case Opcode::kIsInstance: {
        Arguments args(p, registers, i);
        bool fits = false;
        for (const TypePtr& t : p.types[i.immediates[0]]) fits |= is_instance(args[0], *t);
        write(registers, i, IValue(fits));
        break;
      }
      case Opcode::kRaise: {
        Arguments args(p, registers, i);
        raise(p, i, args[0]);
      }
      case Opcode::kAssert: {
        Arguments args(p, registers, i);
        PRONG_CHECK(args[0].to_bool(), kAssertion, args[1].to_string());
        break;
      }
      case Opcode::kEnter: {
        Arguments args(p, registers, i);
        const size_t depth = frames_.size();
        enter(args);
        same_frame = frames_.size() == depth;
        if (!same_frame) continue;
        break;
      }
      case Opcode::kExit: {
        Arguments args(p, registers, i);
        const size_t depth = frames_.size();
        exit(args);
        same_frame = frames_.size() == depth;
        if (!same_frame) continue;
        break;
      }
      case Opcode::kReraise: {
        Arguments args(p, registers, i);
        throw Reraise{static_cast<ErrorBox*>(args[0].object())->error};
      }
      case Opcode::kFused: {
        Arguments args(p, registers, i);
        const FusedSite& site = p.fused_sites[i.immediates[0]];
        std::vector<IValue> results(i.num_destinations);
        if (!site.kernel || !site.kernel->run(args.span(), results)) {
          push(*site.ops, args);
          same_frame = false;
          continue;
        }
        for (uint32_t k = 0; k < i.num_destinations; ++k)
          if (i.destinations[k] != kDiscard) registers[i.destinations[k]] = std::move(results[k]);
        break;
      }
      }
      position += i.length;
    }
  }
}

Ref<Task> ScriptTask::run() {
  if (is_off_thread_) return_to_thread();
  while (true) {
    std::exception_ptr error;
    try {
      return interpret();
    } catch (const Reraise& r) {
      error = r.error;
    } catch (...) {
      try {
        // Made here, while all frames of the task are still there.
        error = std::make_exception_ptr(to_script_error(std::current_exception(), traceback()));
      } catch (...) {
        error = std::current_exception();
      }
    }
    Ref<Task> next;
    if (unwind(std::move(error), next)) return next;
  }
}

bool ScriptTask::unwind(std::exception_ptr error, Ref<Task>& next) {
  while (true) {
    Frame& frame = frames_.back();
    for (const Program::Region& r : frame.program->regions)
      if (frame.position >= r.begin && frame.position < r.end) {
        registers_[frame.base + r.error_register] =
            IValue(Ref<ObjectBase>(make_ref<ErrorBox>(std::move(error))));
        frame.position = r.handler;
        return false;
      }
    if (frames_.size() == 1) break;
    pop();
  }
  end_span(frames_.back());
  // Tensors must not wait for the task object to go.
  for (uint32_t k = 0; k < top_; ++k) registers_[k] = IValue();
  next = future_->finish_error(std::move(error));
  return true;
}

void ScriptTask::push(const Program& program, Arguments& args) {
  PRONG_CHECK(frames_.size() < recursion_limit(), kRuntime,
              "maximum recursion depth exceeded: ", frames_.size(),
              " calls inside each other, the innermost of ", program.name);
  PRONG_ASSERT(args.size() <= program.num_registers || program.num_registers == 0, program.name,
               " got too many arguments");
  const uint32_t base = top_;
  if (base + program.num_registers > capacity_) grow(base + program.num_registers);
  top_ = base + program.num_registers;
  for (uint32_t k = 0; k < args.size() && k < program.num_parameters; ++k)
    registers_[base + k] = std::move(args[k]);
  frames_.push_back({&program, 0, base, nullptr, 0});
  if (profile::is_on()) begin_span(frames_.back());
}

void ScriptTask::pop() {
  Frame& frame = frames_.back();
  end_span(frame);
  for (uint32_t k = frame.base; k < top_; ++k) registers_[k] = IValue();
  top_ = frame.base;
  frames_.pop_back();
  while (!kept_.empty() && kept_.back().first >= frames_.size()) kept_.pop_back();
}

}  // namespace prong::exec
