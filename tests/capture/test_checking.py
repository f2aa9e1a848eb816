"""mode="check": what differs from eager is found, with its node and line."""

import operator

import prong as torch
import pytest

Differs = torch._dynamo.exc.CompiledDiffers


def with_other(target, other):
    def backend(module, example_inputs):
        for node in module.graph.nodes:
            if node.target is target:
                node.target = other
        module.recompile()
        return module

    return backend


def with_result(change):
    return lambda module, inputs: lambda *args: tuple(change(value) for value in module(*args))


def line(f, offset):
    return rf"test_checking.py:{f.__code__.co_firstlineno + offset}\)"


def three_steps(x):
    a = x * 2
    b = a.sin()
    return b + 1


def writes(x):
    y = x * 2
    x.add_(1)
    return y + x


X = torch.arange(6.0).reshape(2, 3)


def test_the_node_that_is_wrong_is_named_though_it_is_no_result():
    f = torch.compile(three_steps, backend=with_other(torch.sin, torch.cos), mode="check")
    for _ in range(2):
        with pytest.raises(Differs, match=rf"first at sin_1 \(.*{line(three_steps, 2)}.*6 of 6"):
            f(X)


@pytest.mark.parametrize(
    "change, text",
    [
        (lambda v: v.double(), "the compiled dtype is float64, eager's is float32"),
        (lambda v: v.reshape(-1), r"the compiled shape is \[6\], eager's is \[2, 3\]"),
        (lambda v: v.t().contiguous().t(), r"the compiled strides are \[1, 2\], eager's are"),
        (lambda v: v.clone().index_fill_(1, torch.tensor([2]), 9), r"2 of 6 .*first at \[0, 2\]"),
    ],
)
def test_dtypes_shapes_strides_and_single_values(change, text):
    with pytest.raises(Differs, match=text):
        torch.compile(three_steps, backend=with_result(change), mode="check")(X)


def test_writes_in_place():
    def without_writes(module, example_inputs):
        for node in module.graph.nodes:
            if node.meta.get("writes"):
                module.graph.erase_node(node)
        module.recompile()
        return module

    def writes_more(module, example_inputs):
        def run(*args):
            results = module(*args)
            args[0].mul_(2)
            return results

        return run

    with pytest.raises(Differs, match=rf"input arg_1, which add_ \(.*{line(writes, 2)} writes"):
        torch.compile(writes, backend=without_writes, mode="check")(X.clone())
    with pytest.raises(Differs, match="input arg_1, which no node writes"):
        torch.compile(three_steps, backend=writes_more, mode="check")(X.clone())


def test_gradients_have_the_line_of_the_backward_pass():
    w = torch.ones(3, requires_grad=True)

    def step(x):
        loss = (x * w).sin().sum()
        loss.backward()
        return loss.item()

    f = torch.compile(step, backend=with_other(torch.cos, torch.sin), mode="check")
    with pytest.raises(Differs, match=rf"cos_1 \(.*{line(step, 2)}"):
        f(X)


def test_random_numbers_and_overlapping_inputs_are_compared_too():
    def noisy(x):
        return (x + torch.rand(3)).sin()

    torch.manual_seed(0)
    want = noisy(X), noisy(X)
    torch.manual_seed(0)
    f = torch.compile(noisy, mode="check")
    assert [f(X).tolist(), f(X).tolist()] == [each.tolist() for each in want]
    with pytest.raises(Differs, match="sin_1"):
        torch.compile(noisy, backend=with_other(torch.sin, torch.cos), mode="check")(X)

    def overlapping(a, b):
        a.add_(1)
        return b * 2

    for backend in ("llvm", "interpreter"):
        x, y = X.clone(), X.clone()
        got = torch.compile(overlapping, backend=backend, mode="check")(x[0], x)
        assert got.tolist() == overlapping(y[0], y).tolist() and x.tolist() == y.tolist()
    with pytest.raises(Differs, match="mul_1"):
        torch.compile(overlapping, backend=with_other(operator.mul, operator.add), mode="check")(
            X[0].clone(), X
        )


def test_forks_and_training_agree():
    def forks(x):
        return torch.jit.fork(torch.sin, x).wait() + x.exp()

    with pytest.raises(Differs, match="exp_1"):
        torch.compile(forks, backend=with_other(torch.exp, torch.sin), mode="check")(X)
    assert torch.compile(forks, mode="check")(X).tolist() == forks(X).tolist()
