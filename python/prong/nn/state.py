"""Saving and loading of module state, and the text of module trees; called by module.py."""

from collections import OrderedDict

import prong
from prong import Tensor

from .parameter import is_lazy


class StateDict(OrderedDict):
    """What ``Module.state_dict`` gives: names to tensors, with the modules' versions in ``_metadata``."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._metadata = OrderedDict()

    def copy(self):
        result = StateDict(self)
        result._metadata = self._metadata
        return result


def load_into(module, state_dict, strict, assign):
    """Loads ``state_dict`` into the tree under ``module``; gives (missing, unexpected) names, raises on errors."""
    if not hasattr(state_dict, "items"):
        raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
    metadata = getattr(state_dict, "_metadata", {})
    state = OrderedDict(state_dict)
    missing, unexpected, errors = [], [], []
    keys = _IncompatibleKeysView(missing, unexpected)

    def load(child, prefix):
        local = dict(metadata.get(prefix[:-1], {}))
        if assign:
            local["assign_to_params_buffers"] = True
        child._load_from_state_dict(state, prefix, local, True, missing, unexpected, errors)
        for name, grandchild in child._modules.items():
            if grandchild is not None:
                load(grandchild, f"{prefix}{name}.")
        for hook in child._load_state_dict_post_hooks.values():
            if hook(child, keys) is not None:
                raise RuntimeError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new values"
                )

    load(module, "")
    if strict:
        if unexpected:
            errors.insert(
                0,
                "Unexpected key(s) in state_dict: "
                + ", ".join(f'"{k}"' for k in unexpected)
                + ". ",
            )
        if missing:
            errors.insert(
                0, "Missing key(s) in state_dict: " + ", ".join(f'"{k}"' for k in missing) + ". "
            )
    if errors:
        raise RuntimeError(
            f"Error(s) in loading state_dict for {type(module).__name__}:\n\t" + "\n\t".join(errors)
        )
    return missing, unexpected


class _IncompatibleKeysView:
    """What post hooks may look at and change."""

    def __init__(self, missing_keys, unexpected_keys):
        self.missing_keys = missing_keys
        self.unexpected_keys = unexpected_keys


def load_own_tensors(
    module, state_dict, prefix, local_metadata, strict, missing, unexpected, errors
):
    """The part of loading that belongs to one module, without its children."""
    for hook in module._load_state_dict_pre_hooks.values():
        hook(state_dict, prefix, local_metadata, strict, missing, unexpected, errors)
    persistent = {
        k: v for k, v in module._buffers.items() if k not in module._non_persistent_buffers_set
    }
    for name, tensor in {**module._parameters, **persistent}.items():
        if tensor is None:
            continue
        key = prefix + name
        if key not in state_dict:
            if strict:
                missing.append(key)
        elif complaint := _load_one(module, name, tensor, state_dict[key], key, local_metadata):
            errors.append(complaint)
    extra_key = f"{prefix}_extra_state"
    if type(module).set_extra_state is not _base_of(module).set_extra_state:
        if extra_key in state_dict:
            module.set_extra_state(state_dict[extra_key])
        elif strict:
            missing.append(extra_key)
    if strict:
        for key in state_dict:
            rest = key[len(prefix) :]
            if key.startswith(prefix) and key != extra_key:
                head = rest.split(".", 1)
                known = (
                    head[0] in module._modules
                    if len(head) > 1
                    else rest in module._parameters or rest in persistent
                )
                if not known and key not in unexpected:
                    unexpected.append(key)
            elif (
                key == extra_key
                and type(module).set_extra_state is _base_of(module).set_extra_state
            ):
                unexpected.append(key)


def _base_of(module):
    return next(
        cls
        for cls in type(module).__mro__
        if cls.__name__ == "Module" and cls.__module__.startswith("prong")
    )


def _load_one(module, name, target, source, key, local_metadata):
    if not isinstance(source, Tensor):
        return (
            f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from checkpoint '
            f"but received {type(source)}"
        )
    if is_lazy(target) and is_lazy(source):
        return None
    if target.dim() == 0 and source.dim() == 1 and source.numel() == 1:
        source = source[0]
    if source.shape != target.shape:
        return (
            f"size mismatch for {key}: copying a param with shape {source.shape} from checkpoint, "
            f"the shape in current model is {target.shape}."
        )
    if local_metadata.get("assign_to_params_buffers", False):
        if name in module._parameters:
            source = (
                source
                if isinstance(source, type(target))
                else type(target)(source, target.requires_grad)
            )
            module._parameters[name] = source
        else:
            module._buffers[name] = source
        return None
    with prong.no_grad():
        target.copy_(source)
    return None


def _indent(text, spaces):
    first, *rest = text.split("\n")
    return "\n".join([first] + [" " * spaces + line for line in rest])


def text_of_modules(module):
    """The tree under ``module`` in PyTorch's form: ``Sequential(\\n  (0): Linear(...)\\n)``."""
    extra = module.extra_repr()
    extra_lines = extra.split("\n") if extra else []
    child_lines = [
        f"({name}): " + _indent(repr(child), 2) for name, child in module._modules.items()
    ]
    lines = extra_lines + child_lines
    name = module._get_name()
    if not lines:
        return f"{name}()"
    if len(extra_lines) == 1 and not child_lines:
        return f"{name}({extra_lines[0]})"
    return f"{name}(\n  " + "\n  ".join(lines) + "\n)"


def consume_prefix_in_state_dict_if_present(state_dict, prefix):
    """Takes a prefix (of a wrapper such as DataParallel) away from the names, in place."""
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is None:
        return
    for key in list(metadata):
        if key == prefix.rstrip("."):
            metadata[""] = metadata.pop(key)
        elif key.startswith(prefix):
            metadata[key[len(prefix) :]] = metadata.pop(key)
