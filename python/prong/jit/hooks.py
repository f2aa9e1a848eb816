"""Forward hooks of scripted modules: compiled as methods, with a __call__ that runs them around forward."""

import inspect
import types

_KINDS = (
    ("_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "__forward_pre_hook"),
    ("_forward_hooks", "_forward_hooks_with_kwargs", "__forward_hook"),
)


def hooks_of(module):
    """The forward hooks of a module by the names that their methods get, in the order they run."""
    found = {}
    for store, with_kwargs, prefix in _KINDS:
        for place, (key, hook) in enumerate(module.__dict__.get(store, {}).items()):
            if not isinstance(hook, types.FunctionType) or hook.__name__ == "<lambda>":
                raise RuntimeError(
                    f"the hook {hook!r} of '{type(module).__name__}' cannot be scripted: "
                    "hooks of scripted modules are plain functions"
                )
            if key in getattr(module, with_kwargs) or key in module._forward_hooks_always_called:
                raise RuntimeError(
                    f"the hook '{hook.__name__}' of '{type(module).__name__}' cannot be scripted: "
                    "with_kwargs and always_call are for hooks that run in Python"
                )
            found[f"{prefix}_{place}"] = hook
    return found


def _parameter(parameter):
    """A parameter as it is written in a def."""
    text = parameter.name
    if parameter.annotation is not parameter.empty:
        annotation = parameter.annotation
        text += ": " + (
            annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
        )
    if parameter.default is not parameter.empty:
        text += f" = {parameter.default!r}"
    return text


def hooked_call(forward, hooks):
    """The source of __call__: a hook that gives None changes nothing."""
    parameters = list(inspect.signature(forward).parameters.values())[1:]
    for p in parameters:
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            raise RuntimeError(f"forward with *{p.name} cannot have scripted hooks")
    by_position = [p for p in parameters if p.kind is not p.KEYWORD_ONLY]
    by_keyword = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
    written = ["self", *map(_parameter, by_position)]
    written += ["*", *map(_parameter, by_keyword)] if by_keyword else []
    names = "".join(p.name + ", " for p in by_position)
    passed = [f"given[{k}]" for k in range(len(by_position))]
    passed += [f"{p.name}={p.name}" for p in by_keyword]
    lines = [f"def __call__({', '.join(written)}):", f"    given = ({names})"]
    for name in hooks:
        if name.startswith("__forward_pre_hook"):
            lines += [
                f"    before = self.{name}(given)",
                "    if before is not None:",
                "        given = before",
            ]
    lines.append(f"    result = self.forward({', '.join(passed)})")
    for name in hooks:
        if name.startswith("__forward_hook"):
            lines += [
                f"    after = self.{name}(given, result)",
                "    if after is not None:",
                "        result = after",
            ]
    return "\n".join([*lines, "    return result", ""])
