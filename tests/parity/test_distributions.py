"""torch.distributions: samples of one seed, densities, moments, divergences, gradients and errors are PyTorch's."""

import math
import warnings

import numpy as np
import prong
import pytest

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _checks_arguments():
    """PyTorch's compiler, which other tests load, turns them off for the whole process."""
    torch.distributions.Distribution.set_default_validate_args(True)


# Constructors: D is the package, T a tensor that requires grad, m the module.
DISTRIBUTIONS = [
    "D.Normal(T([0.3, -1.0]), T([0.5, 2.0]))",
    "D.Normal(0, 1)",
    "D.Normal(T([[0.1], [0.2]]), 2.0)",
    "D.LogNormal(T([0.3, -1.0]), T([0.5, 0.9]))",
    "D.Uniform(T([0.3, -1.0]), T([0.5, 2.0]))",
    "D.Bernoulli(T([0.3, 0.9]))",
    "D.Bernoulli(logits=T([0.3, -2.0]))",
    "D.Categorical(T([[0.3, 0.9, 1.0], [1.0, 2.0, 0.5]]))",
    "D.Categorical(logits=T([0.3, -2.0, 0.4, 0.1]))",
    "D.OneHotCategorical(T([[0.3, 0.9, 1.0], [1.0, 2.0, 0.5]]))",
    "D.OneHotCategorical(logits=T([0.3, -2.0, 0.4]))",
    "D.OneHotCategoricalStraightThrough(logits=T([0.3, -2.0, 0.4]))",
    "D.Multinomial(7, T([[0.3, 0.9, 1.0], [1.0, 2.0, 0.5]]))",
    "D.Multinomial(3, logits=T([0.3, -2.0, 0.4]))",
    "D.Binomial(12, T([0.3, 0.9]))",
    "D.Binomial(100, logits=T([0.3, -0.2]))",
    "D.Geometric(T([0.3, 0.9]))",
    "D.Geometric(logits=T([0.3, -0.9]))",
    "D.NegativeBinomial(T([3.0, 20.0]), T([0.3, 0.7]))",
    "D.Poisson(T([0.3, 3.0, 40.0]))",
    "D.Exponential(T([0.3, 3.0]))",
    "D.Gamma(T([0.3, 3.0, 20.0]), T([1.0, 2.0, 0.4]))",
    "D.Beta(T([0.3, 3.0, 20.0]), T([1.0, 2.0, 0.4]))",
    "D.Beta(2.0, 3.0)",
    "D.Dirichlet(T([[0.3, 3.0, 20.0], [1.0, 2.0, 4.0]]))",
    "D.Chi2(T([1.0, 7.0]))",
    "D.StudentT(T([1.5, 7.0]), T([1.0, -1.0]), 2.0)",
    "D.FisherSnedecor(T([3.0, 7.0]), T([5.0, 9.0]))",
    "D.Laplace(T([0.3, -1.0]), T([0.5, 2.0]))",
    "D.Cauchy(T([0.3, -1.0]), T([0.5, 2.0]))",
    "D.HalfNormal(T([0.5, 2.0]))",
    "D.HalfCauchy(T([0.5, 2.0]))",
    "D.Gumbel(T([0.3, -1.0]), T([0.5, 2.0]))",
    "D.Weibull(T([0.3, 1.0]), T([1.5, 2.0]))",
    "D.Pareto(T([0.3, 1.0]), T([1.5, 3.0]))",
    "D.InverseGamma(T([2.5, 3.0]), T([1.5, 3.0]))",
    "D.Kumaraswamy(T([0.5, 3.0]), T([1.5, 3.0]))",
    "D.LogisticNormal(T([0.3, 1.0]), T([1.5, 3.0]))",
    "D.Independent(D.Normal(T([[0.3, 1.0], [1.0, 2.0]]), T([1.5, 3.0])), 1)",
    "D.Independent(D.Bernoulli(logits=T([[0.3, 1.0], [1.0, 2.0]])), 2)",
    "D.MultivariateNormal(T([0.3, 1.0]), T([[1.5, 0.3], [0.3, 2.0]]))",
    "D.MultivariateNormal(T([[0.3, 1.0], [2.0, 0.0]]), scale_tril=T([[1.5, 0.0], [0.3, 2.0]]))",
    "D.MultivariateNormal(T([0.3, 1.0]), precision_matrix=T([[1.5, 0.3], [0.3, 2.0]]))",
    "D.MultivariateNormal(T([0.3, 1.0]), T([[[1.5, 0.3], [0.3, 2.0]], [[1.0, 0.0], [0.0, 1.0]]]))",
    "D.TransformedDistribution(D.Normal(T([0.3, 1.0]), 1.0), [D.TanhTransform(cache_size=1)])",
    "D.TransformedDistribution(D.Normal(T([0.3, 1.0]), 1.0),"
    " [D.SigmoidTransform(), D.AffineTransform(T([1.0, 2.0]), T([-3.0, 1.0]))])",
    "D.TransformedDistribution(D.Normal(T([0.3, 1.0, 2.0]), 1.0), D.StickBreakingTransform())",
    "D.MixtureSameFamily(D.Categorical(T([0.3, 0.7])), D.Normal(T([0.0, 3.0]), T([1.0, 0.5])))",
    "D.MixtureSameFamily(D.Categorical(T([0.3, 0.7])),"
    " D.Independent(D.Normal(T([[0.0, 3.0, 1.0], [1.0, 1.0, 1.0]]), 1.0), 1))",
    "D.RelaxedBernoulli(m.tensor(0.7), T([0.3, 0.6]))",
    "D.RelaxedBernoulli(m.tensor(0.7), logits=T([0.3, 0.6]))",
    "D.RelaxedOneHotCategorical(m.tensor(0.7), T([0.3, 0.6, 0.1]))",
    "D.RelaxedOneHotCategorical(m.tensor(0.7), logits=T([0.3, 0.6]))",
]


