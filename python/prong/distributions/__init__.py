"""torch.distributions: samples, densities and divergences; loaded when a program first asks for it."""

import sys
import types

from prong import _names
from prong.distributions import (
    combined,
    constraint_registry,
    constraints,
    continuous,
    discrete,
    distribution,
    kl,
    transformed,
    transforms,
    vectors,
)
from prong.distributions.combined import Independent, MixtureSameFamily, TransformedDistribution
from prong.distributions.constraint_registry import biject_to, transform_to
from prong.distributions.continuous import (
    Cauchy,
    Chi2,
    Exponential,
    FisherSnedecor,
    Gamma,
    Laplace,
    Normal,
    StudentT,
    Uniform,
)
from prong.distributions.discrete import (
    Bernoulli,
    Binomial,
    Categorical,
    Geometric,
    Multinomial,
    NegativeBinomial,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
    Poisson,
)
from prong.distributions.distribution import Distribution, ExponentialFamily
from prong.distributions.kl import kl_divergence, register_kl
from prong.distributions.transformed import (
    Gumbel,
    HalfCauchy,
    HalfNormal,
    InverseGamma,
    Kumaraswamy,
    LogisticNormal,
    LogNormal,
    Pareto,
    RelaxedBernoulli,
    RelaxedOneHotCategorical,
    Weibull,
)
from prong.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StackTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    identity_transform,
)
from prong.distributions.vectors import Beta, Dirichlet, MultivariateNormal

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "Bernoulli",
    "Beta",
    "Binomial",
    "CatTransform",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "Dirichlet",
    "Distribution",
    "ExpTransform",
    "Exponential",
    "ExponentialFamily",
    "FisherSnedecor",
    "Gamma",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "IndependentTransform",
    "InverseGamma",
    "Kumaraswamy",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "LowerCholeskyTransform",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "StudentT",
    "TanhTransform",
    "Transform",
    "TransformedDistribution",
    "Uniform",
    "Weibull",
    "biject_to",
    "constraint_registry",
    "constraints",
    "distribution",
    "identity_transform",
    "kl",
    "kl_divergence",
    "register_kl",
    "transform_to",
    "transforms",
]

# PyTorch's modules of one class each (torch.distributions.normal.Normal), made of what is here.
_PLACES: dict[str, list[type]] = {
    "bernoulli": [Bernoulli],
    "beta": [Beta],
    "binomial": [Binomial],
    "categorical": [Categorical],
    "cauchy": [Cauchy],
    "chi2": [Chi2],
    "dirichlet": [Dirichlet],
    "exp_family": [ExponentialFamily],
    "exponential": [Exponential],
    "fishersnedecor": [FisherSnedecor],
    "gamma": [Gamma],
    "geometric": [Geometric],
    "gumbel": [Gumbel],
    "half_cauchy": [HalfCauchy],
    "half_normal": [HalfNormal],
    "independent": [Independent],
    "inverse_gamma": [InverseGamma],
    "kumaraswamy": [Kumaraswamy],
    "laplace": [Laplace],
    "log_normal": [LogNormal],
    "logistic_normal": [LogisticNormal],
    "mixture_same_family": [MixtureSameFamily],
    "multinomial": [Multinomial],
    "multivariate_normal": [MultivariateNormal],
    "negative_binomial": [NegativeBinomial],
    "normal": [Normal],
    "one_hot_categorical": [OneHotCategorical, OneHotCategoricalStraightThrough],
    "pareto": [Pareto],
    "poisson": [Poisson],
    "relaxed_bernoulli": [transformed.LogitRelaxedBernoulli, RelaxedBernoulli],
    "relaxed_categorical": [transformed.ExpRelaxedCategorical, RelaxedOneHotCategorical],
    "studentT": [StudentT],
    "transformed_distribution": [TransformedDistribution],
    "uniform": [Uniform],
    "weibull": [Weibull],
}
_SHARED_FUNCTIONS = {
    "broadcast_all": distribution.broadcast_all,
    "clamp_probs": distribution.clamp_probs,
    "lazy_property": distribution.lazy_property,
    "logits_to_probs": distribution.as_chances,
    "probs_to_logits": distribution.as_logits,
}


def _place(name, contents):
    module = types.ModuleType(f"{__name__}.{name}", "A module of PyTorch's layout.")
    module.__dict__.update(contents, __getattr__=_names.module_getattr(module.__name__))
    sys.modules[module.__name__] = globals()[name] = module


for _name, _classes in _PLACES.items():
    _place(_name, {c.__name__: c for c in _classes})
_place("utils", _SHARED_FUNCTIONS)

__getattr__ = _names.module_getattr(__name__)
