"""Plans of programs that ask enums, classes and context variables: replayed while these are as they were."""

import contextvars
import enum

import prong as torch


class Mode(enum.Enum):
    ADD = 1
    MUL = 2

    @property
    def label(self):
        return self.name.lower()


def test_members_of_enums_are_followed():
    @torch.compile
    def f(x, mode):
        y = x + 1 if mode is Mode.ADD else x * 2
        return y * mode.value, mode.name, mode.label

    x = torch.ones(2)
    for _ in range(3):
        for mode in Mode:
            y = x + 1 if mode is Mode.ADD else x * 2
            assert str(f(x, mode)) == str((y * mode.value, mode.name, mode.label))
    assert f._counters()["replays"] == 4, f._counters()


def test_names_of_classes_are_followed_and_guarded():
    class Block:
        def go(self, x):
            return x * 2, type(self).__name__, self.__class__.__mro__

    @torch.compile
    def f(block, x):
        return block.go(x)

    block, x = Block(), torch.ones(1)
    for _ in range(3):
        assert f(block, x)[1:] == ("Block", (Block, object))
    assert f._counters()["replays"] == 2, f._counters()
    Block.__name__ = "Other"
    assert f(block, x)[1] == "Other"


def test_a_context_variable_is_read_in_each_call():
    current = contextvars.ContextVar("current")

    @torch.compile
    def f(x):
        return x * current.get(5.0)

    def calls(wanted):
        for _ in range(3):
            assert f(torch.ones(1)).tolist() == [wanted]

    calls(5.0)
    token = current.set(2.0)
    calls(2.0)
    current.set(torch.tensor([7.0]))
    calls(7.0)
    current.reset(token)
    calls(5.0)
    context = contextvars.copy_context()
    context.run(current.set, 9.0)
    assert context.run(f, torch.ones(1)).tolist() == [9.0]
    calls(5.0)
    assert f._counters()["replays"] >= 8, f._counters()


def test_a_context_variable_without_a_value_raises():
    current = contextvars.ContextVar("current")

    @torch.compile
    def f(x):
        try:
            return x * current.get()
        except LookupError:
            return x - 1

    for value in (None, None, 3.0, 3.0):
        if value:
            current.set(value)
        assert f(torch.ones(1)).tolist() == [value or 0.0]
