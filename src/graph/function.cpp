// Functions, classes and their instances.
#include "graph/function.h"

namespace prong {

Function::~Function() {
  if (RefCounted* p = program_.load(std::memory_order_acquire)) p->release();
}

Graph& Function::graph() const {
  PRONG_CHECK(graph_, kInternal, "function '", name_, "' has no graph yet");
  return *graph_;
}

namespace {

void collect_homes(const Block& block, const Definitions* own,
                   std::vector<Ref<Definitions>>& homes) {
  for (const Node* n : block) {
    if (const Function* f = n->function(); f && f->home() && f->home() != own)
      homes.emplace_back(f->home());
    for (const Block* inner : n->blocks()) collect_homes(*inner, own, homes);
  }
}

}  // namespace

void Function::define(std::unique_ptr<Graph> graph) {
  PRONG_CHECK(!program(), kInternal, "function '", name_,
              "' was run already, so it cannot be defined again");
  graph_ = std::move(graph);
  called_homes_.clear();
  collect_homes(*graph_->top(), home_, called_homes_);
}

void Function::take_apart() {
  home_ = nullptr;
  graph_.reset();
  schema_ = Schema();
  called_homes_.clear();
  if (RefCounted* p = program_.exchange(nullptr, std::memory_order_acq_rel)) p->release();
}

void ClassType::take_apart() {
  home_ = nullptr;
  attributes_.clear();
  methods_.clear();
  constants.clear();
  interfaces.clear();
}

void Definitions::add(Ref<Function> function) {
  PRONG_ASSERT(!function->home_, "function '", function->name(), "' has a home already");
  function->home_ = this;
  functions_.push_back(std::move(function));
}

void Definitions::add(Ref<ClassType> cls) {
  PRONG_ASSERT(!cls->home_, "class '", cls->qualified_name, "' has a home already");
  cls->home_ = this;
  classes_.push_back(std::move(cls));
}

Definitions::Definitions(const std::vector<Ref<Function>>& functions) {
  for (const auto& f : functions) add(f);
}

Definitions::~Definitions() {
  for (const auto& f : functions_) f->take_apart();
  for (const auto& c : classes_) c->take_apart();
}

RefCounted* Function::try_set_program(Ref<RefCounted> program) {
  RefCounted* expected = nullptr;
  RefCounted* mine = program.get();
  if (!program_.compare_exchange_strong(expected, mine, std::memory_order_acq_rel)) return expected;
  return program.detach();
}

int ClassType::add_attribute(Attribute a) {
  PRONG_CHECK(find_attribute(a.name) < 0, kValue, "class ", qualified_name, " has two attributes '",
              a.name, "'");
  attributes_.push_back(std::move(a));
  return static_cast<int>(attributes_.size()) - 1;
}

int ClassType::find_attribute(std::string_view name) const {
  for (size_t i = 0; i < attributes_.size(); ++i)
    if (attributes_[i].name == name) return static_cast<int>(i);
  return -1;
}

void ClassType::add_method(std::string_view name, Ref<Function> f) {
  for (auto& [known, method] : methods_)
    if (known == name) {
      method = std::move(f);
      return;
    }
  methods_.emplace_back(std::string(name), std::move(f));
}

Function* ClassType::find_method(std::string_view name) const {
  for (const auto& [known, method] : methods_)
    if (known == name) return method.get();
  return nullptr;
}

namespace {

// Arguments after self, and results, of `mine` can stand for those of `asked`.
bool fits(const Schema& mine, const Schema& asked) {
  if (mine.arguments.size() != asked.arguments.size() ||
      mine.results.size() != asked.results.size())
    return false;
  for (size_t i = 1; i < mine.arguments.size(); ++i)
    if (!is_subtype(asked.arguments[i].type, mine.arguments[i].type)) return false;
  for (size_t i = 0; i < mine.results.size(); ++i)
    if (!is_subtype(mine.results[i], asked.results[i])) return false;
  return true;
}

}  // namespace

bool ClassType::is_subclass_of(const ClassInfo& other) const {
  if (this == &other) return true;
  const auto* asked = dynamic_cast<const ClassType*>(&other);
  if (!asked || asked->kind != Kind::kInterface) return false;
  for (const auto& [name, method] : asked->methods_) {
    const Function* mine = find_method(name);
    if (!mine || !fits(mine->schema(), method->schema())) return false;
  }
  return true;
}

IValue& Object::slot(std::string_view name) {
  const int i = cls->find_attribute(name);
  PRONG_CHECK(i >= 0, kAttribute, "'", cls->qualified_name, "' object has no attribute '", name,
              "'");
  return slots[static_cast<size_t>(i)];
}

}  // namespace prong
