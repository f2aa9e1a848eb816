// Parser and printer of op signatures.
#include "ops/schema.h"

#include <charconv>

namespace prong {
namespace {

class SchemaParser {
 public:
  explicit SchemaParser(std::string_view text) : text_(text) {}

  Schema parse() {
    Schema s;
    s.name = name(/*dots=*/true);
    expect("(");
    bool keyword_only = false;
    if (!accept(")")) {
      do {
        if (accept("*")) {
          keyword_only = true;
          continue;
        }
        s.arguments.push_back(argument(keyword_only));
      } while (accept(","));
      expect(")");
    }
    expect("->");
    results(s);
    skip();
    if (at_ != text_.size()) fail("unexpected text");
    return s;
  }

 private:
  Argument argument(bool keyword_only) {
    Argument a;
    a.name = name(false);
    a.is_keyword_only = keyword_only;
    expect(":");
    a.type = type(a.fixed_list_size);
    if (accept("=")) {
      a.has_default = true;
      a.default_value = value(*a.type);
      if (a.fixed_list_size > 0 && a.default_value.is_number())  // int[2] = 1 stands for [1, 1]
        a.default_value = IValue::list(
            std::vector<IValue>(static_cast<size_t>(a.fixed_list_size), a.default_value));
    }
    return a;
  }

  void results(Schema& s) {
    int unused = 0;
    if (!accept("(")) {
      s.results.push_back(type(unused));
      s.result_names.emplace_back();
      return;
    }
    do {
      s.results.push_back(type(unused));
      skip();
      const bool named = at_ < text_.size() && text_[at_] != ',' && text_[at_] != ')';
      s.result_names.push_back(named ? name(false) : std::string());
    } while (accept(","));
    expect(")");
  }

  // Tensor, Tensor?, int[], int[2], int[]?, Tensor?[]
  TypePtr type(int& fixed) {
    std::string word = name(false);
    if (word == "List" || word == "Dict" || word == "Tuple" || word == "Optional" ||
        word == "Future")
      word += bracketed();  // the spelling of annotations, for operations of the language
    TypePtr t;
    try {
      t = Type::parse(word);
    } catch (const Error&) {
      fail(cat("unknown type '", word, "'"));
    }
    while (true) {
      if (accept("?")) {
        t = Type::optional(t);
      } else if (accept("[")) {
        skip();
        const size_t start = at_;
        while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
        if (at_ > start) std::from_chars(text_.data() + start, text_.data() + at_, fixed);
        expect("]");
        t = Type::list(t);
      } else {
        return t;
      }
    }
  }

  // "[str, List[int]]", up to the bracket that closes the first.
  std::string_view bracketed() {
    const size_t start = at_;
    int depth = 0;
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '[') ++depth;
      if (text_[at_] == ']' && --depth == 0) return text_.substr(start, ++at_ - start);
    }
    fail("expected ']'");
  }

  IValue value(const Type& t) {
    const Type& wanted = t.is(TypeKind::kOptional) ? *t.element() : t;
    if (accept("None")) return IValue();
    if (accept("True")) return IValue(true);
    if (accept("False")) return IValue(false);
    if (accept("[")) {
      std::vector<IValue> items;
      if (!accept("]")) {
        do items.push_back(number());
        while (accept(","));
        expect("]");
      }
      return IValue::list(std::move(items));
    }
    skip();
    if (at_ < text_.size() && text_[at_] == '"') {
      const size_t end = text_.find('"', at_ + 1);
      if (end == std::string_view::npos) fail("unfinished string");
      std::string s(text_.substr(at_ + 1, end - at_ - 1));
      at_ = end + 1;
      return IValue(std::move(s));
    }
    if (wanted.is(TypeKind::kDType)) {
      const std::string word = name(false);
      const auto dtype = dtype_from_name(word);
      if (!dtype) fail(cat("unknown dtype '", word, "'"));
      return IValue(*dtype);
    }
    IValue v = number();
    if (wanted.is(TypeKind::kFloat)) return IValue(v.to_double());
    return v;
  }

