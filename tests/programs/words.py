"""Strings, dicts and formatting, with no tensor at all."""

from typing import Dict, List


def program(text: str, width: int = 4) -> Dict[str, List[int]]:
    where: Dict[str, List[int]] = {}
    words = text.lower().split(" ")
    for i, word in enumerate(words):
        key = word.strip(".,")[:width]
        if key not in where:
            where[key] = []
        where[key].append(i)
    summary = f"{len(where)} of {len(words):>3}"
    where[summary] = [len(summary)]
    return where


def calls():
    yield ("The cat, the hat.",), {"the": [0, 2], "cat": [1], "hat": [3], "3 of   4": [8]}
