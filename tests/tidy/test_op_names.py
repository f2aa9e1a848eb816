"""Passes, code generation, execution and capture ask an op for its properties, never for its name."""

import re

import pytest
from prong import _core
from tree import cpp_files, shown

STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
# Code generation writes LLVM's instructions, capture knows methods of Python's, which share names
# with ops: there, only a comparison or a look-up by name is wrong.
ASKED = re.compile(r'(?:[=!]=\s*|\b(?:get|find|call|is)\(\s*)"([\w.]+)"|"([\w.]+)"\s*[=!]=')
COMMENT = re.compile(r"//[^\n]*")


@pytest.mark.parametrize("folder", ["passes", "codegen", "exec", "compile", "capture"])
def test_no_op_name_outside_its_definition(folder):
    names = {op["base_name"] for op in _core.ops()}
    assert len(names) > 50
    names = {name for name in names if len(name) > 2}  # "t" is a word of many meanings
    pattern = ASKED if folder in ("codegen", "capture") else STRING
    wrong = [
        f"{shown(path)}: {match.group()}"
        for path in cpp_files(f"src/{folder}")
        for match in pattern.finditer(COMMENT.sub("", path.read_text()))
        if names.intersection(match.groups())
    ]
    assert not wrong, "op names where properties belong:\n" + "\n".join(wrong)
