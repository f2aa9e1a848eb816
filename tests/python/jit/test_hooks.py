"""Forward hooks in scripted modules: they run where the Python module runs them."""

import io
from typing import Tuple

import prong
import pytest
from prong import nn
from prong.jit import script


class Part(nn.Module):
    def forward(self, x: prong.Tensor, scale: float = 2.0):
        return x * scale


class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()
        self.parts = nn.ModuleList([Part(), Part()])

    def forward(self, x):
        for part in self.parts:
            x = part(x, 2.0)
        later = prong.jit.fork(self.part, x, 3.0)
        return prong.jit.wait(later), self.part.forward(x)


def one_more(self, input: Tuple[prong.Tensor, float]) -> Tuple[prong.Tensor, float]:
    return input[0] + 1, input[1]


def watch(self, input: Tuple[prong.Tensor, float]):
    print("in:", input[1])


def negate(self, input: Tuple[prong.Tensor, float], output: prong.Tensor):
    return -output


def look(self, input: Tuple[prong.Tensor, float], output: prong.Tensor) -> None:
    print("out:", output.sum())


def hooked():
    m = Whole()
    m.part.register_forward_pre_hook(one_more)
    m.part.register_forward_hook(negate)
    m.parts[1].register_forward_pre_hook(watch)
    m.parts[1].register_forward_hook(look)
    m.parts[1].register_forward_hook(negate)
    return m


def test_they_run_around_calls_and_not_around_forward(capsys):
    m = hooked()
    x = prong.ones(2)
    want = m(x)
    said = capsys.readouterr().out
    got = script(m)(x)
    assert repr(got) == repr(want)
    assert "in: 2.0" in said and capsys.readouterr().out.split() == said.split()


def test_of_the_outermost_module_too_and_saved_with_it():
    m = Part()
    m.register_forward_hook(negate)
    s = script(m)
    x = prong.arange(3.0)
    assert prong.equal(s(x), m(x)) and prong.equal(s(x, scale=5.0), -x * 5)
    assert prong.equal(s.forward(x), x * 2)
    file = io.BytesIO()
    prong.jit.save(s, file)
    file.seek(0)
    assert prong.equal(prong.jit.load(file)(x), m(x))


def test_modules_with_other_hooks_are_compiled_apart():
    plain, with_hook = Part(), Part()
    handle = with_hook.register_forward_hook(negate)
    x = prong.ones(2)
    assert script(plain)(x).sum() == 4 and script(with_hook)(x).sum() == -4
    handle.remove()
    assert script(with_hook)(x).sum() == 4


def test_hooks_added_after_scripting_run_in_python():
    s = script(Part())
    s.register_forward_hook(lambda module, args, output: output + 100)
    assert s(prong.ones(1)).item() == 102


def test_what_cannot_be_scripted_says_so():
    m = Part()
    m.register_forward_hook(lambda module, args, output: output)
    with pytest.raises(RuntimeError, match="plain functions"):
        script(m)
    m = Part()
    m.register_forward_hook(negate, always_call=True)
    with pytest.raises(RuntimeError, match="always_call"):
        script(m)