class Made:
    """A distribution of one of the two modules, with the parameters that it was made of."""

    def __init__(self, module, text, dtype="float64"):
        self.module, self.leaves = module, []

        def leaf(numbers):
            made = module.tensor(numbers, dtype=getattr(module, dtype), requires_grad=True)
            self.leaves.append(made)
            return made

        self.names = {"D": module.distributions, "T": leaf, "m": module}
        self.d = eval(text, self.names)

    def gradients(self, value):
        if self.leaves:
            value.sum().backward()
        found = [leaf.grad for leaf in self.leaves]
        for leaf in self.leaves:
            leaf.grad = None
        return found


def pair(text, dtype="float64"):
    return [Made(module, text, dtype) for module in (torch, prong)]


def plain(value):
    if isinstance(value, (torch.Tensor, prong.Tensor)):
        return np.array(value.detach().tolist(), dtype=np.float64)
    return value


def outcome(f):
    """What a call gives, or the kind of its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return f()
        except Exception as error:  # noqa: BLE001
            return type(error).__name__, str(error)


def close(a, b, rtol=1e-9, atol=1e-9, what=""):
    """The first is PyTorch's."""
    if isinstance(a, (list, tuple)) and not isinstance(a, torch.Size) and a and a[0] is not None:
        assert isinstance(b, type(a)) and len(a) == len(b), f"{what}: {a} and {b}"
        for i, j in zip(a, b, strict=True):
            close(i, j, rtol, atol, what)
    elif isinstance(a, torch.Tensor):
        assert isinstance(b, prong.Tensor), f"{what}: PyTorch gives {a}, Prong {b}"
        assert str(a.dtype)[6:] == str(b.dtype)[6:], what
        assert tuple(a.shape) == tuple(b.shape), f"{what}: shapes {a.shape} and {b.shape}"
        np.testing.assert_allclose(plain(b), plain(a), rtol=rtol, atol=atol, err_msg=what)
    else:
        assert a == b, f"{what}: PyTorch {a}, Prong {b}"


def shown(value):
    return repr(value).replace("prong.", "torch.")


