"""The old weight_norm and spectral_norm: hooks that compute the weight before each call."""

import warnings

import prong
from prong.nn import functional as F
from prong.nn.conv_transpose import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from prong.nn.parameter import Parameter


def norm_except_dim(v, power=2, dim=0):
    """The norm over all dimensions but one, which stays; over all with -1."""
    if dim == -1:
        return v.norm(power)
    others = [d for d in range(v.dim()) if d != dim]
    return v.norm(power, others, keepdim=True) if others else v.abs()


def scaled_weight(v, g, dim=0):
    """v with the norm g."""
    return v * (g / norm_except_dim(v, 2, dim))


class WeightNorm:
    """The hook: weight = g * v / |v|."""

    def __init__(self, name, dim):
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module):
        """The weight from its length and direction."""
        v, g = getattr(module, f"{self.name}_v"), getattr(module, f"{self.name}_g")
        return scaled_weight(v, g, self.dim)

    @staticmethod
    def apply(module, name, dim):
        """Puts g and v in the weight's place."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(
                    f"Cannot register two weight_norm hooks on the same parameter {name}"
                )
        hook = WeightNorm(name, dim)
        weight = getattr(module, name)
        del module._parameters[name]
        length = norm_except_dim(weight.data, 2, hook.dim)
        module.register_parameter(f"{name}_g", Parameter(length))
        module.register_parameter(f"{name}_v", Parameter(weight.data))
        setattr(module, name, hook.compute_weight(module))
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module):
        """Makes the weight a parameter again."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[f"{self.name}_g"]
        del module._parameters[f"{self.name}_v"]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module, inputs):
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module, name="weight", dim=0):
    """Splits a weight into its length g and its direction v."""
    warnings.warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of "
        "`torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    WeightNorm.apply(module, name, dim)
    return module


def _remove_hook(module, kind, name, what):
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, kind) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"{what} of '{name}' not found in {module}")


def remove_weight_norm(module, name="weight"):
    """Takes weight_norm away."""
    return _remove_hook(module, WeightNorm, name, "weight_norm")


def dim_of_outputs(module):
    """The dimension of a weight that belongs to the outputs."""
    return int(isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)))


class SpectralNorm:
    """The hook: weight = weight_orig / its largest singular value, by power iteration."""

    _version = 1

    def __init__(self, name="weight", n_power_iterations=1, dim=0, eps=1e-12):
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight):
        """The weight with outputs as rows."""
        return weight.movedim(self.dim, 0).reshape(weight.size(self.dim), -1)

    def compute_weight(self, module, do_power_iteration):
        """The weight over its largest singular value."""
        weight = getattr(module, f"{self.name}_orig")
        u, v = getattr(module, f"{self.name}_u"), getattr(module, f"{self.name}_v")
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with prong.no_grad():
                for _ in range(self.n_power_iterations):
                    F.normalize(prong.mv(matrix.t(), u), dim=0, eps=self.eps, out=v)
                    F.normalize(prong.mv(matrix, v), dim=0, eps=self.eps, out=u)
                u, v = u.clone(), v.clone()
        return weight / prong.dot(u, prong.mv(matrix, v))

    @staticmethod
    def apply(module, name, n_power_iterations, dim, eps):
        """Puts weight_orig and the vectors u and v in the weight's place."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(
                    f"Cannot register two spectral_norm hooks on the same parameter {name}"
                )
        hook = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        with prong.no_grad():
            rows, columns = hook.reshape_weight_to_matrix(weight).shape
            u = F.normalize(weight.new_empty(rows).normal_(0, 1), dim=0, eps=eps)
            v = F.normalize(weight.new_empty(columns).normal_(0, 1), dim=0, eps=eps)
        delattr(module, name)
        module.register_parameter(f"{name}_orig", weight)
        setattr(module, name, weight.data)
        module.register_buffer(f"{name}_u", u)
        module.register_buffer(f"{name}_v", v)
        module.register_forward_pre_hook(hook)
        module.register_state_dict_post_hook(hook.note_version)
        return hook

    def note_version(self, module, state_dict, prefix, local_metadata):
        """Leaves in the metadata what PyTorch looks for there."""
        local_metadata.setdefault("spectral_norm", {})[f"{self.name}.version"] = self._version

    def remove(self, module):
        """Makes the weight a parameter again."""
        with prong.no_grad():
            weight = self.compute_weight(module, False)
        for suffix in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))
        for key, hook in list(module._state_dict_hooks.items()):
            if getattr(hook, "__self__", None) is self:
                del module._state_dict_hooks[key]

    def __call__(self, module, inputs):
        setattr(module, self.name, self.compute_weight(module, module.training))


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Divides a weight by its largest singular value, kept track of by power iteration."""
    dim = dim_of_outputs(module) if dim is None else dim
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module, name="weight"):
    """Takes spectral_norm away."""
    return _remove_hook(module, SpectralNorm, name, "spectral_norm")
