"""Names, sizes and first lines of files; READMEs; nothing of one machine in the tree."""

import re
import warnings

import pytest
from tree import LAYERS, ROOT, cpp_files, files, shown

FORBIDDEN = {"utils", "util", "misc", "common", "helpers", "helper", "base", "impl", "manager"}
SOURCES = ("*.h", "*.cpp", "*.c", "*.def", "*.py")
LONG = 800  # lines; past it a person decides, so this warns


@pytest.mark.parametrize("folder", LAYERS)
def test_folder_has_a_short_readme(folder):
    readme = ROOT / "src" / folder / "README.md"
    assert readme.exists(), f"src/{folder}/README.md: what lives there and what may not"
    lines = readme.read_text().splitlines()
    assert 3 <= len(lines) <= 15, f"src/{folder}/README.md has {len(lines)} lines, not 3 to 15"


def test_no_names_that_collect_everything():
    wrong = [
        shown(path)
        for path in files(*SOURCES)
        if path.stem in FORBIDDEN or re.search(r"_(utils?|impl|helpers?|misc|common)$", path.stem)
    ]
    assert not wrong, wrong


def test_names_are_snake_case():
    wrong = [
        shown(path)
        for path in files(*SOURCES)
        if not re.fullmatch(r"[a-z0-9_]+", path.stem) and "seeds" not in path.parts
    ]
    assert not wrong, wrong


def test_first_line_says_what_the_file_is():
    wrong = []
    for path in cpp_files("src") + cpp_files("include") + cpp_files("tests"):
        first = path.read_text().split("\n", 1)[0]
        if not re.match(r"(//|/\*) ?\S", first):
            wrong.append(shown(path))
    for path in files("python/prong/*.py", "tools/*.py", "bench/*.py"):
        text = path.read_text().removeprefix("#!/usr/bin/env python3\n").lstrip()
        if text and not text.startswith(('"""', 'r"""', "#")):
            wrong.append(shown(path))
    assert not wrong, "no first line that says what it is:\n" + "\n".join(wrong)


def test_long_files_are_seen():
    for path in files(*SOURCES):
        count = path.read_text().count("\n")
        if count > LONG:
            warnings.warn(f"{shown(path)} has {count} lines (aim: below {LONG})", stacklevel=1)


def test_nothing_of_one_machine():
    pattern = re.compile(rb"/(?:home|root|work|Users)/[\w.]|/tmp/w/|file://[/\w]")
    wrong = []
    for path in files():
        if path == ROOT / "tests/tidy/test_files.py":
            continue
        for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
            if pattern.search(line):
                wrong.append(f"{shown(path)}:{number}: {line[:100]!r}")
    assert not wrong, "\n".join(wrong)


def test_no_built_or_large_files():
    wrong = [
        f"{shown(path)} ({path.stat().st_size // 1024} KB)"
        for path in files()
        if path.suffix in {".so", ".o", ".a", ".whl", ".pyc"} or path.stat().st_size > 2**20
    ]
    assert not wrong, wrong


def test_architecture_lists_the_layers():
    """The table of folders in ARCHITECTURE.md has the names of src/LAYERS, in that order."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    listed = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    assert listed == LAYERS
    assert text.count("\n") <= 150
