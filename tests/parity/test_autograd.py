"""The tape against PyTorch: the same program on both, its numbers, its text, its errors."""

import re

import prong
import pytest
from both import _equal, _plain

torch = pytest.importorskip("torch")

PROGRAMS = []


def program(function):
    """A function of the module that it computes with; what it returns must agree."""
    PROGRAMS.append(function)
    return function


def leaf(t, *values):
    return t.tensor(values, requires_grad=True)


@program
def chain(t):
    x = leaf(t, 1.0, 2.0, 3.0)
    y = (x * 2 + 1) * x
    y.sum().backward()
    return x.grad


@program
def broadcasting_is_summed(t):
    x, y = leaf(t, 1.0, 2.0, 3.0), t.tensor([[4.0], [5.0]], requires_grad=True)
    (x * y - y + 2 * x).sum().backward()
    return x.grad, y.grad


@program
def promotion_is_undone(t):
    x = leaf(t, 1.0, 2.0)
    y = t.tensor([1.0, 2.0], dtype=t.float64, requires_grad=True)
    (x * y).sum().backward()
    return x.grad, y.grad


@program
def gradients_add_up(t):
    x = leaf(t, 1.0, 2.0)
    (x * x).sum().backward()
    (x * 3).sum().backward()
    return x.grad


@program
def used_twice(t):
    x = leaf(t, 1.0, 2.0)
    y = x * x
    (y * y + y).sum().backward()
    return x.grad


@program
def second_order(t):
    x = leaf(t, 1.0, 2.0, 3.0)
    (g,) = t.autograd.grad((x * x * x).sum(), x, create_graph=True)
    (h,) = t.autograd.grad((g * x).sum(), x)
    return g, h


@program
def backward_with_create_graph(t):
    x = leaf(t, 2.0)
    (x * x * x).sum().backward(create_graph=True)
    g = x.grad
    x.grad = None
    g.sum().backward()
    return x.grad


@program
def grad_of_non_leaf(t):
    x = leaf(t, 1.0, 2.0)
    y = x * 2
    z = y * y
    return t.autograd.grad(z.sum(), [y, x])


@program
def grad_unused_is_none(t):
    x, y = leaf(t, 1.0), leaf(t, 2.0)
    return t.autograd.grad((x * 2).sum(), [x, y], allow_unused=True)


@program
def grad_materialized(t):
    x, y = leaf(t, 1.0), leaf(t, 2.0, 3.0)
    return t.autograd.grad((x * 2).sum(), [x, y], materialize_grads=True)


@program
def backward_to_some_inputs(t):
    x, y = leaf(t, 1.0), leaf(t, 2.0)
    (x * y).sum().backward(inputs=[x])
    return x.grad, y.grad


@program
def retain_graph(t):
    x = leaf(t, 3.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    return x.grad


@program
def retain_grad(t):
    x = leaf(t, 3.0)
    y = x * 2
    y.retain_grad()
    y.retain_grad()
    (y * y).sum().backward()
    return y.grad, y.retains_grad, x.retains_grad


@program
def retained_through_inplace(t):
    x = leaf(t, 3.0)
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    (y * y).sum().backward()
    return y.grad, x.grad


@program
def several_roots(t):
    x = leaf(t, 1.0, 2.0)
    t.autograd.backward([x * 2, x * x], [t.ones(2), t.tensor([1.0, 10.0])])
    return x.grad


@program
def hooks(t):
    x = leaf(t, 1.0, 2.0)
    seen = []
    y = x * 3
    handle = y.register_hook(lambda g: seen.append(g.tolist()) or g * 2)
    x.register_hook(lambda g: seen.append(g.tolist()))
    (y * y).sum().backward()
    handle.remove()
    (x * 3).sum().backward()
    return seen, x.grad


@program
def post_accumulate_hook(t):
    x = leaf(t, 1.0)
    seen = []
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.item()))
    (x * 3).sum().backward()
    (x * 3).sum().backward()
    return seen


@program
def node_hooks(t):
    x = leaf(t, 1.0)
    y = x * 3
    seen = []
    y.grad_fn.register_hook(lambda given, got: seen.append((given[0].item(), got[0].item())))
    y.grad_fn.register_prehook(lambda got: (got[0] * 5,))
    y.sum().backward()
    return seen, x.grad


@program
def names(t):
    x = leaf(t, 1.0, 2.0)
    made = [x * 2, x + 1, -x, x - 1, x / 2, x.sum(), x.view(2, 1), x.clone(), x[0], x.exp()]
    return [m.grad_fn.name() for m in made], x.grad_fn, x.is_leaf, made[0].is_leaf


@program
def next_functions(t):
    x = leaf(t, 1.0)
    y = (x * 2) + 1
    step = y.grad_fn.next_functions
    return [(n and n.name(), i) for n, i in step], step[0][0].next_functions[0][0].variable is x


