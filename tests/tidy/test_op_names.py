"""Passes, code generation and execution ask an op for its properties, never for its name."""

import re

import pytest
from prong import _core
from tree import cpp_files, shown

STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
COMMENT = re.compile(r"//[^\n]*")


@pytest.mark.parametrize("folder", ["passes", "codegen", "exec"])
def test_no_op_name_outside_its_definition(folder):
    names = {op["base_name"] for op in _core.ops()}
    assert len(names) > 50
    names = {name for name in names if len(name) > 2}  # "t" is a word of many meanings
    wrong = [
        f'{shown(path)}: "{literal}"'
        for path in cpp_files(f"src/{folder}")
        for literal in STRING.findall(COMMENT.sub("", path.read_text()))
        if literal in names
    ]
    assert not wrong, "op names where properties belong:\n" + "\n".join(wrong)
