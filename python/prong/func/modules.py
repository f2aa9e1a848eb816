"""Modules as functions of their parameters: functional_call, stack_module_state."""

from prong import _core
from prong._core import Tensor


def _place(module, name: str) -> tuple:
    """(dict, key) where a parameter or buffer of that dotted name stands."""
    *path, last = name.split(".")
    for part in path:
        module = module._modules.get(part) if hasattr(module, "_modules") else None
        if module is None:
            break
    for where in ("_parameters", "_buffers"):
        entries = getattr(module, where, None)
        if entries is not None and last in entries:
            return entries, last
    raise KeyError(name)


def _tied(module) -> dict:
    """The names of each tensor of a module that stands in several places."""
    names: dict = {}
    for part, inner in module.named_modules(remove_duplicate=False):
        for entries in (inner._parameters, inner._buffers):
            for key, tensor in entries.items():
                if tensor is not None:
                    names.setdefault(id(tensor), []).append(f"{part}.{key}" if part else key)
    return {name: group for group in names.values() for name in group}


def functional_call(
    module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False
):
    """``module(*args, **kwargs)`` with these tensors in place of its parameters and buffers, by
    name; the module itself stays as it is.

    Several dicts are joined. With ``tie_weights``, a tensor given for one name of a shared parameter
    stands for all of its names. With ``strict``, every name must be given, and no others.
    """
    given = parameter_and_buffer_dicts
    if isinstance(given, (tuple, list)):
        joined: dict = {}
        for one in given:
            repeated = joined.keys() & one.keys()
            if repeated:
                raise ValueError(f"{sorted(repeated)} appear in several of the dictionaries")
            joined.update(one)
        given = joined
    elif not isinstance(given, dict):
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(given)}"
        )
    tied = _tied(module)
    if strict:
        _check_names(tied, given, tie_weights)
    tensors = dict(given)
    if tie_weights:
        for name, tensor in given.items():
            for other in tied.get(name, ()):
                if other in given and given[other] is not tensor:
                    raise ValueError(
                        f"functional_call got multiple values for keys {tied[name]}, which are tied. "
                        "Consider using tie_weights=False"
                    )
                tensors[other] = tensor
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    before = []
    try:
        for name, tensor in tensors.items():
            try:
                entries, key = _place(module, name)
            except KeyError:
                continue  # as in PyTorch: unless strict, names that it lacks don't matter
            before.append((entries, key, entries[key]))
            entries[key] = tensor
        return module(*args, **(kwargs or {}))
    finally:
        for entries, key, tensor in reversed(before):
            entries[key] = tensor


def _check_names(tied: dict, given: dict, tie_weights: bool) -> None:
    unexpected = sorted(set(given) - set(tied))
    missing = [
        name
        for name, group in tied.items()
        if name not in given and not (tie_weights and any(n in given for n in group))
    ]
    problems = []
    if unexpected:
        problems.append("Unexpected key(s): " + ", ".join(unexpected) + ".")
    if missing:
        problems.append("Missing key(s): " + ", ".join(missing) + ".")
    if problems:
        raise RuntimeError("Error(s) in reparametrizing:\n\t" + "\n\t".join(problems))


def replace_all_batch_norm_modules_(root):
    """Batch norms of ``root`` keep no running statistics any more, which vmap could not write."""
    for module in root.modules():
        if getattr(module, "track_running_stats", False):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def stack_module_state(models) -> tuple[dict, dict]:
    """(parameters, buffers) of modules of one class, by name, each stacked in a new dimension 0: an
    ensemble, for ``vmap`` over ``functional_call``."""
    if len(models) == 0:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or all(not m.training for m in models)):
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")

    def stacked(dicts: list) -> dict:
        return {name: _stacked([d[name] for d in dicts]) for name in dicts[0]}

    parameters = stacked([dict(m.named_parameters()) for m in models])
    return parameters, stacked([dict(m.named_buffers()) for m in models])


def _stacked(tensors: list[Tensor]) -> Tensor:
    stack = _core.functions["stack"]
    if all(t.is_leaf for t in tensors):
        if len({t.requires_grad for t in tensors}) > 1:
            raise RuntimeError(
                "Expected tensors to all have the same requires_grad, got "
                f"{[t.requires_grad for t in tensors]}"
            )
        return stack([t.detach() for t in tensors]).requires_grad_(tensors[0].requires_grad)
    return stack(tensors)
