"""torch.utils.checkpoint: backward passes that compute again what the forward pass did not keep."""

import contextlib
import warnings

import prong
from prong import Tensor, _core
from prong.autograd import Function, backward
from prong.autograd.graph import saved_tensors_hooks

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "DefaultDeviceType",
    "checkpoint",
    "checkpoint_sequential",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
]


class CheckpointError(RuntimeError):
    """The second computation saved other tensors than the first."""


class DefaultDeviceType:
    """Accepted; there is one kind of device."""

    _device_type = "cpu"

    @staticmethod
    def set_device_type(device="cpu"):
        DefaultDeviceType._device_type = device

    @staticmethod
    def get_device_type():
        return DefaultDeviceType._device_type


_settings = {"early_stop": True, "debug": None}


@contextlib.contextmanager
def _setting(name, value):
    before = _settings[name]
    _settings[name] = value
    try:
        yield
    finally:
        _settings[name] = before


def set_checkpoint_early_stop(enable):
    """Whether the second computation ends with the last tensor that is needed. Default: True."""
    return _setting("early_stop", enable)


def set_checkpoint_debug_enabled(enabled):
    """Overrides ``debug`` of the calls inside the block."""
    return _setting("debug", enabled)


def noop_context_fn():
    """The default ``context_fn``: nothing around either computation."""
    return contextlib.nullcontext(), contextlib.nullcontext()


class _Surroundings:
    """What a computation depends on beside its arguments: random numbers and autocast."""

    def __init__(self, preserve_rng_state):
        self.random = _core._keep_random_state() if preserve_rng_state else None
        self.is_autocast = prong.is_autocast_enabled("cpu")
        self.autocast_dtype = prong.get_autocast_dtype("cpu")

    @contextlib.contextmanager
    def restored(self):
        before = None if self.random is None else _core._keep_random_state()
        try:
            if before is not None:
                _core._put_random_state(self.random)
            with prong.autocast("cpu", dtype=self.autocast_dtype, enabled=self.is_autocast):
                yield
        finally:
            if before is not None:
                _core._put_random_state(before)


# ── use_reentrant=True: one node that runs a backward pass of its own ──


def _detached(arguments):
    out = []
    for argument in arguments:
        if isinstance(argument, Tensor):
            copy = argument.detach()
            if argument.requires_grad:
                copy.requires_grad_()
            argument = copy
        out.append(argument)
    return out


class CheckpointFunction(Function):
    """The whole computation as one step of the tape."""

    @staticmethod
    def forward(ctx, function, preserve_rng_state, *arguments):
        if not any(isinstance(a, Tensor) and a.requires_grad for a in arguments):
            warnings.warn(
                "None of the inputs have requires_grad=True. Gradients will be None", stacklevel=3
            )
        ctx.function = function
        ctx.surroundings = _Surroundings(preserve_rng_state)
        ctx.arguments = [None if isinstance(a, Tensor) else a for a in arguments]
        ctx.places = [i for i, a in enumerate(arguments) if isinstance(a, Tensor)]
        ctx.save_for_backward(*[arguments[i] for i in ctx.places])
        return function(*arguments)

    @staticmethod
    def backward(ctx, *gradients):
        arguments = list(ctx.arguments)
        for i, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
            arguments[i] = tensor
        arguments = _detached(arguments)
        with ctx.surroundings.restored(), prong.enable_grad():
            outputs = ctx.function(*arguments)
        if isinstance(outputs, Tensor):
            outputs = (outputs,)
        pairs = [
            (output, gradient)
            for output, gradient in zip(outputs, gradients, strict=True)
            if isinstance(output, Tensor) and output.requires_grad
        ]
        if not pairs:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not necessary"
            )
        backward([p[0] for p in pairs], [p[1] for p in pairs])
        return (
            None,
            None,
            *(a.grad if isinstance(a, Tensor) else None for a in arguments),
        )


# ── use_reentrant=False: what would be saved is computed again when it is first asked for ──


class _Place:
    """Stands on the tape for a saved tensor."""

    __slots__ = ("__weakref__", "frame", "meta", "pass_", "tensor")

    def __init__(self, frame, meta):
        self.frame, self.meta = frame, meta
        self.tensor, self.pass_ = None, None


class _Enough(BaseException):
    """All that is needed was computed."""


def _default_meta(tensor):
    return tensor.shape, tensor.dtype


_META = {"default": _default_meta, "none": lambda tensor: None}


