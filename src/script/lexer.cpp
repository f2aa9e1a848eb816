// The tokenizer: names, numbers, strings, operators, indentation.
#include "script/lexer.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace prong::script {

namespace {

constexpr std::string_view kKeywords[] = {
    "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
    "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
    "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
    "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};

// Longest first.
constexpr std::string_view kOperators[] = {
    "**=", "//=", ">>=", "<<=", "...", "**", "//", ">>", "<<", "<=", ">=", "==",
    "!=",  "->",  "+=",  "-=",  "*=",  "/=", "%=", "@=", "&=", "|=", "^=", ":=",
    "+",   "-",   "*",   "/",   "%",   "@",  "&",  "|",  "^",  "~",  "<",  ">",
    "(",   ")",   "[",   "]",   "{",   "}",  ",",  ":",  ".",  ";",  "=",  "!"};

bool is_name_start(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool is_name_char(char c) {
  return is_name_start(c) || std::isdigit(static_cast<unsigned char>(c));
}

void append_utf8(std::string& out, uint32_t c) {
  if (c < 0x80) {
    out.push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out.push_back(static_cast<char>(0xc0 | (c >> 6)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3f)));
  } else if (c < 0x10000) {
    out.push_back(static_cast<char>(0xe0 | (c >> 12)));
    out.push_back(static_cast<char>(0x80 | ((c >> 6) & 0x3f)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3f)));
  } else {
    out.push_back(static_cast<char>(0xf0 | (c >> 18)));
    out.push_back(static_cast<char>(0x80 | ((c >> 12) & 0x3f)));
    out.push_back(static_cast<char>(0x80 | ((c >> 6) & 0x3f)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3f)));
  }
}

class Lexer {
 public:
  Lexer(const SourcePtr& source, size_t begin, size_t end, bool nested)
      : source_(source), text_(source->text()), at_(begin), end_(end), nested_(nested) {}

  Tokens run() {
    if (!nested_) indentation();
    while (at_ < end_) next();
    if (!nested_) {
      if (!out_.items.empty() && out_.items.back().kind != TokenKind::kNewline)
        push(TokenKind::kNewline, at_, "");
      for (; indents_.size() > 1; indents_.pop_back()) push(TokenKind::kDedent, at_, "");
    }
    push(TokenKind::kEnd, at_, "");
    return std::move(out_);
  }

 private:
  Range range(size_t from, size_t to) const {
    return {source_, static_cast<uint32_t>(from), static_cast<uint32_t>(to)};
  }
  char peek(size_t ahead = 0) const { return at_ + ahead < end_ ? text_[at_ + ahead] : '\0'; }
  Token& push(TokenKind kind, size_t from, std::string value) {
    out_.items.push_back({kind, range(from, at_), std::move(value)});
    return out_.items.back();
  }

  void next() {
    const char c = peek();
    if (c == ' ' || c == '\t' || c == '\r' || c == '\f') {
      ++at_;
    } else if (c == '#') {
      comment();
    } else if (c == '\\' && peek(1) == '\n') {
      at_ += 2;
    } else if (c == '\n') {
      newline();
    } else if (string_prefix()) {
      string();
    } else if (is_name_start(c)) {
      name();
    } else if (std::isdigit(static_cast<unsigned char>(c)) ||
               (c == '.' && std::isdigit(static_cast<unsigned char>(peek(1))))) {
      number();
    } else {
      op();
    }
  }

  void comment() {
    const size_t from = at_;
    while (at_ < end_ && text_[at_] != '\n') ++at_;
    std::string_view body = std::string_view(text_).substr(from + 1, at_ - from - 1);
    const size_t word = body.find_first_not_of(" \t");
    if (word == std::string_view::npos || body.substr(word, 5) != "type:") return;
    const Range r = range(from + 1 + word + 5, at_);
    if (r.text().find("ignore") == std::string_view::npos) out_.type_comments[r.line()] = r;
  }

  void newline() {
    const size_t from = at_++;
    if (depth_ > 0 || nested_) return;
    if (!out_.items.empty() && out_.items.back().kind != TokenKind::kNewline &&
        out_.items.back().kind != TokenKind::kIndent &&
        out_.items.back().kind != TokenKind::kDedent)
      out_.items.push_back({TokenKind::kNewline, range(from, from), ""});
    indentation();
  }

  // At the start of a line: compares its indentation with the open blocks; blank lines do not
  // count.
  void indentation() {
    while (true) {
      const size_t line = at_;
      int width = 0;
      while (peek() == ' ' || peek() == '\t' || peek() == '\f') {
        width = peek() == '\t' ? (width / 8 + 1) * 8 : width + 1;
        ++at_;
      }
      if (peek() == '#') comment();
      if (peek() == '\r') ++at_;
      if (at_ >= end_) return;
      if (peek() == '\n') {
        ++at_;
        continue;
      }
      if (indents_.empty()) indents_.push_back(width);
      if (width > indents_.back()) {
        indents_.push_back(width);
        push(TokenKind::kIndent, line, "");
      }
      while (width < indents_.back()) {
        indents_.pop_back();
        push(TokenKind::kDedent, at_, "");
        if (indents_.empty() || width > indents_.back())
          fail(range(line, at_), "unindent does not match any outer indentation level");
      }
      return;
    }
  }

  bool string_prefix() const {
    size_t i = 0;
    while (i < 3 && std::string_view("rRbBfFuU").find(peek(i)) != std::string_view::npos && peek(i))
      ++i;
    return i < 3 && (peek(i) == '"' || peek(i) == '\'');
  }

