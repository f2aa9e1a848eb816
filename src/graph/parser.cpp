// Text to graph: recursive descent, a line at a time; blocks by indentation.
#include <charconv>
#include <unordered_map>

#include "graph/builder.h"
#include "graph/printer.h"

namespace prong {
namespace {

constexpr double kInfinity = __builtin_inf();

// One line of text: position, errors with a caret, and the small tokens.
class Line {
 public:
  Line(std::string_view text, int number, std::string_view file)
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
  std::string word(bool dots = false) {
    const size_t start = at_;
    while (at_ < text_.size() && (is_word(text_[at_]) || (dots && text_[at_] == '.'))) ++at_;
    if (at_ == start) fail("expected a name");
    std::string w(text_.substr(start, at_ - start));
    skip();
    return w;
  }
  // Up to `end`, which is not consumed.
  std::string until(char end) {
    const size_t stop = text_.find(end, at_);
    if (stop == std::string_view::npos) fail(cat("expected '", end, "'"));
    std::string w(text_.substr(at_, stop - at_));
    at_ = stop;
    return w;
  }
  [[noreturn]] void fail(std::string_view what) const {
    throw_error(ErrorKind::kValue, cat(file_, ":", number_, ":", at_ + 1, ": ", what, "\n  ", text_,
                                       "\n  ", std::string(at_, ' '), "^"));
  }

  int64_t integer() {
    int64_t i = 0;
    const auto [p, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), i);
    if (error != std::errc()) fail("expected a whole number");
    at_ = static_cast<size_t>(p - text_.data());
    skip();
    return i;
  }
  IValue number();
  std::string string();