@pytest.mark.parametrize("text", DISTRIBUTIONS)
class TestEach:
    def test_description(self, text):
        t, p = (made.d for made in pair(text))
        assert shown(t) == shown(p)
        assert tuple(t.batch_shape) == tuple(p.batch_shape)
        assert tuple(t.event_shape) == tuple(p.event_shape)
        assert type(p.batch_shape) is type(p.event_shape) is prong.Size
        for name in ("support", "arg_constraints", "has_rsample", "has_enumerate_support"):
            assert outcome(lambda: shown(getattr(t, name))) == outcome(  # noqa: B023
                lambda: shown(getattr(p, name))  # noqa: B023
            )

    def test_moments(self, text):
        for name in ("mean", "mode", "variance", "stddev", "entropy", "perplexity"):
            if name == "mode" and "Kumaraswamy" in text:
                continue  # PyTorch's is nan
            results = []
            for made in pair(text):
                value = outcome(lambda: getattr(made.d, name))  # noqa: B023
                value = outcome(value) if callable(value) else value
                results.append(value)
            if isinstance(results[0], tuple):
                assert results[0][0] == results[1][0], f"{name}: {results}"
            else:
                # PyTorch counts a Multinomial's draws in float32.
                is_rough = "Multinomial" in text or not made.leaves
                close(*results, rtol=5e-6 if is_rough else 1e-9, what=name)

    def test_samples(self, text):
        for shape in ((), (3,), (2, 5)):
            results = []
            for made in pair(text):
                made.module.manual_seed(11)
                results.append(made.d.sample(shape))
                assert not results[-1].requires_grad
            close(*results, what=f"sample({shape})")

    def test_samples_of_float32(self, text):
        results = []
        for made in pair(text, "float32"):
            made.module.manual_seed(5)
            results.append(made.d.sample((40,)))
        close(*results, rtol=3e-5, atol=1e-5)

    def test_rsample_gradients(self, text):
        results = []
        for made in pair(text):
            made.module.manual_seed(11)
            if not made.d.has_rsample:
                results.append(outcome(lambda: made.d.rsample())[0])  # noqa: B023
                continue
            value = made.d.rsample((6,))
            weights = made.module.linspace(-1, 2, value.numel(), dtype=value.dtype)
            results.append([value, *made.gradients(value.flatten() * weights)])
        # PyTorch approximates how gamma and beta numbers move with their parameters.
        close(*results, rtol=2e-3 if gamma_like(text) else 1e-8, atol=1e-4)

    def test_log_prob(self, text):
        torch.manual_seed(2)
        values = Made(torch, text).d.sample((4,)).tolist()
        results = []
        for made in pair(text):
            value = made.module.tensor(values, dtype=made.module.float64)
            result = made.d.log_prob(value)
            results.append([result, *made.gradients(result)])
        close(*results, rtol=1e-7, atol=1e-8)

    def test_distribution_function(self, text):
        torch.manual_seed(2)
        values = Made(torch, text).d.sample((4,)).tolist()
        for name, given in (("cdf", values), ("icdf", 0.37)):
            results = []
            for made in pair(text):
                value = made.module.tensor(given, dtype=made.module.float64)
                results.append(outcome(lambda: getattr(made.d, name)(value)))  # noqa: B023
            if isinstance(results[0], tuple):
                assert results[0][0] == results[1][0], results
            else:
                close(*results, rtol=1e-7, atol=1e-8, what=name)

    def test_expanded(self, text):
        t, p = (made.d for made in pair(text))
        shape = (3, *t.batch_shape)
        t, p = t.expand(shape), p.expand(shape)
        assert type(p).__name__ == type(t).__name__
        assert tuple(p.batch_shape) == shape and tuple(p.event_shape) == tuple(t.event_shape)
        assert shown(p) == shown(t)
        results = []
        for module, d in ((torch, t), (prong, p)):
            module.manual_seed(1)
            value = d.sample((2,))
            results.append([value, d.log_prob(value)])
        close(*results, rtol=1e-6, atol=1e-7)

    def test_support_enumerated(self, text):
        for expand in (True, False):
            results = [outcome(lambda: m.d.enumerate_support(expand)) for m in pair(text)]  # noqa: B023
            if isinstance(results[0], tuple):
                assert results[0][0] == results[1][0], results
            else:
                close(*results)


def gamma_like(text):
    names = ("Gamma", "Beta", "Dirichlet", "Chi2", "StudentT", "FisherSnedecor")
    return any(f"D.{name}(" in text for name in names) or "InverseGamma" in text