class _Frame:
    """One checkpointed call: how to run it again, and the places of what it saved."""

    def __init__(self, run, surroundings, context, meta, early_stop):
        self.run, self.surroundings, self.context = run, surroundings, context
        self.meta, self.early_stop = meta, early_stop
        self.places: list = []
        self.is_done = False

    def pack(self, tensor):
        place = _Place(self, self.meta(tensor))
        self.places.append(_core._weakly(place))
        return place

    def unpack(self, place):
        if place.tensor is None or not _core._is_pass_now(place.pass_):
            self.compute_again()
        if place.tensor is None:
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the "
                "original forward and recomputation."
            )
        return place.tensor

    def compute_again(self):
        count, total = 0, len(self.places)
        now = _core._pass_now()
        wrong = []

        def keep(tensor):
            nonlocal count
            if count >= total:
                raise CheckpointError(
                    "torch.utils.checkpoint: trying to save more tensors during recomputation "
                    "than during the original forward pass."
                )
            place = self.places[count]()
            if place is not None:
                if self.meta(tensor) != place.meta:
                    wrong.append((count, place.meta, self.meta(tensor)))
                place.tensor, place.pass_ = tensor.detach(), now
            count += 1
            if self.early_stop and count == total:
                raise _Enough
            return tensor.detach()

        with (
            self.surroundings.restored(),
            self.context,
            prong.enable_grad(),
            contextlib.suppress(_Enough),
            saved_tensors_hooks(keep, lambda tensor: tensor),
        ):
            self.run()
        self._check(count, total, wrong)

    def _check(self, count, total, wrong):
        if count != total:
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the "
                "original forward and recomputation.\n"
                f"Number of tensors saved during forward: {total}\n"
                f"Number of tensors saved during recomputation: {count}"
            )
        if wrong:
            lines = [
                f"tensor at position {i}:\nsaved metadata: {saved}\nrecomputed metadata: {again}"
                for i, saved, again in wrong
            ]
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have "
                "different metadata than during the forward pass.\n" + "\n".join(lines)
            )


class _Saved:
    """An argument of the call, kept as the tape keeps tensors: an outer checkpoint sees it."""

    def __init__(self, tensor):
        self.requires_grad = tensor.requires_grad
        self.kept = _core._save_for_backward(tensor, None)

    def get(self):
        tensor = _core._saved_for_backward(self.kept, None)
        if tensor.requires_grad != self.requires_grad:
            tensor = tensor.detach().requires_grad_(self.requires_grad)
        return tensor


def _kept(value):
    return _Saved(value) if isinstance(value, Tensor) else value


def _given(value):
    return value.get() if isinstance(value, _Saved) else value


def _without_reentrance(
    function, preserve_rng_state, context_fn, determinism_check, early_stop, args, kwargs
):
    forward_context, again_context = context_fn()
    if not prong.is_grad_enabled():
        with forward_context:
            return function(*args, **kwargs)
    kept_args, kept_kwargs = [_kept(a) for a in args], {k: _kept(v) for k, v in kwargs.items()}

    def run():
        function(*[_given(a) for a in kept_args], **{k: _given(v) for k, v in kept_kwargs.items()})

    if determinism_check not in _META:
        raise ValueError(
            f"determinism_check should be one of {list(_META)}, but got {determinism_check}"
        )
    frame = _Frame(
        run,
        _Surroundings(preserve_rng_state),
        again_context,
        _META[determinism_check],
        early_stop if _settings["early_stop"] is True else _settings["early_stop"],
    )
    with saved_tensors_hooks(frame.pack, lambda place: place.frame.unpack(place)), forward_context:
        return function(*args, **kwargs)


def checkpoint(
    function,
    *args,
    use_reentrant=None,
    context_fn=noop_context_fn,
    determinism_check="default",
    debug=False,
    early_stop=True,
    **kwargs,
):
    """Calls ``function``, and keeps of it only the arguments: backward calls it again.

    With ``use_reentrant=True`` the call is one step of the tape that runs a backward pass inside;
    with False its ops are on the tape as usual, and only what they save is computed again.
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. "
            "Starting in PyTorch 2.9, calling checkpoint without use_reentrant will raise an "
            "exception. use_reentrant=False is recommended, but if you need to preserve the "
            "current default behavior, you can pass use_reentrant=True. Refer to docs for more "
            "details on the differences between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if not use_reentrant:
        return _without_reentrance(
            function, preserve, context_fn, determinism_check, early_stop, args, kwargs
        )
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if context_fn is not noop_context_fn or debug is not False:
        raise ValueError(
            "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
        )
    return CheckpointFunction.apply(function, preserve, *args)


def checkpoint_sequential(functions, segments, input, use_reentrant=None, **kwargs):
    """Runs the functions one after the other, checkpointed in ``segments`` parts save the last."""
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be "
            "passed explicitly. In version 2.9 we will raise an exception if use_reentrant is not "
            "passed. use_reentrant=False is recommended, but if you need to preserve the current "
            "default behavior, you can pass use_reentrant=True. Refer to docs for more details on "
            "the differences between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if isinstance(functions, prong.nn.Sequential):
        functions = list(functions.children())

    def part(start, end):
        def run(x):
            for function in functions[start:end]:
                x = function(x)
            return x

        return run

    size, end = len(functions) // segments, 0
    for start in range(0, size * (segments - 1), size):
        end = start + size
        input = checkpoint(
            part(start, end), input, use_reentrant=use_reentrant, preserve_rng_state=preserve
        )
    return part(end, len(functions))(input)
