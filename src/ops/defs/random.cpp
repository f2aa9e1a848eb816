// Ops that draw random numbers: PyTorch's own for the same seed. The distributions are in
// kernels/distributions.h.
#include <cmath>
#include <cstdio>
#include <limits>

#include "ops/data_check.h"
#include "ops/gradient.h"
#include "ops/kernels/distributions.h"
#include "ops/kernels/fill.h"
#include "ops/kernels/geometry.h"
#include "ops/like.h"

namespace prong {

namespace {

constexpr const char* kRandom = "a random number does not depend on its inputs smoothly";
constexpr const char* kVmapLater = "vmap is not built yet";
constexpr Spelling kFunctionOnly{.method = false};
constexpr Spelling kMethodOnly{.function = false};

using OptionalDType = std::optional<DType>;

OpDef& drawing_op(Registry& r, std::string_view schema, std::string doc, Family family) {
  return r.add(schema).doc(std::move(doc)).family(family).random().no_vmap(kVmapLater);
}
OpDef& random_op(Registry& r, std::string_view schema, std::string doc, Family family) {
  return drawing_op(r, schema, std::move(doc), family).not_differentiable(kRandom).no_grad(kRandom);
}
// Recorded, so that what was there before, or the parameters, get zeros.
OpDef& without_slope(OpDef& op) {
  return op.grad("input", "", [](Gradient& g) { return g.zeros(g.meta("input")); });
}

// A number as C++ streams print it, which is how PyTorch's messages do: 1, 0.5, 1e-07.
std::string plain(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", x);
  return text;
}

// ── the draws, checked ──

void uniform(const Tensor& x, double from, double to, const IValue& generator) {
  if (is_complex(x.dtype())) return uniform(call_tensor("view_as_real", x), from, to, generator);
  PRONG_CHECK(is_floating(x.dtype()), kNotImplemented,
              "\"check_uniform_bounds\" not implemented for '", type_name(x.dtype()), "'");
  PRONG_CHECK(from <= to, kRuntime,
              "uniform_ expects to return a [from, to) range, but found from=", plain(from),
              " > to=", plain(to));
  fill_uniform(x, *generator_from(generator), from, to);
}
void normal(const Tensor& x, double mean, double deviation, const IValue& generator) {
  if (is_complex(x.dtype())) {  // half of the variance is each part's
    normal(call_tensor("view_as_real", x), 0, deviation / std::sqrt(2.0), generator);
    if (mean != 0) call("add_", x, mean);
    return;
  }
  PRONG_CHECK(deviation >= 0, kRuntime, "normal expects std >= 0.0, but found std ",
              plain(deviation));
  PRONG_CHECK(is_floating(x.dtype()), kNotImplemented,
              "\"normal_kernel_cpu\" not implemented for '", type_name(x.dtype()), "'");
  fill_normal(x, *generator_from(generator), mean, deviation);
}
void bernoulli(const Tensor& x, double p, const IValue& generator) {
  PRONG_CHECK(p >= 0 && p <= 1, kRuntime,
              "bernoulli_ expects p to be in [0, 1], but got p=", plain(p));
  fill_bernoulli(x, *generator_from(generator), p);
}
void bernoulli(const Tensor& x, const Tensor& p, const IValue& generator) {
  PRONG_CHECK(is_floating(p.dtype()), kNotImplemented,
              "\"bernoulli_tensor_cpu_p_\" not implemented for '", type_name(p.dtype()), "'");
  fill_bernoulli(x, *generator_from(generator), broadcast_to(p, x.sizes()));
}
void exponential(const Tensor& x, double rate, const IValue& generator) {
  PRONG_CHECK(is_floating(x.dtype()), kRuntime,
              "Exponential distribution is a continuous probability distribution. dtype must be a "
              "floating point but you specified ",
              type_name(x.dtype()));
  PRONG_CHECK(rate > 0, kRuntime,
              "exponential_ expects lambda > 0.0, but found lambda=", plain(rate));
  fill_exponential(x, *generator_from(generator), rate);
}

const char* integer_name(DType dtype) {
  static constexpr const char* kNames[] = {"bool",  "unsigned char", "signed char",
                                           "short", "int",           "long"};
  return static_cast<size_t>(dtype) < 6 ? kNames[static_cast<size_t>(dtype)] : "a floating type";
}

void integers(const Tensor& x, int64_t from, int64_t to, const IValue& generator) {
  PRONG_CHECK(from < to, kRuntime,
              "random_ expects 'from' to be less than 'to', but got from=", from, " >= to=", to);
  visit(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T> && sizeof(T) < 8) {
      constexpr int64_t low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
      PRONG_CHECK(from >= low && from <= high, kRuntime, "from is out of bounds for ",
                  integer_name(x.dtype()));
      PRONG_CHECK(to - 1 >= low && to - 1 <= high, kRuntime, "to - 1 is out of bounds for ",
                  integer_name(x.dtype()));
    }
  });
  fill_integers(x, *generator_from(generator), from,
                static_cast<uint64_t>(to) - static_cast<uint64_t>(from));
}

