"""Every op of the registry, every facet, every sample. What an op must have: test_complete.py."""

import math

import numpy as np
import prong
import pytest
from prong import _core
from samples import bind, call_of, convert, not_contiguous, to_numpy

try:
    import scipy
    import scipy.special  # noqa: F401
except ImportError:  # only a few references need it
    scipy = None

OPS = [op for op in _core.ops() if op["samples"]]


def facet(applies, to_sample=lambda op, sample: True):
    """A test of each op for which `applies` holds: check(op, sample) on its samples.

    `to_sample` leaves out samples that the check says nothing of, and ops that have no others.
    One test an op, not a sample: pytest's own cost would be most of the time. All samples run; the
    first error is raised, with notes on the sample and on the others that failed.
    """

    def decorate(check):
        chosen = [(op, [s for s in op["samples"] if to_sample(op, s)]) for op in OPS if applies(op)]

        @pytest.mark.parametrize(
            ("op", "samples"), [pytest.param(*c, id=c[0]["name"]) for c in chosen if c[1]]
        )
        def test(op, samples):
            errors = []
            for sample in samples:
                try:
                    check(op, sample)
                except Exception as error:
                    error.add_note(f"sample: {op['name']}({sample})")
                    errors.append(error)
            for error in errors[1:]:
                errors[0].add_note(f"also: {error.__notes__[-1]}: {type(error).__name__}: {error}")
            if errors:
                raise errors[0]

        test.__doc__ = check.__doc__
        return test

    return decorate


def every_op(op):
    return True


def is_uninitialised(op) -> bool:
    return op["base_name"] in ("empty", "empty_like", "new_empty", "empty_strided", "resize_")


def has_values(op) -> bool:
    """Two calls give the same numbers."""
    return not op["random"] and not is_uninitialised(op) and op["family"] != "host"


# Relative and absolute, by dtype: what separates two right ways to compute the same sum.
TOLERANCE = {
    prong.float16: (2e-3, 2e-3),
    prong.bfloat16: (2e-2, 2e-2),
    prong.float32: (2e-5, 2e-5),
    prong.float64: (1e-9, 1e-9),
    prong.complex64: (2e-5, 2e-5),
    prong.complex128: (1e-9, 1e-9),
}


def flat(result) -> list:
    """The leaves of a result."""
    if isinstance(result, (list, tuple)) and not isinstance(result, prong.Size):
        return [leaf for item in result for leaf in flat(item)]
    return [result]


def assert_same(got, want, exact=False):
    """Two results of Prong agree."""
    got, want = flat(got), flat(want)
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        if not isinstance(w, prong.Tensor):
            assert (
                g == w
                or (isinstance(w, float) and math.isclose(g, w, rel_tol=1e-5))
                or (g != g and w != w)
            )
            continue
        assert g.shape == w.shape and g.dtype is w.dtype
        assert_numbers(
            to_numpy(g), to_numpy(w), (0, 0) if exact else TOLERANCE.get(w.dtype, (0, 0))
        )


def assert_numbers(got, want, tolerance):
    want = np.asarray(want)
    assert np.shape(got) == want.shape, f"shape {np.shape(got)}, not {want.shape}"
    if want.dtype.kind in "fc":
        wide = np.complex128 if want.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(np.asarray(got, wide), np.asarray(want, wide), *tolerance)
    else:
        np.testing.assert_array_equal(got, want)


def run(op, args, kwargs):
    return _core.call_op(op["name"], *args, **kwargs)


@facet(every_op)
def test_runs_and_prints(op, sample):
    args, kwargs = call_of(op, sample)
    result = run(op, args, kwargs)
    for leaf in flat(result):
        repr(leaf)
    if op["mutates"] >= 0 and not op["mutates_lists"]:
        assert result is list(bind(op, args, kwargs).values())[op["mutates"]]


CAPTURED = prong.compile(run, backend="interpreter")


@facet(has_values)
def test_captured(op, sample):
    """In a compiled function, put off and replayed, the op gives what it gives at once."""
    prong.manual_seed(0)
    want = run(op, *call_of(op, sample))
    for _ in range(2):
        prong.manual_seed(0)
        got = CAPTURED(op, *call_of(op, sample))
        assert_same(got, want, exact=True)
        for g, w in zip(flat(got), flat(want), strict=True):
            if isinstance(w, prong.Tensor):
                assert g.stride() == w.stride()


@facet(every_op)
def test_schema_types_hold(op, sample):
    args, kwargs = call_of(op, sample)
    result = run(op, args, kwargs)
    results = result if len(op["results"]) > 1 else [result]
    assert len(results) == len(op["results"])
    python = {
        "Tensor": prong.Tensor,
        "int": int,
        "float": float,
        "bool": bool,
        "number": (int, float, bool, complex),
        "str": str,
        "dtype": prong.dtype,
    }
    for value, type_text in zip(results, op["results"], strict=True):
        if type_text.startswith("List["):
            assert isinstance(value, (list, tuple))
            inner = type_text.removeprefix("List[").removesuffix("]")
            assert all(isinstance(v, python[inner]) for v in value)
        elif type_text in python:
            assert isinstance(value, python[type_text]), f"{type(value)} is not {type_text}"


