"""torch.testing: comparing tensors in tests, and making them."""

import numbers

import numpy as np

import prong
from prong import _core, _names

_TOLERANCES = {
    _core.float16: (1e-3, 1e-5),
    _core.bfloat16: (1.6e-2, 1e-5),
    _core.float32: (1.3e-6, 1e-5),
    _core.float64: (1e-7, 1e-7),
}


def assert_close(
    actual,
    expected,
    *,
    allow_subclasses=True,
    rtol=None,
    atol=None,
    equal_nan=False,
    check_device=True,
    check_dtype=True,
    check_layout=True,
    check_stride=False,
    msg=None,
):
    """Raises AssertionError unless |actual - expected| <= atol + rtol |expected| everywhere."""
    if (rtol is None) != (atol is None):
        raise ValueError("Either both 'rtol' and 'atol' are specified or neither is")
    options = {
        "rtol": rtol,
        "atol": atol,
        "equal_nan": equal_nan,
        "check_dtype": check_dtype,
        "check_stride": check_stride,
        "msg": msg,
    }
    _compare(actual, expected, "", options)


def _fail(text: str, path: str, options) -> None:
    text = f"{text}\n\nThe failure occurred for item {path}" if path else text
    message = options["msg"]
    raise AssertionError(message(text) if callable(message) else message or text)


def _compare(actual, expected, path, options):
    if isinstance(actual, dict) and isinstance(expected, dict):
        if actual.keys() != expected.keys():
            _fail(
                f"The keys of the mappings do not match: {sorted(actual)} and {sorted(expected)}",
                path,
                options,
            )
        for key in actual:
            _compare(actual[key], expected[key], f"{path}[{key!r}]", options)
    elif _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            _fail(
                f"The length of the sequences mismatch: {len(actual)} != {len(expected)}",
                path,
                options,
            )
        for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
            _compare(a, e, f"{path}[{i}]", options)
    elif actual is None and expected is None:
        return
    else:
        is_scalar = isinstance(actual, numbers.Number) and isinstance(expected, numbers.Number)
        _compare_tensors(_as_tensor(actual), _as_tensor(expected), is_scalar, path, options)


def _is_sequence(value) -> bool:
    return isinstance(value, (list, tuple))


def _as_tensor(value):
    if isinstance(value, _core.Tensor):
        return value.detach()
    if isinstance(value, (str, bytes)) or value is None:
        raise TypeError(f"No comparison pair was able to handle inputs of type {type(value)}")
    return prong.as_tensor(value, dtype=_core.float64 if isinstance(value, float) else None)


def _compare_tensors(actual, expected, is_scalar, path, options):
    if actual.shape != expected.shape:
        _fail(
            f"The values for attribute 'shape' do not match: {actual.shape} != {expected.shape}.",
            path,
            options,
        )
    if options["check_dtype"] and actual.dtype is not expected.dtype:
        _fail(
            f"The values for attribute 'dtype' do not match: {actual.dtype} != {expected.dtype}.",
            path,
            options,
        )
    if options["check_stride"] and actual.stride() != expected.stride():
        _fail(
            f"The values for attribute 'stride()' do not match: {actual.stride()} != "
            f"{expected.stride()}.",
            path,
            options,
        )
    rtol, atol = _tolerance(actual, expected, options)
    is_floating = actual.dtype.is_floating_point or expected.dtype.is_floating_point
    number = _core.float64 if is_floating else _core.int64
    a, e = actual.to(number).numpy(), expected.to(number).numpy()
    wrong = ~_are_close(a, e, rtol, atol, options["equal_nan"])
    if not wrong.any():
        return
    absolute = np.abs(a - e)
    with np.errstate(all="ignore"):
        relative = absolute / np.abs(e)
    word = "equal" if rtol == atol == 0 else "close"
    if is_scalar:
        _fail(
            f"Scalars are not {word}!\n\nExpected {expected.item()} but got {actual.item()}.\n"
            f"Absolute difference: {absolute.item()} (up to {atol} allowed)\n"
            f"Relative difference: {relative.item()} (up to {rtol} allowed)",
            path,
            options,
        )
    _fail(
        f"Tensor-likes are not {word}!\n\n"
        f"Mismatched elements: {wrong.sum()} / {wrong.size} "
        f"({100 * wrong.sum() / wrong.size:.1f}%)\n"
        f"Greatest absolute difference: {_greatest(absolute, wrong)} (up to {atol} allowed)\n"
        f"Greatest relative difference: {_greatest(relative, wrong)} (up to {rtol} allowed)",
        path,
        options,
    )


def _tolerance(actual, expected, options):
    if options["rtol"] is not None:
        return options["rtol"], options["atol"]
    pairs = [_TOLERANCES.get(t.dtype, (0.0, 0.0)) for t in (actual, expected)]
    return max(p[0] for p in pairs), max(p[1] for p in pairs)


def _are_close(a, e, rtol, atol, equal_nan):
    with np.errstate(all="ignore"):
        close = (a == e) | (
            np.isfinite(a) & np.isfinite(e) & (np.abs(a - e) <= atol + rtol * np.abs(e))
        )
    return close | (np.isnan(a) & np.isnan(e)) if equal_nan else close


def _greatest(values, wrong) -> str:
    """The largest value among the wrong ones, NaN before all, and its index."""
    candidates = np.where(wrong, np.where(np.isnan(values), np.inf, values), -np.inf)
    place = np.unravel_index(int(np.argmax(candidates)), values.shape)
    text = str(values[place])
    return f"{text} at index {tuple(int(i) for i in place)}" if place else text


def make_tensor(
    *shape,
    dtype,
    device="cpu",
    low=None,
    high=None,
    requires_grad=False,
    noncontiguous=False,
    exclude_zero=False,
    memory_format=None,
):
    """Random numbers from [low, high), by default [-9, 9) (bool: both values, uint8: from 0)."""
    sizes = list(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else list(shape)
    if noncontiguous and sizes:
        sizes[-1] *= 2
    if dtype is _core.bool:
        made = prong.randint(0, 2, sizes).to(dtype)
    elif dtype.is_floating_point:
        low, high = -9 if low is None else low, 9 if high is None else high
        made = (prong.rand(sizes, dtype=_core.float64) * (high - low) + low).to(dtype)
    else:
        low, high = (
            (0 if dtype is _core.uint8 else -9) if low is None else low,
            10 if high is None else high,
        )
        made = prong.randint(int(low), int(high), sizes).to(dtype)
    if exclude_zero:
        made = prong.where(made == 0, prong.ones_like(made), made)
    if noncontiguous and sizes:
        made = made[..., ::2]
    return made.requires_grad_() if requires_grad else made


__getattr__ = _names.module_getattr("prong.testing")
