"""make demo: the LSTM ensemble, forked in four ways, on Prong and (where it is installed) on PyTorch.

Each variant runs in a process of its own, Prong and PyTorch in turn, so that neither disturbs the other's threads.
Prints times, speed-ups and the largest difference; writes out/timeline.html and out/trace.json.
"""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLE = os.path.join(HERE, "lstm_ensemble.py")
VARIANTS = {
    "nothing": "one after another",
    "directions": "directions forked",
    "models": "models forked",
    "both": "both forked",
}


def run(on_prong, *args):
    command = [sys.executable, *(["-m", "prong"] if on_prong else ["-W", "ignore"]), EXAMPLE, *args]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def largest_difference(a, b):
    import numpy

    return float(abs(numpy.load(a) - numpy.load(b)).max())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--channels", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--out", default="out")
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    size = ["--channels", str(args.channels), "--repeats", "3"]
    sides = [True] + ([False] if importlib.util.find_spec("torch") else [])
    file = {
        (side, fork): os.path.join(args.out, f"{'prong' if side else 'torch'}_{fork}.npy")
        for side in sides
        for fork in VARIANTS
    }
    times = {key: [] for key in file}

    print(
        f"Ensemble of 4 bidirectional LSTMs, T, B, C = 50, 50, {args.channels}; {os.cpu_count()} CPUs; "
        f"seconds, median of {3 * args.rounds}"
    )
    for _ in range(args.rounds):
        for fork in VARIANTS:
            for side in sides:
                times[side, fork] += run(side, "--fork", fork, "--save", file[side, fork], *size)[
                    "seconds"
                ]
    median = {key: statistics.median(values) for key, values in times.items()}

    header = f"{'':20}{'Prong':>9}{'speed-up':>10}"
    if len(sides) == 2:
        header += f"{'PyTorch':>10}{'speed-up':>10}{'Prong/PyTorch':>15}{'difference':>12}"
    print(header)
    for fork, title in VARIANTS.items():
        line = f"{title:20}{median[True, fork]:9.3f}{median[True, 'nothing'] / median[True, fork]:9.2f}x"
        if len(sides) == 2:
            line += (
                f"{median[False, fork]:10.3f}{median[False, 'nothing'] / median[False, fork]:9.2f}x"
            )
            line += f"{median[True, fork] / median[False, fork]:15.2f}"
            line += f"{largest_difference(file[True, fork], file[False, fork]):12.1e}"
        print(line)
    if len(sides) == 2:
        best = {side: min(median[side, fork] for fork in VARIANTS) for side in sides}
        print(
            f"best of each: Prong {best[True]:.3f} s, PyTorch {best[False]:.3f} s, ratio {best[True] / best[False]:.2f}"
        )
    else:
        print("PyTorch is not installed here, so it was not measured.")

    timeline, trace = os.path.join(args.out, "timeline.html"), os.path.join(args.out, "trace.json")
    run(True, "--fork", "both", "--timeline", timeline, "--trace", trace, *size)
    print(f"timeline of one run: {timeline} (open it in a browser); Chrome trace: {trace}")


if __name__ == "__main__":
    main()
