// Expressions of the parser: Python's precedence from the ternary down to atoms, f-strings,
// comprehensions.
#include <algorithm>

#include "script/parser_base.h"

namespace prong::script {

std::shared_ptr<Expr> make_expr(ExprKind kind, const Range& range, std::vector<ExprPtr> items,
                                std::string text) {
  auto e = std::make_shared<Expr>();
  e->kind = kind;
  e->range = range;
  e->items = std::move(items);
  e->text = std::move(text);
  return e;
}

std::string dotted_name(const Expr& e) {
  if (e.kind == ExprKind::kName) return e.text;
  if (e.kind != ExprKind::kAttribute) return {};
  const std::string base = dotted_name(*e.items[0]);
  return base.empty() ? base : base + "." + e.text;
}

namespace {

std::string describe(const Token& t) {
  switch (t.kind) {
  case TokenKind::kNewline:
    return "the end of the line";
  case TokenKind::kIndent:
    return "an indented block";
  case TokenKind::kDedent:
    return "the end of the block";
  case TokenKind::kEnd:
    return "the end of the text";
  default:
    return cat("'", t.range.text(), "'");
  }
}

struct Level {
  std::initializer_list<std::string_view> operators;
};
const Level kBinaryLevels[] = {{{"|"}},        {{"^"}},      {{"&"}},
                               {{"<<", ">>"}}, {{"+", "-"}}, {{"*", "/", "//", "%", "@"}}};

bool ends_list(const Token& t) {
  if (t.kind == TokenKind::kNewline || t.kind == TokenKind::kEnd || t.kind == TokenKind::kDedent)
    return true;
  for (std::string_view s : {")", "]", "}", "=", ":", ";", "in", "for"})
    if (t.is(s)) return true;
  return t.kind == TokenKind::kOperator && t.value.size() > 1 && t.value.back() == '=';
}

}  // namespace

void Parser::unexpected(std::string_view wanted) {
  fail(now().range, cat("syntax error: expected ", wanted, " but found ", describe(now())));
}

const Token& Parser::expect(std::string_view op, std::string_view where) {
  if (!now().is(op)) unexpected(cat("'", op, "' ", where));
  return take();
}

std::string Parser::expect_name(std::string_view where) {
  if (now().kind != TokenKind::kName) unexpected(where);
  return take().value;
}

void Parser::expect_end() {
  while (now().kind == TokenKind::kNewline) take();
  if (!at_end()) unexpected("the end of the expression");
}

ExprPtr Parser::test_list() {
  ExprPtr first = starred_or_test();
  if (!now().is(",")) return first;
  std::vector<ExprPtr> items{first};
  while (accept(",") && !ends_list(now())) items.push_back(starred_or_test());
  return make_expr(ExprKind::kTuple, first->range.to(last()), std::move(items));
}

ExprPtr Parser::starred_or_test() {
  if (!now().is("*")) return test();
  const Range start = take().range;
  ExprPtr e = binary(0);
  return make_expr(ExprKind::kStarred, start.to(e->range), {e});
}

ExprPtr Parser::test() {
  if (now().is("lambda")) return lambda();
  if (now().is("await") || now().is("yield"))
    unsupported(now().range, cat("'", now().value, "' is not available in scripts"),
                "use torch.jit.fork and torch.jit.wait");
  ExprPtr value = or_test();
  if (now().is(":=") && value->kind == ExprKind::kName) {
    take();
    ExprPtr assigned = test();
    return make_expr(ExprKind::kWalrus, value->range.to(assigned->range), {assigned}, value->text);
  }
  if (!accept("if")) return value;
  ExprPtr condition = or_test();
  expect("else", "in a conditional expression");
  ExprPtr otherwise = test();
  return make_expr(ExprKind::kTernary, value->range.to(otherwise->range),
                   {condition, value, otherwise});
}

ExprPtr Parser::or_test() {
  ExprPtr first = and_test();
  if (!now().is("or")) return first;
  std::vector<ExprPtr> items{first};
  while (accept("or")) items.push_back(and_test());
  return make_expr(ExprKind::kOr, first->range.to(last()), std::move(items));
}

ExprPtr Parser::and_test() {
  ExprPtr first = not_test();
  if (!now().is("and")) return first;
  std::vector<ExprPtr> items{first};
  while (accept("and")) items.push_back(not_test());
  return make_expr(ExprKind::kAnd, first->range.to(last()), std::move(items));
}

ExprPtr Parser::not_test() {
  if (!now().is("not")) return comparison();
  const Range start = take().range;
  ExprPtr e = not_test();
  return make_expr(ExprKind::kNot, start.to(e->range), {e});
}

ExprPtr Parser::comparison() {
  ExprPtr first = binary(0);
  std::vector<ExprPtr> items{first};
  std::vector<std::string> operators;
  while (true) {
    std::string op;
    for (std::string_view o : {"<", ">", "==", "!=", "<=", ">=", "in"})
      if (now().is(o)) op = o;
    if (now().is("is")) op = ahead().is("not") ? "is not" : "is";
    if (now().is("not") && ahead().is("in")) op = "not in";
    if (op.empty()) break;
    take();
    if (op == "is not" || op == "not in") take();
    operators.push_back(op);
    items.push_back(binary(0));
  }
  if (operators.empty()) return first;
  auto e = make_expr(ExprKind::kCompare, first->range.to(last()), std::move(items));
  e->operators = std::move(operators);
  return e;
}

ExprPtr Parser::binary(int level) {
  if (level == static_cast<int>(std::size(kBinaryLevels))) return unary();
  ExprPtr left = binary(level + 1);
  while (true) {
    std::string op;
    for (std::string_view o : kBinaryLevels[level].operators)
      if (now().kind == TokenKind::kOperator && now().value == o) op = o;
    if (op.empty()) return left;
    take();
    ExprPtr right = binary(level + 1);
    left = make_expr(ExprKind::kBinary, left->range.to(right->range), {left, right}, op);
  }
}

ExprPtr Parser::unary() {
  if (!now().is("-") && !now().is("+") && !now().is("~")) return power();
  const Token op = take();
  ExprPtr e = unary();
  // -1 is a constant, so that it may stand where only constants may.
  if (op.value == "-" && (e->kind == ExprKind::kInt || e->kind == ExprKind::kFloat) &&
      e->text[0] != '-')
    return make_expr(e->kind, op.range.to(e->range), {}, "-" + e->text);
  return make_expr(ExprKind::kUnary, op.range.to(e->range), {e}, op.value);
}

ExprPtr Parser::power() {
  ExprPtr base = postfix();
  if (!accept("**")) return base;
  ExprPtr exponent = unary();
  return make_expr(ExprKind::kBinary, base->range.to(exponent->range), {base, exponent}, "**");
}

ExprPtr Parser::postfix() {
  if (now().is("await")) return test();
  ExprPtr e = atom();
  while (true) {
    if (accept(".")) {
      std::string name = expect_name("a name after '.'");
      e = make_expr(ExprKind::kAttribute, e->range.to(last()), {e}, std::move(name));
    } else if (accept("(")) {
      auto call = make_expr(ExprKind::kCall, e->range, {e});
      call->arguments = call_arguments();
      call->range = e->range.to(last());
      e = call;
    } else if (accept("[")) {
      ExprPtr index = subscript_item();
      if (now().is(",")) {
        std::vector<ExprPtr> items{index};
        while (accept(",") && !now().is("]")) items.push_back(subscript_item());
        const Range whole = items[0]->range.to(last());
        index = make_expr(ExprKind::kTuple, whole, std::move(items));
      }
      expect("]", "after an index");
      e = make_expr(ExprKind::kSubscript, e->range.to(last()), {e, index});
    } else {
      return e;
    }
  }
}

ExprPtr Parser::subscript_item() {
  const Range start = now().range;
  ExprPtr parts[3];
  if (!now().is(":")) {
    parts[0] = starred_or_test();
    if (!now().is(":")) return parts[0];
  }
  expect(":", "in a slice");
  if (!now().is(":") && !now().is(",") && !now().is("]")) parts[1] = test();
  if (accept(":") && !now().is(",") && !now().is("]")) parts[2] = test();
  return make_expr(ExprKind::kSlice, start.to(last()), {parts[0], parts[1], parts[2]});
}

std::vector<CallArgument> Parser::call_arguments() {
  std::vector<CallArgument> out;
  while (!now().is(")")) {
    CallArgument a;
    if (accept("**")) {
      a.is_double_star = true;
    } else if (accept("*")) {
      a.is_star = true;
    } else if (now().kind == TokenKind::kName && ahead().is("=")) {
      a.keyword = take().value;
      take();
    }
    a.value = test();
    if (now().is("for") && a.keyword.empty()) {
      auto g = make_expr(ExprKind::kGenerator, a.value->range, {a.value});
      g->clauses = clauses();
      g->range = g->range.to(last());
      a.value = g;
    }
    out.push_back(std::move(a));
    if (!accept(",")) break;
  }
  expect(")", "after the arguments");
  return out;
}

std::vector<Clause> Parser::clauses() {
  std::vector<Clause> out;
  while (accept("for")) {
    Clause c;
    c.target = target_list();
    expect("in", "in a comprehension");
    c.iterable = or_test();
    while (accept("if")) c.conditions.push_back(or_test());
    out.push_back(std::move(c));
  }
  return out;
}

ExprPtr Parser::target_list() {
  std::vector<ExprPtr> items;
  const Range start = now().range;
  bool comma = false;
  do {
    if (now().is("in")) break;
    if (now().is("*")) {
      const Range star = take().range;
      ExprPtr e = postfix();
      items.push_back(make_expr(ExprKind::kStarred, star.to(e->range), {e}));
    } else {
      items.push_back(postfix());
    }
    comma |= now().is(",");
  } while (accept(","));
  if (items.empty()) unexpected("a loop variable");
  ExprPtr target = comma ? make_expr(ExprKind::kTuple, start.to(last()), items) : items[0];
  check_target(*target);
  return target;
}

ExprPtr Parser::atom() {
  const Token& t = now();
  switch (t.kind) {
  case TokenKind::kName:
    take();
    return make_expr(ExprKind::kName, t.range, {}, t.value);
  case TokenKind::kInt:
    take();
    return make_expr(ExprKind::kInt, t.range, {}, t.value);
  case TokenKind::kFloat:
    take();
    return make_expr(ExprKind::kFloat, t.range, {}, t.value);
  case TokenKind::kString:
  case TokenKind::kFString:
    return strings();
  default:
    break;
  }
  if (t.is("(")) return parenthesised();
  if (t.is("[")) return list_display();
  if (t.is("{")) return brace_display();
  for (auto [word, kind] : {std::pair{"True", ExprKind::kTrue},
                            {"False", ExprKind::kFalse},
                            {"None", ExprKind::kNone},
                            {"...", ExprKind::kEllipsis}})
    if (t.is(word)) {
      take();
      return make_expr(kind, t.range, {}, t.value);
    }
  unexpected("an expression");
}

ExprPtr Parser::parenthesised() {
  const Range start = take().range;
  if (accept(")")) return make_expr(ExprKind::kTuple, start.to(last()));
  ExprPtr e = test_list();
  if (now().is("for")) {
    auto g = make_expr(ExprKind::kGenerator, start, {e});
    g->clauses = clauses();
    expect(")", "after the generator");
    g->range = start.to(last());
    return g;
  }
  expect(")", "to close the parenthesis");
  auto copy = std::make_shared<Expr>(*e);
  copy->range = start.to(last());
  return copy;
}

ExprPtr Parser::list_display() {
  const Range start = take().range;
  std::vector<ExprPtr> items;
  while (!now().is("]")) {
    items.push_back(starred_or_test());
    if (items.size() == 1 && now().is("for")) {
      auto e = make_expr(ExprKind::kListComp, start, std::move(items));
      e->clauses = clauses();
      expect("]", "after the comprehension");
      e->range = start.to(last());
      return e;
    }
    if (!accept(",")) break;
  }
  expect("]", "to close the list");
  return make_expr(ExprKind::kList, start.to(last()), std::move(items));
}

ExprPtr Parser::brace_display() {
  const Range start = take().range;
  std::vector<ExprPtr> items;
  bool is_dict = now().is("}");
  while (!now().is("}")) {
    if (accept("**")) {
      is_dict = true;
      items.push_back(nullptr);
      items.push_back(binary(0));
    } else {
      items.push_back(starred_or_test());
      if (now().is(":")) {
        take();
        is_dict = true;
        items.push_back(test());
      }
    }
    if (now().is("for") && items.size() == (is_dict ? 2u : 1u)) {
      auto e =
          make_expr(is_dict ? ExprKind::kDictComp : ExprKind::kSetComp, start, std::move(items));
      e->clauses = clauses();
      expect("}", "after the comprehension");
      e->range = start.to(last());
      return e;
    }
    if (!accept(",")) break;
  }
  expect("}", "to close the braces");
  return make_expr(is_dict ? ExprKind::kDict : ExprKind::kSet, start.to(last()), std::move(items));
}

ExprPtr Parser::lambda() {
  const Range start = take().range;
  int depth = 0;
  while (!at_end() && now().kind != TokenKind::kNewline && !(depth == 0 && now().is(":"))) {
    if (now().is("(") || now().is("[") || now().is("{")) ++depth;
    if (now().is(")") || now().is("]") || now().is("}")) --depth;
    take();
  }
  expect(":", "in a lambda");
  ExprPtr body = test();
  return make_expr(ExprKind::kLambda, start.to(body->range), {body});
}

ExprPtr Parser::strings() {
  const Range start = now().range;
  std::vector<ExprPtr> parts;
  bool formatted = false;
  while (now().kind == TokenKind::kString || now().kind == TokenKind::kFString) {
    const Token t = take();
    if (t.kind == TokenKind::kFString) {
      formatted = true;
      f_string(t, parts);
    } else {
      parts.push_back(make_expr(ExprKind::kString, t.range, {}, t.value));
    }
  }
  if (formatted) return make_expr(ExprKind::kFString, start.to(last()), std::move(parts));
  std::string text;
  for (const ExprPtr& p : parts) text += p->text;
  return make_expr(ExprKind::kString, start.to(last()), {}, std::move(text));
}

void Parser::f_string(const Token& token, std::vector<ExprPtr>& parts) {
  const std::string& s = token.value;
  std::string literal;
  const auto flush = [&] {
    if (!literal.empty())
      parts.push_back(make_expr(ExprKind::kString, token.range, {},
                                token.raw ? literal : unescape(literal, token.range)));
    literal.clear();
  };
  for (size_t i = 0; i < s.size(); ++i) {
    if ((s[i] == '{' || s[i] == '}') && i + 1 < s.size() && s[i + 1] == s[i]) {
      literal.push_back(s[i++]);
    } else if (s[i] == '{') {
      flush();
      size_t end = i + 1;
      int depth = 0;
      for (char quote = 0; end < s.size(); ++end) {
        const char c = s[end];
        if (quote) {
          if (c == quote) quote = 0;
        } else if (c == '\'' || c == '"') {
          quote = c;
        } else if (c == '(' || c == '[' || c == '{') {
          ++depth;
        } else if (c == ')' || c == ']' || (c == '}' && depth > 0)) {
          --depth;
        } else if (c == '}') {
          break;
        }
      }
      if (end >= s.size()) fail(token.range, "f-string: expected '}'");
      parts.push_back(format_field(token, token.inner + i + 1, token.inner + end));
      i = end;
    } else if (s[i] == '}') {
      fail(token.range, "f-string: a single '}' is not allowed");
    } else {
      literal.push_back(s[i]);
    }
  }
  flush();
}

ExprPtr Parser::format_field(const Token& token, size_t begin, size_t end) {
  Parser inner(source_, begin, end, /*nested=*/true);
  ExprPtr value = inner.test_list();
  std::string spec;
  if (!inner.at_end()) {
    const size_t from = inner.now().range.begin;
    spec = source_->text().substr(from, end - from);
    if (spec[0] == '=')
      unsupported(inner.now().range, "f-string: '{name=}' is not available in scripts",
                  "write the name and the value");
    if (spec.find('{') != std::string::npos)
      unsupported(inner.now().range,
                  "f-string: nested fields in a format are not available in scripts",
                  "build the text with str.format");
    if (spec[0] != '!' && spec[0] != ':') inner.expect_end();
  }
  return make_expr(ExprKind::kFormatted, token.range, {value}, std::move(spec));
}

ExprPtr parse_expression(const SourcePtr& source) {
  Parser p(source, 0, source->text().size(), /*nested=*/true);
  ExprPtr e = p.test_list();
  p.expect_end();
  return e;
}

}  // namespace prong::script
