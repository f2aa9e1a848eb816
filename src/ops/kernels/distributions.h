// Filling tensors with random numbers of a distribution, in PyTorch's order of draws. Called by
// defs/random.cpp.
#pragma once

#include "ops/random.h"

namespace prong {

// Elements are drawn one after the other in the order in which they lie in memory.
void fill_uniform(const Tensor& x, Generator& g, double from, double to);  // [from, to)
void fill_normal(const Tensor& x, Generator& g, double mean, double deviation);
void fill_bernoulli(const Tensor& x, Generator& g, double p);
void fill_bernoulli(const Tensor& x, Generator& g, const Tensor& p);  // p has x's sizes
void fill_exponential(const Tensor& x, Generator& g, double rate);
void fill_log_normal(const Tensor& x, Generator& g, double mean, double deviation);
void fill_cauchy(const Tensor& x, Generator& g, double median, double sigma);
void fill_geometric(const Tensor& x, Generator& g, double p);
void fill_integers(const Tensor& x, Generator& g, int64_t low,
                   uint64_t range);  // range 0: all 2^64
void fill_random_bits(const Tensor& x,
                      Generator& g);  // [0, largest], for floats up to what they hold exactly
void fill_permutation(const Tensor& x, Generator& g);  // contiguous: 0 to n-1 in random order
// Row by row (contiguous probabilities, result int64): `n` categories of each, with replacement.
void fill_multinomial(const Tensor& out, const Tensor& probabilities, Generator& g);

}  // namespace prong
