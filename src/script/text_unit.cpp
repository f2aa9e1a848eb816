// TextUnit: the resolver of programs without Python.
#include "script/text_unit.h"

#include <cmath>
#include <limits>

#include "graph/host_op.h"
#include "script/builtin_names.h"
#include "script/parser.h"

namespace prong::script {

namespace {

Named builtin(std::string_view name) {
  Named n;
  n.kind = Named::Kind::kBuiltin;
  n.name = name;
  return n;
}

Named constant(IValue v, TypePtr t) {
  Named n;
  n.kind = Named::Kind::kConstant;
  n.value = std::move(v);
  n.type = std::move(t);
  return n;
}

// torch, torch.jit, math, ...
struct Namespace final : Entity {
  std::string path;
  explicit Namespace(std::string p) : path(std::move(p)) {}
  std::string describe() const override { return path; }
  Named attribute(const std::string& name) override {
    Named n;
    if (path == "math") {
      if (name == "pi") return constant(IValue(M_PI), Type::float_());
      if (name == "e") return constant(IValue(M_E), Type::float_());
      if (name == "inf")
        return constant(IValue(std::numeric_limits<double>::infinity()), Type::float_());
      if (name == "nan") return constant(IValue(std::nan("")), Type::float_());
      if (!host_registry().overloads("math_" + name).empty()) return builtin("host:math_" + name);
      return n;
    }
    const std::string below = path == "torch" ? name : path.substr(6) + "." + name;
    if (const std::string_view b = builtin_of_torch(below); !b.empty()) return builtin(b);
    if (const auto dtype = dtype_from_name(name); dtype && path == "torch")
      return constant(IValue(*dtype), Type::dtype());
    if ((path == "torch" || path == "torch.nn.functional") && !registry().overloads(name).empty()) {
      n.kind = Named::Kind::kOp;
      n.name = name;
      return n;
    }
    for (std::string_view known :
         {"jit", "nn", "nn.functional", "futures", "autograd", "autograd.profiler", "profiler"})
      if (below == known) {
        n.kind = Named::Kind::kNamespace;
        n.name = "torch." + below;
        n.entity = make_ref<Namespace>("torch." + below);
      }
    return n;
  }
};

struct TextResolver final : Resolver {
  std::map<std::string, FunctionEntry*> entries;  // the unit owns them and this
  Named lookup(const std::string& name) override {
    Named n;
    if (const auto found = entries.find(name); found != entries.end()) {
      n.kind = Named::Kind::kFunction;
      n.name = name;
      n.entry = Ref<FunctionEntry>(found->second);
      return n;
    }
    if (name == "torch" || name == "math" || name == "F") {
      n.kind = Named::Kind::kNamespace;
      n.name = name;
      n.entity = make_ref<Namespace>(name == "F" ? "torch.nn.functional" : name);
      return n;
    }
    if (is_exception_name(name)) {
      n.kind = Named::Kind::kException;
      n.name = name;
      return n;
    }
    if (const std::string_view b = builtin_of_python(name); !b.empty()) return builtin(b);
    return n;
  }
  TypePtr type(const std::string& text) override {
    std::string plain = text;
    for (std::string_view prefix : {"torch.jit.", "torch.", "typing."})
      for (size_t at; (at = plain.find(prefix)) != std::string::npos;)
        plain.erase(at, prefix.size());
    const size_t bare = plain.find("Future");
    if (bare != std::string::npos && (bare + 6 == plain.size() || plain[bare + 6] != '['))
      throw_error(ErrorKind::kRuntime,
                  "Attempted to use Future without a contained type: write Future[Tensor], or what "
                  "else it holds");
    return Type::parse(plain);
  }
  IValue default_value(const std::string&, const std::string& text, const TypePtr&) override {
    const ExprPtr e = parse_expression(std::make_shared<Source>(text, "<default>", 1));
    switch (e->kind) {
    case ExprKind::kInt:
      return IValue(static_cast<int64_t>(std::stoll(e->text)));
    case ExprKind::kFloat:
      return IValue(std::stod(e->text));
    case ExprKind::kString:
      return IValue(e->text);
    case ExprKind::kTrue:
      return IValue(true);
    case ExprKind::kFalse:
      return IValue(false);
    case ExprKind::kNone:
      return IValue();
    default:
      throw_error(ErrorKind::kUnsupported, cat("the default '", text, "' is no plain constant"));
    }
  }
};

}  // namespace

TextUnit::TextUnit(const std::string& text, const std::string& file) {
  const auto source = std::make_shared<const Source>(text, file, 1);
  auto resolver = make_ref<TextResolver>();
  const auto home = make_ref<Definitions>();
  for (const StmtPtr& s : parse_file(source)) {
    if (s->kind == StmtKind::kPass) continue;
    if (s->kind != StmtKind::kFunction)
      unsupported(s->range, "only functions can stand in this text", "write a def");
    auto entry = make_ref<FunctionEntry>();
    entry->name = entry->qualified_name = s->function->name;
    entry->source = source;
    entry->ast = s->function;
    entry->resolver = resolver;
    entry->home = home;
    resolver->entries[entry->name] = entry.get();
    entries_[entry->name] = std::move(entry);
  }
}

Ref<Function> TextUnit::function(const std::string& name) const {
  const auto found = entries_.find(name);
  PRONG_CHECK(found != entries_.end(), kAttribute, "the text has no function '", name, "'");
  return compile(*found->second);
}

}  // namespace prong::script
