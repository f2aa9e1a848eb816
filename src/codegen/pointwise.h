// Scalar expressions to a native loop: the code generator of fused pointwise regions. Called by
// fused_region.cpp.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "codegen/jit.h"
#include "ops/scalar.h"

namespace prong::codegen {

// How a kernel reads an input: element i of n, or the same one each time.
enum class Access : uint8_t { kDense, kSingle };

struct PointwiseSource {
  std::span<const Scalar> results;  // over Scalar::input(i, inputs[i])
  std::span<const DType> inputs;    // as stored
  std::span<const Access> access;   // of each input
};

// The loop as LLVM IR text: @kernel(i64 n, ptr results, ptr inputs). A vector loop of `lanes`
// elements and a scalar loop for the rest; every operation as ops/scalar.h defines it, so the bits
// are those of the eager kernels.
std::string pointwise_ir(const PointwiseSource& source, int lanes);

class PointwiseKernel {
 public:
  // results[r][0..n) and inputs[i][0..n) (or [0..1)) are dense in the stored dtypes. A result may
  // be an input's very memory.
  void operator()(int64_t n, void* const* results, const void* const* inputs) const {
    entry_(n, results, inputs);
  }

 private:
  friend PointwiseKernel compile_pointwise(const PointwiseSource& source, std::string_view name);
  std::shared_ptr<const Code> code_;
  void (*entry_)(int64_t, void* const*, const void* const*) = nullptr;
};

// Milliseconds. Thread-safe.
PointwiseKernel compile_pointwise(const PointwiseSource& source, std::string_view name);

}  // namespace prong::codegen
