// A line of the text form while it is read: its tokens and literals. Used by parser.cpp.
#pragma once

#include <cctype>
#include <string>
#include <string_view>

#include "base/error.h"
#include "tensor/ivalue.h"

namespace prong {

// One line of text: position, errors with a caret, and the small tokens.
class TextLine {
 public:
  TextLine(std::string_view text, int number, std::string_view file)
      : text_(text), number_(number), file_(file) {
    skip();
  }

  size_t indent() const { return text_.find_first_not_of(' '); }
  int number() const { return number_; }
  bool is_at_end() const { return at_ >= text_.size() || text_[at_] == '#'; }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  std::string_view rest() const { return text_.substr(std::min(at_, text_.size())); }
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool accept(std::string_view token) {
    if (rest().substr(0, token.size()) != token) return false;
    at_ += token.size();
    skip();
    return true;
  }
  bool accept_word(std::string_view token) {
    const std::string_view r = rest();
    if (r.substr(0, token.size()) != token || (r.size() > token.size() && is_word(r[token.size()])))
      return false;
    return accept(token);
  }
  void expect(std::string_view token) {
    if (!accept(token)) fail(cat("expected '", token, "'"));
  }
  static bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
  std::string word(bool dots = false);
  std::string until(char end);  // which is not consumed
  [[noreturn]] void fail(std::string_view what) const;

  int64_t integer();
  IValue number();
  std::string string();
  bool literal(IValue& v);  // false if none stands here

 private:
  std::string_view text_;
  int number_;
  std::string_view file_;
  size_t at_ = 0;
};

}  // namespace prong
