"""Returns, breaks and continues out of nested loops and branches."""

from typing import List


def program(limits: List[int], stop: int) -> List[int]:
    found: List[int] = []
    for limit in limits:
        if limit < 0:
            continue
        n = 0
        while True:
            n += 3
            if n > limit:
                break
            if n == stop:
                found.append(-1)
                return found
            if n % 2 == 0:
                continue
            found.append(n)
    return found


def calls():
    yield ([4, -1, 10], 100), [3, 3, 9]
    yield ([4, 10], 6), [3, 3, -1]
    yield ([], 1), []
