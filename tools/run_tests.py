"""Runs the C++ and the Python tests and sums them up in one line at the end; for `make test`.

Fails if any test fails, if a name given matches nothing, or if a kind of test is missing.
"""

import argparse
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOTHING_COLLECTED = 5  # pytest's exit status
# Here `import torch` means prong, so these have a process of their own, into which no other test
# has brought PyTorch.
STAND_IN = ["tests/errors", "tests/programs", "tests/python/jit", "tests/python/test_runner.py"]


class Tally:
    """Counts of one or more runs, taken from their JUnit reports."""

    def __init__(self) -> None:
        self.passed = self.failed = self.skipped = 0

    def add_report(self, path: Path) -> None:
        if not path.exists():
            return
        root = ElementTree.parse(path).getroot()
        for case in root.iter("testcase"):
            kinds = {child.tag for child in case}
            if kinds & {"failure", "error"}:
                self.failed += 1
            elif "skipped" in kinds or case.get("status") == "notrun":
                self.skipped += 1
            else:
                self.passed += 1


def run_cpp(build: Path, jobs: int, only: str | None, tally: Tally) -> bool:
    """Runs every test binary, in two or more processes at a time through ctest."""
    report_dir = Path(tempfile.mkdtemp())
    environment = dict(os.environ, GTEST_OUTPUT=f"xml:{report_dir}/", GTEST_BRIEF="1")
    if only:
        words = {only, only.capitalize(), only.title(), only.upper(), only.lower()}
        environment["GTEST_FILTER"] = ":".join(f"*{word}*" for word in sorted(words))
    command = ["ctest", "--output-on-failure", "-j", str(jobs), "--no-tests=error"]
    ok = subprocess.run(command, cwd=build, env=environment).returncode == 0
    before = tally.failed
    for report in report_dir.glob("*.xml"):
        tally.add_report(report)
    if not ok and tally.failed == before:
        tally.failed += 1  # a crash or a timeout leaves no report
    return ok


def run_pytest(
    paths: list[str], jobs: int, only: str | None, everything: bool, tally: Tally
) -> bool:
    with tempfile.NamedTemporaryFile(suffix=".xml") as report:
        command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report.name}", *paths]
        if not everything:
            command += ["-m", "not slow"]
        if only:
            command += ["-k", only]
        elif jobs > 1:
            command += ["-n", str(jobs), "--dist", "worksteal"]  # long tests stand together
        environment = dict(os.environ, PRONG_TEST_ALL="1" if everything else "")
        status = subprocess.run(command, cwd=ROOT, env=environment).returncode
        tally.add_report(Path(report.name))
        return status == 0 or (only is not None and status == NOTHING_COLLECTED)


def run_python(jobs: int, only: str | None, everything: bool, tally: Tally) -> bool:
    stand_in = [path for path in STAND_IN if (ROOT / path).exists()]
    others = ["tests", *(f"--ignore={path}" for path in stand_in)]
    results = [run_pytest(paths, jobs, only, everything, tally) for paths in (others, stand_in)]
    return all(results)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", help="run what has this word in its name")
    parser.add_argument("--all", action="store_true", help="slow tests and all modes too")
    options = parser.parse_args()
    if options.only and not re.fullmatch(r"[\w .-]+", options.only):
        parser.error(f"T must be a word of a test's name, not {options.only!r}")

    start = time.monotonic()
    tally = Tally()
    cpp_ok = run_cpp(options.build, options.jobs, options.only, tally)
    python_ok = run_python(options.jobs, options.only, options.all, tally)
    if options.only and not tally.passed and not tally.failed:
        print(f"no test has {options.only!r} in its name")
        return 1
    if importlib.util.find_spec("torch") is None:
        print("PyTorch is not installed: tests that compare with it were left out (see .ci/run)")
    seconds = time.monotonic() - start
    print(
        f"===== {tally.passed} passed, {tally.failed} failed, {tally.skipped} skipped "
        f"in {seconds:.1f}s ====="
    )
    return 0 if cpp_ok and python_ok else 1


if __name__ == "__main__":
    sys.exit(main())
