"""Runs PyTorch's samples of one op on both and counts; called by table.py and test_opinfo.py."""

import dataclasses
import functools
import re
import warnings
from pathlib import Path

import prong
import right_answers
import torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_methods_invocations import op_db

DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
]
# Relative and absolute: what separates two right ways to compute the same thing.
TOLERANCE = {
    torch.float16: (4e-3, 4e-3),
    torch.bfloat16: (3e-2, 3e-2),
    torch.float32: (2e-5, 2e-5),
    torch.float64: (1e-7, 1e-7),
    torch.complex64: (5e-5, 5e-5),
    torch.complex128: (1e-7, 1e-7),
}
RANDOM = {
    "normal", "randn", "randn_like", "randint", "uniform", "multinomial", "empty", "empty_like",
    "nn.functional.dropout", "bernoulli", "new_empty", "rand_like", "randint_like",
    "cauchy", "exponential", "geometric", "log_normal",
    "new_empty_strided", "empty_strided", "empty_permuted", "nn.functional.dropout2d",
    "nn.functional.dropout3d", "nn.functional.alpha_dropout", "nn.functional.rrelu",
    "nn.functional.feature_alpha_dropout", "nn.functional.multi_head_attention_forward",
}  # fmt: skip
NAMES = Path(__file__).with_name("names.txt")


def listed_ops() -> list:
    """The OpInfos of the names in names.txt."""
    names = set(NAMES.read_text(encoding="utf-8").split())
    return [op for op in op_db if op.name in names]


# Where a sample's arguments do not stand as the function's.
_AS_SAMPLES_SAY = {
    "T": lambda x: x.T,
    "H": lambda x: x.H,
    "mT": lambda x: x.mT,
    "mH": lambda x: x.mH,
    "polygamma": lambda x, n, **options: prong.polygamma(n, x, **options),
    "zero_": lambda x: x.clone().zero_(),
    "resize_": lambda x, size: x.clone().resize_(size),
    "resize_as_": lambda x, other: x.clone().resize_as_(other),
    "where": lambda x, condition, other, **options: prong.where(condition, x, other, **options),
    "linalg.pinv.singular": lambda a, b, **options: prong.linalg.pinv(a @ b.mT, **options),
    "einsum": lambda operands, equation: prong.einsum(equation, operands),
    "nn.functional.embedding": lambda weight, index, **options: prong.nn.functional.embedding(
        index, weight, **options
    ),
    "nn.functional.embedding_bag": lambda weight, index, **options: (
        prong.nn.functional.embedding_bag(index, weight, **options)
    ),
}
_INPLACE_ONLY = {"cauchy", "exponential", "fill", "geometric", "log_normal", "uniform"}
_METHODS = {"bfloat16", "double", "half", "long", "bool", "float", "int"}


def label(op) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def find(name: str):
    """The function or method of Prong with that name; None where there is none."""
    for start in (prong, prong.Tensor):
        try:
            found = functools.reduce(getattr, name.split("."), start)
        except AttributeError:
            continue
        if callable(found):  # not the dtype of that name
            return found
    return None


def _copied(t: torch.Tensor) -> torch.Tensor:
    """A copy with the strides, offset and gaps of the original."""
    storage = t.untyped_storage().clone()
    return torch.empty(0, dtype=t.dtype).set_(storage, t.storage_offset(), t.shape, t.stride())