DIVERGENCES = """
Normal(T([0.3, -1.0]), T([0.5, 2.0])) | Normal(T([0.0, 1.0]), 1.0)
Normal(T([0.3, -1.0]), T([0.5, 2.0])) | Laplace(T([0.0, 1.0]), T([1.0, 3.0]))
Normal(T([0.3, -1.0]), T([0.5, 2.0])) | Gumbel(T([0.0, 1.0]), T([1.0, 3.0]))
Normal(T([0.3, -1.0]), T([0.5, 2.0])) | Gamma(T([0.3, 1.0]), T([1.0, 3.0]))
LogNormal(T([0.3, -1.0]), T([0.5, 2.0])) | LogNormal(T([0.0, 1.0]), 1.0)
Bernoulli(T([0.3, 0.9])) | Bernoulli(T([0.5, 0.1]))
Bernoulli(T([0.0, 1.0])) | Bernoulli(T([0.5, 0.1]))
Bernoulli(T([0.2, 1.0])) | Bernoulli(T([0.0, 1.0]))
Bernoulli(T([0.2, 0.8])) | Poisson(T([3.0, 1.0]))
Binomial(5, T([0.3, 0.9])) | Binomial(5, T([0.5, 0.1]))
Categorical(T([0.3, 0.9])) | Categorical(T([0.5, 0.1]))
Categorical(T([0.3, 0.0])) | Categorical(T([0.0, 0.1]))
OneHotCategorical(T([0.3, 0.9])) | OneHotCategorical(logits=T([0.5, 0.1]))
Geometric(T([0.3, 0.9])) | Geometric(T([0.5, 0.1]))
Poisson(T([0.3, 9.0])) | Poisson(T([0.5, 3.0]))
Poisson(T([0.3, 9.0])) | Bernoulli(T([0.5, 0.3]))
Exponential(T([0.3, 9.0])) | Exponential(T([0.5, 3.0]))
Exponential(T([0.3, 9.0])) | Gamma(T([0.5, 3.0]), T([0.5, 3.0]))
Exponential(T([0.3, 9.0])) | Gumbel(T([0.5, 3.0]), T([0.5, 3.0]))
Exponential(T([0.3, 9.0])) | Normal(T([0.5, 3.0]), T([0.5, 3.0]))
Exponential(T([0.3, 9.0])) | Uniform(T([0.5, 3.0]), T([1.5, 4.0]))
Gamma(T([0.3, 9.0]), T([0.5, 3.0])) | Gamma(T([0.5, 3.0]), T([1.5, 4.0]))
Gamma(T([0.3, 9.0]), T([0.5, 3.0])) | Exponential(T([0.5, 3.0]))
Gamma(T([0.3, 9.0]), T([0.5, 3.0])) | Gumbel(T([0.5, 3.0]), T([1.5, 4.0]))
Gamma(T([0.3, 9.0]), T([0.5, 3.0])) | Normal(T([0.5, 3.0]), T([1.5, 4.0]))
Beta(T([0.3, 9.0]), T([0.5, 3.0])) | Beta(T([0.5, 3.0]), T([1.5, 4.0]))
Beta(T([0.3, 9.0]), T([0.5, 3.0])) | Exponential(T([0.5, 3.0]))
Beta(T([0.3, 9.0]), T([0.5, 3.0])) | Gamma(T([0.5, 3.0]), T([1.5, 4.0]))
Beta(T([0.3, 9.0]), T([0.5, 3.0])) | Normal(T([0.5, 3.0]), T([1.5, 4.0]))
Beta(T([0.3, 9.0]), T([0.5, 3.0])) | Uniform(T([-0.5, 0.5]), T([1.5, 4.0]))
Beta(T([0.3, 9.0]), T([0.5, 3.0])) | Pareto(T([0.5, 3.0]), T([1.5, 4.0]))
Dirichlet(T([0.3, 9.0, 1.0])) | Dirichlet(T([0.5, 3.0, 2.0]))
Laplace(T([0.3, 9.0]), T([0.5, 3.0])) | Laplace(T([0.5, 3.0]), T([1.5, 4.0]))
Laplace(T([0.3, 9.0]), T([0.5, 3.0])) | Normal(T([0.5, 3.0]), T([1.5, 4.0]))
Cauchy(T([0.3, 9.0]), T([0.5, 3.0])) | Cauchy(T([0.5, 3.0]), T([1.5, 4.0]))
HalfNormal(T([0.3, 9.0])) | HalfNormal(T([0.5, 3.0]))
Gumbel(T([0.3, 9.0]), T([0.5, 3.0])) | Gumbel(T([0.5, 3.0]), T([1.5, 4.0]))
Gumbel(T([0.3, 9.0]), T([0.5, 3.0])) | Normal(T([0.5, 3.0]), T([1.5, 4.0]))
Pareto(T([0.3, 9.0]), T([2.5, 3.0])) | Pareto(T([0.5, 3.0]), T([1.5, 4.0]))
Pareto(T([0.3, 9.0]), T([2.5, 3.0])) | Exponential(T([0.5, 3.0]))
Pareto(T([0.3, 9.0]), T([2.5, 3.0])) | Gamma(T([0.5, 3.0]), T([1.5, 4.0]))
Pareto(T([0.3, 9.0]), T([2.5, 3.0])) | Normal(T([0.5, 3.0]), T([1.5, 4.0]))
Uniform(T([0.3, 0.1]), T([2.5, 0.9])) | Uniform(T([0.5, 0.0]), T([1.5, 4.0]))
Uniform(T([0.3, 0.1]), T([2.5, 0.9])) | Beta(T([0.5, 3.0]), T([1.5, 4.0]))
Uniform(T([0.3, -1.0]), T([2.5, 0.9])) | Exponential(T([0.5, 3.0]))
Uniform(T([0.3, -1.0]), T([2.5, 0.9])) | Gamma(T([0.5, 3.0]), T([1.5, 4.0]))
Uniform(T([0.3, -1.0]), T([2.5, 0.9])) | Gumbel(T([0.5, 3.0]), T([1.5, 4.0]))
Uniform(T([0.3, -1.0]), T([2.5, 0.9])) | Normal(T([0.5, 3.0]), T([1.5, 4.0]))
Uniform(T([0.3, 5.0]), T([2.5, 6.0])) | Pareto(T([0.5, 3.0]), T([1.5, 4.0]))
Independent(D.Normal(T([0.3, 5.0]), 1.0), 1) | Independent(D.Normal(T([0.5, 3.0]), 2.0), 1)
MultivariateNormal(T([0.3, 1.0]), T([[1.5, 0.3], [0.3, 2.0]])) | \
MultivariateNormal(T([[0.1, 1.0], [3.0, 4.0]]), T([[1.5, 0.1], [0.1, 1.0]]))
MultivariateNormal(T([0.3, 1.0]), T([[[1.5, 0.3], [0.3, 2.0]], [[1.0, 0.0], [0.0, 1.0]]])) | \
MultivariateNormal(T([3.0, 4.0]), scale_tril=T([[1.5, 0.0], [0.1, 1.0]]))
Normal(T([0.3, -1.0]), 1.0) | Categorical(T([0.3, 0.7]))
""".strip().splitlines()


