// The entry of the script front end: functions and methods from source text to graphs. Called by
// api and bindings.
#pragma once

#include <mutex>
#include <string>
#include <unordered_map>

#include "script/resolver.h"

namespace prong::script {

// Compiles the entry if that has not been done, and what it calls. Passes run over the graph at its
// first call. A function that is being compiled further up gives its declaration (recursion).
Ref<Function> compile(FunctionEntry& entry);

// All compilations of the process take this lock; Python callers give the GIL up before they wait
// for it.
std::recursive_mutex& compile_lock();

// Classes by their type. An unknown type has no entry (loaded modules): null.
ClassEntry* find_class(const ClassType& cls);
void register_class(Ref<ClassEntry> entry);
// The method, compiled at need; null where the class has none.
Ref<Function> method_of(ClassType& cls, const std::string& name);

}  // namespace prong::script
