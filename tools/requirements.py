"""Prints the pinned requirements of pyproject.toml, for pip; called by the Makefile.

Usage: requirements.py [GROUP]...   the build requirements, the run-time ones and the groups named
"""

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main(groups: list[str]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = project["build-system"]["requires"] + project["project"]["dependencies"]
    for group in groups:
        wanted += project["dependency-groups"][group]
    print("\n".join(wanted))


if __name__ == "__main__":
    main(sys.argv[1:])
