"""Where the size and the build time are: lines a folder, seconds a target, bytes of the package.

Called by `make size`. Compares lines with origin/main where it is known. Blocks nothing.
"""

import argparse
import subprocess
import zipfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CODE = (".h", ".cpp", ".c", ".def", ".py", ".cmake", ".ir", ".toml")
LONG_FILE, LONGEST = 500, 10


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True).stdout


def group_of(name: str) -> str:
    parts = Path(name).parts
    depth = 2 if parts[0] in {"src", "tests", "python"} and len(parts) > 2 else 1
    return "/".join(parts[:depth]) if len(parts) > 1 else "(top)"


def lines_now() -> dict[str, int]:
    names = git("ls-files", "-co", "--exclude-standard").split("\n")
    return {
        name: (ROOT / name).read_text(errors="replace").count("\n")
        for name in names
        if name.endswith(CODE) and (ROOT / name).is_file()
    }


def change_against_main() -> Counter:
    change: Counter = Counter()
    for line in git("diff", "--numstat", "origin/main").splitlines():
        added, removed, name = line.split("\t", 2)
        if name.endswith(CODE) and added != "-":
            change[group_of(name)] += int(added) - int(removed)
    return change


def print_lines() -> None:
    lines = lines_now()
    change = change_against_main()
    groups: Counter = Counter()
    files: Counter = Counter()
    for name, count in lines.items():
        groups[group_of(name)] += count
        files[group_of(name)] += 1
    print(f"{'folder':<24}{'files':>7}{'lines':>9}{'change':>9}")
    for group, count in sorted(groups.items()):
        delta = f"{change[group]:+d}" if change[group] else ""
        print(f"{group:<24}{files[group]:>7}{count:>9}{delta:>9}")
    print(f"{'all':<24}{len(lines):>7}{sum(lines.values()):>9}")
    counts = sorted(lines.values())
    if counts:
        median, p90 = counts[len(counts) // 2], counts[len(counts) * 9 // 10]
        print(f"median {median}, p90 {p90} lines a file")
    long = sorted(((n, f) for f, n in lines.items() if n > LONG_FILE), reverse=True)
    for count, name in long[:LONGEST]:
        print(f"  {count:>6}  {name}")


def target_of(output: str) -> str:
    """CMake's object path .../CMakeFiles/<target>.dir/... or the output itself."""
    parts = output.split("/")
    for part in parts:
        if part.endswith(".dir"):
            return part.removesuffix(".dir")
    return "link " + parts[-1]


def print_build_time(build: Path) -> None:
    """From ninja's log, which keeps start and end (ms) of the last run of each command."""
    log = build / ".ninja_log"
    if not log.exists():
        return
    spent: Counter = Counter()
    slowest: dict[str, int] = {}
    seen: dict[str, tuple[int, int, str]] = {}
    for line in log.read_text().splitlines()[1:]:
        start, end, _, output, command = line.split("\t")
        if not output.endswith((".cmake", "build.ninja", ".verify_globs")):
            seen[output] = (int(start), int(end), command)
    commands = {(start, end, command): output for output, (start, end, command) in seen.items()}
    for (start, end, _), output in commands.items():
        spent[target_of(output)] += end - start
        slowest[output] = end - start
    print(f"\n{'built (last time each)':<40}{'seconds':>9}")
    for target, ms in spent.most_common(20):
        print(f"{target:<40}{ms / 1000:>9.1f}")
    print(f"{'all':<40}{sum(spent.values()) / 1000:>9.1f}   (work of all cores together)")
    for output, ms in sorted(slowest.items(), key=lambda item: -item[1])[:LONGEST]:
        print(f"  {ms / 1000:>6.1f}  {output.split('/CMakeFiles/')[-1]}")


def print_wheel(build: Path) -> None:
    """The wheel as it would be: the module stripped, OpenBLAS and Python files, deflated."""
    out = build / "size"
    out.mkdir(exist_ok=True)
    command = ["cmake", "--install", str(build), "--component", "python", "--strip"]
    subprocess.run([*command, "--prefix", str(out)], check=True, capture_output=True)
    wheel = out / "estimate.zip"
    installed = 0
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        entries = [(path, path.relative_to(out)) for path in (out / "prong").rglob("*")]
        sources = (ROOT / "python/prong").rglob("*.py*")
        entries += [(path, path.relative_to(ROOT / "python")) for path in sources]
        for path, name in entries:
            if path.is_file() and "__pycache__" not in path.parts:
                archive.write(path, name)
                installed += path.stat().st_size
    packed = wheel.stat().st_size
    print(f"\nwheel {packed / 1e6:.1f} MB (limit 35), installed {installed / 1e6:.1f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, required=True)
    options = parser.parse_args()
    print_lines()
    print_build_time(options.build)
    print_wheel(options.build)


if __name__ == "__main__":
    main()
