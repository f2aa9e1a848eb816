"""Interleaved timing, used by every script here: variants take turns, so that a noisy machine disturbs all alike."""

import gc
import math
import statistics
import sys
import time

clock = time.perf_counter


def on_one_thread(*modules):
    """One thread for each, and the processor's time instead of the clock's: what a machine that
    others use at the same time disturbs least."""
    global clock
    for module in modules:
        module.set_num_threads(1)
    clock = time.process_time


def interleave(variants, repeats=15, sample_s=0.05, warm=2):
    """Median seconds a call of each zero-argument callable in ``variants`` {name: callable}.

    Each sample is the mean of enough calls to last ``sample_s``; every round times each
    variant once, in rotating order.
    """
    calls = {}
    for name, fn in variants.items():
        for _ in range(warm):
            fn()
        if "prong" in sys.modules:  # native code is made in the background
            sys.modules["prong"].compiler.wait_for_kernels()
        start = clock()
        fn()
        calls[name] = max(1, math.ceil(sample_s / max(clock() - start, 1e-9)))
    samples = {name: [] for name in variants}
    order = list(variants)
    for i in range(repeats):
        k = i % len(order)
        for name in order[k:] + order[:k]:
            fn, n = variants[name], calls[name]
            gc.collect()
            gc.disable()
            start = clock()
            for _ in range(n):
                fn()
            samples[name].append((clock() - start) / n)
            gc.enable()
    return {name: statistics.median(values) for name, values in samples.items()}


def unit(seconds):
    """1.23e-6 → '1.23 µs'."""
    for scale, text in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {text}"
    return f"{seconds / 1e-9:.3g} ns"


def report(title, medians, peer):
    """Prints each median and its ratio to the variant named ``peer``."""
    print(title)
    for name, seconds in medians.items():
        print(f"  {name:36}{unit(seconds):>12}   {seconds / medians[peer]:6.3f} × {peer}")
