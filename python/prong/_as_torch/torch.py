"""`import torch` in a process started by a program that runs on Prong: it gets Prong too. Found through PYTHONPATH."""

import sys

del sys.modules["torch"]  # this file, which is not what the program asked for

import prong  # noqa: E402
from prong import _alias  # noqa: E402

_alias.install()
sys.modules["torch"] = prong
