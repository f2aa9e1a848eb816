// Text to graph: recursive descent, a line at a time; blocks by indentation.
#include <charconv>
#include <unordered_map>

#include "graph/builder.h"
#include "graph/printer.h"
#include "graph/text_line.h"

namespace prong {
namespace {

class Parser {
 public:
  Parser(std::string_view text, const ParseScope& scope, std::string_view file)
      : scope_(scope), file_(file) {
    int number = 0;
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      TextLine line(text.substr(0, end), ++number, file);
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
    for (TextLine l : lines_) {  // first all signatures, so that functions may call each other
      const bool has_body = l.accept_word("def");
      if (!has_body && !l.accept_word("declare")) continue;
      functions_.push_back(signature(l));
      if (has_body) l.expect(":");
    }
    size_t n = 0;
    while (next_ < lines_.size()) {
      TextLine& l = lines_[next_++];
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
  Ref<Function> signature(TextLine& l) {
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
        else if (!l.literal(a.default_value))
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

  TypePtr type(TextLine& l) {
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
      TextLine& l = lines_[next_++];
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

  void statement(TextLine& l, GraphBuilder& b) {
    std::vector<Typed> outputs;
    TextLine ahead = l;  // "name:" starts a list of outputs; otherwise the node has none
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
      TextLine& e = lines_[next_++];
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

  std::vector<Typed> typed_names(TextLine& l) {
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

  Node* structural(TextLine& l, GraphBuilder& b, NodeKind kind) {
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
      else if (!l.literal(v))
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

  void brackets(TextLine& l, Node& n) {
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

  Ref<Function> function(TextLine& l) {
    const std::string name = l.until(']');
    for (const auto& f : functions_)
      if (f->name() == name) return f;
    for (const auto& f : scope_.functions)
      if (f->name() == name) return f;
    l.fail(cat("unknown function '", name, "'"));
  }

  Node* schema_node(TextLine& l, GraphBuilder& b, NodeKind kind, const std::string& name) {
    const OpDef* op = kind == NodeKind::kOp ? registry().find(name) : nullptr;
    const HostOp* host = kind == NodeKind::kHost ? host_registry().find(name) : nullptr;
    if (!op && !host) l.fail(cat("unknown op '", name, "'"));
    const Schema& schema = op ? op->schema() : host->schema;
    std::vector<Value*> inputs(schema.arguments.size());
    size_t position = 0;
    l.expect("(");
    while (!l.accept(")")) {
      TextLine ahead = l;
      size_t index = position++;
      if (TextLine::is_word(l.peek()) && (ahead.word(), ahead.accept("="))) {
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
  Value* before(TextLine& l, Node& n) {
    GraphBuilder b = GraphBuilder::before(&n);
    return operand(l, b);
  }

  Value* operand(TextLine& l, GraphBuilder& b) {
    IValue v;
    if (l.literal(v)) return b.constant(std::move(v));
    const TextLine at = l;
    const std::string name = l.word();
    const auto it = names_.find(name);
    if (it == names_.end()) at.fail(cat("unknown value '", name, "'"));
    return it->second;
  }

  IValue pooled(TextLine& l) {
    l.expect("$");
    const auto i = static_cast<size_t>(l.integer());
    if (i >= scope_.pool.size()) l.fail(cat("the pool has ", scope_.pool.size(), " constants"));
    return scope_.pool[i];
  }

  // Reads the source range in the comment, if any.
  void end_of_line(TextLine& l, GraphBuilder& b) {
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
  std::vector<TextLine> lines_;
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
  TextLine l(text, 1, "<literal>");
  IValue v;
  if (!l.literal(v)) l.fail("expected a literal");
  if (!l.is_at_end()) l.fail("unexpected text");
  return v;
}

}  // namespace prong
