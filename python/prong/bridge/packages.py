"""Finds the packages behind the adapters, and says in plain words what is missing. Called by the adapters."""

import importlib
import importlib.util
import sys


class BackendUnavailable(RuntimeError):
    """A back end was asked for by name, and the package that it stands for is not here."""


def _is_torch_taken():
    """Does the name torch mean prong in this process (python -m prong)?"""
    torch = sys.modules.get("torch")
    if torch is not None:
        return torch is sys.modules["prong"]
    alias = sys.modules.get("prong._alias")
    return alias is not None and alias.is_installed()


def is_installed(*names):
    if "torch" in names and _is_torch_taken():
        return False
    return all(name in sys.modules or importlib.util.find_spec(name) for name in names)


def require(backend, what, **packages):
    """Raises unless all packages are there: names as imported, and as pip knows them."""
    if "torch" in packages and _is_torch_taken():
        raise BackendUnavailable(
            f"the back end {backend!r} is {what}, and PyTorch cannot be loaded in this process, because the name "
            "torch means prong here. Import prong by its own name to use both, or name a back end of prong's own: "
            "'llvm' (native code, the default), 'interpreter' or 'eager'."
        )
    missing = [pip for name, pip in packages.items() if not is_installed(name)]
    if missing:
        raise BackendUnavailable(
            f"the back end {backend!r} is {what}, which needs {' and '.join(missing)} "
            f"(pip install {' '.join(missing)}), not installed here. prong's own back ends are 'llvm' (native "
            "code, the default), 'interpreter' and 'eager'."
        )


def load(name):
    return importlib.import_module(name)
