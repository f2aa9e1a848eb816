// Identity, print, futures as values, and the library's own context managers.
#include <atomic>
#include <cstdio>

#include "eager/modes.h"
#include "graph/function.h"
#include "graph/host/tables.h"
#include "graph/host/text.h"
#include "profile/profile.h"

namespace prong {
namespace {

using Args = std::span<IValue>;

void (*print_hook)(std::string_view) = nullptr;

bool is_same(const IValue& a, const IValue& b) {
  if (a.identity() || b.identity()) return a.identity() == b.identity();
  return a.tag() == b.tag() && equal(a, b);
}

// print(*items, sep, end): the items as a tuple.
IValue print_items(Args a) {
  std::string out;
  for (size_t i = 0; i < a[0].items().size(); ++i) {
    if (i) out += a[1].to_string();
    out += str_of(a[0].items()[i]);
  }
  out += a[2].to_string();
  if (print_hook)
    print_hook(out);
  else
    std::fwrite(out.data(), 1, out.size(), stdout);
  return IValue();
}

// ── context managers ──

// Sets bits of the task's modes, and puts the old ones back. May be entered again inside itself.
class ModeManager final : public ContextManager {
 public:
  enum class What { kGrad, kInference };
  ModeManager(What what, bool on) : what_(what), on_(on) {}
  std::string describe() const override {
    return what_ == What::kGrad ? "set_grad_enabled" : "inference_mode";
  }
  IValue enter() override {
    saved_.push_back(context()[ContextWord::kModes]);
    if (what_ == What::kGrad)
      eager::set_grad_enabled(on_);
    else if (on_)
      eager::enter_inference_mode();
    return IValue();
  }
  void exit() override {
    context()[ContextWord::kModes] = saved_.back();
    saved_.pop_back();
  }

 private:
  What what_;
  bool on_;
  std::vector<uint64_t> saved_;
};

// A labelled span; interrupted while its task is suspended, since spans belong to a thread.
class RecordFunction final : public ContextManager {
 public:
  explicit RecordFunction(const std::string& label)
      : name_(profile::is_on() ? profile::intern(label) : nullptr) {}
  std::string describe() const override { return "record_function"; }
  IValue enter() override {
    span_.begin(name_, profile::Category::kUser);
    return IValue();
  }
  void exit() override { span_.end(); }
  void suspend() override { span_.end(); }
  void resume() override { span_.begin(name_, profile::Category::kUser, nullptr, true); }

 private:
  const char* name_;
  profile::OpenSpan span_;
};

IValue mode(ModeManager::What what, bool on) {
  return IValue(Ref<ObjectBase>(make_ref<ModeManager>(what, on)));
}

// ── futures ──

// Done when all are; its value is the list of futures, as torch.futures.collect_all has it.
IValue collect_all(Args a) {
  const IValue list = a[0];
  auto result = make_ref<Future>();
  const size_t n = list.items().size();
  if (n == 0) {
    result->set_value(list);
    return IValue(std::move(result));
  }
  auto left = std::make_shared<std::atomic<size_t>>(n);
  for (const IValue& f : list.items())
    f.future()->then([left, list, result](FutureBase&) {
      if (left->fetch_sub(1, std::memory_order_acq_rel) == 1) result->try_set_value(list);
    });
  return IValue(std::move(result));
}

}  // namespace

void set_print_hook(void (*hook)(std::string_view)) { print_hook = hook; }

void register_objects(HostRegistry& r) {
  r.add(Effect::kPure, "is(a: t, b: u) -> bool",
        [](Args a) { return IValue(is_same(a[0], a[1])); });
  r.add(Effect::kPure, "is_not(a: t, b: u) -> bool",
        [](Args a) { return IValue(!is_same(a[0], a[1])); });
  // == of what has no overload of its own: None, tuples, Optionals, objects (by identity).
  r.add(Effect::kReads, "eq.any(a: t, b: u) -> bool",
        [](Args a) { return IValue(equal(a[0], a[1])); });
  r.add(Effect::kReads, "ne.any(a: t, b: u) -> bool",
        [](Args a) { return IValue(!equal(a[0], a[1])); });
  r.add(Effect::kMayRaise, "hash(x: t) -> int",
        [](Args a) { return IValue(static_cast<int64_t>(hash_of(a[0]))); });
  r.add(Effect::kReads, "id(x: t) -> int", [](Args a) {
    return IValue(static_cast<int64_t>(reinterpret_cast<intptr_t>(a[0].identity())));
  });
  r.add(Effect::kEffect, "print(items: t, sep: str = \" \", end: str = \"\n\") -> None",
        print_items);

  r.add(Effect::kReads, "done(self: Future[t]) -> bool",
        [](Args a) { return IValue(a[0].future()->is_done()); });
  r.add(Effect::kEffect, "collect_all(futures: List[Future[t]]) -> Future[List[Future[t]]]",
        collect_all);

  using What = ModeManager::What;
  r.add(Effect::kEffect, "no_grad() -> Any", [](Args) { return mode(What::kGrad, false); });
  r.add(Effect::kEffect, "enable_grad() -> Any", [](Args) { return mode(What::kGrad, true); });
  r.add(Effect::kEffect, "set_grad_enabled(mode: bool) -> Any",
        [](Args a) { return mode(What::kGrad, a[0].to_bool()); });
  r.add(Effect::kEffect, "inference_mode(mode: bool = True) -> Any",
        [](Args a) { return mode(What::kInference, a[0].to_bool()); });
  r.add(Effect::kEffect, "record_function(name: str) -> Any",
        [](Args a) { return IValue(Ref<ObjectBase>(make_ref<RecordFunction>(a[0].to_string()))); });
  r.add(Effect::kEffect, "is_grad_enabled() -> bool",
        [](Args) { return IValue(eager::is_grad_enabled()); });
  r.add(Effect::kEffect, "is_inference_mode_enabled() -> bool",
        [](Args) { return IValue(eager::is_inference_mode()); });
  // torch.set_grad_enabled(x) as a statement.
  r.add(Effect::kEffect, "switch_grad(mode: bool) -> None", [](Args a) {
    eager::set_grad_enabled(a[0].to_bool());
    return IValue();
  });
}

}  // namespace prong