def _same_memory(t: torch.Tensor):
    """A tensor of Prong with the strides, offset and gaps of the original."""
    storage = t.untyped_storage().clone()
    whole = torch.empty(0, dtype=t.dtype).set_(
        storage, 0, (storage.nbytes() // max(1, t.element_size()),), (1,)
    )
    memory = prong.from_dlpack(whole).clone()  # that it can be resized
    return prong.Tensor._on_storage(
        memory, t.storage_offset(), tuple(t.shape), t.stride(), memory.dtype
    )


def to_prong(value):
    """PyTorch's tensors, dtypes and the like as Prong's."""
    if isinstance(value, torch.Tensor):
        made = _same_memory(value.detach().resolve_conj().resolve_neg())
        return made.requires_grad_() if value.requires_grad else made
    if isinstance(value, (torch.dtype, torch.memory_format, torch.layout)):
        return getattr(prong, str(value).removeprefix("torch."))
    if isinstance(value, torch.device):
        return prong.device(str(value))
    if isinstance(value, torch.Size):
        return prong.Size(value)
    if isinstance(value, (list, tuple)):
        items = [to_prong(item) for item in value]
        return type(value)(items) if type(value) in (list, tuple) else tuple(items)
    if isinstance(value, dict):
        return {key: to_prong(item) for key, item in value.items()}
    return value


def to_torch(value):
    if isinstance(value, prong.Tensor):
        return torch.from_dlpack(value.detach().clone())
    if isinstance(value, prong.dtype):
        return getattr(torch, repr(value).removeprefix("torch."))
    if isinstance(value, (list, tuple)):
        return [to_torch(item) for item in value]
    return value


def leaves(value) -> list:
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return [leaf for item in value for leaf in leaves(item)]
    return [value]


def compare(got, want, is_random=False) -> None:
    """Raises where the two results differ."""
    got, want = leaves(to_torch(got)), leaves(want)
    assert len(got) == len(want), f"{len(got)} results, not {len(want)}"
    for g, w in zip(got, want, strict=True):
        if not isinstance(w, torch.Tensor):
            assert g == w or g != g or is_random or abs(g - w) <= 1e-4 * abs(w), f"{g} is not {w}"
            continue
        assert isinstance(g, torch.Tensor), f"{type(g).__name__}, not a tensor"
        assert g.dtype == w.dtype, f"{g.dtype}, not {w.dtype}"
        assert g.shape == w.shape, f"shape {tuple(g.shape)}, not {tuple(w.shape)}"
        if not is_random:
            rtol, atol = TOLERANCE.get(w.dtype, (0, 0))
            torch.testing.assert_close(
                g, w.detach().resolve_conj().resolve_neg(), rtol=rtol, atol=atol, equal_nan=True
            )


@dataclasses.dataclass
class Count:
    """What came of one op; failures by check."""

    passed: int = 0
    total: int = 0
    failures: list = dataclasses.field(default_factory=list)

    def check(self, what: str, run) -> bool:
        self.total += 1
        try:
            run()
        except Exception as error:  # noqa: BLE001
            text = re.sub(r"\s+", " ", f"{type(error).__name__}: {error}")
            self.failures.append(f"{what}: {text[:220]}")
            return False
        self.passed += 1
        return True


def describe(sample) -> str:
    def one(v):
        if isinstance(v, torch.Tensor):
            return f"{str(v.dtype).removeprefix('torch.')}{list(v.shape)}"
        if isinstance(v, (list, tuple)):
            return "[" + ", ".join(one(i) for i in v) + "]"
        return repr(v)

    parts = [one(sample.input), *map(one, sample.args)]
    return ", ".join(parts + [f"{k}={one(v)}" for k, v in sample.kwargs.items()])


def _tensors(value) -> list:
    return [leaf for leaf in leaves(value) if isinstance(leaf, (torch.Tensor, prong.Tensor))]


def _given(sample) -> list:
    return [sample.input, list(sample.args), list(sample.kwargs.values())]


class OpRun:
    """All checks of one OpInfo."""

    def __init__(self, op, limit: int | None = None):
        self.op, self.limit, self.count = op, limit, Count()
        self.function = self._function(op)
        self.is_random = op.name in RANDOM

    @staticmethod
    def _function(op):
        name = op.name
        if (said := _AS_SAMPLES_SAY.get(label(op), _AS_SAMPLES_SAY.get(name))) is not None:
            return said
        if name in _METHODS:
            return getattr(prong.Tensor, name)
        if name in _INPLACE_ONLY or op.variant_test_name == "in_place":
            method = getattr(prong.Tensor, f"{name}_")
            return lambda x, *args, **kwargs: method(x.clone(), *args, **kwargs)
        return find(name)

    def run(self) -> Count:
        if self.function is None:
            self.count.check("missing", self._raise_missing)
            return self.count
        for dtype in DTYPES:
            if self.op.supports_dtype(dtype, "cpu"):
                self._run_dtype(dtype)
        return self.count

    def _raise_missing(self):
        raise AttributeError(f"prong has no {self.op.name}")

    def _samples(self, dtype, requires_grad):
        torch.manual_seed(0)
        try:
            samples = list(self.op.sample_inputs("cpu", dtype, requires_grad=requires_grad))
        except Exception:  # noqa: BLE001 - PyTorch's own samples fail here and there
            return []
        return samples[: self.limit]

    def _run_dtype(self, dtype):
        differentiates = (
            self.op.supports_autograd
            and dtype in (torch.float32, torch.float64, torch.complex128)
            and self.op.supports_dtype(dtype, "cpu")
            and not self.is_random
        )
        for sample in self._samples(dtype, differentiates):
            self._run_sample(sample, dtype, differentiates)
        for sample in self._samples(dtype, False)[:6]:
            self._run_not_contiguous(sample)
            self._run_inplace(sample)
            self._run_out(sample)

    def _torch_result(self, sample):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                args = right_answers.of_one_triangle(self.op.name, sample)
                return True, self.op(*args, **sample.kwargs)
        except Exception:  # noqa: BLE001 - a sample that PyTorch refuses here
            return False, None

    def _compare(self, sample, got, want):
        """Raises where the result is neither PyTorch's nor another right one."""
        try:
            compare(got, want, self.is_random)
        except AssertionError:
            got, want = leaves(to_torch(got)), leaves(want)
            if check := right_answers.SPECIFIED.get(self.op.name):
                check(self.op.name, sample, got, want)
                return
            if not all(isinstance(t, torch.Tensor) and t.dtype in right_answers.WIDE for t in want):
                raise
            works, exact = self._torch_result(right_answers.widened(sample))
            if not works:
                raise
            right_answers.as_near_as_pytorch(got, want, leaves(exact), TOLERANCE)

    def _call(self, sample, given=None):
        args = given or (to_prong(sample.input), to_prong(sample.args), to_prong(sample.kwargs))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.function(args[0], *args[1], **args[2])

    def _run_sample(self, sample, dtype, differentiates):
        works, want = self._torch_result(sample)
        if not works:
            return
        text = describe(sample)
        given = (to_prong(sample.input), to_prong(sample.args), to_prong(sample.kwargs))
        got = []

        def forward():
            got.append(self._call(sample, given))
            self._compare(sample, got[0], want)

        if self._is_attention_with_dropout(sample):
            self.count.check(f"forward({text})", lambda: self._check_dropout(sample))
            return
        if self.count.check(f"forward({text})", forward) and differentiates:
            self._run_gradient(sample, given, want, got[0], text)

    def _is_attention_with_dropout(self, sample) -> bool:
        is_attention = self.op.name == "nn.functional.scaled_dot_product_attention"
        return is_attention and sample.kwargs.get("dropout_p", 0) > 0

    def _check_dropout(self, sample):
        def run(*args, **kwargs):
            return to_torch(self.function(*to_prong(args), **to_prong(kwargs)))

        right_answers.check_attention_dropout(run, self.op.op, sample)

    @staticmethod
    def _torch_gradients(outputs, inputs):
        weights = [OpRun._weight(o) for o in outputs]
        return torch.autograd.grad(outputs, inputs, weights, allow_unused=True)

    def _exact_gradients(self, sample):
        """PyTorch's in 64 bits."""
        wide = right_answers.widened(sample)
        inputs = [t for t in _tensors(_given(wide)) if t.requires_grad]
        result = right_answers.without_phase(self.op.name, self._torch_result(wide)[1])
        return self._torch_gradients([t for t in _tensors(result) if t.requires_grad], inputs)

    def _run_gradient(self, sample, given, want, got, text):
        want = right_answers.without_phase(self.op.name, want)
        got = right_answers.without_phase(self.op.name, got)
        inputs = [t for t in _tensors(_given(sample)) if t.requires_grad]
        mine_flat = [given[0], list(given[1]), list(given[2].values())]
        mine = [t for t in _tensors(mine_flat) if t.requires_grad]
        outputs = [t for t in _tensors(want) if t.requires_grad]
        if not inputs or not outputs:
            return
        weights = [self._weight(o) for o in outputs]
        try:
            expected = self._torch_gradients(outputs, inputs)
        except Exception:  # noqa: BLE001
            return

        def gradient():
            roots = [t for t in _tensors(got) if t.requires_grad]
            assert len(roots) == len(outputs), (
                f"{len(roots)} results require grad, not {len(outputs)}"
            )
            found = prong.autograd.grad(
                roots, mine, [to_prong(w) for w in weights], allow_unused=True
            )
            for i, (g, e) in enumerate(zip(found, expected, strict=True)):
                if g is None or e is None:
                    missing = e if g is None else to_torch(g)
                    assert missing is None or not missing.any(), "a gradient is missing"
                    continue
                try:
                    compare(g, e)
                except AssertionError:
                    if e.dtype not in right_answers.WIDE:
                        raise
                    exact = self._exact_gradients(sample)[i]
                    right_answers.as_near_as_pytorch([to_torch(g)], [e], [exact], TOLERANCE)

        self.count.check(f"gradient({text})", gradient)

    @staticmethod
    def _weight(t):
        n = max(1, t.numel())
        made = torch.linspace(0.5, 1.5, n, dtype=torch.float64)[: t.numel()].reshape(t.shape)
        return made.to(t.dtype)

    def _run_not_contiguous(self, sample):
        if self.is_random:
            return
        try:
            spread = sample.noncontiguous()
        except Exception:  # noqa: BLE001
            return
        works, want = self._torch_result(spread)
        if not works:
            return

        def run():
            if self._is_attention_with_dropout(spread):
                self._check_dropout(spread)
            else:
                self._compare(spread, self._call(spread), want)

        self.count.check(f"not contiguous({describe(sample)})", run)

    def _run_inplace(self, sample):
        variant = self.op.inplace_variant
        name = getattr(variant, "__name__", "")
        if variant is None or not name.endswith("_") or name.startswith("_") or self.is_random:
            return
        if not isinstance(sample.input, torch.Tensor):
            return
        try:
            want = variant(_copied(sample.input), *sample.args, **sample.kwargs)
        except Exception:  # noqa: BLE001 - PyTorch refuses this one in place
            return

        def run():
            x = to_prong(sample.input)
            method = getattr(prong.Tensor, name)
            result = method(x, *to_prong(sample.args), **to_prong(sample.kwargs))
            assert result is x, "the in-place form gives another tensor"
            self._compare(sample, x, want)

        self.count.check(f"{name}({describe(sample)})", run)

    def _run_out(self, sample):
        if not self.op.supports_out or self.is_random:
            return
        works, want = self._torch_result(sample)
        if not works or not all(isinstance(t, torch.Tensor) for t in leaves(want)):
            return

        def run():
            targets = [prong.empty(tuple(t.shape), dtype=to_prong(t.dtype)) for t in leaves(want)]
            out = targets[0] if isinstance(want, torch.Tensor) else tuple(targets)
            kwargs = {**to_prong(sample.kwargs), "out": out}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = self.function(to_prong(sample.input), *to_prong(sample.args), **kwargs)
            if isinstance(want, torch.Tensor):
                assert result is out, "out= gives another tensor"
            for made, target in zip(leaves(result), targets, strict=True):
                assert made is target, "out= gives another tensor"
            self._compare(sample, out, want)

        self.count.check(f"out=({describe(sample)})", run)