  void string() {
    const size_t from = at_;
    bool raw = false, format = false;
    for (; peek() != '"' && peek() != '\''; ++at_) {
      const char p = static_cast<char>(std::tolower(static_cast<unsigned char>(peek())));
      raw |= p == 'r';
      format |= p == 'f';
      if (p == 'b')
        unsupported(range(from, at_ + 1), "bytes literals are not available in scripts",
                    "write a str");
    }
    const char quote = peek();
    const bool triple = peek(1) == quote && peek(2) == quote;
    at_ += triple ? 3 : 1;
    const size_t inner = at_;
    while (true) {
      if (at_ >= end_ || (!triple && peek() == '\n'))
        fail(range(from, at_), "unterminated string literal");
      if (peek() == '\\') {
        at_ += 2;
        continue;
      }
      if (peek() == quote && (!triple || (peek(1) == quote && peek(2) == quote))) break;
      ++at_;
    }
    const std::string_view body = std::string_view(text_).substr(inner, at_ - inner);
    at_ += triple ? 3 : 1;
    const Range whole = range(from, at_);
    Token& t = push(format ? TokenKind::kFString : TokenKind::kString, from,
                    format || raw ? std::string(body) : unescape(body, whole));
    t.inner = static_cast<uint32_t>(inner);
    t.raw = raw;
  }

  void name() {
    const size_t from = at_;
    while (at_ < end_ && is_name_char(text_[at_])) ++at_;
    std::string word(text_, from, at_ - from);
    const bool keyword =
        std::find(std::begin(kKeywords), std::end(kKeywords), word) != std::end(kKeywords);
    push(keyword ? TokenKind::kKeyword : TokenKind::kName, from, std::move(word));
  }

  void number() {
    const size_t from = at_;
    bool is_float = false;
    const char second = static_cast<char>(std::tolower(static_cast<unsigned char>(peek(1))));
    if (peek() == '0' && (second == 'x' || second == 'o' || second == 'b')) {
      at_ += 2;
      while (std::isalnum(static_cast<unsigned char>(peek())) || peek() == '_') ++at_;
    } else {
      while (at_ < end_) {
        const char c = peek();
        if (c == '.' || c == 'e' || c == 'E') {
          is_float = true;
          if (c != '.' && (peek(1) == '+' || peek(1) == '-')) ++at_;
        } else if (!std::isdigit(static_cast<unsigned char>(c)) && c != '_') {
          break;
        }
        ++at_;
      }
      if (peek() == 'j' || peek() == 'J')
        unsupported(range(from, at_ + 1), "complex numbers are not available in scripts",
                    "use floats");
    }
    std::string digits(text_, from, at_ - from);
    std::erase(digits, '_');
    push(is_float ? TokenKind::kFloat : TokenKind::kInt, from, std::move(digits));
  }

  void op() {
    const size_t from = at_;
    for (std::string_view o : kOperators) {
      if (std::string_view(text_).substr(at_, o.size()) != o || at_ + o.size() > end_) continue;
      if (o == "(" || o == "[" || o == "{") ++depth_;
      if (o == ")" || o == "]" || o == "}") --depth_;
      at_ += o.size();
      push(TokenKind::kOperator, from, std::string(o));
      return;
    }
    fail(range(from, from + 1), cat("unexpected character '", text_.substr(from, 1), "'"));
  }

  SourcePtr source_;
  const std::string& text_;
  size_t at_, end_;
  bool nested_;
  int depth_ = 0;
  std::vector<int> indents_;
  Tokens out_;
};

}  // namespace

Tokens tokenize(const SourcePtr& source, size_t begin, size_t end, bool nested) {
  return Lexer(source, begin, end, nested).run();
}

std::string unescape(std::string_view s, const Range& range) {
  std::string out;
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] != '\\' || i + 1 >= s.size()) {
      out.push_back(s[i]);
      continue;
    }
    const char c = s[++i];
    const auto digits = [&](size_t from, size_t n, int base) {
      const std::string text(s.substr(from, n));
      char* end = nullptr;
      const long value = std::strtol(text.c_str(), &end, base);
      if (text.empty() || *end)
        fail(range, cat("bad escape '\\", s.substr(i, n + 1), "' in a string"));
      return static_cast<uint32_t>(value);
    };
    switch (c) {
    case '\n':
      break;
    case 'n':
      out.push_back('\n');
      break;
    case 't':
      out.push_back('\t');
      break;
    case 'r':
      out.push_back('\r');
      break;
    case 'a':
      out.push_back('\a');
      break;
    case 'b':
      out.push_back('\b');
      break;
    case 'f':
      out.push_back('\f');
      break;
    case 'v':
      out.push_back('\v');
      break;
    case '\\':
    case '\'':
    case '"':
      out.push_back(c);
      break;
    case 'x':
      append_utf8(out, digits(i + 1, 2, 16));
      i += 2;
      break;
    case 'u':
      append_utf8(out, digits(i + 1, 4, 16));
      i += 4;
      break;
    case 'U':
      append_utf8(out, digits(i + 1, 8, 16));
      i += 8;
      break;
    default:
      if (c >= '0' && c <= '7') {
        size_t n = 1;
        while (n < 3 && i + n < s.size() && s[i + n] >= '0' && s[i + n] <= '7') ++n;
        append_utf8(out, digits(i, n, 8));
        i += n - 1;
      } else {
        out.push_back('\\');
        out.push_back(c);
      }
    }
  }
  return out;
}

}  // namespace prong::script
