"""Fails if an object for one machine level defines a symbol that others may define too.

Usage: check_simd_symbols.py ISA NM OBJECT...   (run by ctest, see tests/CMakeLists.txt)

Inline functions and templates are weak symbols: the linker keeps any one of the copies. If it kept
one compiled for x86-64-v4, the whole program would need that machine. So every weak symbol of a
*_simd.cpp file must be in namespace prong::ISA.
"""

import subprocess
import sys

WEAK = set("WVuw")  # nm: weak function, weak object, unique global
HARMLESS = ("DW.ref.", "typeinfo", "vtable")  # data, the same at every level


def main(isa: str, nm: str, objects: list[str]) -> int:
    wrong = []
    for path in objects:
        listing = subprocess.run(
            [nm, "--defined-only", "--demangle", path], capture_output=True, text=True, check=True
        ).stdout
        for line in listing.splitlines():
            kind, name = line.split(maxsplit=2)[1:]
            if kind in WEAK and f"prong::{isa}::" not in name and not name.startswith(HARMLESS):
                wrong.append(f"{path.rsplit('/', 1)[-1]}: {name}")
    if wrong:
        print(f"not in namespace prong::{isa}, so that another file's copy may be replaced:")
        print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
