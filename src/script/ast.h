// The syntax tree of a script: what the parser makes and the type checker reads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "script/source.h"

namespace prong::script {

struct Expr;
struct Stmt;
using ExprPtr = std::shared_ptr<const Expr>;
using StmtPtr = std::shared_ptr<const Stmt>;
using Suite = std::vector<StmtPtr>;

enum class ExprKind : uint8_t {
  kName,       // text
  kAttribute,  // items[0] . text
  kCall,       // items[0]; arguments
  kSubscript,  // items[0] [ items[1] ]
  kSlice,      // items: start, stop, step; null where left out
  kTuple,      // items
  kList,       // items
  kSet,        // items
  kDict,       // items: key, value, key, value ...; a null key: **value
  kCompare,    // items[0] operators[0] items[1] operators[1] ...
  kAnd,        // items
  kOr,         // items
  kNot,        // items[0]
  kUnary,      // text items[0]
  kBinary,     // items[0] text items[1]
  kTernary,    // items: condition, if true, if false
  kInt,        // text
  kFloat,      // text
  kString,     // text
  kFString,    // items: kString parts and kFormatted ones
  kFormatted,  // items[0], text: conversion and format spec as written ("!r", ":.2f"), items[1...]:
               // none
  kTrue,
  kFalse,
  kNone,
  kEllipsis,
  kStarred,    // * items[0]
  kListComp,   // items[0]; clauses
  kSetComp,    // items[0]; clauses
  kGenerator,  // items[0]; clauses
  kDictComp,   // items: key, value; clauses
  kLambda,     // text: unused; only to be refused where it stands
  kWalrus,     // text := items[0]
};

// One argument of a call.
struct CallArgument {
  std::string keyword;  // empty: positional
  ExprPtr value;
  bool is_star = false;         // *value
  bool is_double_star = false;  // **value
};

// "for target in iterable if conditions..." of a comprehension.
struct Clause {
  ExprPtr target, iterable;
  std::vector<ExprPtr> conditions;
};

struct Expr {
  ExprKind kind;
  Range range;
  std::string text;
  std::vector<ExprPtr> items;
  std::vector<std::string> operators;
  std::vector<CallArgument> arguments;
  std::vector<Clause> clauses;
};

enum class StmtKind : uint8_t {
  kExpr,       // value
  kAssign,     // targets (several when chained) = value; annotation from a type comment
  kAnnotated,  // targets[0] : annotation = value (may be null)
  kAugmented,  // targets[0] text= value
  kIf,         // value; body, orelse
  kFor,        // targets[0] in value; body, orelse
  kWhile,      // value; body, orelse
  kReturn,     // value (may be null)
  kRaise,      // value (may be null)
  kAssert,     // value; message (may be null)
  kPass,       // also docstrings
  kBreak,
  kContinue,
  kWith,         // items; body
  kDelete,       // targets
  kFunction,     // function
  kClass,        // class_
  kUnsupported,  // text: what it is ("try", "import", ...)
};

struct WithItem {
  ExprPtr context, target;  // target may be null
};

struct Parameter {
  std::string name;
  Range range;
  ExprPtr annotation;     // null: none
  ExprPtr default_value;  // null: none
  bool is_keyword_only = false;
  bool is_star = false;         // *args
  bool is_double_star = false;  // **kwargs
};

struct FunctionDef {
  std::string name;
  Range range;  // of the name
  std::vector<ExprPtr> decorators;
  std::vector<Parameter> parameters;
  ExprPtr returns;  // null: not annotated
  Suite body;
};
using FunctionDefPtr = std::shared_ptr<const FunctionDef>;

struct ClassDef {
  std::string name;
  Range range;
  std::vector<ExprPtr> bases;
  Suite body;
};

struct Stmt {
  StmtKind kind;
  Range range;
  std::string text;
  std::vector<ExprPtr> targets;
  ExprPtr value, annotation, message;
  std::vector<WithItem> items;
  Suite body, orelse;
  FunctionDefPtr function;
  std::shared_ptr<const ClassDef> class_;
};

// "torch.jit.fork" for a chain of attributes on a name; empty for anything else.
std::string dotted_name(const Expr& e);

}  // namespace prong::script
