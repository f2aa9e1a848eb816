// Tokens and literals of the text form.
#include "graph/text_line.h"

#include <charconv>

namespace prong {

[[noreturn]] void TextLine::fail(std::string_view what) const {
  throw_error(ErrorKind::kValue, cat(file_, ":", number_, ":", at_ + 1, ": ", what, "\n  ", text_,
                                     "\n  ", std::string(at_, ' '), "^"));
}

std::string TextLine::word(bool dots) {
  const size_t start = at_;
  while (at_ < text_.size() && (is_word(text_[at_]) || (dots && text_[at_] == '.'))) ++at_;
  if (at_ == start) fail("expected a name");
  std::string w(text_.substr(start, at_ - start));
  skip();
  return w;
}

std::string TextLine::until(char end) {
  const size_t stop = text_.find(end, at_);
  if (stop == std::string_view::npos) fail(cat("expected '", end, "'"));
  std::string w(text_.substr(at_, stop - at_));
  at_ = stop;
  return w;
}

int64_t TextLine::integer() {
  int64_t i = 0;
  const auto [p, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), i);
  if (error != std::errc()) fail("expected a whole number");
  at_ = static_cast<size_t>(p - text_.data());
  skip();
  return i;
}

IValue TextLine::number() {
  const size_t start = at_;
  const size_t sign = peek() == '-' ? 1 : 0;
  size_t end = start + sign;
  bool is_float = false;
  while (end < text_.size() &&
         (std::isdigit(static_cast<unsigned char>(text_[end])) || text_[end] == '.' ||
          text_[end] == 'e' ||
          ((text_[end] == '-' || text_[end] == '+') && text_[end - 1] == 'e'))) {
    is_float |= !std::isdigit(static_cast<unsigned char>(text_[end]));
    ++end;
  }
  if (!is_float) return IValue(integer());
  double d = 0;
  const auto [p, error] = std::from_chars(text_.data() + start, text_.data() + end, d);
  if (error != std::errc() || p != text_.data() + end) fail("expected a number");
  at_ = end;
  skip();
  return IValue(d);
}

std::string TextLine::string() {
  std::string out;
  ++at_;
  while (true) {
    if (at_ >= text_.size()) fail("unfinished string");
    char c = text_[at_++];
    if (c == '"') break;
    if (c == '\\') {
      if (at_ >= text_.size()) fail("unfinished string");
      c = text_[at_++];
      if (c == 'n') c = '\n';
      if (c == 'x') {
        int code = 0;
        if (std::from_chars(text_.data() + at_, text_.data() + std::min(at_ + 2, text_.size()),
                            code, 16)
                .ec != std::errc())
          fail("expected two hexadecimal digits");
        at_ += 2;
        c = static_cast<char>(code);
      }
    }
    out += c;
  }
  skip();
  return out;
}

bool TextLine::literal(IValue& v) {
  const char c = peek();
  if (c == '"') {
    v = IValue(string());
  } else if (c == '[' || c == '(') {
    const std::string_view close = c == '[' ? "]" : ")";
    accept(std::string_view(&c, 1));
    std::vector<IValue> items;
    while (!accept(close)) {
      if (!literal(items.emplace_back())) fail("expected a literal");
      if (!accept(",") && peek() != close[0]) fail(cat("expected ',' or '", close, "'"));
    }
    v = c == '[' ? IValue::list(std::move(items)) : IValue::tuple(std::move(items));
  } else if (accept_word("None")) {
    v = IValue();
  } else if (accept_word("True")) {
    v = IValue(true);
  } else if (accept_word("False")) {
    v = IValue(false);
  } else if (accept_word("inf")) {
    v = IValue(__builtin_inf());
  } else if (accept_word("-inf")) {
    v = IValue(-__builtin_inf());
  } else if (accept_word("nan")) {
    v = IValue(__builtin_nan(""));
  } else if (c == '-' || (c >= '0' && c <= '9')) {
    v = number();
  } else {
    for (int d = 0; d < kNumDTypes; ++d)
      if (accept_word(name_of(static_cast<DType>(d)))) {
        v = IValue(static_cast<DType>(d));
        return true;
      }
    return false;
  }
  return true;
}

}  // namespace prong
