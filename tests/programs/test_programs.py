"""Runs every program of this folder in every mode of modes.toml."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

HERE = Path(__file__).parent
MODES = tomllib.loads((HERE / "modes.toml").read_text())
PROGRAMS = sorted(p for p in HERE.glob("*.py") if p.stem not in ("test_programs", "run_program"))


def test_skips_name_programs_and_give_reasons():
    names = {p.stem for p in PROGRAMS}
    for mode, settings in MODES.items():
        for program, reason in settings.get("skip", {}).items():
            assert program in names and len(reason) > 10, (mode, program)


RUNS = [
    pytest.param(program, mode, id=f"{program.stem}-{mode}")
    for program in PROGRAMS
    for mode, settings in MODES.items()
    if program.stem not in settings.get("skip", {})
]


@pytest.mark.parametrize(("program", "mode"), RUNS)
def test_program(program, mode):
    settings = MODES[mode]
    command = [
        sys.executable,
        "-m",
        "prong",
        str(HERE / "run_program.py"),
        str(program),
        "script" if settings["script"] else "eager",
    ]
    done = subprocess.run(
        command,
        env={**os.environ, **settings.get("env", {})},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip().endswith("all calls right"), done.stdout