@pytest.mark.parametrize("line", DIVERGENCES)
def test_divergence(line):
    p, q = (f"D.{side.strip()}" for side in line.split("|"))
    results = []
    for made in pair(f"({p}, {q})"):
        results.append(outcome(lambda: made.module.distributions.kl_divergence(*made.d)))  # noqa: B023
    if isinstance(results[0], tuple):
        assert results[0] == results[1]
    else:
        close(*results, rtol=1e-8, atol=1e-9)


ERRORS = [
    "D.Normal(T([0.0]), T([-1.0]))",
    "D.Normal(0, -1)",
    "D.Normal(0, 1).log_prob(1.0)",
    "D.Normal(0, 1).log_prob(T(float('nan')))",
    "D.Normal('a', 1)",
    "D.Normal(T([0.0] * 4), 1.0).log_prob(T([0.0] * 3))",
    "D.Bernoulli(1.5)",
    "D.Bernoulli()",
    "D.Bernoulli(0.5, 0.5)",
    "D.Bernoulli(0.5).log_prob(T(0.5))",
    "D.Bernoulli(0.5).rsample()",
    "D.Categorical(T([[1.0, -1.0]]))",
    "D.Categorical(T(1.0))",
    "D.Categorical(logits=T(1.0))",
    "D.Categorical(logits=T([float('nan'), 1.0]))",
    "D.Categorical(T([1.0, 1.0])).log_prob(T(2.0))",
    "D.Uniform(1, 0)",
    "D.Uniform(0, 1).log_prob(T(2.0))",
    "D.Binomial(3, T([0.5, 0.5])).log_prob(T([1.0, 4.0]))",
    "D.Binomial(-3, T([0.5, 0.5]))",
    "D.MultivariateNormal(T([0.0, 0.0]), T([[-1.0, 0.0], [0.0, 1.0]]))",
    "D.MultivariateNormal(T([0.0, 0.0]))",
    "D.MultivariateNormal(T(0.0), T([[1.0]]))",
    "D.MultivariateNormal(T([0.0, 0.0]), T(1.0))",
    "D.MultivariateNormal(T([0.0, 0.0]), scale_tril=T([[1.0, 1.0], [0.0, 1.0]]))",
    "D.Dirichlet(T(1.0))",
    "D.Dirichlet(T([1.0, 1.0])).log_prob(T([0.5, 0.6]))",
    "D.Gamma(-1, 1)",
    "D.Beta(-1.0, 1.0)",
    "D.Chi2(-1.0)",
    "D.Independent(D.Normal(0, 1), 1)",
    "D.MixtureSameFamily(1, 2)",
    "D.MixtureSameFamily(D.Categorical(T([0.5, 0.5])), 2)",
    "D.MixtureSameFamily(D.Categorical(T([0.5, 0.5])), D.Normal(T([1.0, 1.0, 1.0]), 1))",
    "D.TransformedDistribution(D.Normal(0, 1), 3)",
    "D.TransformedDistribution(D.Normal(0, 1), [3])",
    "D.Geometric(0.0)",
    "D.Poisson(3.0).log_prob(T(-1.0))",
    "D.Poisson(3.0).entropy()",
    "D.LogNormal(0.0, 1.0).log_prob(T(-1.0))",
    "D.Pareto(1.0, 1.0).log_prob(T(0.5))",
    "D.Multinomial(T([3.0]), T([0.5, 0.5]))",
    "D.OneHotCategorical(T([1.0, 1.0])).log_prob(T([1.0, 1.0]))",
    "D.Normal(T([1.0, 1.0]), 1).expand((3,))",
    "D.Normal(T([0.0, 0.0, 0.0]), T([1.0, 1.0]))",
    "D.biject_to(D.constraints.boolean)",
    "D.PowerTransform(m.tensor(2.0), cache_size=3)",
]


