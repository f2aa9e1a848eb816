"""`python -m prong`: runs a script, a module or a line of code as Python does; torch is Prong."""

import builtins
import importlib.machinery
import io
import os
import runpy
import sys
import types

from prong import _alias
from prong.version import __version__

_USAGE = """usage: python -m prong script.py [arguments]
       python -m prong -m module [arguments]
       python -m prong -c code [arguments]
Runs the program with `import torch` meaning Prong."""


def main(arguments: list[str]) -> int:
    """Runs what the arguments name; gives the exit status."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_USAGE, file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    if arguments[0] in ("-V", "--version"):
        print(f"prong {__version__}")
        return 0
    first, *rest = arguments
    if first in ("-m", "-c") and not rest:
        print(
            f"python -m prong: argument expected for the {first} option\n{_USAGE}", file=sys.stderr
        )
        return 2
    if first.startswith("-") and first not in ("-m", "-c"):
        print(f"python -m prong: unknown option {first}\n{_USAGE}", file=sys.stderr)
        return 2
    _alias.install()
    _alias.reach_children()
    try:
        if first == "-m":
            _run_module(rest[0], rest[1:])
        elif first == "-c":
            _run_code(rest[0], rest[1:])
        else:
            return _run_file(first, rest)
    except Exception as error:
        _report(error)
        return 1
    return 0


def _report(error: Exception) -> None:
    """Prints the traceback as Python would, without the runner's own frames."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code.co_filename in (
        __file__,
        runpy.__file__,
        "<frozen runpy>",
    ):
        traceback = traceback.tb_next
    error.__traceback__ = traceback
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, traceback
    sys.stdout.flush()
    sys.excepthook(type(error), error, traceback)


def _new_main(**attributes) -> types.ModuleType:
    module = types.ModuleType("__main__")
    module.__dict__.update(__builtins__=builtins, __spec__=None, **attributes)
    sys.modules["__main__"] = module
    return module


def _run_file(path: str, arguments: list[str]) -> int:
    sys.argv = [path, *arguments]
    if os.path.isdir(path) or (
        os.path.exists(path) and not path.endswith(".py") and _is_archive(path)
    ):
        _new_main()
        sys.path.pop(0)
        runpy.run_path(path, run_name="__main__")
        return 0
    try:
        with io.open_code(os.path.abspath(path)) as file:
            source = file.read()
    except OSError as error:
        print(
            f"{sys.executable}: can't open file {os.path.abspath(path)!r}: "
            f"[Errno {error.errno}] {error.strerror}",
            file=sys.stderr,
        )
        return 2
    sys.path[0] = os.path.dirname(os.path.realpath(path))
    loader = importlib.machinery.SourceFileLoader("__main__", path)
    module = _new_main(__file__=path, __cached__=None, __loader__=loader)
    exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)
    return 0


def _is_archive(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(4) == b"PK\x03\x04"


def _run_module(name: str, arguments: list[str]) -> None:
    sys.argv = ["-m", *arguments]
    sys.path[0] = os.getcwd()
    _new_main()
    runpy._run_module_as_main(name, alter_argv=True)  # type: ignore[attr-defined]


def _run_code(code: str, arguments: list[str]) -> None:
    sys.argv = ["-c", *arguments]
    sys.path[0] = ""
    module = _new_main(__loader__=importlib.machinery.BuiltinImporter)
    exec(compile(code, "<string>", "exec", dont_inherit=True), module.__dict__)
