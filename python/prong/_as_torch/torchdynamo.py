"""`import torchdynamo` in a process started by a program that runs on Prong; see torch.py."""

import importlib
import sys

del sys.modules["torchdynamo"]

from prong import _alias  # noqa: E402

_alias.install()
importlib.import_module("torchdynamo")
