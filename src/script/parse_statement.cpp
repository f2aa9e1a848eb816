// Statements of the parser: lines, blocks, functions, classes, type comments.
#include <algorithm>

#include "script/parser_base.h"

namespace prong::script {

namespace {

std::shared_ptr<Stmt> make_stmt(StmtKind kind, const Range& range) {
  auto s = std::make_shared<Stmt>();
  s->kind = kind;
  s->range = range;
  return s;
}

constexpr std::string_view kAugmented[] = {
    "+=", "-=", "*=", "/=", "//=", "%=", "**=", "@=", "&=", "|=", "^=", ">>=", "<<="};

}  // namespace

Suite Parser::file() {
  Suite out;
  while (!at_end()) statement(out);
  return out;
}

StmtPtr Parser::statement_at_start() {
  while (now().kind == TokenKind::kNewline || now().kind == TokenKind::kIndent) take();
  Suite out;
  statement(out);
  return out.empty() ? nullptr : out[0];
}

Suite Parser::block() {
  expect(":", "before a block");
  Suite out;
  if (now().kind != TokenKind::kNewline) {
    simple_line(out);
    return out;
  }
  take();
  if (now().kind != TokenKind::kIndent) unexpected("an indented block");
  take();
  while (now().kind != TokenKind::kDedent && !at_end()) statement(out);
  if (!at_end()) take();
  return out;
}

void Parser::statement(Suite& out) {
  const Token& t = now();
  if (t.kind == TokenKind::kNewline) {
    take();
  } else if (t.kind == TokenKind::kIndent) {
    fail(t.range, "unexpected indent");
  } else if (t.is("if")) {
    out.push_back(if_statement());
  } else if (t.is("for")) {
    out.push_back(for_statement());
  } else if (t.is("while")) {
    out.push_back(while_statement());
  } else if (t.is("with")) {
    out.push_back(with_statement());
  } else if (t.is("def") || t.is("class") || t.is("@")) {
    out.push_back(definition());
  } else if (t.is("try") || t.is("async")) {
    out.push_back(refuse(t.value));
    skip_suite();
    while (now().is("except") || now().is("else") || now().is("finally")) skip_suite();
  } else {
    simple_line(out);
  }
}

// Leaves out a compound statement that scripts do not have; the checker refuses it if it is ever
// reached.
void Parser::skip_suite() {
  int depth = 0;
  while (!at_end() && now().kind != TokenKind::kNewline) take();
  if (now().kind == TokenKind::kNewline) take();
  if (now().kind != TokenKind::kIndent) return;
  do {
    if (now().kind == TokenKind::kIndent) ++depth;
    if (now().kind == TokenKind::kDedent) --depth;
    take();
  } while (depth > 0 && !at_end());
}

StmtPtr Parser::refuse(std::string what) {
  auto s = make_stmt(StmtKind::kUnsupported, now().range);
  s->text = std::move(what);
  return s;
}

void Parser::simple_line(Suite& out) {
  do {
    if (now().kind == TokenKind::kNewline) break;
    out.push_back(simple());
  } while (accept(";"));
  if (now().kind == TokenKind::kNewline)
    take();
  else if (!at_end() && now().kind != TokenKind::kDedent)
    unexpected("the end of the line");
}

StmtPtr Parser::simple() {
  const Token t = now();
  const auto word = [&](StmtKind kind) {
    take();
    return make_stmt(kind, t.range);
  };
  const auto ends = [&] { return now().kind == TokenKind::kNewline || now().is(";") || at_end(); };
  if (t.is("pass")) return word(StmtKind::kPass);
  if (t.is("break")) return word(StmtKind::kBreak);
  if (t.is("continue")) return word(StmtKind::kContinue);
  if (t.is("return")) {
    auto s = word(StmtKind::kReturn);
    if (!ends()) s->value = test_list();
    s->range = t.range.to(last());
    return s;
  }
  if (t.is("raise")) {
    auto s = word(StmtKind::kRaise);
    if (!ends()) s->value = test();
    if (accept("from")) test();
    s->range = t.range.to(last());
    return s;
  }
  if (t.is("assert")) {
    auto s = word(StmtKind::kAssert);
    s->value = test();
    if (accept(",")) s->message = test();
    s->range = t.range.to(last());
    return s;
  }
  if (t.is("del")) {
    auto s = word(StmtKind::kDelete);
    ExprPtr e = test_list();
    if (e->kind == ExprKind::kTuple)
      s->targets = e->items;
    else
      s->targets = {e};
    s->range = t.range.to(last());
    return s;
  }
  for (std::string_view w : {"global", "nonlocal", "import", "from"})
    if (t.is(w)) {
      StmtPtr s = refuse(std::string(w));
      while (!ends()) take();
      return s;
    }
  return expression_statement();
}

ExprPtr Parser::type_comment_on(int line) {
  const auto found = tokens_.type_comments.find(line);
  if (found == tokens_.type_comments.end()) return nullptr;
  Parser p(source_, found->second.begin, found->second.end, /*nested=*/true);
  ExprPtr type = p.test_list();
  p.expect_end();
  return type;
}

StmtPtr Parser::expression_statement() {
  ExprPtr first = test_list();
  if (accept(":")) {
    check_target(*first);
    auto s = make_stmt(StmtKind::kAnnotated, first->range);
    s->targets = {first};
    s->annotation = test();
    if (accept("=")) s->value = test_list();
    s->range = first->range.to(last());
    return s;
  }
  for (std::string_view op : kAugmented)
    if (now().is(op)) {
      check_target(*first, true);
      take();
      auto s = make_stmt(StmtKind::kAugmented, first->range);
      s->targets = {first};
      s->text = std::string(op.substr(0, op.size() - 1));
      s->value = test_list();
      s->range = first->range.to(last());
      return s;
    }
  if (!now().is("=")) {
    auto s = make_stmt(first->kind == ExprKind::kString ? StmtKind::kPass : StmtKind::kExpr,
                       first->range);
    s->value = first;
    return s;
  }
  auto s = make_stmt(StmtKind::kAssign, first->range);
  std::vector<ExprPtr> chain{first};
  while (accept("=")) chain.push_back(test_list());
  s->value = chain.back();
  chain.pop_back();
  for (const ExprPtr& target : chain) check_target(*target);
  s->targets = std::move(chain);
  s->range = first->range.to(last());
  s->annotation = type_comment_on(source_->line_of(last().begin));
  return s;
}

void Parser::check_target(const Expr& e, bool augmented) {
  switch (e.kind) {
  case ExprKind::kName:
  case ExprKind::kAttribute:
  case ExprKind::kSubscript:
    return;
  case ExprKind::kStarred:
    if (!augmented) return check_target(*e.items[0]);
    break;
  case ExprKind::kTuple:
  case ExprKind::kList:
    if (augmented) break;
    for (const ExprPtr& item : e.items) check_target(*item);
    return;
  default:
    break;
  }
  fail(e.range, cat("syntax error: cannot assign to '", e.range.text(), "'"));
}

StmtPtr Parser::if_statement() {
  const Range start = take().range;
  auto s = make_stmt(StmtKind::kIf, start);
  s->value = test();
  s->range = start.to(s->value->range);
  s->body = block();
  if (now().is("elif"))
    s->orelse = {if_statement()};
  else if (accept("else"))
    s->orelse = block();
  return s;
}

StmtPtr Parser::for_statement() {
  const Range start = take().range;
  auto s = make_stmt(StmtKind::kFor, start);
  s->targets = {target_list()};
  expect("in", "in a for loop");
  s->value = test_list();
  s->range = start.to(s->value->range);
  s->body = block();
  if (accept("else")) s->orelse = block();
  return s;
}

StmtPtr Parser::while_statement() {
  const Range start = take().range;
  auto s = make_stmt(StmtKind::kWhile, start);
  s->value = test();
  s->range = start.to(s->value->range);
  s->body = block();
  if (accept("else")) s->orelse = block();
  return s;
}

StmtPtr Parser::with_statement() {
  const Range start = take().range;
  auto s = make_stmt(StmtKind::kWith, start);
  // A parenthesised list of items is told from a parenthesised expression by what follows it.
  bool parenthesised = false;
  if (now().is("(")) {
    size_t i = 1;
    for (int depth = 1; depth > 0 && ahead(i).kind != TokenKind::kEnd; ++i) {
      if (ahead(i).is("(") || ahead(i).is("[")) ++depth;
      if (ahead(i).is(")") || ahead(i).is("]")) --depth;
    }
    parenthesised = ahead(i).is(":");
    if (parenthesised) take();
  }
  do {
    if (parenthesised && now().is(")")) break;
    WithItem item;
    item.context = test();
    if (accept("as")) {
      item.target = postfix();
      check_target(*item.target);
    }
    s->items.push_back(std::move(item));
  } while (accept(","));
  if (parenthesised) expect(")", "after the items of with");
  s->range = start.to(last());
  s->body = block();
  return s;
}

StmtPtr Parser::definition() {
  std::vector<ExprPtr> decorators;
  const Range start = now().range;
  while (accept("@")) {
    decorators.push_back(test());
    while (now().kind == TokenKind::kNewline) take();
  }
  if (now().is("class")) {
    auto s = make_stmt(StmtKind::kClass, start);
    s->class_ = class_definition();
    s->range = s->class_->range;
    return s;
  }
  if (now().is("async"))
    unsupported(now().range, "async functions are not available in scripts",
                "use torch.jit.fork and torch.jit.wait");
  auto s = make_stmt(StmtKind::kFunction, start);
  s->function = function(std::move(decorators));
  s->range = s->function->range;
  return s;
}

std::shared_ptr<const ClassDef> Parser::class_definition() {
  take();
  auto c = std::make_shared<ClassDef>();
  c->range = now().range;
  c->name = expect_name("the name of a class");
  if (accept("(")) {
    for (CallArgument& a : call_arguments())
      if (a.keyword.empty()) c->bases.push_back(a.value);
  }
  c->body = block();
  return c;
}

FunctionDefPtr Parser::function(std::vector<ExprPtr> decorators) {
  expect("def", "before a function");
  auto f = std::make_shared<FunctionDef>();
  f->decorators = std::move(decorators);
  f->range = now().range;
  f->name = expect_name("the name of a function");
  expect("(", "after the function's name");
  f->parameters = parameters();
  if (accept("->")) f->returns = test();
  // A type comment stands on the line of the colon or on a line of its own before the first
  // statement.
  const int colon_line = source_->line_of(now().range.begin);
  const size_t first = now().is(":") && ahead().kind == TokenKind::kNewline ? 3 : 1;
  const int body_line = source_->line_of(ahead(first).range.begin);
  f->body = block();
  for (int line = colon_line; line < std::max(body_line, colon_line + 1); ++line) {
    const auto comment = tokens_.type_comments.find(line);
    if (comment == tokens_.type_comments.end()) continue;
    if (comment->second.text().find("->") == std::string_view::npos) continue;
    apply_type_comment(*f, comment->second);
    break;
  }
  return f;
}

std::vector<Parameter> Parser::parameters() {
  std::vector<Parameter> out;
  bool keyword_only = false;
  while (!now().is(")")) {
    if (accept("/")) {
      if (!accept(",")) break;
      continue;
    }
    Parameter p;
    p.range = now().range;
    if (now().is("*") && ahead().is(",")) {
      take();
      take();
      keyword_only = true;
      continue;
    }
    p.is_star = accept("*");
    p.is_double_star = !p.is_star && accept("**");
    p.name = expect_name("the name of a parameter");
    if (accept(":")) p.annotation = test();
    if (accept("=")) p.default_value = test();
    p.is_keyword_only = keyword_only;
    keyword_only |= p.is_star;
    const int line = source_->line_of(last().begin);
    const bool comma = accept(",");
    if (!p.annotation && source_->line_of(now().range.begin) != line) {
      const auto comment = tokens_.type_comments.find(line);
      if (comment != tokens_.type_comments.end() &&
          comment->second.text().find("->") == std::string_view::npos)
        p.annotation = type_comment_on(line);
    }
    out.push_back(std::move(p));
    if (!comma) break;
  }
  expect(")", "after the parameters");
  return out;
}

void Parser::apply_type_comment(FunctionDef& f, const Range& comment) {
  const size_t arrow = comment.begin + comment.text().find("->");
  const std::string& all = source_->text();
  const size_t open_paren = all.find('(', comment.begin), close_paren = all.rfind(')', arrow);
  if (open_paren >= arrow || close_paren == std::string::npos || close_paren <= open_paren)
    fail(comment, "a type comment of a function is written (int, Tensor) -> Tensor");
  const std::string_view written =
      std::string_view(all).substr(open_paren, close_paren + 1 - open_paren);
  std::vector<ExprPtr> list;
  Parser left(source_, open_paren + 1, close_paren, true);
  while (!left.at_end()) {
    list.push_back(left.test());
    if (!left.at_end()) left.expect(",", "between types");
  }
  Parser right(source_, arrow + 2, comment.end, true);
  f.returns = right.test_list();
  right.expect_end();
  if (list.size() == 1 && list[0]->kind == ExprKind::kEllipsis) return;
  std::vector<Parameter*> open;
  for (Parameter& p : f.parameters) open.push_back(&p);
  if (open.size() == list.size() + 1 && !open.empty() && open[0]->name == "self")
    open.erase(open.begin());
  if (open.size() != list.size())
    fail(comment, cat("the type comment ", written, " names ", list.size(), " types but ", f.name,
                      " has ", open.size(), " parameters"));
  for (size_t i = 0; i < open.size(); ++i) open[i]->annotation = list[i];
}

Suite parse_file(const SourcePtr& source) {
  return Parser(source, 0, source->text().size(), false).file();
}

FunctionDefPtr parse_function(const SourcePtr& source) {
  Parser p(source, 0, source->text().size(), false);
  StmtPtr s = p.statement_at_start();
  if (!s || s->kind != StmtKind::kFunction)
    fail({source, 0, 0}, "this is not the source of a function",
         "lambdas and generated functions cannot be compiled: write a def");
  return s->function;
}

std::shared_ptr<const ClassDef> parse_class(const SourcePtr& source) {
  Parser p(source, 0, source->text().size(), false);
  StmtPtr s = p.statement_at_start();
  if (!s || s->kind != StmtKind::kClass) fail({source, 0, 0}, "this is not the source of a class");
  return s->class_;
}

}  // namespace prong::script
