// The walk of pointwise loops over strided, broadcast and converted operands. Called by
// pointwise.cpp.
#include "ops/kernels/pointwise_walk.h"

#include <algorithm>
#include <array>

#include "runtime/parallel.h"

namespace prong {

namespace {

constexpr int64_t kBlock = 512;  // elements; scratch of all operands stays in the first cache
constexpr size_t kMaxOperands = kMaxPointwiseInputs + 1;
// Rows at least this long are walked one at a time, so that operands that are dense in a row need
// no gathering.
constexpr int64_t kLongRow = 128;

enum class Access : uint8_t {
  kDense,   // as the result lies: element i of the walk is element i from the base
  kSingle,  // one value
  kStrided,
};

struct Plan {
  struct Item {
    char* base;
    int64_t stored_bytes, loop_bytes;
    Access access;
    RowFn first = nullptr;   // stored -> middle, or stored -> loop
    RowFn second = nullptr;  // middle -> loop
    DType middle;
    bool is_plain;  // no conversion
  };
  SmallVector<Item, kMaxOperands> items;   // 0 is the result
  Dims sizes;                              // merged, outermost first, at least one
  std::array<Dims, kMaxOperands> strides;  // of strided operands, in elements
  bool is_flat = true;                     // no operand is strided
  int64_t numel = 1;
  int64_t block = kBlock;  // elements at a time: fewer of 16 bytes
};

// The conversion of an operand between memory and loop; of the result it runs the other way.
void set_conversion(Plan::Item& item, const WalkOperand& o, bool is_result) {
  const DType from = is_result ? o.loop : o.stored, to = is_result ? o.stored : o.loop;
  item.middle = o.middle;
  item.is_plain = from == to && (o.middle == from);
  if (item.is_plain || o.middle == from || o.middle == to) {
    item.first = row_converter(to, from);
  } else {
    item.first = row_converter(o.middle, from);
    item.second = row_converter(to, o.middle);
  }
}

// Strides of `o` along the dimensions of `shape`; 0 where it broadcasts.
Dims aligned_strides(const WalkOperand& o, DimsView shape) {
  Dims strides(shape.size());
  const size_t shift = shape.size() - o.sizes->size();
  for (size_t i = 0; i < o.sizes->size(); ++i)
    strides[i + shift] = (*o.sizes)[i] == 1 ? 0 : (*o.strides)[i];
  return strides;
}

bool is_single(const WalkOperand& o) {
  return !o.sizes ||
         std::all_of(o.sizes->begin(), o.sizes->end(), [](int64_t s) { return s == 1; });
}

Plan make_plan(const WalkOperand& out, std::span<const WalkOperand> in) {
  Plan plan;
  const Dims& shape = *out.sizes;
  const size_t count = in.size() + 1;
  const auto operand = [&](size_t k) -> const WalkOperand& { return k == 0 ? out : in[k - 1]; };
  std::array<Dims, kMaxOperands> given;
  for (size_t k = 0; k < count; ++k) {
    const WalkOperand& o = operand(k);
    Plan::Item item{.base = o.data,
                    .stored_bytes = static_cast<int64_t>(size_of(o.stored)),
                    .loop_bytes = static_cast<int64_t>(size_of(o.loop)),
                    .access = k > 0 && is_single(o) ? Access::kSingle : Access::kStrided,
                    .middle = o.middle,
                    .is_plain = true};
    set_conversion(item, o, k == 0);
    plan.items.push_back(item);
    if (item.loop_bytes > 8 || item.stored_bytes > 8) plan.block = kBlock / 2;
    if (item.access == Access::kStrided) given[k] = aligned_strides(o, shape);
  }

  // The result decides the order of dimensions: its smallest stride comes last.
  SmallVector<int, 8> order;
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != 1) order.push_back(static_cast<int>(i));
  for (size_t i = 1; i < order.size(); ++i)
    for (size_t j = i; j > 0 && given[0][static_cast<size_t>(order[j])] >
                                    given[0][static_cast<size_t>(order[j - 1])];
         --j)
      std::swap(order[j], order[j - 1]);
  const auto strided = [&](size_t k) { return plan.items[k].access == Access::kStrided; };
  for (int dim : order) {
    const auto d = static_cast<size_t>(dim);
    bool merges = !plan.sizes.empty();
    for (size_t k = 0; merges && k < count; ++k)
      merges = !strided(k) || plan.strides[k].back() == given[k][d] * shape[d];
    if (merges) {
      plan.sizes.back() *= shape[d];
      for (size_t k = 0; k < count; ++k)
        if (strided(k)) plan.strides[k].back() = given[k][d];
    } else {
      plan.sizes.push_back(shape[d]);
      for (size_t k = 0; k < count; ++k)
        if (strided(k)) plan.strides[k].push_back(given[k][d]);
    }
    plan.numel *= shape[d];
  }
  if (plan.sizes.empty()) {
    plan.sizes.push_back(1);
    for (size_t k = 0; k < count; ++k) plan.strides[k].push_back(1);
  }
  const Dims dense = contiguous_strides(plan.sizes);
  for (size_t k = 0; k < count; ++k)
    if (strided(k)) {
      if (plan.strides[k] == dense)
        plan.items[k].access = Access::kDense;
      else
        plan.is_flat = false;
    }
  return plan;
}

// The loop over one piece [begin, end) of the walk.
class Piece {
 public:
  Piece(const Plan& plan, BlockFn loop, char* scratch)
      : plan_(plan), loop_(loop), scratch_(scratch) {
    const size_t count = plan.items.size();
    for (size_t k = 1; k < count; ++k)
      if (plan.items[k].access == Access::kSingle) {
        convert(k, block(k), plan.items[k].base, 0, std::min(plan.block, plan.numel));
        any_scratch_ = true;
      } else if (!plan.items[k].is_plain) {
        any_scratch_ = true;
      }
    any_scratch_ = any_scratch_ || !plan.items[0].is_plain;
  }