// ── factories ──

struct Uniform {
  static constexpr const char *kName = "rand", *kDoc = "Numbers evenly spread over [0, 1).";
  static void fill(const Tensor& x, const IValue& g) { uniform(x, 0, 1, g); }
};
struct Normal {
  static constexpr const char *kName = "randn",
                              *kDoc = "Normally distributed numbers of mean 0 and deviation 1.";
  static void fill(const Tensor& x, const IValue& g) { normal(x, 0, 1, g); }
};

template <class D>
void register_factory(Registry& r) {
  random_op(r,
            cat(D::kName,
                "(size: int[], *, generator: Generator? = None, dtype: dtype? = None) -> Tensor"),
            D::kDoc, Family::kFactory)
      .where(kFunctionOnly)
      .kernel([](const Dims& size, const IValue& generator, const OptionalDType& dtype) {
        Tensor out = Tensor::empty(size, dtype.value_or(default_dtype()));
        D::fill(out, generator);
        return out;
      })
      .shape([](const Dims& size, const IValue&, const OptionalDType& dtype) {
        return TensorMeta{size, dtype.value_or(default_dtype())};
      })
      .samples({{"[2, 3]"}, {"[0]"}, {"[20], dtype=torch.float64"}});
  random_op(
      r,
      cat(D::kName,
          "_like(input: Tensor, *, generator: Generator? = None, dtype: dtype? = None) -> Tensor"),
      cat(D::kDoc, " In the shape of input."), Family::kFactory)
      .where(kFunctionOnly)
      .kernel([](const Tensor& x, const IValue& generator, const OptionalDType& dtype) {
        Tensor out = empty_like(x, dtype.value_or(x.dtype()));
        D::fill(out, generator);
        return out;
      })
      .shape([](const TensorMeta& x, const IValue&, const OptionalDType& dtype) {
        return TensorMeta{x.sizes, dtype.value_or(x.dtype)};
      })
      .samples({{"t(2, 3)"}});
}

Tensor randint(int64_t low, int64_t high, const Dims& size, DType dtype, const IValue& generator) {
  Tensor out = Tensor::empty(size, dtype);
  integers(out, low, high, generator);
  return out;
}

