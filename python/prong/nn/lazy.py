"""Lazy modules: they learn their input's size from their first input, and become the plain modules then."""

import prong

from .conv import Conv1d, Conv2d, Conv3d, _spread
from .conv_transpose import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .instance_norm import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from .linear import Linear
from .normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d
from .parameter import UninitializedBuffer, UninitializedParameter, is_lazy


class LazyModuleMixin:
    """Waits for the first call (or for a state dict) to give its parameters their sizes."""

    cls_to_become: type | None = None

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(
            self._infer_parameters, with_kwargs=True
        )

    def _tensors(self):
        return {**self._parameters, **self._buffers}

    def has_uninitialized_params(self) -> bool:
        """Whether a size is still unknown."""
        return any(is_lazy(t) for t in self._tensors().values())

    def initialize_parameters(self, *args, **kwargs):
        """Gives the parameters their sizes, from the arguments of a call."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name, tensor in self._tensors().items():
            if is_lazy(tensor) and prefix + name in destination:
                destination[prefix + name] = tensor

    def _lazy_load_hook(self, state_dict, prefix, *others):
        for name, tensor in self._tensors().items():
            source = state_dict.get(prefix + name)
            if is_lazy(tensor) and source is not None and not is_lazy(source):
                with prong.no_grad():
                    tensor.materialize(source.shape)

    def _infer_parameters(self, module, args, kwargs=None):
        self.initialize_parameters(*args, **(kwargs or {}))
        if self.has_uninitialized_params():
            raise RuntimeError(
                f"module {self._get_name()} has not been fully initialized by its first call"
            )
        self._initialize_hook.remove()
        self._load_hook.remove()
        del self._initialize_hook, self._load_hook
        if self.cls_to_become is not None:
            self.__class__ = self.cls_to_become

    def reset_parameters(self):
        """Sets the numbers, once there is a place for them."""
        if not self.has_uninitialized_params() and self._is_sized():
            super().reset_parameters()


class LazyLinear(LazyModuleMixin, Linear):
    """Linear that takes in_features from its first input."""

    cls_to_become = Linear

    def __init__(self, out_features, bias=True, device=None, dtype=None):
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def _is_sized(self):
        return self.in_features != 0

    def initialize_parameters(self, input):
        if self.has_uninitialized_params():
            with prong.no_grad():
                self.in_features = input.shape[-1]
                self.weight.materialize((self.out_features, self.in_features))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                self.reset_parameters()
        if self.in_features == 0:
            self.in_features = self.weight.shape[-1]


class _LazyConv(LazyModuleMixin):
    def __init__(
        self, out_channels, kernel_size, *args, bias=True, device=None, dtype=None, **kwargs
    ):
        super().__init__(0, 0, kernel_size, *args, bias=False, **kwargs)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def _is_sized(self):
        return self.in_channels != 0

    def initialize_parameters(self, input, *args, **kwargs):
        if self.has_uninitialized_params():
            n = self._spatial
            if input.dim() not in (n + 1, n + 2):
                raise RuntimeError(
                    f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to "
                    f"{type(self).__name__}, but got input of size: {input.shape}"
                )
            self.in_channels = input.shape[input.dim() - n - 1]
            if self.in_channels % self.groups != 0:
                raise ValueError("in_channels must be divisible by groups")
            channels = (self.out_channels, self.in_channels // self.groups)
            if self.transposed:
                channels = (self.in_channels, self.out_channels // self.groups)
            with prong.no_grad():
                self.weight.materialize((*channels, *_spread(self.kernel_size, n)))
                if self.bias is not None:
                    self.bias.materialize((self.out_channels,))
                self.reset_parameters()
        if self.in_channels == 0:
            rows = self.weight.shape[0 if self.transposed else 1]
            self.in_channels = rows if self.transposed else rows * self.groups


class _LazyNorm(LazyModuleMixin):
    def __init__(
        self,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        super().__init__(0, eps, momentum, False, False)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = prong.tensor(0, dtype=prong.long)

    def _is_sized(self):
        return self.num_features != 0

    def initialize_parameters(self, input):
        if self.has_uninitialized_params():
            self.num_features = input.shape[1]
            for tensor in self._tensors().values():
                if is_lazy(tensor):
                    tensor.materialize((self.num_features,))
            self.reset_parameters()
        if self.num_features == 0:
            known = self.weight if self.weight is not None else self.running_mean
            self.num_features = input.shape[1] if known is None else known.shape[0]


def _lazy(kind, base):
    name = f"Lazy{kind.__name__}"
    members = {
        "cls_to_become": kind,
        "__doc__": f"{kind.__name__} that takes its number of channels from its first input.",
        "__module__": __name__,
    }
    return type(name, (base, kind), members)


LazyConv1d = _lazy(Conv1d, _LazyConv)
LazyConv2d = _lazy(Conv2d, _LazyConv)
LazyConv3d = _lazy(Conv3d, _LazyConv)
LazyConvTranspose1d = _lazy(ConvTranspose1d, _LazyConv)
LazyConvTranspose2d = _lazy(ConvTranspose2d, _LazyConv)
LazyConvTranspose3d = _lazy(ConvTranspose3d, _LazyConv)
LazyBatchNorm1d = _lazy(BatchNorm1d, _LazyNorm)
LazyBatchNorm2d = _lazy(BatchNorm2d, _LazyNorm)
LazyBatchNorm3d = _lazy(BatchNorm3d, _LazyNorm)
LazyInstanceNorm1d = _lazy(InstanceNorm1d, _LazyNorm)
LazyInstanceNorm2d = _lazy(InstanceNorm2d, _LazyNorm)
LazyInstanceNorm3d = _lazy(InstanceNorm3d, _LazyNorm)
