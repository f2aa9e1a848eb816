// One step of an optimizer over lists of tensors, in one pass over their memory. Called by
// defs/optimizer.cpp; the rules are in optimizer_rules.h.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"

namespace prong {

// What one kind of optimizer reads and writes: params and grads, and up to three lists of state, in
// the order in which its rule takes them. A list that is not used is empty.
struct OptimizerLists {
  std::string_view op;
  const std::vector<Tensor>& params;
  const std::vector<Tensor>& grads;
  std::array<const std::vector<Tensor>*, 3> states;
};

// Lists of one length, tensors of one shape and floating dtype each; RuntimeError else.
void check_lists(const OptimizerLists& lists);
// One floating-point number for each parameter; RuntimeError else.
void check_numbers(const OptimizerLists& lists, const std::vector<Tensor>& numbers);
double read_number(const Tensor& t);
void write_number(const Tensor& t, double value);
void multiply_number(const Tensor& t, double factor);
// Adds one to each count of steps and gives the counts.
std::vector<double> count_steps(const OptimizerLists& lists, const std::vector<Tensor>& steps);

// A stretch of one parameter and of its gradient and state, all contiguous.
struct OptimizerRow {
  DType dtype;
  int64_t size;
  void* param;
  const void* grad;
  void* states[3];
};
using OptimizerRowFn = void (*)(const OptimizerRow& row, const void* settings);

// Calls fn on pieces that cover all tensors, on any threads; `settings` has one entry of
// `settings_bytes` for each parameter. Every element is computed by itself, so that the bits do not
// depend on the pieces. Versions of what is written go up.
void update_all(const OptimizerLists& lists, OptimizerRowFn fn, const void* settings,
                size_t settings_bytes);

}  // namespace prong