void register_factories(Registry& r) {
  register_factory<Uniform>(r);
  register_factory<Normal>(r);
  random_op(r,
            "randint(high: int, size: int[], *, generator: Generator? = None, dtype: dtype? = "
            "None) -> Tensor",
            "Integers from 0 to high - 1.", Family::kFactory)
      .where(kFunctionOnly)
      .kernel(
          [](int64_t high, const Dims& size, const IValue& generator, const OptionalDType& dtype) {
            return randint(0, high, size, dtype.value_or(DType::kInt64), generator);
          })
      .shape([](int64_t, const Dims& size, const IValue&, const OptionalDType& dtype) {
        return TensorMeta{size, dtype.value_or(DType::kInt64)};
      })
      .samples({{"10, [2, 3]"}});
  random_op(r,
            "randint.low(low: int, high: int, size: int[], *, generator: Generator? = None, dtype: "
            "dtype? = None) -> Tensor",
            "Integers from low to high - 1.", Family::kFactory)
      .where(kFunctionOnly)
      .kernel([](int64_t low, int64_t high, const Dims& size, const IValue& generator,
                 const OptionalDType& dtype) {
        return randint(low, high, size, dtype.value_or(DType::kInt64), generator);
      })
      .shape([](int64_t, int64_t, const Dims& size, const IValue&, const OptionalDType& dtype) {
        return TensorMeta{size, dtype.value_or(DType::kInt64)};
      })
      .samples({{"-5, 5, [2, 3]"}});
  random_op(r, "randint_like(input: Tensor, high: int, *, dtype: dtype? = None) -> Tensor",
            "Integers from 0 to high - 1, in the shape of input.", Family::kFactory)
      .where(kFunctionOnly)
      .kernel([](const Tensor& x, int64_t high, const OptionalDType& dtype) {
        return randint(0, high, x.sizes(), dtype.value_or(x.dtype()), {});
      })
      .shape([](const TensorMeta& x, int64_t, const OptionalDType& dtype) {
        return TensorMeta{x.sizes, dtype.value_or(x.dtype)};
      })
      .samples({{"t(2, 3), 7"}});
  random_op(
      r, "randint_like.low(input: Tensor, low: int, high: int, *, dtype: dtype? = None) -> Tensor",
      "Integers from low to high - 1, in the shape of input.", Family::kFactory)
      .where(kFunctionOnly)
      .kernel([](const Tensor& x, int64_t low, int64_t high, const OptionalDType& dtype) {
        return randint(low, high, x.sizes(), dtype.value_or(x.dtype()), {});
      })
      .shape([](const TensorMeta& x, int64_t, int64_t, const OptionalDType& dtype) {
        return TensorMeta{x.sizes, dtype.value_or(x.dtype)};
      })
      .samples({{"t(2, 3), -7, 7"}});
  random_op(r, "randperm(n: int, *, generator: Generator? = None, dtype: dtype? = None) -> Tensor",
            "The integers from 0 to n - 1 in random order.", Family::kFactory)
      .where(kFunctionOnly)
      .kernel([](int64_t n, const IValue& generator, const OptionalDType& given) {
        const DType dtype = given.value_or(DType::kInt64);
        Tensor out = Tensor::empty(Dims{n}, dtype);
        if (n > 0)
          fill_number(out.as_strided(Dims{1}, Dims{1}, 0),
                      {IValue(n - 1)});  // does the type hold them?
        fill_permutation(out, *generator_from(generator));
        return out;
      })
      .shape([](int64_t n, const IValue&, const OptionalDType& dtype) {
        return TensorMeta{Dims{n}, dtype.value_or(DType::kInt64)};
      })
      .samples({{"7"}, {"0"}});
  random_op(r,
            "normal.float(mean: float, std: float, size: int[], *, generator: Generator? = None, "
            "dtype: dtype? = None) -> Tensor",
            "Normally distributed numbers.", Family::kFactory)
      .where(kFunctionOnly)
      .kernel([](double mean, double deviation, const Dims& size, const IValue& generator,
                 const OptionalDType& dtype) {
        Tensor out = Tensor::empty(size, dtype.value_or(default_dtype()));
        normal(out, mean, deviation, generator);
        return out;
      })
      .shape([](double, double, const Dims& size, const IValue&, const OptionalDType& dtype) {
        return TensorMeta{size, dtype.value_or(default_dtype())};
      })
      .samples({{"1.0, 2.0, [2, 3]"}});
  drawing_op(r, "normal(mean: Tensor, std: Tensor, *, generator: Generator? = None) -> Tensor",
             "Normally distributed numbers, each with a mean and a deviation of its own.",
             Family::kOpaque)
      .grad("mean", "", [](Gradient& g) { return g.zeros(g.meta("mean")); })
      .grad("std", "", [](Gradient& g) { return g.zeros(g.meta("std")); })
      .where(kFunctionOnly)
      .kernel([](const Tensor& mean, const Tensor& deviation, const IValue& generator) {
        const bool one_mean = mean.is_wrapped_number(),
                   one_deviation = deviation.is_wrapped_number();
        Tensor out = Tensor::empty(broadcast_shapes(mean.sizes(), deviation.sizes()),
                                   one_mean ? deviation.dtype() : mean.dtype());
        if (one_deviation) {
          normal(out, 0, deviation.item_double(), generator);
          return call_tensor("add", out, mean).to(out.dtype());
        }
        normal(out, 0, 1, generator);
        return call_tensor("add", call_tensor("mul", out, deviation), mean).to(out.dtype());
      })
      .shape([](const TensorMeta& mean, const TensorMeta& deviation, const IValue&) {
        return TensorMeta{broadcast_shapes(mean.sizes, deviation.sizes),
                          mean.is_wrapped_number ? deviation.dtype : mean.dtype};
      })
      .samples({{"t(2, 3), pos(2, 3)"}});
}

// ── in place ──

template <class F, class... A>
OpDef& in_place(Registry& r, std::string_view schema, std::string doc,
                void (F::*)(const Tensor&, A...) const) {
  return without_slope(drawing_op(r, schema, std::move(doc), Family::kOpaque))
      .where(kMethodOnly)
      .mutates(0)
      .kernel([](const Tensor& x, const std::remove_cvref_t<A>&... a) {
        F{}(x, a...);
        x.bump_version();
        return x;
      })
      .boxed_shape([](const OpDef&, std::span<const IValue> args) -> IValue {
        const TensorMeta x = meta_from(args[0]);
        return TensorMeta{x.sizes, x.dtype};
      });
}
template <class F>
OpDef& in_place(Registry& r, std::string_view schema, std::string doc, F) {
  return in_place<F>(r, schema, std::move(doc), &F::operator());
}

