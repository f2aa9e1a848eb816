"""torch.utils."""

import importlib

from prong import _names


def __getattr__(name: str):
    if not name.startswith("_") and _names.is_own_module(f"prong.utils.{name}"):
        return importlib.import_module(f"prong.utils.{name}")
    _names.raise_missing("prong.utils", name)
