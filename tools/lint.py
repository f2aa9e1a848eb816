"""Format and static checks over C++ and Python; called by `make lint` and `make format`.

--fix rewrites files instead of complaining. clang-tidy, being slow, looks at changed files only.
"""

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def git_files(*arguments: str) -> list[str]:
    listing = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return [name for name in listing.split("\0") if name and (ROOT / name).is_file()]


def cpp_files() -> list[str]:
    listed = git_files("ls-files", "-co", "--exclude-standard", "-z")
    return [name for name in listed if name.endswith((".h", ".cpp", ".c"))]


def changed_sources() -> list[str]:
    """C++ sources that differ from the branch that this work started from."""
    known = subprocess.run(
        ["git", "merge-base", "HEAD", "origin/main"], cwd=ROOT, capture_output=True, text=True
    )
    base = known.stdout.strip() if known.returncode == 0 else "HEAD"
    changed = git_files("diff", "--name-only", "-z", base)
    return [name for name in changed if name.startswith("src/") and name.endswith(".cpp")]


def run(title: str, command: list[str]) -> bool:
    ok = subprocess.run(command, cwd=ROOT).returncode == 0
    print(f"{'ok    ' if ok else 'FAILED'} {title}", flush=True)
    return ok


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fix", action="store_true")
    parser.add_argument("--build", type=Path, help="the build folder, for clang-tidy")
    options = parser.parse_args()

    if options.fix:
        results = [
            run("clang-format", ["clang-format", "-i", *cpp_files()]),
            run("ruff", ["ruff", "check", "--fix", "--quiet", "."]),
            run("ruff format", ["ruff", "format", "--quiet", "."]),
        ]
        return 0 if all(results) else 1

    results = [
        run("clang-format", ["clang-format", "--dry-run", "-Werror", *cpp_files()]),
        run("ruff", ["ruff", "check", "."]),
        run("ruff format", ["ruff", "format", "--check", "."]),
        run("mypy", ["mypy"]),
        run("codespell", ["codespell"]),
        run("tidy", [sys.executable, "-m", "pytest", "-q", "tests/tidy"]),
    ]
    changed = changed_sources()
    if changed and options.build:
        command = ["clang-tidy", "--quiet", "-p", str(options.build), *changed]
        results.append(run(f"clang-tidy ({len(changed)} files changed)", command))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