  void run(int64_t begin, int64_t end) {
    if (plan_.is_flat) {
      const int64_t step = any_scratch_ ? plan_.block : end - begin;
      for (int64_t i = begin; i < end; i += step) run_dense(i, std::min(step, end - i));
      return;
    }
    seek(begin);
    const int64_t row = plan_.sizes.back();
    for (int64_t i = begin; i < end;) {
      int64_t n = std::min(plan_.block, end - i);
      if (row >= kLongRow) n = std::min(n, row - index_.back());
      run_strided(i, n);
      i += n;
    }
  }

 private:
  static constexpr int64_t kBlockBytes = kBlock * 8;
  char* block(size_t k) const { return scratch_ + static_cast<int64_t>(k) * kBlockBytes; }
  char* spare() const { return block(kMaxOperands); }

  // n stored elements of input k, `stride` apart, into the loop's type.
  void convert(size_t k, char* dst, const char* src, int64_t stride, int64_t n) const {
    const Plan::Item& item = plan_.items[k];
    if (!item.second) return item.first(dst, 1, src, stride, n);
    item.first(spare(), 1, src, stride, n);
    item.second(dst, 1, spare(), 1, n);
  }
  // n results from the loop to memory.
  void store(char* dst, int64_t stride, const char* src, int64_t n) const {
    const Plan::Item& item = plan_.items[0];
    if (!item.second) return item.first(dst, stride, src, 1, n);
    item.first(spare(), 1, src, 1, n);
    item.second(dst, stride, spare(), 1, n);
  }

  void run_dense(int64_t at, int64_t n) {
    const void* in[kMaxOperands];
    for (size_t k = 1; k < plan_.items.size(); ++k) {
      const Plan::Item& item = plan_.items[k];
      char* from = item.base + at * item.stored_bytes;
      if (item.access == Access::kSingle)
        in[k - 1] = block(k);
      else if (item.is_plain)
        in[k - 1] = from;
      else
        convert(k, block(k), from, 1, n), in[k - 1] = block(k);
    }
    const Plan::Item& out = plan_.items[0];
    char* to = out.base + at * out.stored_bytes;
    if (out.is_plain) return loop_(n, to, in);
    loop_(n, block(0), in);
    store(to, 1, block(0), n);
  }

