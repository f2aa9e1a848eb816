"""Versions: Prong's own, and the PyTorch release whose API it follows."""

from prong import _core

prong = _core.__version__
api = "2.13.0"
__version__ = f"{api}+prong{prong}"
cuda = None
hip = None
xpu = None
git_version = None
debug = False
