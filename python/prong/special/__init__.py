"""torch.special: functions of mathematics, as ops."""

from prong import _core, _names
from prong.compositions.statistics import mvlgamma as multigammaln

# Names of torch.special that are ops of prong under another name or the same.
_SAME = {
    "digamma": "digamma",
    "erf": "erf",
    "erfc": "erfc",
    "erfinv": "erfinv",
    "exp2": "exp2",
    "expit": "sigmoid",
    "expm1": "expm1",
    "gammaln": "lgamma",
    "log1p": "log1p",
    "log_softmax": "log_softmax",
    "logit": "logit",
    "logsumexp": "logsumexp",
    "psi": "digamma",
    "round": "round",
    "sinc": "sinc",
    "softmax": "softmax",
    "xlogy": "xlogy",
}

globals().update(_core.op_modules.get("special", {}))
globals().update({name: _core.functions[op] for name, op in _SAME.items()})

__all__ = sorted({"multigammaln", *_SAME, *_core.op_modules.get("special", {})})

__getattr__ = _names.module_getattr(__name__)
