"""Each file beside this one is a program that fails; its docstring names the exception and pieces of the message."""

import ast
import builtins
import importlib.util
import pathlib

import pytest
from prong import _alias

HERE = pathlib.Path(__file__).parent
PROGRAMS = sorted(p for p in HERE.glob("*.py") if not p.name.startswith("test_"))


@pytest.mark.parametrize("program", PROGRAMS, ids=[p.stem for p in PROGRAMS])
def test_message(program):
    kind, *pieces = (
        ast.get_docstring(ast.parse(program.read_text()), clean=False).strip().splitlines()
    )
    spec = importlib.util.spec_from_file_location(f"errors_{program.stem}", program)
    # The programs are written for torch.
    with _alias.standing_in(), pytest.raises(getattr(builtins, kind.rstrip(":"))) as caught:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    text = str(caught.value)
    for piece in pieces:
        assert piece.strip() in text, f"{piece.strip()!r} is not in:\n{text}"
