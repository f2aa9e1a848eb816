"""Variables of enclosing functions and of modules that a compiled function assigns."""

import prong as torch

total, seen = 0, None


def counter():
    n = 0

    @torch.compile
    def step(x):
        nonlocal n
        n += 1
        return x * n

    return step, lambda: n


def test_a_counter_in_a_closure_is_one_plan():
    step, count = counter()
    for i in range(1, 7):
        assert step(torch.ones(2)).tolist() == [float(i)] * 2
        assert count() == i
    assert (step._counters()["plans"], step._counters()["replays"]) == (1, 5)


def test_two_closures_of_one_function_count_apart():
    (first, count), (second, other) = counter(), counter()
    for _ in range(3):
        first(torch.ones(2))
    second(torch.ones(2))
    assert (count(), other()) == (3, 1)


def test_tensors_and_containers_in_a_closure():
    def make():
        last, history = None, ()

        def step(x):
            nonlocal last, history
            previous, last = last, x * 2
            history = (last, x)
            return last if previous is None else last + previous

        return step, lambda: (last, history)

    (plain, plainly), (step, kept) = make(), make()
    compiled = torch.compile(step)
    for i in range(5):
        x = torch.ones(2) * i
        assert compiled(x).tolist() == plain(x).tolist()
        assert kept()[0].tolist() == plainly()[0].tolist()
        assert kept()[1][0] is kept()[0] and kept()[1][1] is x


def test_a_variable_is_read_after_it_was_assigned():
    def make():
        n = 1

        def bump():
            nonlocal n
            n = n * 2
            return n

        def step(x):
            nonlocal n
            n += 1
            x = x * bump()
            n = n - 1
            return x + n

        return step, lambda: n

    (plain, plainly), (step, kept) = make(), make()
    compiled = torch.compile(step)
    for _ in range(5):
        assert compiled(torch.ones(2)).tolist() == plain(torch.ones(2)).tolist()
        assert kept() == plainly()
    assert (compiled._counters()["plans"], compiled._counters()["replays"]) == (1, 4)


def test_globals_are_assigned_in_each_replay():
    @torch.compile
    def step(x):
        global total, seen
        total += 2
        seen = x + total
        return seen * 2

    for i in range(1, 6):
        x = torch.ones(2)
        assert step(x).tolist() == [2.0 + 4 * i] * 2
        assert total == 2 * i and seen.tolist() == [1.0 + 2 * i] * 2
    assert (step._counters()["plans"], step._counters()["replays"]) == (1, 4)
