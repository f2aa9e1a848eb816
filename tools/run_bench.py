"""Runs the questions of bench/, one file each, and fails if one of them does; for `make bench`."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="run files with this word in their name")
    options = parser.parse_args()

    files = sorted(
        path
        for path in (ROOT / "bench").glob("*.py")
        if not path.name.startswith("_") and (options.only or "") in path.stem
    )
    if not files:
        print(f"bench/ has no question named {options.only or '*'}")
        return 1
    failed = []
    for path in files:
        print(f"\n== {path.relative_to(ROOT)}", flush=True)
        if subprocess.run([sys.executable, path], cwd=ROOT, env=dict(os.environ)).returncode:
            failed.append(path.name)
    print(f"\n===== {len(files) - len(failed)} ran, {len(failed)} failed {failed or ''}=====")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
