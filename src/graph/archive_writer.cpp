// save_archive: collects what is reached, then writes it out.
#include <unordered_map>
#include <unordered_set>

#include "graph/archive.h"
#include "graph/printer.h"
#include "tensor/zip.h"

namespace prong {
namespace {

// Records are literals of the graph text, a line each: ("tensor", float32, [2, 3], ...).
IValue record(std::vector<IValue> items) { return IValue::tuple(std::move(items)); }

class Writer {
 public:
  std::string run(const Archive& archive) {
    IValue root = reference(archive.root);
    if (archive.function) add(*archive.function);
    fill();
    std::string manifest = "prong archive 1\n";
    line(manifest, record({"root", root,
                           archive.function ? IValue(names_.functions.at(archive.function.get()))
                                            : IValue()}));
    for (const ClassType* c : classes_) line(manifest, class_record(*c));
    for (const TypePtr& t : named_tuples_) line(manifest, named_tuple_record(*t));
    for (const Function* f : functions_)
      line(manifest, record({"function", names_.functions.at(f), f->name()}));
    for (const auto& s : sources_)
      line(manifest, record({"source", s->file, int64_t{s->first_line}, s->text}));
    for (const IValue& r : records_) line(manifest, r);
    PrintOptions options;
    options.ranges = true;
    options.pool = &pool_;
    options.names = &names_;
    std::string code;
    for (const Function* f : functions_) code += print(*f, options);
    std::vector<std::pair<std::string, std::string>> files{{"manifest.txt", std::move(manifest)},
                                                           {"code.txt", std::move(code)}};
    for (size_t k = 0; k < storages_.size(); ++k)
      files.emplace_back(
          cat("data/", k),
          std::string(static_cast<const char*>(storages_[k]->data()), storages_[k]->bytes()));
    for (const auto& [name, content] : archive.extra_files)
      files.emplace_back(cat("extra/", name), content);
    return write_zip(files);
  }

 private:
  static void line(std::string& out, const IValue& r) { out += print_literal(r) + "\n"; }

  // ── values: (0, literal) or (1, number of a record) ──
  IValue reference(const IValue& v) {
    if (is_literal(v) && !v.is_list() && !v.is_tuple()) return record({0, v});
    const auto [it, is_new] = numbers_.try_emplace(v.identity(), pool_.size());
    if (is_new) {
      pool_.push_back(v);
      records_.emplace_back();
    }
    return record({1, static_cast<int64_t>(it->second)});
  }
  // Writes the records of all values in the pool, which grows meanwhile.
  void fill() {
    for (size_t k = 0; k < pool_.size(); ++k) records_[k] = value_record(IValue(pool_[k]));
  }
  IValue references(const std::vector<IValue>& items) {
    std::vector<IValue> out;
    for (const IValue& v : items) out.push_back(reference(v));
    return IValue::list(std::move(out));
  }

  IValue value_record(const IValue& v) {
    switch (v.tag()) {
    case IValue::Tag::kTensor:
      return tensor_record(v.to_tensor());
    case IValue::Tag::kList:
      return record({"list", references(v.items())});
    case IValue::Tag::kTuple: {
      const TupleNames* names = v.tuple()->names.get();
      if (!names) return record({"tuple", references(v.items())});
      std::vector<IValue> fields(names->fields.begin(), names->fields.end());
      return record({"named_tuple", names->type_name, IValue::list(std::move(fields)),
                     references(v.items())});
    }
    case IValue::Tag::kDict: {
      std::vector<IValue> items;
      for (size_t k = 0; k < v.dict()->size(); ++k) {
        items.push_back(v.dict()->entry(k).first);
        items.push_back(v.dict()->entry(k).second);
      }
      return record({"dict", references(items)});
    }
    case IValue::Tag::kObject:
      if (const auto* o = dynamic_cast<const Object*>(v.object())) {
        add(*o->cls);
        return record({"object", names_.classes.at(o->cls.get()), references(o->slots)});
      }
      throw_error(ErrorKind::kRuntime, cat("save: ", in_function(), "it uses ",
                                           v.object()->describe(), ", which lives in Python"));
    default:
      throw_error(ErrorKind::kRuntime,
                  cat("save: ", in_function(), "a ", name_of(v.tag()), " cannot be saved"));
    }
  }
  IValue tensor_record(const Tensor& t) {
    const Storage* s = t.storage().get();
    const auto [it, is_new] = storage_numbers_.try_emplace(s, storages_.size());
    if (is_new) storages_.push_back(s);
    return record({"tensor", t.dtype(), IValue(DimsView(t.sizes())), IValue(DimsView(t.strides())),
                   t.offset(), static_cast<int64_t>(it->second), t.requires_grad()});
  }
  std::string in_function() const {
    return current_ ? cat("function ", current_->name(), ": ") : std::string();
  }

