// The parser's state and its two halves; included by parse_expression.cpp and parse_statement.cpp
// only.
#pragma once

#include <initializer_list>

#include "script/lexer.h"
#include "script/parser.h"

namespace prong::script {

class Parser {
 public:
  Parser(const SourcePtr& source, size_t begin, size_t end, bool nested)
      : source_(source), tokens_(tokenize(source, begin, end, nested)) {}

  // parse_statement.cpp
  Suite file();
  StmtPtr statement_at_start();  // skips what may precede a definition

  // parse_expression.cpp
  ExprPtr test();             // an expression without a bare tuple
  ExprPtr test_list();        // a, b, *c: a tuple where there is a comma
  ExprPtr format_argument();  // of an f-string: up to '!', ':', '=' or the end
  void expect_end();
  bool at_end() const { return now().kind == TokenKind::kEnd; }
  const Token& now() const { return tokens_.items[at_]; }

 private:
  const Token& ahead(size_t n = 1) const {
    return tokens_.items[std::min(at_ + n, tokens_.items.size() - 1)];
  }
  const Token& take() { return tokens_.items[at_ + 1 < tokens_.items.size() ? at_++ : at_]; }
  const Range& last() const { return tokens_.items[at_ ? at_ - 1 : 0].range; }
  bool accept(std::string_view op) {
    if (!now().is(op)) return false;
    take();
    return true;
  }
  const Token& expect(std::string_view op, std::string_view where);
  std::string expect_name(std::string_view where);
  [[noreturn]] void unexpected(std::string_view wanted);

  Suite block();
  void statement(Suite& out);
  void simple_line(Suite& out);
  StmtPtr simple();
  StmtPtr expression_statement();
  StmtPtr if_statement();
  StmtPtr for_statement();
  StmtPtr while_statement();
  StmtPtr with_statement();
  StmtPtr definition();
  StmtPtr refuse(std::string what);
  void skip_suite();
  FunctionDefPtr function(std::vector<ExprPtr> decorators);
  std::vector<Parameter> parameters();
  void apply_type_comment(FunctionDef& f, const Range& comment);
  std::shared_ptr<const ClassDef> class_definition();
  ExprPtr type_comment_on(int line);
  void check_target(const Expr& e, bool augmented = false);

  ExprPtr or_test();
  ExprPtr and_test();
  ExprPtr not_test();
  ExprPtr comparison();
  ExprPtr binary(int level);
  ExprPtr unary();
  ExprPtr power();
  ExprPtr postfix();
  ExprPtr atom();
  ExprPtr parenthesised();
  ExprPtr list_display();
  ExprPtr brace_display();
  ExprPtr strings();
  void f_string(const Token& token, std::vector<ExprPtr>& parts);
  ExprPtr format_field(const Token& token, size_t begin, size_t end);
  ExprPtr lambda();
  ExprPtr subscript_item();
  ExprPtr starred_or_test();
  ExprPtr target_list();
  std::vector<CallArgument> call_arguments();
  std::vector<Clause> clauses();

  SourcePtr source_;
  Tokens tokens_;
  size_t at_ = 0;
};

std::shared_ptr<Expr> make_expr(ExprKind kind, const Range& range, std::vector<ExprPtr> items = {},
                                std::string text = {});

}  // namespace prong::script