@program
def no_grad(t):
    x = leaf(t, 1.0)
    with t.no_grad():
        y = x * 2
    z = x * y
    z.sum().backward()
    return y.requires_grad, x.grad


@program
def detach(t):
    x = leaf(t, 2.0)
    y = (x * x).detach()
    (x * y).sum().backward()
    return x.grad, y.requires_grad


@program
def detach_in_place(t):
    x = leaf(t, 2.0)
    y = x * x
    y.detach_()
    return y.requires_grad, y.grad_fn, y.is_leaf


@program
def index_assignment(t):
    x = leaf(t, 1.0, 2.0, 3.0)
    a = t.zeros(5)
    a[1:4] = x * 2
    a[2] = 7.0
    (a * a).sum().backward()
    return a.requires_grad, x.grad


@program
def inplace_on_view(t):
    x = leaf(t, 1.0, 2.0, 3.0, 4.0)
    y = x * 1
    v = y.view(2, 2)[0]
    v.mul_(10)
    (y * y).sum().backward()
    return x.grad, y.grad_fn.name()


@program
def view_after_inplace_on_base(t):
    x = leaf(t, 1.0, 2.0, 3.0)
    y = x * 1
    v = y[1:]
    y.mul_(2)
    (v * v).sum().backward()
    return x.grad, v.grad_fn.name()


@program
def view_of_buffer_gets_history(t):
    x = leaf(t, 5.0)
    a = t.zeros(2, 3)
    row = a[1]
    a[:, 0] = x
    return row.requires_grad, row.is_leaf, a.grad_fn.name()


@program
def views_in_a_loop(t):
    x = leaf(t, 1.0, 2.0, 3.0)
    out = t.zeros(3, 3)
    for i in range(3):
        out[i] = x * (i + 1)
    (out * out).sum().backward()
    return x.grad


@program
def inplace_saved_input_is_cloned(t):
    x = leaf(t, 2.0, 3.0)
    y = x * 1
    y.pow_(2)
    y.sum().backward()
    return x.grad


@program
def inplace_chain(t):
    x = leaf(t, 0.5, -0.5)
    y = x * 1
    y.add_(1).mul_(2).sub_(0.5).div_(4)
    y.sum().backward()
    return x.grad


@program
def versions(t):
    x = t.zeros(3)
    v = x[1:]
    before = x._version, v._version
    v.add_(1)
    d = x.detach()
    d.mul_(2)
    return before, x._version, v._version, d._version


@program
def writes_through_data_are_not_counted(t):
    w = leaf(t, 1.0, -2.0)
    y = (w * w).sum()
    w.data.clamp_(-0.5, 0.5)
    w.data[0] += 3
    w.data.view(2, 1)[1].neg_()
    y.backward()  # uses what stands in w now
    return w._version, w, w.grad


@program
def view_made_and_written_without_gradients(t):
    x = leaf(t, 1.0, 2.0)
    with t.no_grad():
        v = x.view(-1)
        v.mul_(2)
        y = (v * 3).sum()
    (x * x).sum().backward()
    return v.requires_grad, y, x, x.grad


@program
def expand_and_reduce(t):
    x = t.tensor([[1.0], [2.0]], requires_grad=True)
    (x.expand(2, 3) * t.tensor([1.0, 2.0, 3.0])).sum().backward()
    return x.grad


@program
def mean_of_dims(t):
    x = t.ones(2, 3, 4).requires_grad_()
    (x.mean((0, 2)) * t.tensor([1.0, 2.0, 3.0])).sum().backward()
    return x.grad