@pytest.mark.parametrize("text", ERRORS)
def test_error(text):
    expected, got = (outcome(lambda: Made(module, text).d) for module in (torch, prong))  # noqa: B023
    assert isinstance(expected, tuple) and len(expected) == 2, expected
    # The lines of numbers may be printed with gradients.
    assert tuple(got) == tuple(expected) or shown(got) == shown(expected)


TRANSFORMS = [
    ("D.ExpTransform()", "[0.3, -1.0]"),
    ("D.ExpTransform().inv", "[0.3, 1.0]"),
    ("D.PowerTransform(m.tensor(2.5))", "[0.3, 1.0]"),
    ("D.SigmoidTransform()", "[0.3, -90.0, 90.0]"),
    ("D.TanhTransform()", "[0.3, -2.0]"),
    ("D.SoftplusTransform()", "[0.3, -2.0, 30.0]"),
    ("D.AbsTransform()", "[0.3, -2.0]"),
    ("D.AffineTransform(2.0, -3.0)", "[0.3, -2.0]"),
    ("D.AffineTransform(m.tensor([1.0, 2.0]).double(), 3.0, event_dim=1)", "[0.3, -2.0]"),
    ("D.SoftmaxTransform()", "[0.3, -2.0]"),
    ("D.StickBreakingTransform()", "[[0.3, -2.0, 1.0], [0.0, 0.0, 0.0]]"),
    ("D.LowerCholeskyTransform()", "[[0.3, -2.0], [0.1, 0.2]]"),
    ("D.PositiveDefiniteTransform()", "[[0.3, -2.0], [0.1, 0.2]]"),
    ("D.CorrCholeskyTransform()", "[[0.3, -2.0, 0.5], [0.1, 0.2, 0.9]]"),
    ("D.CumulativeDistributionTransform(D.Normal(0.0, 1.0))", "[0.3, -2.0]"),
    ("D.IndependentTransform(D.ExpTransform(), 1)", "[0.3, -2.0]"),
    ("D.ReshapeTransform((4,), (2, 2))", "[[0.3, -2.0, 1.0, 2.0]]"),
    ("D.ComposeTransform([D.ExpTransform(), D.AffineTransform(1.0, 2.0)])", "[0.3, -2.0]"),
    ("D.CatTransform([D.ExpTransform(), D.TanhTransform()], 0, [1, 2])", "[0.3, -2.0, 0.1]"),
    ("D.StackTransform([D.ExpTransform(), D.TanhTransform()], 0)", "[[0.3, -2.0], [0.1, 0.2]]"),
    ("D.biject_to(D.Normal.arg_constraints['scale'])", "[0.3, -2.0]"),
    ("D.biject_to(D.constraints.simplex)", "[0.3, -2.0]"),
    ("D.transform_to(D.constraints.interval(-2.0, 5.0))", "[0.3, -2.0]"),
    ("D.transform_to(D.constraints.less_than(-2.0))", "[0.3, -2.0]"),
]


