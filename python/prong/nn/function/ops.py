"""The ops that nn.functional shows, by name, where a Python function of nn.functional has the same name."""

from typing import Any

from prong import _core

# Every op whose definition says nn_functional; the registry is the one list.
globals().update(_core.nn_functional_ops())


def __getattr__(name: str) -> Any:
    raise AttributeError(f"prong has no op {name} for torch.nn.functional yet")