@facet(lambda op: op["has_shape"] and not op["dynamic_shape"] and op["family"] != "host")
def test_shape_rule(op, sample):
    args, kwargs = call_of(op, sample)
    said = _core.op_shape(op["name"], *args, **kwargs)
    result = run(op, args, kwargs)

    def compare(said, got):
        if isinstance(got, prong.Tensor):
            sizes, dtype = said
            assert tuple(sizes) == tuple(got.shape) and dtype is got.dtype, (
                f"{said} but {got.shape} {got.dtype}"
            )
        elif isinstance(got, (list, tuple)):
            assert len(said) == len(got)
            for s, g in zip(said, got, strict=True):
                compare(s, g)
        else:
            assert said == got or (said != said and got != got)

    compare(said, result)


def has_reference(op) -> bool:
    return op["reference"] and not op["random"] and (scipy or "scipy" not in op["reference"])


@facet(has_reference)
def test_numpy_reference(op, sample):
    args, kwargs = call_of(op, sample)
    named = {name: to_numpy(value) for name, value in bind(op, args, kwargs).items()}
    named = {
        name: (v.copy() if isinstance(v, np.ndarray) and op["mutates"] >= 0 else v)
        for name, v in named.items()
    }
    with np.errstate(all="ignore"):
        want = eval(op["reference"], {"np": np, "math": math, "scipy": scipy, **named})
    got = run(op, args, kwargs)
    if isinstance(want, np.ndarray) and isinstance(got, list):
        want = list(want)
    got, want = (
        flat(got),
        (list(want) if isinstance(want, (tuple, list)) and len(flat(got)) > 1 else [want]),
    )
    if len(want) == 1 and isinstance(want[0], (list, tuple)):
        want = list(want[0])
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        tolerance = TOLERANCE.get(g.dtype, (0, 0)) if isinstance(g, prong.Tensor) else (1e-5, 1e-6)
        assert_numbers(to_numpy(g), w, tolerance)


@facet(lambda op: has_values(op) and not op["base_name"].startswith("as_strided"))
def test_not_contiguous_inputs(op, sample):
    args, kwargs = call_of(op, sample)
    strided_args, strided_kwargs = convert(args, not_contiguous), convert(kwargs, not_contiguous)
    want = run(op, args, kwargs)
    try:
        got = run(op, strided_args, strided_kwargs)
    except RuntimeError as error:
        if op["base_name"].startswith("view") and ("view" in str(error) or "strid" in str(error)):
            return  # said as it should: a view of this memory does not exist
        raise
    assert_same(got, want)


def functional(op):
    """What a user calls, or None: prong.name, Tensor.name, or the nn.functional one."""
    name = op["base_name"]
    module, _, rest = name.partition("_")
    if module in _core.op_modules and rest:
        return _core.op_modules[module][rest]
    if op["spelling"]["function"]:
        return _core.functions[name]
    if op["spelling"]["nn_functional"]:
        return _core.nn_functional[name]
    if op["spelling"]["method"]:
        return getattr(prong.Tensor, name)
    return None


@facet(lambda op: has_values(op) and op["mutates"] < 0 and functional(op))
def test_python_spelling(op, sample):
    """The public function picks this overload, or one that gives the same."""
    call = functional(op)
    args, kwargs = call_of(op, sample)
    assert_same(call(*args, **kwargs), run(op, args, kwargs), exact=True)


def takes_out(op) -> bool:
    return (
        has_values(op)
        and op["mutates"] < 0
        and op["family"] != "view"
        and op["spelling"]["function"]
        and all(t == "Tensor" for t in op["results"])
    )


@facet(takes_out)
def test_out(op, sample):
    args, kwargs = call_of(op, sample)
    want = run(op, args, kwargs)
    out = convert(
        tuple(want) if isinstance(want, tuple) else want, lambda t: prong.empty(0, dtype=t.dtype)
    )
    got = functional(op)(*args, **kwargs, out=out)
    if isinstance(out, tuple):  # the same tensors, under the names of the results
        assert isinstance(got, tuple) and [id(t) for t in got] == [id(t) for t in out]
    else:
        assert got is out
    assert_same(out, want, exact=True)


def inplace_form(op):
    name = op["base_name"] + "_"
    if op["spelling"]["method"]:
        return getattr(prong.Tensor, name)
    return (_core.nn_functional if op["spelling"]["nn_functional"] else _core.functions)[name]


def begins_with_tensor(op, sample) -> bool:
    args, _ = call_of(op, sample)
    return bool(args) and isinstance(args[0], prong.Tensor)


