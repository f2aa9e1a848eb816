"""Runs the questions of bench/, one file each, and fails if one of them does; for `make bench`.

A question is a Python file that runs as a program, or a C++ file (its target is bench_<name>).
"""

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def command_of(path: Path, build: Path) -> list[str] | None:
    if path.suffix == ".cpp":
        return [str(build / "bench" / f"bench_{path.stem}")]
    if path.suffix == ".py" and '__name__ == "__main__"' in path.read_text():
        return [sys.executable, str(path)]
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--only", default="", help="run files with this word in their name")
    options = parser.parse_args()

    commands = {
        path.name: command_of(path, options.build.resolve())
        for path in sorted((ROOT / "bench").iterdir())
        if options.only in path.name
    }
    questions = {name: command for name, command in commands.items() if command}
    if not questions:
        print(f"bench/ has no question named {options.only or '*'}")
        return 1
    failed = []
    for name, command in questions.items():
        print(f"\n== bench/{name}", flush=True)
        if subprocess.run(command, cwd=ROOT).returncode:
            failed.append(name)
    print(f"\n===== {len(questions) - len(failed)} answered, {len(failed)} failed =====")
    for name in failed:
        print(f"failed: bench/{name}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
