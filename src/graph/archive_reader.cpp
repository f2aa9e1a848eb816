// load_archive: makes classes, values and functions of the records that archive_writer.cpp wrote.
#include <cstring>
#include <map>

#include "graph/archive.h"
#include "graph/printer.h"
#include "graph/verify.h"
#include "tensor/zip.h"

namespace prong {
namespace {

using Items = std::vector<IValue>;

class Reader {
 public:
  explicit Reader(std::string_view bytes) : files_(read_zip(bytes)) {}

  Archive run() {
    split(file("manifest.txt"));
    make_classes();
    make_values();
    make_functions();
    Archive out;
    out.home = home_;
    out.root = value(root_[1]);
    if (!root_[2].is_none()) out.function = function(root_[2].to_string());
    for (const auto& [name, content] : files_)
      if (name.starts_with("extra/"))
        out.extra_files.emplace_back(name.substr(6), std::string(content));
    return out;
  }

 private:
  std::string_view file(std::string_view name) const {
    for (const auto& [known, content] : files_)
      if (known == name) return content;
    throw_error(ErrorKind::kRuntime,
                cat("load: the archive has no file '", name, "': it was not written by Prong"));
  }

  // The manifest's records by their first item.
  void split(std::string_view manifest) {
    const size_t end = std::min(manifest.find('\n'), manifest.size());
    PRONG_CHECK(manifest.substr(0, end) == "prong archive 1", kRuntime, "load: the archive is '",
                manifest.substr(0, end), "', this Prong reads 'prong archive 1'");
    manifest.remove_prefix(std::min(end + 1, manifest.size()));
    while (!manifest.empty()) {
      const size_t stop = std::min(manifest.find('\n'), manifest.size());
      Items record = parse_literal(manifest.substr(0, stop)).items();
      manifest.remove_prefix(std::min(stop + 1, manifest.size()));
      const std::string& kind = record.at(0).to_string();
      if (kind == "root")
        root_ = std::move(record);
      else if (kind == "class")
        class_records_.push_back(std::move(record));
      else if (kind == "named_tuple_type")
        tuple_records_.push_back(std::move(record));
      else if (kind == "function")
        display_names_[record.at(1).to_string()] = record.at(2).to_string();
      else if (kind == "source")
        scope_.sources.push_back(make_ref<SourceText>(record.at(1).to_string(),
                                                      record.at(3).to_string(),
                                                      static_cast<int>(record.at(2).to_int())));
      else
        value_records_.push_back(std::move(record));
    }
  }

  // All classes first, then what they hold, since they may name each other.
  void make_classes() {
    for (const Items& r : class_records_) {
      auto c =
          make_ref<ClassType>(r.at(1).to_string(), static_cast<ClassType::Kind>(r.at(3).to_int()));
      home_->add(c);
      scope_.types.push_back(Type::class_(c));  // found by its name in the archive
      c->qualified_name = r.at(2).to_string();
      classes_[r.at(1).to_string()] = std::move(c);
    }
    // A named tuple may hold another one that stands later.
    std::vector<const Items*> left;
    for (const Items& r : tuple_records_) left.push_back(&r);
    for (size_t before = left.size() + 1; !left.empty() && left.size() < before;) {
      before = left.size();
      std::erase_if(left, [&](const Items* r) { return make_named_tuple(*r); });
    }
    for (const Items& r : class_records_) {
      ClassType& c = *classes_.at(r.at(1).to_string());
      for (const IValue& a : r.at(4).items()) {
        const Items& parts = a.items();
        c.add_attribute({parts.at(0).to_string(), parse_type(parts.at(1).to_string(), scope_),
                         parts.at(2).to_bool(), parts.at(3).to_bool()});
      }
      for (const IValue& i : r.at(7).items()) c.interfaces.push_back(classes_.at(i.to_string()));
    }
  }
  bool make_named_tuple(const Items& r) {
    std::vector<std::string> fields;
    std::vector<TypePtr> elements;
    try {
      for (const IValue& f : r.at(2).items()) {
        fields.push_back(f.items().at(0).to_string());
        elements.push_back(parse_type(f.items().at(1).to_string(), scope_));
      }
    } catch (const Error&) {
      return false;
    }
    scope_.types.push_back(
        Type::named_tuple(r.at(1).to_string(), std::move(fields), std::move(elements)));
    return true;
  }