 private:
  std::string_view text_;
  int number_;
  std::string_view file_;
  size_t at_ = 0;
};

IValue Line::number() {
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

std::string Line::string() {
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

// A literal, if one stands here.
bool literal(Line& l, IValue& v) {
  const char c = l.peek();
  if (c == '"') {
    v = IValue(l.string());
  } else if (c == '[' || c == '(') {
    const std::string_view close = c == '[' ? "]" : ")";
    l.accept(std::string_view(&c, 1));
    std::vector<IValue> items;
    while (!l.accept(close)) {
      if (!literal(l, items.emplace_back())) l.fail("expected a literal");
      if (!l.accept(",") && l.peek() != close[0]) l.fail(cat("expected ',' or '", close, "'"));
    }
    v = c == '[' ? IValue::list(std::move(items)) : IValue::tuple(std::move(items));
  } else if (l.accept_word("None")) {
    v = IValue();
  } else if (l.accept_word("True")) {
    v = IValue(true);
  } else if (l.accept_word("False")) {
    v = IValue(false);
  } else if (l.accept_word("inf")) {
    v = IValue(kInfinity);
  } else if (l.accept_word("-inf")) {
    v = IValue(-kInfinity);
  } else if (l.accept_word("nan")) {
    v = IValue(__builtin_nan(""));
  } else if (c == '-' || (c >= '0' && c <= '9')) {
    v = l.number();
  } else {
    for (int d = 0; d < kNumDTypes; ++d)
      if (l.accept_word(name_of(static_cast<DType>(d)))) {
        v = IValue(static_cast<DType>(d));
        return true;
      }
    return false;
  }
  return true;
}

class Parser {
 public:
  Parser(std::string_view text, const ParseScope& scope, std::string_view file)
      : scope_(scope), file_(file) {
    int number = 0;
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      Line line(text.substr(0, end), ++number, file);
      if (!line.is_at_end()) lines_.push_back(line);
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

  TypePtr parse_one_type() {
    PRONG_CHECK(lines_.size() == 1, kValue, "expected a type");
    TypePtr t = type(lines_[0]);
    if (!lines_[0].is_at_end()) lines_[0].fail("unexpected text");
    return t;
  }

  std::vector<Ref<Function>> parse() {
    for (Line l : lines_) {  // first all signatures, so that functions may call each other
      const bool has_body = l.accept_word("def");
      if (!has_body && !l.accept_word("declare")) continue;
      functions_.push_back(signature(l));
      if (has_body) l.expect(":");
    }
    size_t n = 0;
    while (next_ < lines_.size()) {
      Line& l = lines_[next_++];
      const bool has_body = l.accept_word("def");
      if (!has_body && !l.accept_word("declare")) l.fail("expected 'def' or 'declare'");
      const size_t indent = l.indent();
      Function& f = *functions_[n++];
      if (has_body) define(f, indent);
    }
    return functions_;
  }

 private:
  // ── signatures and types ──
  Ref<Function> signature(Line& l) {
    Schema schema;
    schema.name = l.word(true);
    l.expect("(");
    bool keyword_only = false;
    while (!l.accept(")")) {
      if (l.accept("*")) {
        keyword_only = true;
        l.expect(",");
      }
      Argument& a = schema.arguments.emplace_back();
      a.is_keyword_only = keyword_only;
      a.name = l.word();
      l.expect(":");
      a.type = type(l);
      if (l.accept("=")) {
        a.has_default = true;
        if (l.peek() == '$')
          a.default_value = pooled(l);
        else if (!literal(l, a.default_value))
          l.fail("expected a literal");
      }
      if (!l.accept(",") && l.peek() != ')') l.fail("expected ',' or ')'");
    }
    l.expect("->");
    schema.results.push_back(type(l));
    schema.result_names.emplace_back();
    std::string name = schema.name;
    return make_ref<Function>(std::move(name), std::move(schema));
  }

  TypePtr type(Line& l) {
    if (l.accept("(")) l.fail("expected a type");
    if (l.rest().substr(0, 9) == "function ") l.fail("a function is no value");
    const std::string name = l.word(true);
    for (const TypePtr& t : scope_.types)
      if (t->name() == name) return t;
    std::vector<TypePtr> items;
    const bool is_empty_tuple = name == "Tuple" && l.accept("[()]");
    if (!is_empty_tuple && l.accept("[")) {
      do items.push_back(type(l));
      while (l.accept(","));
      l.expect("]");
    }
    if (name == "Tuple") return Type::tuple(std::move(items));
    if (name == "Dict" && items.size() == 2) return Type::dict(items[0], items[1]);
    if (items.size() == 1) {
      if (name == "List") return Type::list(items[0]);
      if (name == "Optional") return Type::optional(items[0]);
      if (name == "Future") return Type::future(items[0]);
    }
    if (!items.empty() || name.find('.') != std::string::npos)
      l.fail(cat("unknown type '", name, "'"));
    try {
      return Type::parse(name);
    } catch (const Error& e) {
      l.fail(e.message());
    }
  }

  // ── bodies ──
  void define(Function& f, size_t indent) {
    auto graph = std::make_unique<Graph>();
    names_.clear();
    for (const Argument& a : f.schema().arguments)
      names_[a.name] = graph->add_input(a.type, a.name);
    GraphBuilder b(*graph);
    block(b, indent, "return");
    f.define(std::move(graph));
  }

  // The lines deeper than `indent`, up to and with the one that starts with `last`.
  void block(GraphBuilder& b, size_t indent, std::string_view last) {
    while (true) {
      if (next_ >= lines_.size() || lines_[next_].indent() <= indent)
        (next_ ? lines_[next_ - 1] : lines_[0])
            .fail(cat("expected a block that ends in '", last, "'"));
      Line& l = lines_[next_++];
      if (l.accept_word(last)) {
        std::vector<Value*> results;
        while (!l.is_at_end()) {
          results.push_back(operand(l, b));
          if (!l.accept(",")) break;
        }
        end_of_line(l, b);
        b.yield(results);
        return;
      }
      statement(l, b);
    }
  }

  struct Typed {
    std::string name;
    TypePtr type;
  };

  void statement(Line& l, GraphBuilder& b) {
    std::vector<Typed> outputs;
    Line ahead = l;  // "name:" starts a list of outputs; otherwise the node has none
    ahead.word(true);
    if (ahead.accept(":")) {
      outputs = typed_names(l);
      l.expect("=");
    }
    const std::string head = l.word(true);
    Node* n = nullptr;
    if (head.starts_with("host."))
      n = schema_node(l, b, NodeKind::kHost, head.substr(5));
    else if (const NodeKind* kind = find_kind(head))
      n = structural(l, b, *kind);
    else
      n = schema_node(l, b, NodeKind::kOp, head);
    std::shared_ptr<Graph> subgraph;
    std::unordered_map<std::string, Value*> outer;
    if (n->is(NodeKind::kFused)) {
      subgraph = std::make_shared<Graph>();
      outer = names_;
      n->set_subgraph(subgraph);
    }
    Block* first = subgraph ? subgraph->top() : nullptr;
    if (has_block(*n)) first = n->add_block();
    if (first && l.accept("as")) {
      l.expect("(");
      for (const Typed& p : typed_names(l)) names_[p.name] = first->add_parameter(p.type, p.name);
      l.expect(")");
    }
    if (first) l.expect(":");
    end_of_line(l, b);
    n->set_range(b.range());
    if (first) inner(first, l.indent());
    if (n->is(NodeKind::kIf)) {
      if (next_ >= lines_.size()) l.fail("expected 'else:' after this block");
      Line& e = lines_[next_++];
      if (!e.accept_word("else")) e.fail("expected 'else:'");
      e.expect(":");
      inner(n->add_block(), e.indent());
    }
    if (subgraph) names_ = std::move(outer);
    for (const Typed& o : outputs) names_[o.name] = n->add_output(o.type, o.name);
  }

  void inner(Block* body, size_t indent) {
    GraphBuilder b(body);
    block(b, indent, "yield");
  }
  static bool has_block(const Node& n) {
    return n.is(NodeKind::kIf) || n.is(NodeKind::kLoop) || n.is(NodeKind::kWith) ||
           (n.is(NodeKind::kFork) && !n.function() && n.name().empty());
  }
  static const NodeKind* find_kind(std::string_view name) {
    static constexpr NodeKind kinds[] = {
#define PRONG_NODE(name, spelling, operands, comment) NodeKind::k##name,
#include "graph/node_kinds.def"
#undef PRONG_NODE
    };
    for (const NodeKind& k : kinds)
      if (k != NodeKind::kOp && k != NodeKind::kHost && k != NodeKind::kYield &&
          spelling(k) == name)
        return &k;
    return nullptr;
  }

  std::vector<Typed> typed_names(Line& l) {
    std::vector<Typed> out;
    do {
      Typed t;
      t.name = l.word();
      l.expect(":");
      t.type = type(l);
      out.push_back(std::move(t));
    } while (l.accept(","));
    return out;
  }

  Node* structural(Line& l, GraphBuilder& b, NodeKind kind) {
    Node* n = b.create(kind, {});
    if (l.accept("[")) {
      brackets(l, *n);
      l.expect("]");
    }
    l.expect("(");
    if (kind == NodeKind::kConstant) {
      IValue v;
      if (l.peek() == '$')
        v = pooled(l);
      else if (!literal(l, v))
        l.fail("expected a literal");
      n->set_constant(std::move(v));
      l.expect(")");
      return n;
    }
    while (!l.accept(")")) {
      n->add_input(before(l, *n));
      if (!l.accept(",") && l.peek() != ')') l.fail("expected ',' or ')'");
    }
    return n;
  }

  void brackets(Line& l, Node& n) {
    switch (n.kind()) {
    case NodeKind::kCall:
      n.set_function(function(l));
      return;
    case NodeKind::kFork:
      if (l.accept("."))
        n.set_name(l.word());
      else
        n.set_function(function(l));
      return;
    case NodeKind::kCallMethod:
    case NodeKind::kGetAttr:
    case NodeKind::kSetAttr:
      n.set_name(l.word());
      return;
    case NodeKind::kRaise:
      n.set_name(l.word(true));
      if (l.accept(",")) n.set_constant(pooled(l));
      return;
    case NodeKind::kCallPython:
      n.set_constant(pooled(l));
      return;
    case NodeKind::kTupleGet:
      n.set_index(l.integer());
      return;
    case NodeKind::kIsInstance: {
      std::vector<TypePtr> types;
      do types.push_back(type(l));
      while (l.accept(","));
      n.set_types(std::move(types));
      return;
    }
    default:
      l.fail(cat(spelling(n.kind()), " takes no brackets"));
    }
  }

  Ref<Function> function(Line& l) {
    const std::string name = l.until(']');
    for (const auto& f : functions_)
      if (f->name() == name) return f;
    for (const auto& f : scope_.functions)
      if (f->name() == name) return f;
    l.fail(cat("unknown function '", name, "'"));
  }

  Node* schema_node(Line& l, GraphBuilder& b, NodeKind kind, const std::string& name) {
    const OpDef* op = kind == NodeKind::kOp ? registry().find(name) : nullptr;
    const HostOp* host = kind == NodeKind::kHost ? host_registry().find(name) : nullptr;
    if (!op && !host) l.fail(cat("unknown op '", name, "'"));
    const Schema& schema = op ? op->schema() : host->schema;
    std::vector<Value*> inputs(schema.arguments.size());
    size_t position = 0;
    l.expect("(");
    while (!l.accept(")")) {
      Line ahead = l;
      size_t index = position++;
      if (Line::is_word(l.peek()) && (ahead.word(), ahead.accept("="))) {
        const int named = schema.find(l.word());
        if (named < 0) l.fail(cat(name, " has no such argument"));
        index = static_cast<size_t>(named);
        l.expect("=");
      }
      if (index >= inputs.size()) l.fail(cat(name, " takes ", inputs.size(), " arguments"));
      inputs[index] = operand(l, b);
      if (!l.accept(",") && l.peek() != ')') l.fail("expected ',' or ')'");
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i]) continue;
      const Argument& a = schema.arguments[i];
      if (!a.has_default) l.fail(cat(name, " lacks its argument '", a.name, "'"));
      const IValue& v = a.default_value;
      inputs[i] = b.constant(v, v.is_none() || v.is_list() ? a.type : type_of_constant(v));
    }
    Node* n = b.create(kind, inputs);
    return op ? n->set_op(*op) : n->set_host(*host);
  }

  // An operand of a node that stands already: its constants go before it.
  Value* before(Line& l, Node& n) {
    GraphBuilder b = GraphBuilder::before(&n);
    return operand(l, b);
  }

  Value* operand(Line& l, GraphBuilder& b) {
    IValue v;
    if (literal(l, v)) return b.constant(std::move(v));
    const Line at = l;
    const std::string name = l.word();
    const auto it = names_.find(name);
    if (it == names_.end()) at.fail(cat("unknown value '", name, "'"));
    return it->second;
  }

  IValue pooled(Line& l) {
    l.expect("$");
    const auto i = static_cast<size_t>(l.integer());
    if (i >= scope_.pool.size()) l.fail(cat("the pool has ", scope_.pool.size(), " constants"));
    return scope_.pool[i];
  }

  // Reads the source range in the comment, if any.
  void end_of_line(Line& l, GraphBuilder& b) {
    if (!l.is_at_end()) l.fail("unexpected text");
    b.set_range({});
    if (!l.accept("#")) return;
    const std::string_view comment = l.rest();
    for (const auto& source : scope_.sources) {
      if (!comment.starts_with(source->file)) continue;
      int numbers[4] = {};
      std::string_view rest = comment.substr(source->file.size());
      int count = 0;
      while (count < 4 && !rest.empty()) {
        rest.remove_prefix(1);
        const auto [p, error] =
            std::from_chars(rest.data(), rest.data() + rest.size(), numbers[count]);
        if (error != std::errc()) break;
        rest.remove_prefix(static_cast<size_t>(p - rest.data()));
        ++count;
      }
      if (count == 4) b.set_range({source, numbers[0], numbers[1], numbers[2], numbers[3]});
      return;
    }
  }

  const ParseScope& scope_;
  std::string_view file_;
  std::vector<Line> lines_;
  size_t next_ = 0;
  std::vector<Ref<Function>> functions_;
  std::unordered_map<std::string, Value*> names_;
};

}  // namespace

std::vector<Ref<Function>> parse_functions(std::string_view text, const ParseScope& scope,
                                           std::string_view file) {
  return Parser(text, scope, file).parse();
}

TypePtr parse_type(std::string_view text, const ParseScope& scope) {
  return Parser(text, scope, "<type>").parse_one_type();
}

IValue parse_literal(std::string_view text) {
  Line l(text, 1, "<literal>");
  IValue v;
  if (!literal(l, v)) l.fail("expected a literal");
  if (!l.is_at_end()) l.fail("unexpected text");
  return v;
}

}  // namespace prong