  IValue number() {
    skip();
    const bool minus = accept("-");
    if (accept("inf")) return IValue(minus ? -1.0 / 0.0 : 1.0 / 0.0);
    const size_t start = at_;
    bool is_float = false;
    while (at_ < text_.size() &&
           (std::isdigit(static_cast<unsigned char>(text_[at_])) || text_[at_] == '.' ||
            text_[at_] == 'e' || (text_[at_] == '-' && text_[at_ - 1] == 'e'))) {
      if (!std::isdigit(static_cast<unsigned char>(text_[at_]))) is_float = true;
      ++at_;
    }
    if (start == at_) fail("expected a value");
    const char *first = text_.data() + start, *last = text_.data() + at_;
    if (is_float) {
      double d = 0;
      std::from_chars(first, last, d);
      return IValue(minus ? -d : d);
    }
    int64_t i = 0;
    std::from_chars(first, last, i);
    return IValue(minus ? -i : i);
  }

  std::string name(bool dots) {
    skip();
    const size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) ||
                                  text_[at_] == '_' || (dots && text_[at_] == '.')))
      ++at_;
    if (start == at_) fail("expected a name");
    return std::string(text_.substr(start, at_ - start));
  }
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool accept(std::string_view token) {
    skip();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) fail(cat("expected '", token, "'"));
  }
  [[noreturn]] void fail(std::string_view what) {
    throw_error(ErrorKind::kValue,
                cat("bad op signature: ", what, "\n  ", text_, "\n  ", std::string(at_, ' '), "^"));
  }

  std::string_view text_;
  size_t at_ = 0;
};

std::string type_text(const Type& t, int fixed) {
  if (t.is(TypeKind::kOptional)) return cat(type_text(*t.element(), fixed), "?");
  if (t.is(TypeKind::kList))
    return cat(type_text(*t.element(), 0), "[", fixed ? std::to_string(fixed) : "", "]");
  return t.str_();
}

std::string default_text(const IValue& v) {
  if (v.is_string()) return cat("\"", v.to_string(), "\"");
  if (v.is_dtype()) return std::string(name_of(v.to_dtype()));
  return repr(v);
}

}  // namespace

Schema Schema::parse(std::string_view text) { return SchemaParser(text).parse(); }

std::string Schema::str() const {
  std::string out = cat(name, "(");
  bool starred = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Argument& a = arguments[i];
    if (i) out += ", ";
    if (a.is_keyword_only && !starred) {
      starred = true;
      out += "*, ";
    }
    out += cat(a.name, ": ", type_text(*a.type, a.fixed_list_size));
    if (a.has_default) out += cat(" = ", default_text(a.default_value));
  }
  out += ") -> ";
  if (results.size() == 1) return out + type_text(*results[0], 0);
  out += "(";
  for (size_t i = 0; i < results.size(); ++i)
    out += cat(i ? ", " : "", type_text(*results[i], 0), result_names[i].empty() ? "" : " ",
               result_names[i]);
  return out + ")";
}

std::vector<IValue> Schema::with_defaults(std::span<const IValue> given) const {
  PRONG_ASSERT(given.size() <= arguments.size(), name, " takes ", arguments.size(),
               " arguments, but was called with ", given.size());
  std::vector<IValue> all(given.begin(), given.end());
  for (size_t i = given.size(); i < arguments.size(); ++i) {
    PRONG_ASSERT(arguments[i].has_default, name, " was called without its argument ",
                 arguments[i].name);
    all.push_back(arguments[i].default_value);
  }
  return all;
}

int Schema::find(std::string_view argument_name) const {
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].name == argument_name) return static_cast<int>(i);
  return -1;
}

int Schema::num_positional() const {
  int n = 0;
  while (n < static_cast<int>(arguments.size()) &&
         !arguments[static_cast<size_t>(n)].is_keyword_only)
    ++n;
  return n;
}

bool Schema::takes_varargs_ints(int skip) const {
  if (num_positional() != skip + 1) return false;
  const Type& t = *arguments[static_cast<size_t>(skip)].type;
  return t.is(TypeKind::kList) && t.element()->is(TypeKind::kInt);
}

}  // namespace prong