@facet(lambda op: op["spelling"]["inplace"], begins_with_tensor)
def test_inplace_form(op, sample):
    args, kwargs = call_of(op, sample)
    want = run(op, args, kwargs)
    if want.shape != args[0].shape or not prong.can_cast(want.dtype, args[0].dtype):
        with pytest.raises(RuntimeError):
            inplace_form(op)(args[0].clone(), *args[1:], **kwargs)
        return
    target = args[0].clone()
    version = target._version
    assert inplace_form(op)(target, *args[1:], **kwargs) is target
    assert target._version > version
    if op["random"]:
        return
    assert_same(target, want.to(target.dtype))
    view = not_contiguous(args[0])
    inplace_form(op)(view, *args[1:], **kwargs)
    assert_same(view, want.to(target.dtype))


@facet(
    lambda op: op["mutates"] < 0 and op["base_name"] != "batch_norm"  # writes its statistics
)
def test_arguments_are_left_alone(op, sample):
    args, kwargs = call_of(op, sample)
    before = convert((args, kwargs), lambda t: t.clone())
    run(op, args, kwargs)
    assert_same(
        [v for v in flat(list(args)) if isinstance(v, prong.Tensor)],
        [v for v in flat(list(before[0])) if isinstance(v, prong.Tensor)],
        exact=True,
    )


@facet(lambda op: op["has_cost"])
def test_cost(op, sample):
    args, kwargs = call_of(op, sample)
    flops, nbytes = _core.op_cost(op["name"], *args, **kwargs)
    assert flops >= 0 and nbytes >= 0 and math.isfinite(flops + nbytes)


def torch_function(torch, op):
    """PyTorch's counterpart of what the op's spelling says, or None."""
    name, where = op["base_name"], op["spelling"]
    module, _, rest = name.partition("_")
    if module in _core.op_modules and rest:
        return getattr(getattr(torch, module), rest)
    if where["nn_functional"] and hasattr(torch.nn.functional, name):
        return getattr(torch.nn.functional, name)
    if where["property"]:
        return lambda tensor: getattr(tensor, name)
    if where["function"] and hasattr(torch, name):
        return getattr(torch, name)
    if where["method"] and hasattr(torch.Tensor, name):
        return getattr(torch.Tensor, name)
    return None


def call_torch(torch, call, op, args, kwargs, given=lambda tensor: tensor):
    """The same call on PyTorch: as the sample writes it or, for nn.functional, by keywords, since
    there the old arguments size_average and reduce stand between. given(tensor) may say which
    tensor of PyTorch stands for one of ours."""

    def to_torch(tensor):
        if given(tensor) is not tensor:
            return given(tensor)
        made = torch.from_numpy(to_numpy(tensor).copy())
        return made.to(torch.bfloat16) if tensor.dtype is prong.bfloat16 else made

    def translate(value):
        if isinstance(value, prong.dtype):
            return getattr(torch, repr(value).removeprefix("torch."))
        if isinstance(value, prong.device):
            return torch.device(str(value))
        return convert(value, to_torch)

    named = {name: translate(value) for name, value in bind(op, args, kwargs).items()}
    if op["spelling"]["nn_functional"]:
        try:
            return call(**named)
        except TypeError:  # PyTorch calls an argument otherwise there
            pass
    try:
        return call(*map(translate, args), **{k: translate(v) for k, v in kwargs.items()})
    except TypeError:
        if any(isinstance(v, (list, tuple)) for v in named.values()):
            raise
        return call(*named.values())


# Vectors that are only known up to a factor of size 1.
FREE_FACTORS = ("svd", "linalg_svd", "linalg_eigh", "linalg_eig")

# PyTorch's are approximations, good to three digits; tests/parity/test_distributions.py has the exact ones.
ROUGH = {"_standard_gamma_grad": (2e-3, 1e-6), "_dirichlet_grad": (2e-3, 1e-6)}


# Samples that PyTorch refuses: it takes no numbers here.
REFUSED_BY_PYTORCH = {("gcd", "t(4, dtype=int32), 6"), ("lcm", "t(4, dtype=int32), 6")}


@pytest.mark.needs_torch
@facet(
    lambda op: has_values(op) and op["base_name"] not in FREE_FACTORS,
    lambda op, sample: (op["name"], sample) not in REFUSED_BY_PYTORCH,
)
def test_agrees_with_pytorch(op, sample):
    torch = pytest.importorskip("torch")
    call = torch_function(torch, op)
    if call is None:  # what indexing, autograd and optimizers are made of in Prong
        is_internal = op["base_name"] in ("index", "slice", "alias", "_total_norm")
        assert is_internal or op["mutates_lists"] or functional(op) is None
        return
    args, kwargs = call_of(op, sample)

    want = call_torch(torch, call, op, args, kwargs)
    got = flat(run(op, args, kwargs))
    want = [w for w in flat(want)]
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        if not isinstance(w, torch.Tensor):
            assert g == w
            continue
        assert repr(g.dtype) == repr(w.dtype)
        w = w.detach().resolve_conj()
        assert_numbers(
            to_numpy(g),
            (w.float() if w.dtype is torch.bfloat16 else w).numpy(),
            ROUGH.get(op["base_name"], TOLERANCE.get(g.dtype, (0, 0))),
        )
