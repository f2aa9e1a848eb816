"""Compares many random programs, in several processes, and makes those that differ small. The command line of
random_programs.py."""

import argparse
import logging
import multiprocessing
import os
import time

import random_functions
import random_programs
import random_replays

KINDS = {
    "functions": (random_programs, random_functions),
    "replays": (random_replays, random_replays),
}
LIMIT_S = 60  # for one program: then it hangs


def backend_of(seed):
    return "interpreter" if seed % 8 else "llvm"


def compare(kind, source, seed, tally=None):
    """Like compare_source, and a program that ends the comparison itself is one that differs."""
    try:
        return KINDS[kind][0].compare_source(source, seed, backend_of(seed), tally)
    except Exception as error:
        return f"program {seed}: the comparison raised {type(error).__name__}: {error}\n{source}"


# ── making a program small ──


def indent(line):
    return len(line) - len(line.lstrip())


def smaller(lines):
    """Each program that is this one without a statement, or with a block in place of its head."""
    for first, line in enumerate(lines):
        end = first + 1
        while end < len(lines) and indent(lines[end]) > indent(line):
            end += 1
        yield lines[:first] + lines[end:]
        if line.strip() != "pass":
            yield [*lines[:first], " " * indent(line) + "pass", *lines[end:]]
        if end > first + 1:
            by = indent(lines[first + 1]) - indent(line)
            yield lines[:first] + [inner[by:] for inner in lines[first + 1 : end]] + lines[end:]


def shrink(kind, source, seed, limit_s=40):
    """The smallest program found that differs too, as the text that says where."""
    text = compare(kind, source, seed)
    prelude, rest = random_programs.in_two(source)
    lines = rest.split("\n")
    until, is_shrinking = time.monotonic() + limit_s, True
    while is_shrinking and time.monotonic() < until:
        is_shrinking = False
        for candidate in smaller(lines):
            if len("".join(candidate)) >= len("".join(lines)):
                continue
            try:
                compile("\n".join(candidate), "<smaller>", "exec")
                found = KINDS[kind][0].compare_source(
                    prelude + "\n".join(candidate), seed, backend_of(seed)
                )
            except Exception:
                continue  # no program any more
            if found:
                text, lines, is_shrinking = found, candidate, True
                break
    return text.replace(prelude, "\n")


# ── processes ──


def work(kinds, first, count, now, out):
    """Compares the programs of some seeds; `now` shows which one it is at."""
    logging.disable(logging.WARNING)  # what is said of functions with many plans
    tally = {"programs": 0, "calls": 0, "replays": 0}
    for seed in range(first, first + count):
        now.value = seed
        kind = kinds[seed % len(kinds)]
        source = KINDS[kind][1].Writer(seed).write()
        if compare(kind, source, seed, tally):
            out.put(("different", shrink(kind, source, seed)))
        tally["programs"] += 1
        if tally["programs"] == 200 or seed + 1 == first + count:
            out.put(("tally", tally))
            tally = dict.fromkeys(tally, 0)


class Worker:
    """A process with its seeds; after a program that ends or stops it, another one takes up the rest."""

    def __init__(self, kinds, first, count, out):
        self.kinds, self.end, self.out = kinds, first + count, out
        self.start(first)

    def start(self, first):
        context = multiprocessing.get_context("spawn")
        self.now = context.Value("q", first, lock=False)
        self.seen, self.since = first, time.monotonic()
        self.process = context.Process(
            target=work, args=(self.kinds, first, self.end - first, self.now, self.out), daemon=True
        )
        self.process.start()

    def fault(self):
        """None while all is well; else what went wrong, and the next process has begun."""
        now = time.monotonic()
        if self.now.value != self.seen:
            self.seen, self.since = self.now.value, now
        if self.process.is_alive() and now - self.since < 2 * LIMIT_S:
            return None
        if self.process.exitcode == 0:
            return None
        what = f"died (exit status {self.process.exitcode})"
        if self.process.is_alive():
            self.process.kill()
            what = "hangs"
        seed = self.now.value
        kind = self.kinds[seed % len(self.kinds)]
        if seed + 1 < self.end:
            self.start(seed + 1)
        return f"program {seed} {what}:\n{KINDS[kind][1].Writer(seed).write()}"


def run(kinds, count, first, processes, most):
    context = multiprocessing.get_context("spawn")
    out = context.Queue()
    share = -(-count // processes)
    workers = [
        Worker(kinds, first + i * share, min(share, count - i * share), out)
        for i in range(processes)
        if i * share < count
    ]
    total = {"programs": 0, "calls": 0, "replays": 0, "different": 0}
    told, is_running = time.monotonic(), True
    while is_running and total["different"] < most:
        is_running = any(w.process.is_alive() for w in workers)
        texts = [text for text in (w.fault() for w in workers) if text]
        is_running |= bool(texts)
        while not out.empty():
            what, got = out.get()
            if what == "different":
                texts.append(got)
            else:
                for key, value in got.items():
                    total[key] += value
        for text in texts:
            total["different"] += 1
            print(text, flush=True)
        if time.monotonic() - told > 60:
            told = time.monotonic()
            print(f"{total['programs']} programs, {total['different']} differ", flush=True)
        time.sleep(0.2)
    for w in workers:
        w.process.kill()
    return total


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--kind", choices=("functions", "replays", "both"), default="both")
    parser.add_argument("--most", type=int, default=5, help="ends after so many differences")
    options = parser.parse_args(arguments)
    # For the processes: calls are too few for kernels that are made in the background.
    os.environ.setdefault("PRONG_SKIP", "background")
    kinds = tuple(KINDS) if options.kind == "both" else (options.kind,)
    began = time.monotonic()
    total = run(kinds, options.count, options.seed, options.processes, options.most)
    seconds = time.monotonic() - began
    print(
        f"{total['programs']} programs, {total['calls']} calls compared, {total['replays']} of them "
        f"replayed plans; {total['different']} programs differ; {seconds:.0f} s, "
        f"{total['programs'] / seconds:.0f} programs a second"
    )
    return total["different"] > 0
