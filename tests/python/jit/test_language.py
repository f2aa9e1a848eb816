"""Scripted functions give what they give in Python."""

import importlib.util
import os
import sys

import prong
import pytest
from prong import _alias


def _load(name):
    path = os.path.join(os.path.dirname(__file__), f"{name}.py")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with _alias.standing_in():  # the programs are written for torch
        spec.loader.exec_module(module)
    return module


CASES = _load("programs_language").CASES


def plain(value):
    if isinstance(value, prong.Tensor):
        return ["tensor", str(value.dtype), list(value.shape), value.tolist()]
    if isinstance(value, prong.Size):
        return [plain(int(n)) for n in value]
    if isinstance(value, tuple):
        return [type(value).__name__, *[plain(v) for v in value]]
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return [type(value).__name__, value]


@pytest.mark.parametrize(
    "function,arguments", CASES, ids=[f"{f.__name__}-{i}" for i, (f, _) in enumerate(CASES)]
)
def test_same_as_python(function, arguments):
    assert plain(prong.jit.script(function)(*arguments)) == plain(function(*arguments))
