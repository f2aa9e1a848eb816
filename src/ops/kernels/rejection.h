// One number at a time of distributions that are drawn by rejection, in PyTorch's order of draws,
// and how such numbers move with the parameters. Called by defs/random_rejection.cpp.
#pragma once

#include "ops/random.h"

namespace prong {

// With the generator's lock held. T is float or double: what the moments are computed in.
template <class T>
double draw_gamma(Generator& g, T shape);  // of scale 1
double draw_poisson(Generator& g, double rate);
template <class T>
T draw_binomial(Generator& g, T count, T chance);

// The derivative of a gamma-distributed x (scale 1) to the shape, at the same quantile.
double gamma_slope(double shape, double x);
// The same of x ~ Beta(a, total - a) to a, over 1 - x: what a Dirichlet sample moves by.
double dirichlet_slope(double x, double a, double total);

}  // namespace prong
