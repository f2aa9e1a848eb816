"""prong.func with numbers that can be worked out by hand; against PyTorch: tests/parity/test_func.py."""

import prong
import pytest
from prong import nn
from prong.autograd import functional as F
from prong.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    vjp,
    vmap,
)

T = prong.tensor


def same(got, want):
    prong.testing.assert_close(got, want)


# ── gradients ──


def test_grad_of_a_cube_three_times():
    cube = lambda x: x**3  # noqa: E731
    same(grad(cube)(T(2.0)), T(12.0))
    same(grad(grad(cube))(T(2.0)), T(12.0))
    same(grad(grad(grad(cube)))(T(2.0)), T(6.0))


def test_grad_does_not_mix_levels():
    """The well-known test of perturbation confusion: d/dx (x * d/dy (x + y)) = 1."""
    same(grad(lambda x: x * grad(lambda y: x + y)(T(1.0)))(T(1.0)), T(1.0))
    same(grad(lambda x: grad(lambda y: x * y * y)(T(3.0)))(T(2.0)), T(6.0))


def test_results_require_grad_only_where_something_outside_does():
    x, w = T([1.0, 2.0]), T([3.0, 4.0], requires_grad=True)
    assert not grad(lambda x: (x * x).sum())(x).requires_grad
    g = grad(lambda x: (x * x * w).sum())(x)
    assert g.requires_grad
    g.sum().backward()
    same(w.grad, T([2.0, 4.0]))
    g, value = grad_and_value(lambda x: (x * x).sum())(w)
    assert g.requires_grad and value.requires_grad
    with prong.no_grad():
        assert not grad(lambda x: (x * x).sum())(w).requires_grad


def test_grad_takes_nests_and_several_arguments():
    f = lambda d, y: (d["a"] * d["b"][0] * y).sum()  # noqa: E731
    d = {"a": T(2.0), "b": (T(3.0),)}
    g = grad(f, argnums=(0, 1))(d, T(5.0))
    same(g, ({"a": T(15.0), "b": (T(10.0),)}, T(6.0)))
    same(grad(f, argnums=-1)(d, T(5.0)), T(6.0))


def test_grad_with_aux():
    g, (value, aux) = grad_and_value(lambda x: ((x**2).sum(), {"twice": x * 2}), has_aux=True)(
        T([3.0])
    )
    same(g, T([6.0]))
    same(value, T(9.0))
    same(aux, {"twice": T([6.0])})
    assert not aux["twice"].requires_grad


def test_grad_leaves_the_arguments_alone():
    x = T([1.0], requires_grad=True)
    grad(lambda x: (x * x).sum())(x)
    assert x.grad is None and x.is_leaf


