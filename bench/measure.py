"""Interleaved timing, used by every script here: variants take turns, so that a noisy machine disturbs all alike."""

import gc
import math
import statistics
import time


def interleave(variants, repeats=15, sample_s=0.05, warm=2):
    """Median seconds a call of each zero-argument callable in ``variants`` {name: callable}.

    Each sample is the mean of enough calls to last ``sample_s``; every round times each
    variant once, in rotating order.
    """
    calls = {}
    for name, fn in variants.items():
        for _ in range(warm):
            fn()
        start = time.perf_counter()
        fn()
        calls[name] = max(1, math.ceil(sample_s / max(time.perf_counter() - start, 1e-9)))
    samples = {name: [] for name in variants}
    order = list(variants)
    for i in range(repeats):
        k = i % len(order)
        for name in order[k:] + order[:k]:
            fn, n = variants[name], calls[name]
            gc.collect()
            gc.disable()
            start = time.perf_counter()
            for _ in range(n):
                fn()
            samples[name].append((time.perf_counter() - start) / n)
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
