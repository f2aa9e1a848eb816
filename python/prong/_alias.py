"""Makes `import torch` mean Prong: torch.x.y is the module prong.x.y. Called by the runner."""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from contextlib import contextmanager

from prong import _names

_ROOTS = {"torch": "prong", "torchdynamo": "prong.torchdynamo"}


def _own_name(name: str) -> str | None:
    root, dot, rest = name.partition(".")
    return _ROOTS[root] + dot + rest if root in _ROOTS else None


class _AliasLoader(importlib.abc.Loader):
    """Gives the module that is there already, and leaves its own spec in place."""

    def __init__(self, module):
        self._module, self._spec = module, module.__spec__

    def create_module(self, spec):
        return self._module

    def exec_module(self, module):
        module.__spec__ = self._spec


class _AliasFinder(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname, path=None, target=None):
        own = _own_name(fullname)
        if own is None:
            return None
        if own not in sys.modules and not _names.is_own_module(own):
            raise ModuleNotFoundError(
                f"prong has no {fullname} yet (see docs/compatibility.md)", name=fullname
            )
        module = importlib.import_module(own)
        return importlib.util.spec_from_loader(fullname, _AliasLoader(module))


def is_installed() -> bool:
    return any(isinstance(finder, _AliasFinder) for finder in sys.meta_path)


def install() -> None:
    """From now on in this process, torch is Prong."""
    if is_installed():
        return
    loaded = sys.modules.get("torch")
    if loaded is not None and loaded is not sys.modules["prong"]:
        raise RuntimeError("torch was imported before prong could stand in for it")
    sys.meta_path.insert(0, _AliasFinder())


def reach_children() -> None:
    """Python processes that this one starts run on Prong too, whether they inherit the environment or sys.path."""
    folder = os.path.join(os.path.dirname(__file__), "_as_torch")
    if folder not in sys.path:
        sys.path.insert(1, folder)
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if folder not in inherited:
        os.environ["PYTHONPATH"] = os.pathsep.join([folder, *filter(None, inherited)])


def _stand_ins() -> list[str]:
    return [name for name in sys.modules if name.partition(".")[0] in _ROOTS]


@contextmanager
def standing_in():
    """Inside the with block torch is Prong; afterwards it is what it was. For tests in one process."""
    before = {name: sys.modules.pop(name) for name in _stand_ins()}
    finder = _AliasFinder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in _stand_ins():
            del sys.modules[name]
        sys.modules.update(before)