@program
def custom_function(t):
    class Cube(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.save_for_backward(x)
            ctx.scale = scale
            return scale * x * x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * ctx.scale * 3 * x * x, None

    x = leaf(t, 1.0, 2.0)
    y = Cube.apply(x, 2.0)
    (g,) = t.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = t.autograd.grad(g.sum(), x)
    return y, g, h, y.grad_fn.name()


@program
def custom_function_with_several_results(t):
    class Split(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_non_differentiable(index := t.tensor([1, 2]))
            return x * 2, index, x * 3

        @staticmethod
        def backward(ctx, a, index, b):
            return a * 2 + b * 3

    x = leaf(t, 1.0)
    a, index, b = Split.apply(x)
    b.sum().backward()
    return x.grad, a.requires_grad, index.requires_grad


@program
def custom_function_in_place(t):
    class Double(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf(t, 1.0)
    y = x * 1
    z = Double.apply(y)
    (z * z).sum().backward()
    return z is y, x.grad


@program
def custom_function_setup_context(t):
    class Mul(t.autograd.Function):
        @staticmethod
        def forward(x, y):
            return x * y

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * y if ctx.needs_input_grad[0] else None, None

    x = leaf(t, 3.0)
    y = t.tensor([5.0])
    Mul.apply(x, y).sum().backward()
    return x.grad


@program
def custom_function_saves_its_result(t):
    class Exp(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return g * y

    x = leaf(t, 0.0)
    y = Exp.apply(x)
    (g,) = t.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = t.autograd.grad(g.sum(), x)
    return g, h


@program
def inference_mode(t):
    x = leaf(t, 1.0)
    with t.inference_mode():
        y = x * 2
    return y.requires_grad, y.is_inference()


@program
def zero_size(t):
    x = t.zeros(0, 3, requires_grad=True)
    (x * 2).sum().backward()
    return x.grad


@program
def requires_grad_flags(t):
    x = t.ones(2)
    y = x * 2
    x.requires_grad_()
    return y.requires_grad, (x * 2).requires_grad, (x > 1).requires_grad, x.long().requires_grad


@pytest.mark.parametrize("run", PROGRAMS, ids=lambda p: p.__name__)
def test_same_as_pytorch(run):
    expected, got = _plain(run(torch), torch), _plain(run(prong), prong)
    assert _equal(expected, got, 1e-6), f"\n  PyTorch: {expected}\n  Prong:   {got}"


ERRORS = []


def error(function):
    """A function of the module that must raise: the same type and first line of text."""
    ERRORS.append(function)
    return function


@error
def no_gradient_at_all(t):
    t.ones(1).backward()


@error
def not_a_single_number(t):
    (leaf(t, 1.0, 2.0) * 2).backward()


@error
def twice(t):
    y = (leaf(t, 1.0) * leaf(t, 2.0)).sum()
    y.backward()
    y.backward()


@error
def leaf_in_place(t):
    leaf(t, 1.0).add_(1)


@error
def view_of_leaf_in_place(t):
    leaf(t, 1.0, 2.0)[0].add_(1)


@error
def leaf_assigned(t):
    leaf(t, 1.0, 2.0)[0] = 1.0


@error
def needed_value_written(t):
    x = leaf(t, 1.0, 2.0)
    y = x * 2
    z = y * y
    y.add_(1)
    z.sum().backward()


@error
def needed_leaf_written(t):
    x, w = t.ones(2), leaf(t, 1.0, 2.0)
    z = x * w
    x.add_(1)
    z.sum().backward()


@error
def wrong_gradient_shape(t):
    (leaf(t, 1.0, 2.0) * 2).backward(t.ones(3))


@error
def unused_input(t):
    t.autograd.grad((leaf(t, 1.0) * 2).sum(), leaf(t, 1.0))


@error
def input_without_gradient(t):
    t.autograd.grad((leaf(t, 1.0) * 2).sum(), t.ones(1))


@error
def integers_have_no_gradient(t):
    t.ones(2, dtype=t.int64).requires_grad_()


@error
def numpy_of_a_leaf(t):
    leaf(t, 1.0).numpy()


@error
def flag_of_non_leaf(t):
    (leaf(t, 1.0) * 2).requires_grad_(False)


@error
def one_of_several_views(t):
    a, _ = (leaf(t, 1.0, 2.0) * 2).chunk(2)
    a.add_(1)


@error
def view_from_no_grad(t):
    x = leaf(t, 1.0, 2.0) * 1
    with t.no_grad():
        v = x[:1]
    v.add_(1)


@error
def wrong_number_of_gradients(t):
    class Bad(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g, g

    Bad.apply(leaf(t, 1.0)).sum().backward()


@error
def writes_to_what_was_saved_from_data_are_counted(t):
    w = leaf(t, 1.0, -2.0)
    d = w.data
    y = (leaf(t, 3.0, 4.0) * d).sum()
    d.mul_(2)
    y.backward()


@error
def detached_writes_are_counted(t):
    w = leaf(t, 1.0, -2.0)
    y = (w * w).sum()
    w.detach().mul_(2)
    y.backward()


@error
def use_of_a_view_made_and_written_without_gradients(t):
    x = leaf(t, 1.0, 2.0)
    with t.no_grad():
        v = x.view(-1)
        v.mul_(2)
    v * 3


@error
def hook_on_plain_tensor(t):
    t.ones(1).register_hook(lambda g: g)


@error
def retain_grad_on_plain_tensor(t):
    t.ones(1).retain_grad()


@error
def assigned_grad_of_other_size(t):
    leaf(t, 1.0).grad = t.ones(2)


@error
def inference_tensor_saved(t):
    with t.inference_mode():
        x = t.ones(1)
    x * leaf(t, 1.0)


@error
def deepcopy_of_non_leaf(t):
    import copy

    copy.deepcopy(leaf(t, 1.0) * 2)


def outcome(run, module):
    with pytest.raises(Exception) as caught:  # noqa: PT011, B017
        run(module)
    text = str(caught.value).split("\n")[0]
    # Which of two ops is named, and addresses of pages, are PyTorch's own business.
    text = re.sub(r"output 0 of \w+", "output 0 of ...", text, flags=re.IGNORECASE)
    return type(caught.value).__name__, text.split(" usage")[0]


@pytest.mark.parametrize("run", ERRORS, ids=lambda p: p.__name__)
def test_same_error(run):
    assert outcome(run, prong) == outcome(run, torch)
