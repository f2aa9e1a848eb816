// PyTorch's lists of what autocast does on the CPU, by the names of ops. In-place forms are left
// alone.
#include "ops/autocast.h"

#include <array>
#include <string_view>
#include <unordered_map>

#include "ops/op_def.h"

namespace prong {
namespace {

// keep-sorted
constexpr std::string_view kLowerOps[] = {"addbmm",
                                          "addmm",
                                          "baddbmm",
                                          "bmm",
                                          "conv1d",
                                          "conv2d",
                                          "conv3d",
                                          "conv_tbc",
                                          "conv_transpose1d",
                                          "conv_transpose2d",
                                          "conv_transpose3d",
                                          "convolution",
                                          "einsum",
                                          "linalg_vecdot",
                                          "linear",
                                          "matmul",
                                          "mm",
                                          "prelu",
                                          "scaled_dot_product_attention",
                                          "tensordot"};

// keep-sorted
constexpr std::string_view kFloat32Ops[] = {"adaptive_avg_pool3d",
                                            "adaptive_max_pool3d",
                                            "avg_pool3d",
                                            "binary_cross_entropy",
                                            "binary_cross_entropy_with_logits",
                                            "cdist",
                                            "cholesky",
                                            "cholesky_inverse",
                                            "cholesky_solve",
                                            "cosine_embedding_loss",
                                            "cross_entropy",
                                            "ctc_loss",
                                            "fft_fft",
                                            "fft_fft2",
                                            "fft_fftn",
                                            "fft_hfft",
                                            "fft_ifft",
                                            "fft_ifft2",
                                            "fft_ifftn",
                                            "fft_ihfft",
                                            "fft_irfft",
                                            "fft_irfft2",
                                            "fft_irfftn",
                                            "fft_rfft",
                                            "fft_rfft2",
                                            "fft_rfftn",
                                            "geqrf",
                                            "grid_sample",
                                            "grid_sampler",
                                            "hinge_embedding_loss",
                                            "huber_loss",
                                            "inverse",
                                            "kl_div",
                                            "l1_loss",
                                            "linalg_cholesky",
                                            "linalg_cholesky_ex",
                                            "linalg_cond",
                                            "linalg_eig",
                                            "linalg_eigh",
                                            "linalg_eigvals",
                                            "linalg_eigvalsh",
                                            "linalg_householder_product",
                                            "linalg_inv",
                                            "linalg_inv_ex",
                                            "linalg_lstsq",
                                            "linalg_matrix_rank",
                                            "linalg_qr",
                                            "linalg_solve",
                                            "linalg_svd",
                                            "linalg_svdvals",
                                            "linalg_tensorinv",
                                            "linalg_tensorsolve",
                                            "lstsq",
                                            "lu_solve",
                                            "margin_ranking_loss",
                                            "max_unpool2d",
                                            "max_unpool3d",
                                            "mse_loss",
                                            "multi_margin_loss",
                                            "multilabel_margin_loss",
                                            "nanquantile",
                                            "nll_loss",
                                            "orgqr",
                                            "ormqr",
                                            "pinverse",
                                            "poisson_nll_loss",
                                            "polar",
                                            "prod",
                                            "qr",
                                            "quantile",
                                            "smooth_l1_loss",
                                            "soft_margin_loss",
                                            "stft",
                                            "svd",
                                            "trace",
                                            "triangular_solve",
                                            "triplet_margin_loss",
                                            "view_as_complex"};

constexpr std::string_view kWidestOps[] = {"cat", "index_copy", "stack"};

using Rules = std::unordered_map<const OpDef*, AutocastRule>;

template <size_t N>
void note(Rules& rules, const std::string_view (&names)[N], AutocastRule rule) {
  for (const std::string_view name : names)
    for (const OpDef* op : registry().overloads(name))
      if (op->mutated_argument() < 0) rules.emplace(op, rule);
}

}  // namespace

AutocastRule autocast_rule(const OpDef& op) {
  static const Rules rules = [] {
    Rules made;
    note(made, kLowerOps, AutocastRule::kLower);
    note(made, kFloat32Ops, AutocastRule::kFloat32);
    note(made, kWidestOps, AutocastRule::kWidest);
    return made;
  }();
  const auto found = rules.find(&op);
  return found == rules.end() ? AutocastRule::kNone : found->second;
}

}  // namespace prong
