"""Prints passed/total by op over PyTorch's samples: `python tests/parity/opinfo/table.py [op ...]`."""

import argparse
import faulthandler
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import op_samples as samples


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ops", nargs="*", help="names; default: all of names.txt")
    parser.add_argument("--limit", type=int, help="samples of each dtype")
    parser.add_argument("--failures", type=int, default=3, help="failures shown of each op")
    options = parser.parse_args()
    faulthandler.enable()
    passed = total = 0
    chosen = [op for op in samples.listed_ops() if not options.ops or op.name in options.ops]
    if options.ops and not chosen:
        chosen = [op for op in samples.op_db if op.name in options.ops]
    for op in chosen:
        print(f"{samples.label(op):45}", end="", flush=True)
        count = samples.OpRun(op, options.limit).run()
        passed, total = passed + count.passed, total + count.total
        print(f"{count.passed:6} / {count.total}", flush=True)
        for text in count.failures[: options.failures]:
            print("    " + text)
    print(f"{'all':45}{passed:6} / {total}  ({100 * passed / max(1, total):.2f} %)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
