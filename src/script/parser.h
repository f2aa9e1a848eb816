// Parses Python text into the syntax tree. Called by the compiler (a function, a class) and by
// CompilationUnit (a file).
#pragma once

#include "script/ast.h"

namespace prong::script {

Suite parse_file(const SourcePtr& source);
// The source of one function, with its decorators.
FunctionDefPtr parse_function(const SourcePtr& source);
// The source of one class.
std::shared_ptr<const ClassDef> parse_class(const SourcePtr& source);
ExprPtr parse_expression(const SourcePtr& source);

}  // namespace prong::script
