// Graph to text.
#include "graph/printer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "graph/host_op.h"

namespace prong {

bool is_literal(const IValue& v) {
  switch (v.tag()) {
  case IValue::Tag::kNone:
  case IValue::Tag::kBool:
  case IValue::Tag::kInt:
  case IValue::Tag::kFloat:
  case IValue::Tag::kDType:
  case IValue::Tag::kString:
    return true;
  case IValue::Tag::kList:
    return std::all_of(v.items().begin(), v.items().end(), is_literal);
  case IValue::Tag::kTuple:
    return !v.tuple()->names && std::all_of(v.items().begin(), v.items().end(), is_literal);
  default:
    return false;
  }
}

namespace {

// Whether the type follows from the literal alone; if not, the constant gets a line with its type.
bool has_natural_type(const Value& v) {
  const IValue& c = *v.constant();
  if (c.is_list() && c.items().empty()) return false;
  if (!is_literal(c)) return false;
  if (c.is_list()) {
    TypePtr element;
    for (const IValue& item : c.items()) {
      if (item.is_list() || item.is_tuple()) return false;
      if (item.tag() != c.items()[0].tag()) return false;
    }
  }
  switch (c.tag()) {
  case IValue::Tag::kNone:
    return v.type()->is(TypeKind::kNone);
  case IValue::Tag::kBool:
    return v.type()->is(TypeKind::kBool);
  case IValue::Tag::kInt:
    return v.type()->is(TypeKind::kInt);
  case IValue::Tag::kFloat:
    return v.type()->is(TypeKind::kFloat);
  case IValue::Tag::kDType:
    return v.type()->is(TypeKind::kDType);
  case IValue::Tag::kString:
    return v.type()->is(TypeKind::kStr);
  case IValue::Tag::kList: {
    if (!v.type()->is(TypeKind::kList)) return false;
    const TypeKind k = v.type()->element()->kind();
    const IValue& first = c.items()[0];
    return (k == TypeKind::kInt && first.is_int()) || (k == TypeKind::kFloat && first.is_float()) ||
           (k == TypeKind::kBool && first.is_bool()) || (k == TypeKind::kStr && first.is_string());
  }
  default:
    return false;
  }
}

std::string quoted(const std::string& s) {
  std::string out = "\"";
  for (const char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      static constexpr char digits[] = "0123456789abcdef";
      out += {'\\', 'x', digits[(c >> 4) & 15], digits[c & 15]};
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string float_text(double d) {
  if (std::isnan(d)) return "nan";
  if (std::isinf(d)) return d < 0 ? "-inf" : "inf";
  return format_double(d);
}

std::string literal_text(const IValue& v) {
  switch (v.tag()) {
  case IValue::Tag::kNone:
    return "None";
  case IValue::Tag::kBool:
    return v.to_bool() ? "True" : "False";
  case IValue::Tag::kInt:
    return std::to_string(v.to_int());
  case IValue::Tag::kFloat:
    return float_text(v.to_double());
  case IValue::Tag::kDType:
    return std::string(name_of(v.to_dtype()));
  case IValue::Tag::kString:
    return quoted(v.to_string());
  default: {
    std::string out(v.is_list() ? "[" : "(");
    for (size_t i = 0; i < v.items().size(); ++i)
      out += cat(i ? ", " : "", literal_text(v.items()[i]));
    if (v.is_tuple() && v.items().size() == 1) out += ",";
    return out + (v.is_list() ? "]" : ")");
  }
  }
}

bool is_name(std::string_view s) {
  if (s.empty() || (s[0] >= '0' && s[0] <= '9')) return false;
  return std::all_of(s.begin(), s.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  });
}

bool is_reserved(std::string_view s) {
  return s == "True" || s == "False" || s == "None" || s == "inf" || s == "nan" || s == "yield" ||
         s == "return" || s == "else" || s == "def" || dtype_from_name(s).has_value();
}

class Printer {
 public:
  explicit Printer(const PrintOptions& options) : options_(options), indent_(options.indent) {}

  // A function that has no graph: an interface's method.
  std::string declaration(std::string_view name, const Schema& schema) {
    std::string out = cat("declare ", name, "(");
    for (size_t i = 0; i < schema.arguments.size(); ++i) {
      const Argument& a = schema.arguments[i];
      const bool star = a.is_keyword_only && (i == 0 || !schema.arguments[i - 1].is_keyword_only);
      out += cat(i ? ", " : "", star ? "*, " : "", a.name, ": ", type(a.type));
      if (a.has_default) out += cat(" = ", constant_text(a.default_value));
    }
    return cat(out, ") -> ", type(schema.results[0]), "\n");
  }

  std::string function(std::string_view name, const Graph& graph, const Schema* schema) {
    line(cat("def ", name, "(", signature(graph, schema), ") -> ", result_type(graph, schema), ":"),
         nullptr);
    body(*graph.top(), "return");
    return std::move(out_);
  }

 private:
  std::string signature(const Graph& graph, const Schema* schema) {
    std::string out;
    for (size_t i = 0; i < graph.inputs().size(); ++i) {
      const Value* v = graph.inputs()[i];
      const Argument* a = schema && i < schema->arguments.size() ? &schema->arguments[i] : nullptr;
      const bool star =
          a && a->is_keyword_only && (i == 0 || !schema->arguments[i - 1].is_keyword_only);
      out += cat(i ? ", " : "", star ? "*, " : "", name(v), ": ", type(v->type()));
      if (a && a->has_default) out += cat(" = ", constant_text(a->default_value));
    }
    return out;
  }
  std::string result_type(const Graph& graph, const Schema* schema) {
    if (schema && schema->results.size() == 1) return type(schema->results[0]);
    return graph.outputs().size() == 1 ? type(graph.outputs()[0]->type()) : std::string("None");
  }

  void body(const Block& b, std::string_view last) {
    indent_ += 2;
    for (const Node* n : b) node(*n);
    std::string results;
    for (const Value* v : b.results()) results += cat(results.empty() ? "" : ", ", operand(v));
    line(results.empty() ? std::string(last) : cat(last, " ", results), b.yield());
    indent_ -= 2;
  }

  void node(const Node& n) {
    if (n.is(NodeKind::kConstant) && (has_natural_type(*n.output()) || is_left_out(*n.output())))
      return;
    std::string text = outputs(n.outputs());
    if (!text.empty()) text += " = ";
    text += head(n);
    text += cat("(", operands(n), ")");
    if (n.is(NodeKind::kFused)) {
      const Graph& g = n.subgraph();
      line(text + parameters(*g.top()) + ":", &n);
      body(*g.top(), "yield");
      return;
    }
    for (size_t i = 0; i < n.blocks().size(); ++i) {
      if (i == 0)
        line(text + parameters(*n.body()) + ":", &n);
      else
        line("else:", nullptr);
      body(*n.body(i), "yield");
    }
    if (n.blocks().empty()) line(text, &n);
  }

  std::string head(const Node& n) {
    switch (n.kind()) {
    case NodeKind::kOp:
      return n.op().name();
    case NodeKind::kHost:
      return cat("host.", n.host().name());
    case NodeKind::kCall:
      return cat("call[", function_name(*n.function()), "]");
    case NodeKind::kFork:
      if (n.function()) return cat("fork[", function_name(*n.function()), "]");
      return n.name().empty() ? "fork" : cat("fork[.", n.name(), "]");
    case NodeKind::kCallMethod:
    case NodeKind::kGetAttr:
    case NodeKind::kSetAttr:
      return cat(spelling(n.kind()), "[", n.name(), "]");
    case NodeKind::kRaise:
      return n.object() && !options_.names
                 ? cat("raise[", n.name(), ", ", pooled(n.constant()), "]")
                 : cat("raise[", n.name(), "]");
    case NodeKind::kCallPython:
      return cat("call_python[", pooled(n.constant()), "]");
    case NodeKind::kTupleGet:
      return cat("tuple_get[", n.index(), "]");
    case NodeKind::kIsInstance: {
      std::string types;
      for (const TypePtr& t : n.types()) types += cat(types.empty() ? "" : ", ", type(t));
      return cat("isinstance[", types, "]");
    }
    default:
      return std::string(spelling(n.kind()));
    }
  }

  std::string operands(const Node& n) {
    if (n.is(NodeKind::kConstant)) return constant_text(n.constant());
    const Schema* schema = n.is(NodeKind::kOp)     ? &n.op().schema()
                           : n.is(NodeKind::kHost) ? &n.host().schema
                                                   : nullptr;
    std::string out;
    if (!schema || schema->arguments.size() != n.inputs().size()) {
      for (const Value* v : n.inputs()) out += cat(out.empty() ? "" : ", ", operand(v));
      return out;
    }
    const size_t positional = static_cast<size_t>(schema->num_positional()),
                 last = positional_end(*schema, n);
    for (size_t i = 0; i < n.inputs().size(); ++i) {
      const Argument& a = schema->arguments[i];
      if (i < positional ? i >= last : is_default(a, n.input(i))) continue;
      out += cat(out.empty() ? "" : ", ", i < positional ? std::string() : a.name + "=",
                 operand(n.input(i)));
    }
    return out;
  }
  // Positional arguments from here on equal their defaults.
  static size_t positional_end(const Schema& schema, const Node& n) {
    auto last = static_cast<size_t>(schema.num_positional());
    while (last > 0 && is_default(schema.arguments[last - 1], n.input(last - 1))) --last;
    return last;
  }
  // A constant that is only ever an argument which is not printed.
  static bool is_left_out(const Value& v) {
    return v.has_uses() && std::all_of(v.uses().begin(), v.uses().end(), [](const Use& use) {
             const Node& n = *use.user;
             if (!n.is(NodeKind::kOp) && !n.is(NodeKind::kHost)) return false;
             const Schema& schema = n.is(NodeKind::kOp) ? n.op().schema() : n.host().schema;
             if (schema.arguments.size() != n.inputs().size()) return false;
             const auto i = static_cast<size_t>(use.index);
             if (i < static_cast<size_t>(schema.num_positional()))
               return i >= positional_end(schema, n);
             return is_default(schema.arguments[i], n.input(i));
           });
  }
  static bool is_default(const Argument& a, const Value* v) {
    const IValue* c = v->constant();
    return a.has_default && c && c->tag() == a.default_value.tag() && !c->is_object() &&
           equal(*c, a.default_value);
  }

  std::string parameters(const Block& b) {
    if (b.parameters().empty()) return {};
    return cat(" as (", outputs(b.parameters()), ")");
  }
  std::string outputs(std::span<Value* const> values) {
    std::string out;
    for (const Value* v : values)
      out += cat(out.empty() ? "" : ", ", name(v), ": ", type(v->type()));
    return out;
  }

  std::string type(const TypePtr& t) const { return print_type(*t, options_.names); }
  const std::string& function_name(const Function& f) const {
    return options_.names ? options_.names->functions.at(&f) : f.name();
  }

  std::string operand(const Value* v) {
    if (v->constant() && has_natural_type(*v)) return literal_text(*v->constant());
    return name(v);
  }
  std::string constant_text(const IValue& v) { return is_literal(v) ? literal_text(v) : pooled(v); }

  std::string pooled(const IValue& v) {
    if (!options_.pool) return "$n";
    auto& pool = *options_.pool;
    for (size_t i = 0; i < pool.size(); ++i)
      if (pool[i].identity() && pool[i].identity() == v.identity()) return cat("$", i);
    pool.push_back(v);
    return cat("$", pool.size() - 1);
  }

  const std::string& name(const Value* v) {
    auto [it, is_new] = names_.try_emplace(v);
    if (!is_new) return it->second;
    std::string base = is_name(v->name()) ? v->name() : "v";
    if (is_reserved(base)) base += "_";
    std::string unique = base;
    if (base == "v" || !taken_.insert(unique).second) {
      int& count = counts_[base];
      do unique = cat(base, "_", ++count);
      while (!taken_.insert(unique).second);
    }
    return it->second = unique;
  }

  void line(const std::string& text, const Node* n) {
    out_.append(static_cast<size_t>(indent_), ' ');
    out_ += text;
    if (options_.ranges && n && n->range()) {
      const SourceRange& r = n->range();
      out_ += cat("  # ", r.source->file, ":", r.line, ":", r.column, "-", r.end_line, ":",
                  r.end_column);
    }
    out_ += '\n';
  }

  const PrintOptions& options_;
  int indent_;
  std::string out_;
  std::unordered_map<const Value*, std::string> names_;
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int> counts_;
};

}  // namespace

std::string print(const Graph& graph, std::string_view name, const PrintOptions& options) {
  return Printer(options).function(name, graph, nullptr);
}

std::string print(const Function& function, const PrintOptions& options) {
  const std::string& name =
      options.names ? options.names->functions.at(&function) : function.name();
  if (!function.is_defined()) return Printer(options).declaration(name, function.schema());
  return Printer(options).function(name, function.graph(), &function.schema());
}

std::string print_literal(const IValue& value) { return literal_text(value); }

std::string print_type(const Type& type, const UniqueNames* names) {
  if (!names) return type.str_();
  if (type.class_info()) {
    const auto it = names->classes.find(type.class_info());
    return it == names->classes.end() ? type.name() : it->second;
  }
  if (type.elements().empty() || !type.name().empty()) return type.str_();
  std::string items;
  for (const TypePtr& t : type.elements())
    items += cat(items.empty() ? "" : ", ", print_type(*t, names));
  const std::string whole = type.str_();
  return cat(whole.substr(0, whole.find('[')), "[", items, "]");
}

}  // namespace prong
