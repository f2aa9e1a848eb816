// Compiles entries at their first use, under one lock; keeps classes by type.
#include "script/compiler.h"

#include "script/emitter.h"
#include "script/parser.h"

namespace prong::script {

namespace {

struct Tables {
  std::unordered_map<const ClassType*, Ref<ClassEntry>> classes;
};
Tables& tables() {
  static Tables* t = new Tables;
  return *t;
}

FunctionDefPtr only_function(FunctionEntry& entry) {
  if (entry.ast) return entry.ast;
  return parse_function(entry.source);
}

}  // namespace

std::recursive_mutex& compile_lock() {
  static auto* m = new std::recursive_mutex;
  return *m;
}

Ref<Function> compile(FunctionEntry& entry) {
  std::lock_guard guard(compile_lock());
  switch (entry.state) {
  case FunctionEntry::State::kDone:
  case FunctionEntry::State::kActive:
    return entry.function;
  case FunctionEntry::State::kFailed:
    throw Error(ErrorKind::kRuntime, entry.failure);
  case FunctionEntry::State::kPending:
    break;
  }
  FunctionScope scope(entry.name);
  try {
    entry.ast = only_function(entry);
    Schema schema = Emitter::signature_of(entry);
    entry.function = make_ref<Function>(entry.name, std::move(schema));
    if (entry.home) entry.home->add(entry.function);
    entry.state = FunctionEntry::State::kActive;
    Emitter emitter(entry);
    emitter.run();
  } catch (const NeedsUnrolling& need) {
    entry.state = FunctionEntry::State::kFailed;
    try {
      unsupported(need.range,
                  "a module list whose items are of different classes needs an index that is known "
                  "when the function is compiled",
                  "loop over range(len(self.layers)) or over the list itself");
    } catch (const Error& error) {
      entry.failure = error.message();
      throw;
    }
  } catch (const Error& error) {
    // Tried again at the next use: the mistake may be in something that the user defines anew.
    entry.state = FunctionEntry::State::kPending;
    throw;
  } catch (...) {
    entry.state = FunctionEntry::State::kPending;
    throw;
  }
  entry.state = FunctionEntry::State::kDone;
  return entry.function;
}

ClassEntry* find_class(const ClassType& cls) {
  std::lock_guard guard(compile_lock());
  const auto found = tables().classes.find(&cls);
  return found == tables().classes.end() ? nullptr : found->second.get();
}

void register_class(Ref<ClassEntry> entry) {
  std::lock_guard guard(compile_lock());
  tables().classes[entry->cls.get()] = std::move(entry);
}

Ref<Function> method_of(ClassType& cls, const std::string& name) {
  if (Function* f = cls.find_method(name)) return Ref<Function>(f);
  ClassEntry* entry = find_class(cls);
  if (!entry || !entry->source) return {};
  const ClassSource::Member m = entry->source->member(name);
  if (!m.is_method || m.named.kind != Named::Kind::kFunction) return {};
  const bool is_init = name == "__init__" && !entry->is_initialized;
  if (is_init) entry->is_open = true;
  Ref<Function> f = compile(*m.named.entry);
  if (is_init) {
    entry->is_open = false;
    entry->is_initialized = true;
  }
  if (m.named.entry->state == FunctionEntry::State::kDone) cls.add_method(name, f);
  return f;
}

}  // namespace prong::script
