// Running functions: the entry points of exec/. Called by api, bindings, script and tests.
#pragma once

#include <vector>

#include "exec/program.h"
#include "exec/script_error.h"

namespace prong::exec {

// Arguments match the schema one to one, defaults filled in. Blocks until done; may run other tasks
// meanwhile (those that it waits for). Throws ScriptError.
IValue run(Function& function, std::vector<IValue> args);

// Starts a task, as fork does in a script.
Ref<Future> fork(Function& function, std::vector<IValue> args);

// How deep calls may nest inside one task; more raise RuntimeError as Python's RecursionError does.
// 100,000 at first.
void set_recursion_limit(uint32_t frames);
uint32_t recursion_limit();

}  // namespace prong::exec
