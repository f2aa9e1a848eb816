// What an op asks of the numbers in its tensors, and what it promises of the integers that it
// gives: the facets OpDef::checks and OpDef::bounds. capture/ asks, to know which calls cannot
// fail.
#pragma once

#include <optional>

#include "ops/op_def.h"

namespace prong {

// The integers from low to high; low > high: there are none.
struct IntRange {
  int64_t low, high;
  bool is_empty() const { return low > high; }
  bool contains(const IntRange& r) const {
    return r.is_empty() || (r.low >= low && r.high <= high);
  }
};

// One call, to which checks() says what it needs. The rule reads shapes, dtypes and what is no
// tensor; it may be asked of a call that is refused for these, and then may say anything.
class DataCheck {
 public:
  DataCheck(const OpDef& op, std::span<const IValue> args) : op_(op), args_(args) {}
  DataCheck(const DataCheck&) = delete;
  DataCheck& operator=(const DataCheck&) = delete;

  const OpDef& op() const { return op_; }
  std::span<const IValue> args() const { return args_; }
  const IValue& operator[](size_t i) const { return args_[i]; }
  const IValue& operator[](std::string_view name) const;
  // Of a tensor argument, along a dimension that may count from the end; 1 for a zero-dim tensor,
  // 0 where there is no such dimension.
  int64_t size(const IValue& tensor, int64_t dim) const;

  // The call fails unless all integers of the tensor lie in the range, but for `ignored`.
  virtual void within(const IValue& tensor, IntRange range,
                      std::optional<int64_t> ignored = {}) = 0;
  virtual void not_zero(const IValue& number_or_tensor) = 0;
  // The call may fail by its data in another way.
  virtual void may_fail() = 0;

 protected:
  ~DataCheck() = default;

 private:
  const OpDef& op_;
  std::span<const IValue> args_;
};

// checks() of ops that fail on numbers of which no range can be given: a matrix that is singular, a
// chance that is none.
void any_data_may_fail(DataCheck& c);

// One call, of which bounds() is told what is known.
class BoundsCall {
 public:
  virtual int output() const = 0;  // the result that is asked about
  virtual const Schema& schema() const = 0;
  // Of an integer, or of all that an integer tensor holds.
  virtual std::optional<IntRange> range(size_t argument) const = 0;
  virtual const TensorMeta* tensor(size_t argument) const = 0;  // null if it is none
  std::optional<int64_t> number(size_t argument) const {
    const std::optional<IntRange> r = range(argument);
    return r && r->low == r->high && !tensor(argument) ? std::optional(r->low) : std::nullopt;
  }

 protected:
  ~BoundsCall() = default;
};

// bounds() of ops that move elements, of those that also put zeros in, and of those that give
// places along the argument `dim` of their first one (of the whole tensor where it is None) as
// their last result.
std::optional<IntRange> bounds_of_input(const BoundsCall& call);
std::optional<IntRange> bounds_with_zero(const BoundsCall& call);
std::optional<IntRange> bounds_of_places(const BoundsCall& call);
std::optional<IntRange> unknown_bounds(const BoundsCall& call);  // of views of other elements

// What the tensor holds, without `ignored`.
IntRange range_of(const Tensor& ints, std::optional<int64_t> ignored = {});
// May a call fail because of the data that it is given here?
bool data_may_fail(const OpDef& op, std::span<const IValue> args);

}  // namespace prong
