"""Lists, tuples and dicts that a compiled function is given: other objects at each call, one plan."""

import prong as torch
import pytest


def sum_of_two(xs):
    return xs[0] * 2 + xs[1]


def entries_by_name(batch):
    return {"y": batch["x"] + batch["m"] * batch["scale"], "x": batch["x"]}


def walk_and_sum(xs):
    total = 0
    for k, x in enumerate(xs):
        total = total + x.sum() * k
    return total


def take_apart(pair):
    (a, b), more = pair
    return a @ b + more["w"][0]


def names_and_stack(batch):
    return [name + str(x.dim()) for name, x in batch.items()], torch.stack(list(batch.values()))


def total_by_keyword(**given):
    return sum(x.sum() for x in given["batch"])


def full(*sizes):
    *sizes, value = sizes
    return torch.full(sizes, float(value))


PROGRAMS = [
    (sum_of_two, lambda i: ([full(2, i), full(2, 3)],), {}),
    (sum_of_two, lambda i: ((full(2, i), full(2, 3)),), {}),
    (entries_by_name, lambda i: ({"x": full(3, i), "m": full(3, 2), "scale": 2},), {}),
    (walk_and_sum, lambda i: ([full(2, i + j) for j in range(4)],), {}),
    (take_apart, lambda i: (((full(2, 2, i), full(2, 2, 1)), {"w": [full(2, 2, i)]}),), {}),
    (names_and_stack, lambda i: ({"a": full(2, i), "b": full(2, 1)},), {}),
    (total_by_keyword, lambda i: (), {"batch": [torch.ones(2), torch.ones(3)]}),
]


@pytest.mark.parametrize(("function", "arguments", "by_name"), PROGRAMS)
def test_new_containers_at_each_call_are_one_plan(function, arguments, by_name):
    compiled = torch.compile(function)
    for i in range(6):
        given = arguments(i)
        got = compiled(*given, **by_name)
        assert repr(got) == repr(function(*arguments(i), **by_name))
        assert repr(given) == repr(arguments(i))
    assert compiled._counters()["plans"] == 1
    assert compiled._counters()["replays"] == 5


def test_other_lengths_keys_and_orders_are_other_plans():
    compiled = torch.compile(names_and_stack)
    batches = [{"a": 1}, {"a": 1, "b": 2}, {"b": 1, "a": 2}, {"c": 1}]
    for _ in range(3):
        for batch in batches:
            given = {name: full(2, value) for name, value in batch.items()}
            assert repr(compiled(given)) == repr(names_and_stack(given))
    assert compiled._counters()["plans"] == 4 and compiled._counters()["replays"] == 8


def test_what_is_given_comes_back_itself():
    compiled = torch.compile(lambda xs, d: (xs, d["inner"], xs[0] * 2))
    for i in range(5):
        xs, inner = [full(1, i)], [1, 2]
        same, same_inner, _ = compiled(xs, {"inner": inner})
        assert same is xs and same_inner is inner
    assert compiled._counters()["replays"] >= 3


def test_changes_to_what_is_given_are_made_each_time():
    @torch.compile
    def grow(xs):
        xs.append(xs[-1] + 1)
        return len(xs)

    for i in range(5):
        xs = [full(1, i)]
        assert grow(xs) == 2 and xs[1].item() == i + 1


def test_one_list_given_twice_is_told_from_two():
    @torch.compile
    def f(a, b):
        return a is b, a[0] + b[0]

    for i in range(8):
        a, b = [full(1, i)], [full(1, 2)]
        assert f(a, b)[0] is False
        assert f(a, a)[0] is True


def test_a_global_list_may_be_what_is_given():
    kept = [full(1, 1)]

    @torch.compile
    def f(xs):
        kept.append(xs[0] * 2)
        return xs[-1] + len(xs)

    for i in range(6):
        xs = kept if i == 4 else [full(1, i)]
        before = len(xs)
        want = (xs[0] * 2 if xs is kept else xs[-1]) + len(xs) + (xs is kept)
        assert f(xs).item() == want.item()
        assert len(xs) == before + (xs is kept)


def test_the_reason_names_the_item():
    def f(batch):
        return batch["x"] + 1

    assert "item 'x' of argument 'batch'" in str(torch._dynamo.explain(f)({"x": full(2, 1)}))