def test_grad_where_nothing_flows_is_zero():
    same(grad(lambda x: T(1.0))(T([1.0, 2.0])), T([0.0, 0.0]))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: grad(lambda x: x)(T([1.0])), RuntimeError, "to return a scalar Tensor"),
        (lambda: grad(lambda x: 3)(T(1.0)), RuntimeError, "to return a Tensor, got"),
        (lambda: grad(lambda x: x, argnums=1)(T(1.0)), RuntimeError, "only 1 positional inputs"),
        (lambda: grad(lambda x: x)(3.0), ValueError, "must be Tensor, got"),
        (lambda: grad(lambda x: x)(T(3)), RuntimeError, "floating point"),
        (lambda: grad(lambda x: x.sum(), has_aux=True)(T([1.0])), RuntimeError, "has_aux"),
        (lambda: vjp(lambda x: x, T([1.0]))[1](T([1.0, 2.0])), RuntimeError, "Mismatch in shape"),
        (lambda: jvp(lambda x: x, (T([1.0]),), (T([1.0, 2.0]),)), RuntimeError, "different size"),
        (lambda: jvp(lambda x: x, T(1.0), T(1.0)), RuntimeError, "primals to be a tuple"),
    ],
)
def test_wrong_calls(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_vjp_and_jvp_of_a_product():
    f = lambda x, y: x * y  # noqa: E731
    x, y = T([1.0, 2.0]), T([3.0, 4.0])
    out, pull = vjp(f, x, y)
    same(out, T([3.0, 8.0]))
    same(pull(T([1.0, 10.0])), (T([3.0, 40.0]), T([1.0, 20.0])))
    same(pull(T([1.0, 0.0])), (T([3.0, 0.0]), T([1.0, 0.0])))  # again
    out, moved = jvp(f, (x, y), (T([1.0, 0.0]), T([0.0, 1.0])))
    same(moved, T([3.0, 2.0]))
    assert not moved.requires_grad
    out, push = linearize(f, x, y)
    same(push(T([1.0, 1.0]), T([0.0, 0.0])), y)


def test_vjp_gives_a_tuple_of_one_for_one_primal():
    _, pull = vjp(prong.sin, T([0.0, 0.0]))
    (gradient,) = pull(prong.ones(2))
    assert gradient.tolist() == [1.0, 1.0]


def test_jacobians():
    f = lambda x: prong.stack([x[0] * x[1], x[1] ** 2, x[0] + x[2]])  # noqa: E731
    x = T([1.0, 2.0, 3.0])
    want = T([[2.0, 1.0, 0.0], [0.0, 4.0, 0.0], [1.0, 0.0, 1.0]])
    same(jacrev(f)(x), want)
    same(jacfwd(f)(x), want)
    same(jacrev(f, chunk_size=2)(x), want)
    same(jacrev(jacrev(f))(x)[1], T([[0.0, 0, 0], [0, 2, 0], [0, 0, 0]]))
    same(hessian(lambda x: x[0] ** 2 * x[1])(x[:2]), T([[4.0, 2.0], [2.0, 0.0]]))


def test_jacobians_of_nests():
    f = lambda x, y: {"p": x * y, "s": x.sum()}  # noqa: E731
    j = jacrev(f, argnums=(0, 1))(T([1.0, 2.0]), T(3.0))
    same(j["p"], (T([[3.0, 0.0], [0.0, 3.0]]), T([1.0, 2.0])))
    same(j["s"], (T([1.0, 1.0]), T(0.0)))


# ── vmap ──


def test_vmap_maps():
    x, y = prong.arange(6.0).reshape(2, 3), prong.arange(3.0)
    same(vmap(prong.dot)(x, x), T([5.0, 50.0]))
    same(vmap(prong.dot, in_dims=(0, None))(x, y), T([5.0, 14.0]))
    same(vmap(lambda x: x.sum(), in_dims=1)(x), T([3.0, 5.0, 7.0]))
    same(vmap(lambda x: x * 2, in_dims=-1, out_dims=1)(x), x * 2)
    same(prong.vmap(lambda x: T(1.0))(x), T([1.0, 1.0]))


def test_vmap_shows_one_sample():
    seen = []
    vmap(lambda x: seen.append((x.shape, x.dim(), x.numel(), x.requires_grad)) or x)(
        prong.zeros(2, 3, requires_grad=True)
    )
    assert seen == [((3,), 1, 3, False)]


def test_a_batched_tensor_prints_its_batch():
    seen = []
    vmap(lambda x: seen.append(repr(x)) or x)(T([1.0, 2.0]))
    assert seen == ["BatchedTensor(lvl=1, bdim=0, value=\n    tensor([1., 2.])\n)"]


def test_vmap_of_nests():
    f = lambda d, z: ({"sum": d["x"] + d["y"][0]}, [z])  # noqa: E731
    d = {"x": T([1.0, 2.0]), "y": (T(10.0),)}
    out = vmap(f, in_dims=({"x": 0, "y": (None,)}, None))(d, T(7.0))
    same(out, ({"sum": T([11.0, 12.0])}, [T([7.0, 7.0])]))


def test_vmap_in_vmap():
    x, y = T([1.0, 2.0]), T([10.0, 20.0, 30.0])
    add = lambda a, b: a + b  # noqa: E731
    outer = vmap(lambda a: vmap(lambda b: add(a, b))(y))(x)
    same(outer, x[:, None] + y)
    same(vmap(vmap(add, in_dims=(None, 0)), in_dims=(0, None))(x, y), x[:, None] + y)
    z = prong.arange(24.0).reshape(2, 3, 4)
    assert vmap(vmap(lambda v: v.max() - v.min(), in_dims=1), in_dims=2)(z).shape == (4, 3)


def test_vmap_in_chunks():
    x = prong.arange(10.0).reshape(5, 2)
    seen = []
    out = vmap(lambda x: seen.append(1) or x.sum(), chunk_size=2)(x)
    same(out, x.sum(1))
    assert len(seen) == 3


def test_zero_dim_samples_promote_as_zero_dim_tensors():
    whole, half = T([1, 2, 3]), T([0.5, 1.5])
    assert vmap(lambda h: prong.zeros(2) + h)(half.double()).dtype is prong.float32
    same(vmap(lambda h: whole + h)(half), whole + half[:, None])


def test_in_place_ops():
    x = T([[1.0, 2.0], [3.0, 4.0]])
    assert vmap(lambda v: v.mul_(2))(x).tolist() == [[2.0, 4.0], [6.0, 8.0]]
    assert x.tolist() == [[2.0, 4.0], [6.0, 8.0]]

    def through_view(v):
        made = prong.zeros_like(v)
        made[0] = v[1]
        return made

    same(vmap(through_view)(x), T([[4.0, 0.0], [8.0, 0.0]]))
    with pytest.raises(RuntimeError, match="in place"):
        vmap(lambda v: prong.zeros(2).add_(v))(x)


def test_indexing_with_a_number_of_each_sample():
    table = prong.arange(12.0).reshape(3, 4)
    at = T([2, 0])
    same(vmap(lambda i: table[i])(at), table[at])
    same(vmap(lambda i: table[1, i])(at), table[1, at])
    same(vmap(lambda t, i: t[i], in_dims=(1, 0))(table[:, :2], at), T([8.0, 1.0]))


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda x: x.item(), r"\.item\(\)"),
        (lambda x: float(x), r"\.item\(\)"),
        (lambda x: x if x > 0 else -x, "control flow"),
        (lambda x: x.nonzero(), "dynamic shape"),
        (lambda x: prong.arange(3)[x > 0], "dynamic shape|boolean mask"),
        (lambda x: x.tolist(), "tolist"),
        (lambda x: x.numpy(), "numpy"),
        (lambda x: prong.rand(2), "random"),
    ],
)
def test_what_depends_on_the_numbers_is_refused(f, message):
    with pytest.raises(RuntimeError, match=message):
        vmap(f)(T([1.0, 2.0]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: vmap(prong.add)(T([1.0]), T([1.0, 2.0])), "same size in the mapped dimension"),
        (lambda: vmap(prong.sin)(1.0), "We cannot vmap over non-Tensor"),
        (lambda: vmap(prong.sin)(), "got no inputs"),
        (lambda: vmap(prong.sin)(T(1.0)), "dimensionality 0"),
        (lambda: vmap(prong.sin, in_dims=2)(T([1.0])), "expected in_dim to satisfy"),
        (lambda: vmap(prong.sin, in_dims=(0, 0))(T([1.0])), "not compatible with the structure"),
        (lambda: vmap(lambda x: 3)(T([1.0])), "must only return Tensors"),
        (lambda: vmap(prong.sin, out_dims=(0, 0))(T([1.0])), "out_dims is not compatible"),
    ],
)
def test_wrong_calls_of_vmap(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_failed_vmap_ends():
    with pytest.raises(ZeroDivisionError):
        vmap(lambda x: 1 // 0)(T([1.0]))
    prong.rand(2)  # no vmap that forbids it


def test_randomness():
    x = prong.zeros(4)
    same_draws = vmap(lambda x: x + prong.rand(()), randomness="same")(x)
    assert len(set(same_draws.tolist())) == 1
    different = vmap(lambda x: x + prong.rand(()), randomness="different")(x)
    assert len(set(different.tolist())) == 4
    mask = vmap(lambda x: nn.functional.dropout(x, 0.5), randomness="same")(prong.ones(3, 40))
    same(mask[0], mask[1])


# ── both ──


def test_gradients_of_each_sample():
    w, x = T([1.0, 2.0]), T([[1.0, 0.0], [0.0, 3.0], [2.0, 2.0]])
    loss = lambda w, x: (w * x).sum() ** 2  # noqa: E731
    got = vmap(grad(loss), in_dims=(None, 0))(w, x)
    same(got, 2 * (x @ w)[:, None] * x)
    assert not got.requires_grad


def test_grad_through_vmap_through_grad():
    x = T([1.0, 2.0, 3.0])
    f = lambda x: vmap(grad(lambda v: v**3))(x).sum()  # noqa: E731
    same(grad(f)(x), 6 * x)
    same(vmap(hessian(lambda v: (v**3).sum()))(x.reshape(3, 1)).flatten(), 6 * x)


def test_the_tape_sees_through_vmap():
    w = T([1.0, 2.0], requires_grad=True)
    x = T([[1.0, 0.0], [0.0, 3.0]])
    out = vmap(lambda x: (w * x).sum())(x)
    assert out.requires_grad
    out.sum().backward()
    same(w.grad, T([1.0, 3.0]))


def test_jvp_in_vmap():
    x, t = T([1.0, 2.0]), T([1.0, 10.0])
    _, moved = vmap(lambda x, t: jvp(lambda v: v**2, (x,), (t,)))(x, t)
    same(moved, 2 * x * t)


def test_in_place_ops_in_gradients_in_vmap():
    def f(x):
        y = x * 1
        y[0] = y[1] * 2
        return (y * y).sum()

    x = T([[1.0, 2.0], [3.0, 4.0]])
    same(vmap(grad(f))(x), T([[0.0, 20.0], [0.0, 40.0]]))


def test_batched_gradients_of_the_tape():
    x = T([1.0, 2.0], requires_grad=True)
    y = x**2
    (rows,) = prong.autograd.grad(y, x, prong.eye(2), is_grads_batched=True)
    same(rows, T([[2.0, 0.0], [0.0, 4.0]]))


# ── modules ──


def test_functional_call_leaves_the_module_alone():
    m = nn.Linear(2, 1)
    before = m.weight
    out = functional_call(m, {"weight": T([[1.0, 2.0]]), "bias": T([3.0])}, (T([1.0, 1.0]),))
    same(out, T([6.0]))
    assert m.weight is before
    with pytest.raises(RuntimeError, match="Unexpected"):
        functional_call(m, {"wight": T([1.0])}, (T([1.0, 1.0]),), strict=True)


def test_functional_call_ties_weights():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Parameter(T([1.0]))
            self.b = self.a

        def forward(self):
            return self.a + self.b

    same(functional_call(Tied(), {"a": T([5.0])}, ()), T([10.0]))
    same(functional_call(Tied(), {"a": T([5.0])}, (), tie_weights=False), T([6.0]))


def test_an_ensemble():
    models = [nn.Linear(3, 2) for _ in range(4)]
    parameters, buffers = stack_module_state(models)
    assert parameters["weight"].shape == (4, 2, 3) and parameters["weight"].is_leaf
    x = prong.randn(5, 3)
    call = lambda p, b, x: functional_call(models[0], (p, b), (x,))  # noqa: E731
    got = vmap(call, in_dims=(0, 0, None))(parameters, buffers, x)
    same(got, prong.stack([m(x) for m in models]))


def test_training_step_by_per_sample_gradients():
    """Their mean is the gradient of the mean loss."""
    m = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    x, y = prong.randn(6, 3), prong.randn(6, 2)
    parameters = {k: p.detach() for k, p in m.named_parameters()}

    def loss(p, x, y):
        return ((functional_call(m, p, (x,)) - y) ** 2).mean()

    each = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, x, y)
    loss(dict(m.named_parameters()), x, y).backward()
    for name, p in m.named_parameters():
        same(each[name].mean(0), p.grad)


# ── torch.autograd.functional ──


def test_products_with_derivatives():
    f = lambda x, y: (x**2 * y).sum()  # noqa: E731
    x, y = T([1.0, 2.0]), T([3.0, 4.0])
    same(F.jacobian(f, (x, y)), (2 * x * y, x**2))
    h = F.hessian(f, (x, y))
    same(h[0][0], prong.diag(2 * y))
    same(h[0][1], prong.diag(2 * x))
    same(h[1][1], prong.zeros(2, 2))
    v = (T([1.0, 0.0]), T([0.0, 1.0]))
    value, product = F.hvp(f, (x, y), v)
    same(value, f(x, y))
    same(product, (T([6.0, 4.0]), T([2.0, 0.0])))
    same(F.vhp(f, (x, y), v)[1], product)
    same(F.vjp(f, (x, y))[1], (2 * x * y, x**2))
    same(F.jvp(f, (x, y), v)[1], T(6.0 + 4.0))
    with pytest.raises(RuntimeError, match="independent of input 1"):
        F.jacobian(lambda x, y: x, (x, y), strict=True)
    assert not F.jacobian(f, (x, y))[0].requires_grad
    same(F.jacobian(prong.sin, x, vectorize=True, strategy="forward-mode"), prong.diag(x.cos()))


class Scaled(prong.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, w, k):
        return x * w * k, (x > 0).float(), x + w

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, w, k = inputs
        ctx.save_for_backward(x, None, w)
        ctx.k = k
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx, g, _, h):
        x, _, w = ctx.saved_tensors
        return g * w * ctx.k + h, (g * x * ctx.k).sum() + h.sum(), None