@pytest.mark.parametrize("text, numbers", TRANSFORMS)
def test_transform(text, numbers):
    results = []
    for made in pair(text):
        x = made.module.tensor(eval(numbers), dtype=made.module.float64)
        y = made.d(x)
        jacobian = outcome(lambda: made.d.log_abs_det_jacobian(x, y))  # noqa: B023
        jacobian = jacobian[0] if isinstance(jacobian, tuple) else jacobian
        shapes = [tuple(made.d.forward_shape(x.shape)), tuple(made.d.inverse_shape(y.shape))]
        claims = [shown(made.d), made.d.bijective, shown(made.d.domain), shown(made.d.codomain)]
        results.append([y, made.d.inv(y), jacobian, *shapes, *claims])
        assert made.d.inv.inv == made.d
    close(*results, rtol=1e-9, atol=1e-12)


class TestPrograms:
    def test_a_cached_transform_inverts_exactly(self):
        d = prong.distributions.TransformedDistribution(
            prong.distributions.Normal(0.0, 1.0), prong.distributions.TanhTransform(cache_size=1)
        )
        y = d.base_dist.loc.new_tensor([9.0, -20.0])
        squashed = d.transforms[0](y)
        assert squashed.tolist() == [1.0, -1.0]
        assert d.transforms[0].inv(squashed) is y

    def test_mode_of_kumaraswamy(self):
        d = prong.distributions.Kumaraswamy(prong.tensor([0.5, 3.0]), prong.tensor([1.5, 3.0]))
        beside = prong.tensor([-1e-2, 0.0, 1e-2]) + d.mode[1]
        assert d.mode[0].isnan() and d.log_prob(beside[:, None])[:, 1].argmax() == 1

    def test_policy_gradient(self):
        def step(module):
            module.manual_seed(0)
            D = module.distributions
            logits = module.linspace(-1, 1, 12).reshape(4, 3).requires_grad_()
            policy = D.Categorical(logits=logits)
            action = policy.sample()
            reward = module.arange(4.0)
            loss = -(policy.log_prob(action) * reward).mean() - 0.01 * policy.entropy().mean()
            loss.backward()
            return [action, loss, logits.grad]

        close(step(torch), step(prong), rtol=1e-5, atol=1e-6)

    def test_variational_bound(self):
        def step(module):
            module.manual_seed(0)
            D = module.distributions
            mean = module.linspace(-1, 1, 6).reshape(2, 3).requires_grad_()
            q = D.Independent(D.Normal(mean, mean.exp()), 1)
            p = D.Independent(D.Normal(module.zeros(3), module.ones(3)), 1)
            z = q.rsample()
            bound = D.Independent(D.Bernoulli(logits=z), 1).log_prob(module.ones(2, 3))
            (bound - D.kl_divergence(q, p)).sum().backward()
            return [bound, mean.grad]

        close(step(torch), step(prong), rtol=1e-5, atol=1e-6)

    def test_a_class_of_the_program(self):
        def run(module):
            D = module.distributions

            class Shifted(D.Distribution):
                arg_constraints = {"by": D.constraints.real}
                has_rsample = True

                def __init__(self, by, validate_args=None):
                    self.by = by
                    super().__init__(by.shape, validate_args=validate_args)

                @D.constraints.dependent_property(is_discrete=False, event_dim=0)
                def support(self):
                    return D.constraints.greater_than(self.by)

                def rsample(self, sample_shape=()):
                    return self.by + module.rand(self._extended_shape(sample_shape))

                def cdf(self, value):
                    return (value - self.by).clamp(0, 1)

            class Clipped(D.Normal):
                pass

            @D.register_kl(Shifted, D.Distribution)
            def _(p, q):
                return p.by

            module.manual_seed(4)
            d = Shifted(module.tensor([1.0, 2.0]))
            grown = D.TransformedDistribution(d, D.ExpTransform())
            clipped = Clipped(0.0, 1.0).expand((2,))
            return [
                d.sample((2,)),
                grown.sample(),
                grown.cdf(module.tensor([4.0, 9.0])),
                shown(d),
                D.kl_divergence(d, clipped),
                type(clipped).__name__,
                outcome(lambda: Shifted(module.tensor([float("nan")])))[1],
                outcome(lambda: d.expand((3,)))[0],
                clipped.mean,
            ]

        close(run(torch), run(prong))

    def test_squashed_policy_of_the_program(self):
        def step(module):
            module.manual_seed(0)
            D = module.distributions

            class Squash(D.transforms.Transform):
                domain, codomain = D.constraints.real, D.constraints.interval(-1.0, 1.0)
                bijective, sign = True, 1

                def _call(self, x):
                    return x.tanh()

                def _inverse(self, y):
                    return 0.5 * (y.log1p() - (-y).log1p())

                def log_abs_det_jacobian(self, x, y):
                    return 2.0 * (math.log(2.0) - x - module.nn.functional.softplus(-2.0 * x))

            class Policy(D.transformed_distribution.TransformedDistribution):
                def __init__(self, loc, scale):
                    self.loc, self.scale = loc, scale
                    super().__init__(D.Normal(loc, scale), [Squash(cache_size=1)])

                @property
                def mean(self):
                    return self.transforms[0](self.loc)

            loc = module.linspace(-2, 3, 6).reshape(2, 3).requires_grad_()
            policy = Policy(loc, loc.exp())
            action = policy.rsample()
            log_prob = policy.log_prob(action).sum(-1, keepdim=True)
            (log_prob - action.sum(-1, keepdim=True)).mean().backward()
            refused = outcome(lambda: policy.expand((4, 2, 3)))
            return [action, log_prob, loc.grad, policy.mean, *refused]

        close(step(torch), step(prong), rtol=1e-5, atol=1e-5)

    def test_an_exponential_family_of_the_program(self):
        def run(module):
            D = module.distributions

            class Rate(D.ExponentialFamily):
                arg_constraints = {"rate": D.constraints.positive}
                _mean_carrier_measure = 0

                def __init__(self, rate):
                    self.rate = rate
                    super().__init__(rate.shape)

                @property
                def _natural_params(self):
                    return (-self.rate,)

                def _log_normalizer(self, x):
                    return -(-x).log()

            p, q = Rate(module.tensor([1.0, 3.0])), Rate(module.tensor([2.0, 0.5]))
            return [p.entropy(), D.kl_divergence(p, q), D.Exponential(p.rate).entropy()]

        close(run(torch), run(prong), rtol=1e-6, atol=1e-6)

    def test_validation_can_be_turned_off(self):
        D = prong.distributions
        assert D.Normal(0.0, -1.0, validate_args=False).scale.item() == -1
        D.Distribution.set_default_validate_args(False)
        try:
            assert D.Exponential(-1.0).rate.item() == -1
        finally:
            D.Distribution.set_default_validate_args(True)

    def test_modules_of_pytorchs_layout(self):
        from prong import _alias

        with _alias.standing_in():
            import torch.distributions as D
            from torch.distributions import Categorical
            from torch.distributions.normal import Normal
            from torch.distributions.utils import broadcast_all

            assert D.Categorical is Categorical and D.Normal is Normal
            assert Normal.__module__.startswith("prong.")
            assert broadcast_all(1, 2)[0].dtype is prong.float32
            with pytest.raises(AttributeError, match="torch.distributions.Wishart"):
                D.Wishart  # noqa: B018


