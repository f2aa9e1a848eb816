// Tensors as text, as PyTorch's repr prints them, and the options for that. Called by bindings and
// messages.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tensor/tensor.h"

namespace prong {

struct PrintOptions {
  int precision = 4;        // digits after the point
  double threshold = 1000;  // tensors with more elements are summarised; may be infinite
  int edgeitems = 3;        // elements shown at each end of a summarised dimension
  int linewidth = 80;
  std::optional<bool> sci_mode;  // unset: chosen by the values
  // "default", "short" or "full", over what `base` has; kValue for another name.
  static PrintOptions profile(std::string_view name, PrintOptions base);
};

// Of the process; safe to call from any thread.
PrintOptions print_options();
void set_print_options(const PrintOptions& options);

// "tensor([...], dtype=torch.float64, grad_fn=<...>)": `prefix` opens the text ("tensor("),
// `suffixes` come last.
std::string format_tensor(const Tensor& t, std::string_view prefix,
                          std::span<const std::string> suffixes, const PrintOptions& options);

}  // namespace prong