  // ── values: shells first, since they may hold each other ──
  void make_values() {
    for (const Items& r : value_records_) scope_.pool.push_back(shell(r));
    for (size_t k = 0; k < value_records_.size(); ++k) fill(scope_.pool[k], value_records_[k]);
    for (const Items& r : class_records_)
      for (const IValue& constant : r.at(6).items())
        classes_.at(r.at(1).to_string())
            ->constants.emplace_back(constant.items().at(0).to_string(),
                                     value(constant.items().at(1)));
  }
  IValue shell(const Items& r) {
    const std::string& kind = r.at(0).to_string();
    if (kind == "tensor") return IValue(tensor(r));
    if (kind == "list") return IValue(make_ref<ListBox>());
    if (kind == "dict") return IValue(make_ref<DictBox>());
    if (kind == "tuple") return IValue(make_ref<TupleBox>());
    if (kind == "object")
      return IValue(Ref<ObjectBase>(make_ref<Object>(classes_.at(r.at(1).to_string()))));
    PRONG_CHECK(kind == "named_tuple", kRuntime, "load: the archive holds a '", kind,
                "', which this Prong does not know");
    auto names = make_ref<TupleNames>();
    names->type_name = r.at(1).to_string();
    for (const IValue& f : r.at(2).items()) names->fields.push_back(f.to_string());
    return IValue(make_ref<TupleBox>(Items(), std::move(names)));
  }
  void fill(const IValue& v, const Items& r) {
    if (v.is_list()) v.list()->items = values(r.at(1));
    if (v.is_tuple()) v.tuple()->items = values(r.back());
    if (v.is_object()) static_cast<Object*>(v.object())->slots = values(r.at(2));
    if (v.is_dict()) {
      const Items items = values(r.at(1));
      for (size_t k = 0; k + 1 < items.size(); k += 2) v.dict()->set(items[k], items[k + 1]);
    }
  }
  IValue value(const IValue& reference) const {
    const Items& r = reference.items();
    return r.at(0).to_int() == 0 ? r.at(1) : scope_.pool.at(static_cast<size_t>(r.at(1).to_int()));
  }
  Items values(const IValue& references) const {
    Items out;
    for (const IValue& r : references.items()) out.push_back(value(r));
    return out;
  }
  Tensor tensor(const Items& r) {
    const int64_t number = r.at(5).to_int();
    Ref<Storage>& storage = storages_[number];
    if (!storage) {
      const std::string_view bytes = file(cat("data/", number));
      storage = make_ref<Storage>(bytes.size());
      if (!bytes.empty()) std::memcpy(storage->data(), bytes.data(), bytes.size());
    }
    Tensor t = Tensor::view_of(storage, r.at(4).to_int(), r.at(2).to_dims(), r.at(3).to_dims(),
                               r.at(1).to_dtype());
    t.impl()->requires_grad = r.at(6).to_bool();
    return t;
  }

  // ── functions ──
  void make_functions() {
    functions_ = parse_functions(file("code.txt"), scope_, "code.txt");
    for (const auto& f : functions_) {
      home_->add(f);
      if (f->is_defined()) verify(f->graph());
      by_name_[f->name()] = f;
    }
    for (const auto& f : functions_)
      if (const auto it = display_names_.find(f->name()); it != display_names_.end())
        f->set_name(it->second);
    for (const Items& r : class_records_)
      for (const IValue& m : r.at(5).items())
        classes_.at(r.at(1).to_string())
            ->add_method(m.items().at(0).to_string(), function(m.items().at(1).to_string()));
  }
  Ref<Function> function(const std::string& name) const {
    const auto it = by_name_.find(name);
    PRONG_CHECK(it != by_name_.end(), kRuntime, "load: the archive has no function '", name, "'");
    return it->second;
  }

  std::vector<std::pair<std::string, std::string_view>> files_;
  Ref<Definitions> home_ = make_ref<Definitions>();
  Items root_;
  std::vector<Items> class_records_, tuple_records_, value_records_;
  std::map<std::string, std::string> display_names_;
  std::map<std::string, Ref<ClassType>> classes_;
  std::map<int64_t, Ref<Storage>> storages_;
  std::vector<Ref<Function>> functions_;
  std::map<std::string, Ref<Function>> by_name_;
  ParseScope scope_;
};

}  // namespace

Archive load_archive(std::string_view bytes) {
  try {
    return Reader(bytes).run();
  } catch (const std::out_of_range&) {
    throw_error(ErrorKind::kRuntime, "load: the archive is damaged");
  }
}

}  // namespace prong
