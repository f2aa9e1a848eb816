"""Builds and runs the C++ tests under one sanitizer, in a build folder of its own; then, with the
Python module built so too, the tests of capture, whose code only runs inside Python.

Called by `make asan`, `make ubsan` and `make tsan`.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON_TESTS = ("tests/capture", "tests/python/autograd")
PRESETS = {"address": "asan", "undefined": "ubsan", "thread": "tsan"}


def options_of(sanitizer: str) -> dict[str, str]:
    """What each sanitizer is told. An allocation that is too big fails, as it does without one."""
    suppressions = f"suppressions={ROOT}/tools/sanitize/{PRESETS[sanitizer]}.supp"
    return {
        "address": {
            "ASAN_OPTIONS": "detect_stack_use_after_return=1:allocator_may_return_null=1",
            "LSAN_OPTIONS": suppressions + ":print_suppressions=0",
        },
        "undefined": {"UBSAN_OPTIONS": "print_stacktrace=1"},
        "thread": {
            "TSAN_OPTIONS": f"{suppressions}:second_deadlock_stack=1:history_size=4"
            # Prong's pool works in a forked child, which TSan would end at its first thread.
            ":die_after_fork=0:allocator_may_return_null=1"
        },
    }[sanitizer]


def without_address_randomisation() -> list[str]:
    """TSan of older compilers cannot map its shadow where the kernel randomises much."""
    works = subprocess.run(["setarch", "-R", "true"], capture_output=True)
    return ["setarch", "-R"] if works.returncode == 0 else []


def package_of(build: Path) -> Path:
    """The package as it lies in the sources, but with the module of `build`; what to import from."""
    home = build / "package"
    package = home / "prong"
    shutil.rmtree(home, ignore_errors=True)
    package.mkdir(parents=True)
    for entry in (ROOT / "python" / "prong").iterdir():
        if entry.suffix != ".so" and entry.name != "__pycache__":
            (package / entry.name).symlink_to(entry)
    (module,) = (build / "src" / "bindings").glob("_core*.so")
    (package / module.name).symlink_to(module)
    return home


def run_python(sanitizer: str, build: Path, environment: dict[str, str]) -> int:
    """The tests whose code only runs inside Python. The interpreter itself is not instrumented:
    what it never frees is not ours, so leaks are looked for in the C++ tests only."""
    runtime = {"address": "libasan.so", "thread": "libtsan.so", "undefined": "libubsan.so"}[
        sanitizer
    ]
    # libstdc++ too: ASan looks for what throws when the program starts, and Python has no C++ in it.
    preloaded = []
    for library in (runtime, "libstdc++.so"):
        found = subprocess.run(
            ["gcc", f"-print-file-name={library}"], capture_output=True, text=True, check=True
        )
        preloaded.append(found.stdout.strip())
    environment = {
        **environment,
        "LD_PRELOAD": " ".join(preloaded),
        "PYTHONMALLOC": "malloc",  # so that each object is a block of its own
        "PYTHONPATH": str(package_of(build)),
    }
    if sanitizer == "address":
        environment["ASAN_OPTIONS"] += ":detect_leaks=0"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout=900"]
    if sanitizer == "thread":
        command = [*without_address_randomisation(), *command]
    return subprocess.run([*command, *PYTHON_TESTS], cwd=ROOT, env=environment).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sanitizer", choices=PRESETS)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", help="run test programs with this word in their name")
    options = parser.parse_args()

    preset = PRESETS[options.sanitizer]
    build = ROOT / "build" / preset
    for command in (
        ["cmake", "--preset", preset, f"-DPython_EXECUTABLE={sys.executable}"],
        ["cmake", "--build", str(build), "-j", str(options.jobs)],
    ):
        done = subprocess.run(command, cwd=ROOT)
        if done.returncode:
            return done.returncode

    environment = {
        "PRONG_STRESS": "10",
        **os.environ,
        "GTEST_BRIEF": "1",
        **options_of(options.sanitizer),
    }
    command = ["ctest", "--output-on-failure", "--no-tests=error", "--timeout", "600"]
    if options.only:
        command += ["-R", options.only]
    if options.sanitizer == "thread":
        command = without_address_randomisation() + command
    done = subprocess.run(command, cwd=build, env=environment)
    if done.returncode or options.only:
        return done.returncode
    return run_python(options.sanitizer, build, environment)


if __name__ == "__main__":
    sys.exit(main())
