"""trace: a function or module run once on examples, and what it did to tensors as a graph."""

import inspect
import warnings

import prong
from prong import _core
from prong.jit.functions import ScriptFunction
from prong.jit.modules import ScriptModule
from prong.nn import Module


class TracerWarning(Warning):
    """What was traced may not be what the function means for other inputs."""

    @staticmethod
    def ignore_lib_warnings():
        """Kept for programs that call it."""


def _examples(inputs):
    return tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)


def _input_names(function, count, keywords):
    """Names of the arguments, as far as the signature tells."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    names = named[:count] + [f"input_{k}" for k in range(len(named), count)]
    return names + [name for name in keywords if name not in names]


def _check_result(result, strict):
    if strict and isinstance(result, (list, dict)):
        raise RuntimeError(
            f"trace: a {type(result).__name__} at the output might not be what it is for other inputs: "
            "pass strict=False if its length and keys do not depend on the inputs, or give a tuple"
        )


def _record(name, function, inputs, keywords, strict, module=None):
    """The graph of one call; ``module``: the compiled object whose state it reads."""
    tracer = _core.Tracer(name, module)
    names = _input_names(function, len(inputs), keywords)
    given = [tracer.input(n, x) for n, x in zip(names, inputs)]
    given_by_name = {n: tracer.input(n, x) for n, x in keywords.items()}
    with tracer:
        result = function(*given, **given_by_name)
        _check_result(result, strict)
        traced = tracer.finish(result)
    if tracer.values_read:
        ops = ", ".join(sorted(set(tracer.values_read)))
        warnings.warn(
            f"the traced call turned tensors into Python values ({ops}): the graph holds what was made of them "
            "as constants, which may be wrong for other inputs",
            TracerWarning,
            stacklevel=4,
        )
    return traced


def _differs(a, b, tolerance):
    if isinstance(a, prong.Tensor):
        return not (
            isinstance(b, prong.Tensor)
            and a.shape == b.shape
            and prong.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)
        )
    if isinstance(a, dict):
        return a.keys() != b.keys() or any(_differs(a[k], b[k], tolerance) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) != len(b) or any(_differs(x, y, tolerance) for x, y in zip(a, b))
    return a != b


def _check(traced, function, inputs, keywords, tolerance):
    with prong.no_grad():
        state = prong.get_rng_state()
        expected = function(*inputs, **keywords)
        prong.set_rng_state(state)
        got = traced(*inputs, **keywords)
    if _differs(expected, got, tolerance):
        warnings.warn(
            "the traced function gives other values than the Python function for the same inputs",
            TracerWarning,
            stacklevel=4,
        )


def _stateful(module, made):
    """A ScriptModule with the tensors and submodules of a module, and no methods."""
    if isinstance(module, ScriptModule):
        return module
    if module in made:
        return made[module]
    kind = type(module)
    script_class = _core.ScriptClass(f"{kind.__module__}.{kind.__qualname__}", "module")
    values, children = {}, {}
    for store, flags in (("_parameters", (True, False)), ("_buffers", (False, True))):
        for name, tensor in getattr(module, store).items():
            if tensor is not None:
                script_class.add_attribute(name, _core.Type.tensor(), *flags)
                values[name] = tensor
    for name, child in module._modules.items():
        if child is not None:
            children[name] = _stateful(child, made)
            script_class.add_attribute(name, children[name]._class.type, False, False)
    script_class.add_attribute("training", _core.Type.bool(), False, False)
    handle = script_class.make_object()
    for name, tensor in values.items():
        handle.set(name, tensor)
    for name, child in children.items():
        handle.set_object(name, child._object)
    handle.set("training", module.training)
    made[module] = ScriptModule._make(module, script_class, handle, children)
    return made[module]


def trace(
    func,
    example_inputs=None,
    optimize=None,
    check_trace=True,
    check_inputs=None,
    check_tolerance=1e-5,
    strict=True,
    example_kwarg_inputs=None,
    **options,
):
    """Runs ``func`` on example inputs and gives what it did as a compiled function or module.

    Only what happens to tensors is recorded: branches and loops are as they went for the examples.
    """
    if isinstance(func, (ScriptFunction, ScriptModule)):
        return func
    keywords = dict(example_kwarg_inputs or {})
    if example_inputs is None and not keywords:
        raise RuntimeError("trace() needs example_inputs or example_kwarg_inputs")
    inputs = () if example_inputs is None else _examples(example_inputs)
    if isinstance(func, Module):
        methods = {"forward": (inputs, keywords)}
        return _trace_methods(func, methods, check_trace, check_tolerance, strict)
    owner = getattr(func, "__self__", None)
    if isinstance(owner, Module):
        name = func.__name__
        traced = _trace_methods(
            owner, {name: (inputs, keywords)}, check_trace, check_tolerance, strict
        )
        return traced if name == "forward" else getattr(traced, name)
    if not callable(func):
        raise TypeError(
            f"trace() needs a function or a module, not a value of type '{type(func).__name__}'"
        )
    name = getattr(func, "__name__", type(func).__name__)
    traced = ScriptFunction(_record(name, func, inputs, keywords, strict), func)
    if check_trace:
        for given in [inputs, *map(_examples, check_inputs or ())]:
            _check(traced, func, given, keywords, check_tolerance)
    return traced


def trace_module(
    mod,
    inputs,
    optimize=None,
    check_trace=True,
    check_inputs=None,
    check_tolerance=1e-5,
    strict=True,
    **options,
):
    """Traces several methods of a module: ``inputs`` maps their names to example inputs."""
    if not isinstance(mod, Module):
        raise AttributeError("expected a module as the first argument of trace_module")
    methods = {name: (_examples(given), {}) for name, given in inputs.items()}
    return _trace_methods(mod, methods, check_trace, check_tolerance, strict)


def _trace_methods(module, methods, check_trace, tolerance, strict):
    traced = _stateful(module, {})
    for name, (inputs, keywords) in methods.items():
        method = getattr(module, name)
        call = module if name == "forward" else method
        names = _signature_of(method, call)
        function = _record(name, names, inputs, keywords, strict, traced._object)
        traced._class.add_method(name, function)
        if check_trace:
            _check(
                traced if name == "forward" else getattr(traced, name),
                call,
                inputs,
                keywords,
                tolerance,
            )
    return traced


def _signature_of(method, call):
    """``call``, with the argument names of ``method``."""
    if method is call:
        return call

    def called(*args, **kwargs):
        return call(*args, **kwargs)

    called.__signature__ = inspect.signature(method)
    return called