  void run_strided(int64_t at, int64_t n) {
    const void* in[kMaxOperands];
    const bool is_in_row = n <= plan_.sizes.back() - index_.back();
    // Operands that must be copied together, a stretch of a row at a time.
    SmallVector<int, kMaxOperands> gathered;
    for (size_t k = 1; k < plan_.items.size(); ++k) {
      const Plan::Item& item = plan_.items[k];
      in[k - 1] = block(k);
      if (item.access == Access::kDense) {
        char* from = item.base + at * item.stored_bytes;
        if (item.is_plain)
          in[k - 1] = from;
        else
          convert(k, block(k), from, 1, n);
      } else if (item.access == Access::kStrided) {
        if (is_in_row && item.is_plain && plan_.strides[k].back() == 1)
          in[k - 1] = item.base + offset_[k] * item.stored_bytes;
        else
          gathered.push_back(static_cast<int>(k));
      }
    }
    const Plan::Item& out = plan_.items[0];
    const bool is_out_direct = out.is_plain && (out.access == Access::kDense ||
                                                (is_in_row && plan_.strides[0].back() == 1));
    char* to = out.access == Access::kDense ? out.base + at * out.stored_bytes
                                            : out.base + offset_[0] * out.stored_bytes;
    // The walk moves on as it gathers; the result's places of a scattered block are walked
    // afterwards.
    const Dims index = index_;
    const auto offsets = offset_;
    for_stretches(n, [&](int64_t done, int64_t length) {
      for (int k : gathered) {
        const auto u = static_cast<size_t>(k);
        convert(u, block(u) + done * plan_.items[u].loop_bytes,
                plan_.items[u].base + offset_[u] * plan_.items[u].stored_bytes,
                plan_.strides[u].back(), length);
      }
    });
    loop_(n, is_out_direct ? to : block(0), in);
    if (is_out_direct) return;
    if (out.access == Access::kDense) return store(to, 1, block(0), n);
    index_ = index;
    offset_ = offsets;
    for_stretches(n, [&](int64_t done, int64_t length) {
      store(out.base + offset_[0] * out.stored_bytes, plan_.strides[0].back(),
            block(0) + done * out.loop_bytes, length);
    });
  }

  // Walks n elements: f(done, length) for each stretch inside one row, with offset_ at its start.
  template <class F>
  void for_stretches(int64_t n, F&& f) {
    const int64_t row = plan_.sizes.back();
    for (int64_t done = 0; done < n;) {
      const int64_t length = std::min(n - done, row - index_.back());
      f(done, length);
      done += length;
      advance(length);
    }
  }

  // Moves on by `length` elements that end at or before the end of the row.
  void advance(int64_t length) {
    const size_t count = plan_.items.size();
    size_t d = plan_.sizes.size() - 1;
    index_[d] += length;
    for (size_t k = 0; k < count; ++k)
      if (plan_.items[k].access == Access::kStrided) offset_[k] += length * plan_.strides[k][d];
    while (d > 0 && index_[d] == plan_.sizes[d]) {
      index_[d] = 0;
      ++index_[d - 1];
      for (size_t k = 0; k < count; ++k)
        if (plan_.items[k].access == Access::kStrided)
          offset_[k] += plan_.strides[k][d - 1] - plan_.sizes[d] * plan_.strides[k][d];
      --d;
    }
  }

  void seek(int64_t at) {
    index_.resize(plan_.sizes.size());
    offset_.fill(0);
    for (size_t d = plan_.sizes.size(); d-- > 0;) {
      index_[d] = at % plan_.sizes[d];
      at /= plan_.sizes[d];
      for (size_t k = 0; k < plan_.items.size(); ++k)
        if (plan_.items[k].access == Access::kStrided)
          offset_[k] += index_[d] * plan_.strides[k][d];
    }
  }

  const Plan& plan_;
  BlockFn loop_;
  char* scratch_;
  bool any_scratch_ = false;
  Dims index_;
  std::array<int64_t, kMaxOperands> offset_{};
};

}  // namespace

void walk(BlockFn loop, const WalkOperand& out, std::span<const WalkOperand> in, int64_t grain) {
  const Plan plan = make_plan(out, in);
  if (plan.numel == 0) return;
  parallel_for(0, plan.numel, grain, [&](int64_t begin, int64_t end) {
    alignas(64) char scratch[(kMaxOperands + 1) * kBlock * 8];
    Piece(plan, loop, scratch).run(begin, end);
  });
}

}  // namespace prong