  // ── types, classes, functions ──
  void add(const Type& t) {
    for (const TypePtr& e : t.elements()) add(*e);
    if (t.is(TypeKind::kTuple) && !t.name().empty()) {
      for (const TypePtr& known : named_tuples_)
        if (known->name() == t.name()) return;
      named_tuples_.emplace_back(&t);
    }
    if (auto* c = dynamic_cast<ClassType*>(t.class_info())) add(*c);
  }
  void add(const ClassType& c) {
    if (names_.classes.contains(&c)) return;
    names_.classes[&c] = unique(c.qualified_name);
    classes_.push_back(&c);
    for (const auto& a : c.attributes()) add(*a.type);
    for (const auto& i : c.interfaces) add(*i);
    for (const auto& [name, value] : c.constants) reference(value);
    for (const auto& [name, f] : c.methods()) add(*f);
  }
  void add(const Function& f) {
    if (names_.functions.contains(&f)) return;
    names_.functions[&f] = unique(f.name());
    functions_.push_back(&f);
    const Function* const outer = std::exchange(current_, &f);
    for (const Argument& a : f.schema().arguments) {
      add(*a.type);
      if (a.has_default && !is_literal(a.default_value)) reference(a.default_value);
    }
    for (const TypePtr& t : f.schema().results) add(*t);
    if (f.is_defined()) add(*f.graph().top());
    current_ = outer;
  }
  void add(const Block& b) {
    for (const Value* v : b.parameters()) add(*v->type());
    for (const Node* n = b.front(); n; n = n->next()) {
      for (const Value* v : n->outputs()) add(*v->type());
      for (const TypePtr& t : n->types()) add(*t);
      if (n->function()) add(*n->function());
      if (n->range()) add(n->range().source);
      if (n->is(NodeKind::kCallPython))
        throw_error(ErrorKind::kRuntime,
                    cat("save: ", in_function(), "it calls ", n->object()->describe(),
                        ", which is Python and cannot be saved\n",
                        n->range().highlight(current_->name())));
      if (n->is(NodeKind::kConstant) && !is_literal(n->constant())) reference(n->constant());
      for (const Block* inner : n->blocks()) add(*inner);
    }
  }
  void add(const Ref<SourceText>& source) {
    for (const auto& s : sources_)
      if (s == source) return;
    sources_.push_back(source);
  }
  // A name that no other function or class has.
  std::string unique(const std::string& name) {
    std::string out = name;
    for (int k = 2; !taken_.insert(out).second; ++k) out = cat(name, "_", k);
    return out;
  }

  IValue class_record(const ClassType& c) {
    std::vector<IValue> attributes, methods, constants, interfaces;
    for (const auto& a : c.attributes())
      attributes.push_back(
          record({a.name, print_type(*a.type, &names_), a.is_parameter, a.is_buffer}));
    for (const auto& [name, f] : c.methods())
      methods.push_back(record({name, names_.functions.at(f.get())}));
    for (const auto& [name, value] : c.constants)
      constants.push_back(record({name, reference(value)}));
    for (const auto& i : c.interfaces) interfaces.push_back(IValue(names_.classes.at(i.get())));
    return record({"class", names_.classes.at(&c), c.qualified_name, static_cast<int64_t>(c.kind),
                   IValue::list(std::move(attributes)), IValue::list(std::move(methods)),
                   IValue::list(std::move(constants)), IValue::list(std::move(interfaces))});
  }
  IValue named_tuple_record(const Type& t) {
    std::vector<IValue> fields;
    for (size_t k = 0; k < t.fields().size(); ++k)
      fields.push_back(record({t.fields()[k], print_type(*t.elements()[k], &names_)}));
    return record({"named_tuple_type", t.name(), IValue::list(std::move(fields))});
  }

  std::vector<IValue> pool_, records_;  // parallel
  std::unordered_map<const RefCounted*, size_t> numbers_;
  std::vector<const Storage*> storages_;
  std::unordered_map<const Storage*, size_t> storage_numbers_;
  std::vector<const ClassType*> classes_;
  std::vector<TypePtr> named_tuples_;
  std::vector<const Function*> functions_;
  std::vector<Ref<SourceText>> sources_;
  UniqueNames names_;
  std::unordered_set<std::string> taken_;
  const Function* current_ = nullptr;
};

}  // namespace

std::string save_archive(const Archive& archive) { return Writer().run(archive); }

}  // namespace prong
