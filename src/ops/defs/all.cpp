// The list of op families; registration is explicit, in this order, since static libraries drop
// global constructors.
#include "ops/op_def.h"

namespace prong {

// keep-sorted
#define PRONG_FORALL_FAMILIES(_) \
  _(activation)                  \
  _(activation_backward)         \
  _(clip)                        \
  _(compare)                     \
  _(complex)                     \
  _(conv)                        \
  _(conv_transpose)              \
  _(copy)                        \
  _(count)                       \
  _(create)                      \
  _(einsum)                      \
  _(extreme)                     \
  _(fft)                         \
  _(gradient_ops)                \
  _(index)                       \
  _(join)                        \
  _(linalg_solve)                \
  _(linalg_spectrum)             \
  _(loss)                        \
  _(loss_classes)                \
  _(matmul)                      \
  _(norm)                        \
  _(norm_backward)               \
  _(optimizer)                   \
  _(pad)                         \
  _(pointwise)                   \
  _(pointwise_composite)         \
  _(pointwise_math)              \
  _(pool)                        \
  _(random)                      \
  _(random_rejection)            \
  _(rearrange)                   \
  _(reduce)                      \
  _(rnn)                         \
  _(rnn_gradient)                \
  _(scatter)                     \
  _(softmax)                     \
  _(sort)                        \
  _(special)                     \
  _(view)                        \
  _(view_gradient)

#define PRONG_DECLARE(family) void register_##family(Registry& r);
PRONG_FORALL_FAMILIES(PRONG_DECLARE)
#undef PRONG_DECLARE

void register_all_ops(Registry& r) {
#define PRONG_REGISTER(family) register_##family(r);
  PRONG_FORALL_FAMILIES(PRONG_REGISTER)
#undef PRONG_REGISTER
}

}  // namespace prong
