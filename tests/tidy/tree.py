"""The tracked files of the repository, for the tests of this folder."""

import functools
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LAYERS = (ROOT / "src/LAYERS").read_text().split()


@functools.cache
def files(*patterns: str) -> list[Path]:
    """Files that git tracks or would track, matching any of the patterns (all, if none)."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", *patterns],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    paths = (ROOT / name for name in listing.split("\0") if name)
    return sorted(path for path in paths if path.is_file())


def cpp_files(folder: str = "src") -> list[Path]:
    return files(*(f"{folder}/*.{ext}" for ext in ("h", "cpp", "c", "def")))


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))
