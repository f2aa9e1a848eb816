"""Runs PyTorch's samples of one op on both and counts; called by table.py and test_opinfo.py."""

import dataclasses
import functools
import re
import warnings
from pathlib import Path

import prong
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
    "nn.functional.dropout", "bernoulli", "new_empty",
}  # fmt: skip
NAMES = Path(__file__).with_name("names.txt")


def listed_ops() -> list:
    """The OpInfos of the names in names.txt."""
    names = set(NAMES.read_text(encoding="utf-8").split())
    return [op for op in op_db if op.name in names]


# Where a sample's arguments do not stand as the function's.
_AS_SAMPLES_SAY = {
    "T": lambda x: x.T,
    "where": lambda x, condition, other: prong.where(condition, x, other),
    "einsum": lambda operands, equation: prong.einsum(equation, operands),
    "nn.functional.embedding": lambda weight, index, **options: prong.nn.functional.embedding(
        index, weight, **options
    ),
    "nn.functional.embedding_bag": lambda weight, index, **options: (
        prong.nn.functional.embedding_bag(index, weight, **options)
    ),
}
_METHODS = {"bfloat16", "double", "half", "long", "bool", "float", "int"}


def label(op) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def find(name: str):
    """The function or method of Prong with that name; None where there is none."""
    for start in (prong, prong.Tensor):
        try:
            return functools.reduce(getattr, name.split("."), start)
        except AttributeError:
            continue
    return None


def _same_memory(t: torch.Tensor):
    """A tensor of Prong with the strides, offset and gaps of the original."""
    storage = t.untyped_storage().clone()
    whole = torch.empty(0, dtype=t.dtype).set_(
        storage, 0, (storage.nbytes() // max(1, t.element_size()),), (1,)
    )
    memory = prong.from_dlpack(whole)
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


def _inexact(t) -> bool:
    return t.is_floating_point() or t.is_complex()


class OpRun:
    """All checks of one OpInfo."""

    def __init__(self, op, limit: int | None = None):
        self.op, self.limit, self.count = op, limit, Count()
        self.function = self._function(op)
        self.is_random = op.name in RANDOM

    @staticmethod
    def _function(op):
        name = op.name
        if name in _AS_SAMPLES_SAY:
            return _AS_SAMPLES_SAY[name]
        if name in _METHODS:
            return getattr(prong.Tensor, name)
        if name in ("uniform", "fill") or op.variant_test_name == "in_place":
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
                return True, self.op(sample.input, *sample.args, **sample.kwargs)
        except Exception:  # noqa: BLE001 - a sample that PyTorch refuses here
            return False, None

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
            compare(got[0], want, self.is_random)

        if self.count.check(f"forward({text})", forward) and differentiates:
            self._run_gradient(sample, given, want, got[0], text)

    def _run_gradient(self, sample, given, want, got, text):
        flat = [sample.input, list(sample.args), list(sample.kwargs.values())]
        inputs = [t for t in _tensors(flat) if t.requires_grad]
        mine_flat = [given[0], list(given[1]), list(given[2].values())]
        mine = [t for t in _tensors(mine_flat) if t.requires_grad]
        outputs = [t for t in _tensors(want) if t.requires_grad]
        if not inputs or not outputs:
            return
        weights = [self._weight(o) for o in outputs]
        try:
            expected = torch.autograd.grad(outputs, inputs, weights, allow_unused=True)
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
            for g, e in zip(found, expected, strict=True):
                if g is None or e is None:
                    missing = e if g is None else to_torch(g)
                    assert missing is None or not missing.any(), "a gradient is missing"
                else:
                    compare(g, e)

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
        if works:
            self.count.check(
                f"not contiguous({describe(sample)})", lambda: compare(self._call(spread), want)
            )

    def _run_inplace(self, sample):
        variant = self.op.inplace_variant
        name = getattr(variant, "__name__", "")
        if variant is None or not name.endswith("_") or name.startswith("_") or self.is_random:
            return
        if not isinstance(sample.input, torch.Tensor):
            return
        try:
            want = variant(sample.input.clone(), *sample.args, **sample.kwargs)
        except Exception:  # noqa: BLE001 - PyTorch refuses this one in place
            return

        def run():
            x = to_prong(sample.input)
            method = getattr(prong.Tensor, name)
            result = method(x, *to_prong(sample.args), **to_prong(sample.kwargs))
            assert result is x, "the in-place form gives another tensor"
            compare(x, want)

        self.count.check(f"{name}({describe(sample)})", run)

    def _run_out(self, sample):
        if not self.op.supports_out or self.is_random:
            return
        works, want = self._torch_result(sample)
        if not works or not isinstance(want, torch.Tensor):
            return

        def run():
            out = prong.empty(tuple(want.shape), dtype=to_prong(want.dtype))
            kwargs = {**to_prong(sample.kwargs), "out": out}
            result = self.function(to_prong(sample.input), *to_prong(sample.args), **kwargs)
            assert result is out, "out= gives another tensor"
            compare(out, want)

        self.count.check(f"out=({describe(sample)})", run)
