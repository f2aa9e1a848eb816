"""Runs one program: run_program.py FILE eager|script. Called by test_programs.py under python -m prong."""

import importlib.util
import math
import sys

import torch


def plain(value):
    """Tensors as lists, inside tuples, lists and dicts too."""
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


def close(got, want):
    if isinstance(got, float) or isinstance(want, float):
        return type(got) is type(want) and (
            got == want
            or math.isclose(got, want, rel_tol=1e-5, abs_tol=1e-6)
            or (got != got and want != want)
        )
    if isinstance(want, (list, tuple)):
        return isinstance(got, list) and len(got) == len(want) and all(map(close, got, want))
    if isinstance(want, dict):
        return (
            isinstance(got, dict)
            and got.keys() == want.keys()
            and all(close(got[k], want[k]) for k in got)
        )
    return type(got) is type(want) and got == want


def main(path, mode):
    spec = importlib.util.spec_from_file_location("the_program", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["the_program"] = module
    spec.loader.exec_module(module)
    target = module.program() if isinstance(module.program, type) else module.program
    run = torch.jit.script(target) if mode == "script" else target
    for arguments, want in module.calls():
        for turn in range(3):  # the second and third find compiled code
            fresh = [a.clone() if isinstance(a, torch.Tensor) else a for a in arguments]
            if isinstance(want, type) and issubclass(want, Exception):
                try:
                    run(*fresh)
                except want:
                    continue
                sys.exit(f"call {arguments}: no {want.__name__}")
            got = plain(run(*fresh))
            if not close(got, want):
                sys.exit(f"call {arguments}, turn {turn}: got {got}, want {want}")
    print("all calls right")


if __name__ == "__main__":
    main(*sys.argv[1:])
