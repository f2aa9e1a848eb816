"""Passes, code generation and execution ask an op for its properties, never for its name."""

import re

from tree import cpp_files, shown

DEFINITION = re.compile(r'\.add\(\s*"([\w.]+)\(')
STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
COMMENT = re.compile(r"//[^\n]*")


def op_names():
    names = set()
    for path in cpp_files("src/ops/defs"):
        names.update(DEFINITION.findall(path.read_text()))
    return names


def test_op_names_are_found():
    # If the way of defining an op changes, the pattern above must follow.
    assert len(op_names()) > 50


def test_no_op_name_outside_its_definition():
    names = op_names()
    wrong = []
    for folder in ("passes", "codegen", "exec"):
        for path in cpp_files(f"src/{folder}"):
            text = COMMENT.sub("", path.read_text())
            for literal in STRING.findall(text):
                if literal in names:
                    wrong.append(f'{shown(path)}: "{literal}"')
    assert not wrong, "op names where properties belong:\n" + "\n".join(wrong)