class TestImplicitGradients:
    """PyTorch's are approximations: against quantiles, differentiated numerically."""

    def test_gamma(self):
        special = pytest.importorskip("scipy.special")
        shape = np.array([0.05, 0.5, 1.0, 2.5, 30.0, 1e4])[:, None]
        chance = np.array([0.05, 0.2, 0.5, 0.9, 0.9999])
        x = special.gammaincinv(shape, chance)
        step = 1e-4 * shape
        expected = (
            special.gammaincinv(shape + step, chance) - special.gammaincinv(shape - step, chance)
        ) / (2 * step)
        a = prong.from_numpy(np.broadcast_to(shape, x.shape).copy())
        got = prong._standard_gamma_grad(a, prong.from_numpy(x)).numpy()
        np.testing.assert_allclose(got, expected, rtol=1e-5)

    def test_dirichlet(self):
        special = pytest.importorskip("scipy.special")
        a, b = np.array([[0.3, 3.0], [3.0, 0.3], [2.0, 2.0], [1.0, 200.0], [50.0, 40.0]]).T[
            ..., None
        ]
        chance = np.array([0.01, 0.2, 0.5, 0.9, 0.95])
        x = special.betaincinv(a, b, chance)
        step = 1e-4 * a
        slope = (
            special.betaincinv(a + step, b, chance) - special.betaincinv(a - step, b, chance)
        ) / (2 * step)
        given = (prong.from_numpy(np.broadcast_to(v, x.shape).copy()) for v in (x, a, a + b))
        got = prong._dirichlet_grad(*given).numpy()
        np.testing.assert_allclose(got, slope / (1 - x), rtol=1e-5)