void register_in_place(Registry& r) {
  in_place(
      r,
      "uniform_(input: Tensor, from: float = 0.0, to: float = 1.0, *, generator: Generator? = "
      "None) -> Tensor",
      "Sets the elements to numbers evenly spread over [from, to).",
      [](const Tensor& x, double from, double to, const IValue& g) { uniform(x, from, to, g); })
      .takes_complex()
      .samples({{"t(2, 3)"}, {"strided(4, 6), -1, 2"}});
  in_place(r,
           "normal_(input: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator? = "
           "None) -> Tensor",
           "Sets the elements to normally distributed numbers.",
           [](const Tensor& x, double mean, double deviation, const IValue& g) {
             normal(x, mean, deviation, g);
           })
      .takes_complex()
      .samples({{"t(2, 3)"}, {"t(30), 1, 2"}});
  in_place(
      r,
      "bernoulli_.float(input: Tensor, p: float = 0.5, *, generator: Generator? = None) -> Tensor",
      "Sets each element to 1 with chance p, else to 0.",
      [](const Tensor& x, double p, const IValue& g) { bernoulli(x, p, g); })
      .samples({{"t(2, 3), 0.3"}});
  in_place(r,
           "bernoulli_.Tensor(input: Tensor, p: Tensor, *, generator: Generator? = None) -> Tensor",
           "Sets each element to 1 with the chance in p, else to 0.",
           [](const Tensor& x, const Tensor& p, const IValue& g) { bernoulli(x, p, g); })
      .checks(&any_data_may_fail)
      .grad("p", "", [](Gradient& g) { return g.zeros(g.meta("p")); })
      .samples({{"t(2, 3), torch.tensor(0.3)"}});
  in_place(
      r,
      "exponential_(input: Tensor, lambd: float = 1.0, *, generator: Generator? = None) -> Tensor",
      "Sets the elements to exponentially distributed numbers.",
      [](const Tensor& x, double rate, const IValue& g) { exponential(x, rate, g); })
      .samples({{"t(2, 3)"}});
  in_place(r,
           "log_normal_(input: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: "
           "Generator? = None) -> Tensor",
           "Sets the elements to numbers whose logarithms are normally distributed.",
           [](const Tensor& x, double mean, double deviation, const IValue& g) {
             PRONG_CHECK(deviation > 0, kRuntime,
                         "log_normal_ expects std > 0.0, but found std=", plain(deviation));
             fill_log_normal(x, *generator_from(g), mean, deviation);
           })
      .samples({{"t(2, 3)"}});
  in_place(r,
           "cauchy_(input: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: "
           "Generator? = None) -> Tensor",
           "Sets the elements to Cauchy-distributed numbers.",
           [](const Tensor& x, double median, double sigma, const IValue& g) {
             PRONG_CHECK(sigma > 0, kRuntime,
                         "cauchy_ expects sigma > 0.0, but found sigma=", plain(sigma));
             fill_cauchy(x, *generator_from(g), median, sigma);
           })
      .samples({{"t(2, 3)"}});
  in_place(r, "geometric_(input: Tensor, p: float, *, generator: Generator? = None) -> Tensor",
           "Sets the elements to the number of trials of chance p until the first success.",
           [](const Tensor& x, double p, const IValue& g) {
             PRONG_CHECK(p > 0 && p < 1, kRuntime,
                         "geometric_ expects p to be in (0, 1), but got p=", plain(p));
             fill_geometric(x, *generator_from(g), p);
           })
      .samples({{"t(2, 3), 0.4"}});
  in_place(r, "random_(input: Tensor, *, generator: Generator? = None) -> Tensor",
           "Sets the elements to integers from 0 to the largest that the type holds (exactly, for "
           "floating types).",
           [](const Tensor& x, const IValue& g) { fill_random_bits(x, *generator_from(g)); })
      .samples({{"t(2, 3)"}});
  in_place(r, "random_.to(input: Tensor, to: int, *, generator: Generator? = None) -> Tensor",
           "Sets the elements to integers from 0 to to - 1.",
           [](const Tensor& x, int64_t to, const IValue& g) { integers(x, 0, to, g); })
      .samples({{"t(2, 3), 7"}});
  in_place(
      r,
      "random_.from(input: Tensor, from: int, to: int, *, generator: Generator? = None) -> Tensor",
      "Sets the elements to integers from `from` to to - 1.",
      [](const Tensor& x, int64_t from, int64_t to, const IValue& g) { integers(x, from, to, g); })
      .samples({{"t(2, 3), -3, 7"}});
}