class Product(prong.autograd.Function):
    @staticmethod
    def forward(x, w):
        return x @ w

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w, g * x

    @staticmethod
    def vmap(info, in_dims, x, w):
        x = x.movedim(in_dims[0], 0) if in_dims[0] is not None else x
        w = w.movedim(in_dims[1], 0) if in_dims[1] is not None else w
        return (x * w).sum(1).expand(info.batch_size), 0


def test_a_function_with_a_rule_has_gradients_below_a_vmap():
    x = prong.arange(6.0).view(3, 2).requires_grad_()
    w = T(2.0).requires_grad_()

    def f(x, w):
        return vmap(lambda v: Scaled.apply(v, w, 3))(x)

    for g in (f, prong.compile(f)):
        for _ in range(2):
            x.grad = w.grad = None
            a, b, c = g(x, w)
            (a.sum() + (c * c).sum()).backward()
            assert a.tolist() == [[0.0, 6.0], [12.0, 18.0], [24.0, 30.0]] and not b.requires_grad
            assert x.grad.tolist() == [[10.0, 12.0], [14.0, 16.0], [18.0, 20.0]]
            assert w.grad.item() == 99.0
    rows = jacrev(lambda q: vmap(lambda v: Scaled.apply(v, T(1.0), 2)[0])(q))(prong.ones(2, 1))
    assert rows.tolist() == [[[[2.0], [0.0]]], [[[0.0], [2.0]]]]


def test_a_function_with_its_own_vmap():
    y = prong.ones(4, 2, requires_grad=True)
    v = T([2.0, 3.0]).requires_grad_()
    r = vmap(Product.apply, in_dims=(0, None))(y, v)
    r.sum().backward()
    assert r.tolist() == [5.0] * 4 and y.grad.tolist() == [[2.0, 3.0]] * 4
    assert v.grad.tolist() == [4.0, 4.0]


def test_a_function_whose_gradients_a_vmap_would_lose_is_refused():
    class Plain(prong.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    assert vmap(Plain.apply)(prong.ones(2)).tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="generate_vmap_rule=True"):
        vmap(Plain.apply)(prong.ones(2, requires_grad=True))
    with pytest.raises(RuntimeError, match="generate_vmap_rule=True"):
        vmap(vmap(lambda q: Scaled.apply(q, T(1.0), 1)[0]))(prong.ones(2, 2, requires_grad=True))