// ── from probabilities ──

Tensor multinomial(const Tensor& given, int64_t draws, bool replacement, const IValue& generator) {
  PRONG_CHECK(given.rank() == 1 || given.rank() == 2, kRuntime, "prob_dist must be 1 or 2 dim");
  PRONG_CHECK(
      is_floating(given.dtype()), kRuntime,
      "multinomial only supports floating-point dtypes for input, got: ", type_name(given.dtype()));
  PRONG_CHECK(draws > 0, kRuntime, "cannot sample n_sample <= 0 samples");
  const int64_t categories = given.sizes().back();
  PRONG_CHECK(replacement || draws <= categories, kRuntime,
              "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  const bool is_small = given.dtype() == DType::kFloat16 || given.dtype() == DType::kBFloat16;
  const Tensor p = (is_small ? given.to(DType::kFloat32) : given).contiguous();
  Dims sizes = given.sizes();
  sizes.back() = draws;
  Tensor out = Tensor::empty(sizes, DType::kInt64);
  if (replacement && draws > 1) {
    fill_multinomial(out, p, *generator_from(generator));
    return out;
  }
  visit(p.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_floating_point_v<T>)
      for (int64_t row = 0; row < p.numel(); row += categories) {
        double sum = 0;
        for (int64_t i = row; i < row + categories; ++i) {
          const T x = p.data<T>()[i];
          PRONG_CHECK(x >= 0 && std::isfinite(x), kRuntime,
                      "probability tensor contains either `inf`, `nan` or element < 0");
          sum += x;
        }
        PRONG_CHECK(sum > 0, kRuntime,
                    "invalid multinomial distribution (sum of probabilities <= 0)");
      }
  });
  // The category whose exponential clock, running at the rate p, rings first.
  const Tensor clocks = Tensor::empty(p.sizes(), given.dtype());
  exponential(clocks, 1, generator);
  const Tensor rates = call_tensor("div", given, clocks);
  return call("topk", rates, draws, int64_t{-1}).items()[1].to_tensor();
}

void register_from_probabilities(Registry& r) {
  without_slope(drawing_op(r, "bernoulli(input: Tensor, *, generator: Generator? = None) -> Tensor",
                           "1 with the chance in each element of input, else 0.", Family::kOpaque))
      .checks(&any_data_may_fail)
      .kernel([](const Tensor& p, const IValue& g) {
        Tensor out = Tensor::empty(p.sizes(), p.dtype());
        bernoulli(out, p, g);
        return out;
      })
      .shape([](const TensorMeta& x, const IValue&) {
        return TensorMeta{x.sizes, x.dtype};
      })
      .samples({{"unit(2, 3).abs()"}});
  without_slope(
      drawing_op(r,
                 "bernoulli.p(input: Tensor, p: float, *, generator: Generator? = None) -> Tensor",
                 "1 with chance p, else 0, in the shape of input.", Family::kOpaque))
      .kernel([](const Tensor& x, double p, const IValue& g) {
        Tensor out = Tensor::empty(x.sizes(), x.dtype());
        bernoulli(out, p, g);
        return out;
      })
      .shape([](const TensorMeta& x, double, const IValue&) {
        return TensorMeta{x.sizes, x.dtype};
      })
      .samples({{"t(2, 3), 0.3"}});
  random_op(
      r,
      "multinomial(input: Tensor, num_samples: int, replacement: bool = False, *, generator: "
      "Generator? = None) -> Tensor",
      "Numbers of categories, drawn with the probabilities (up to a factor) in the last dimension.",
      Family::kOpaque)
      .checks(&any_data_may_fail)
      .kernel([](const Tensor& p, int64_t draws, bool replacement, const IValue& g) {
        return multinomial(p, draws, replacement, g);
      })
      .shape([](const TensorMeta& p, int64_t draws, bool, const IValue&) {
        TensorMeta out{p.sizes, DType::kInt64};
        if (!out.sizes.empty()) out.sizes.back() = draws;
        return out;
      })
      .samples({{"pos(2, 5), 3"}, {"pos(5), 8, True"}});
}

}  // namespace

void register_random(Registry& r) {
  register_factories(r);
  register_in_place(r);
  register_from_probabilities(r);
}

}  // namespace prong
