"""nn.utils and nn.init against PyTorch's."""

import copy
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import prong  # noqa: E402

BOTH = (prong, torch)


def to_prong(t):
    return prong.from_numpy(t.detach().numpy().copy())


def same(a, b):
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=2e-5, atol=2e-6)


def same_state(a, b):
    a, b = a.state_dict(), b.state_dict()
    assert list(a) == list(b)
    for key in a:
        same(a[key], b[key])


WRAPPED = {
    "weight_norm": lambda m: m.nn.utils.weight_norm(m.nn.Linear(4, 3)),
    "weight_norm of all": lambda m: m.nn.utils.weight_norm(m.nn.Linear(4, 3), dim=None),
    "weight_norm of columns": lambda m: m.nn.utils.weight_norm(m.nn.Conv1d(2, 3, 3), dim=1),
    "weight_norm of an LSTM": lambda m: m.nn.utils.weight_norm(m.nn.LSTM(4, 3), "weight_hh_l0"),
    "spectral_norm": lambda m: m.nn.utils.spectral_norm(m.nn.Linear(4, 3)),
    "spectral_norm of a convolution": lambda m: m.nn.utils.spectral_norm(
        m.nn.Conv2d(2, 3, 3), n_power_iterations=2
    ),
    "parametrized weight_norm": lambda m: m.nn.utils.parametrizations.weight_norm(
        m.nn.Linear(4, 3)
    ),
    "parametrized weight_norm of all": lambda m: m.nn.utils.parametrizations.weight_norm(
        m.nn.Conv1d(2, 3, 3), dim=None
    ),
    "parametrized spectral_norm": lambda m: m.nn.utils.parametrizations.spectral_norm(
        m.nn.Linear(4, 3)
    ),
}


def wrapped(name):
    made = []
    for m in BOTH:
        m.manual_seed(2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made.append(WRAPPED[name](m))
    return made


ORTHOGONAL = [
    (m, size, base)
    for m in (None, "matrix_exp", "cayley", "householder")
    for size in ((4, 4), (3, 5), (5, 3))
    for base in (True, False)
]


@pytest.mark.parametrize("how", ORTHOGONAL, ids=str)
def test_orthogonal(how):
    kind, (rows, columns), base = how
    nets = []
    for m in BOTH:
        m.manual_seed(3)
        net = m.nn.Linear(columns, rows)
        m.nn.utils.parametrizations.orthogonal(net, orthogonal_map=kind, use_trivialization=base)
        assert list(net.state_dict())[:2] == ["bias", "parametrizations.weight.original"]
        weight = net.weight.detach().numpy()
        product = weight @ weight.T if rows < columns else weight.T @ weight
        np.testing.assert_allclose(product, np.eye(len(product)), atol=1e-5)
        nets.append(net)
    same(nets[0].weight, nets[1].weight)
    if base or kind == "householder":
        for m, net in zip(BOTH, nets):
            m.manual_seed(8)
            q, _ = m.linalg.qr(m.randn(5, 5))
            net.weight = q[:rows, :columns] if rows == columns == 4 else q[:rows][:, :columns]
        same(nets[0].weight, nets[1].weight)


SHAPES = {"Conv1d": (2, 2, 6), "Conv2d": (2, 2, 5, 5), "LSTM": (5, 2, 4)}


@pytest.mark.parametrize("name", WRAPPED)
def test_norms_of_weights(name):
    ours, theirs = wrapped(name)
    same_state(ours, theirs)
    assert repr(ours) == repr(theirs)
    kind = next((k for k in SHAPES if k in repr(theirs)), None)
    x = torch.randn(SHAPES.get(kind, (5, 4)))
    for training in (True, True, False):
        a = ours.train(training)(to_prong(x))
        b = theirs.train(training)(x)
        same(a[0] if kind == "LSTM" else a, b[0] if kind == "LSTM" else b)
        same_state(ours, theirs)
    ours.load_state_dict({k: to_prong(v) for k, v in theirs.state_dict().items()})


@pytest.mark.parametrize("name", ["weight_norm", "spectral_norm"])
def test_norms_are_taken_away(name):
    for module, m in zip(wrapped(name), BOTH):
        module.eval()(m.ones(1, 4))
        before = module.weight.tolist()
        getattr(m.nn.utils, f"remove_{name}")(module)
        assert [n for n, _ in module.named_parameters()] == ["bias", "weight"]
        np.testing.assert_allclose(module.weight.tolist(), before, rtol=1e-5)
        with pytest.raises(ValueError):
            getattr(m.nn.utils, f"remove_{name}")(module)


def parametrizations(m):
    class Symmetric(m.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).t()

        def right_inverse(self, x):
            return x.triu()

    class Scaled(m.nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = m.nn.Parameter(m.tensor(2.0))

        def forward(self, x):
            return self.factor * x

        def right_inverse(self, x):
            return x / self.factor

    return Symmetric(), Scaled()


def test_parametrize():
    nets = []
    for m in BOTH:
        m.manual_seed(0)
        net = m.nn.Linear(3, 3)
        p = m.nn.utils.parametrize
        symmetric, scaled = parametrizations(m)
        p.register_parametrization(net, "weight", symmetric)
        p.register_parametrization(net, "weight", scaled)
        assert p.is_parametrized(net) and p.is_parametrized(net, "weight")
        assert not p.is_parametrized(net, "bias")
        assert p.type_before_parametrizations(net) is m.nn.Linear
        net.weight = m.arange(9.0).reshape(3, 3) + m.arange(9.0).reshape(3, 3).t()
        with p.cached():
            assert net.weight is net.weight
        copied = copy.deepcopy(net)
        assert copied.weight.tolist() == net.weight.tolist()
        nets.append(net)
    same_state(*nets)
    assert repr(nets[0]) == repr(nets[1])
    for m, net in zip(BOTH, nets):
        value = net.weight.tolist()
        m.nn.utils.parametrize.remove_parametrizations(net, "weight")
        assert type(net) is m.nn.Linear and net.weight.tolist() == value
        assert isinstance(net.weight, m.nn.Parameter)


def with_grads(m, values):
    made = [m.nn.Parameter(m.zeros(len(v))) for v in values]
    for p, v in zip(made, values):
        p.grad = m.tensor(v)
    return made + [m.nn.Parameter(m.zeros(2))]


@pytest.mark.parametrize("norm_type", [2.0, 1.0, float("inf")])
@pytest.mark.parametrize("most", [0.5, 100.0])
def test_clipping(norm_type, most):
    seen = []
    for m in BOTH:
        p = with_grads(m, [[1.0, -2.0], [3.0]])
        total = m.nn.utils.clip_grad_norm_(p, most, norm_type)
        seen.append([total.item(), *(q.grad.tolist() for q in p[:2])])
        m.nn.utils.clip_grad_value_(p, 0.3)
        seen[-1] += [q.grad.tolist() for q in p[:2]]
        seen[-1] += [m.nn.utils.get_total_norm([q.grad for q in p[:2]], norm_type).item()]
    for a, b in zip(*seen):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    for m in BOTH:
        with pytest.raises(RuntimeError, match="non-finite"):
            m.nn.utils.clip_grad_norm_(
                with_grads(m, [[float("nan")]]), 1.0, error_if_nonfinite=True
            )


def test_vectors():
    for m in BOTH:
        p = [m.nn.Parameter(m.ones(2)), m.nn.Parameter(m.zeros(1, 3))]
        assert m.nn.utils.parameters_to_vector(p).tolist() == [1, 1, 0, 0, 0]
        m.nn.utils.vector_to_parameters(m.arange(5.0), p)
        assert [q.tolist() for q in p] == [[0, 1], [[2, 3, 4]]]


def test_fusion():
    for bias in (True, False):
        results = []
        for m in BOTH:
            m.manual_seed(0)
            conv, bn = m.nn.Conv2d(2, 3, 3, bias=bias), m.nn.BatchNorm2d(3)
            bn.running_mean.copy_(m.arange(3.0)), bn.running_var.copy_(m.arange(3.0) + 1)
            fused = m.nn.utils.fuse_conv_bn_eval(conv.eval(), bn.eval())
            linear, bn1 = m.nn.Linear(2, 3, bias=bias), m.nn.BatchNorm1d(3)
            bn1.running_mean.copy_(m.arange(3.0))
            results += [(fused.weight, fused.bias)]
            both = m.nn.utils.fuse_linear_bn_eval(linear.eval(), bn1.eval())
            results[-1] += (both.weight, both.bias)
        for a, b in zip(*results):
            same(a, b)


def test_skip_init_draws_nothing():
    prong.manual_seed(1)
    layer = prong.nn.utils.skip_init(prong.nn.Linear, 3, 4)
    assert tuple(layer.weight.shape) == (4, 3)
    first = prong.rand(1).item()
    prong.manual_seed(1)
    assert prong.rand(1).item() == first


INITS = {
    "sparse_": lambda m: m.nn.init.sparse_(m.empty(10, 3), 0.35),
    "trunc_normal_": lambda m: m.nn.init.trunc_normal_(m.empty(50), std=0.5, a=-0.5, b=0.7),
    "xavier_uniform_": lambda m: m.nn.init.xavier_uniform_(m.empty(3, 4, 2), gain=2.0),
    "xavier_normal_": lambda m: m.nn.init.xavier_normal_(m.empty(3, 4)),
    "kaiming_normal_": lambda m: m.nn.init.kaiming_normal_(
        m.empty(3, 4), mode="fan_out", nonlinearity="relu"
    ),
    "kaiming_uniform_": lambda m: m.nn.init.kaiming_uniform_(m.empty(3, 4), a=0.3),
    "dirac_": lambda m: m.nn.init.dirac_(m.empty(4, 2, 3), 2),
    "eye_": lambda m: m.nn.init.eye_(m.empty(3, 4)),
    "constant_": lambda m: m.nn.init.constant_(m.empty(3), 2.5),
    "normal_ of a generator": lambda m: m.nn.init.normal_(
        m.empty(3), generator=m.Generator().manual_seed(4)
    ),
    "the old names": lambda m: m.nn.init.uniform(m.empty(3), 1, 2),
    "orthogonal_": lambda m: m.nn.init.orthogonal_(m.empty(4, 3)),
    "orthogonal_ wide": lambda m: m.nn.init.orthogonal_(m.empty(2, 2, 3), gain=2.0),
}


@pytest.mark.parametrize("name", INITS)
def test_initialisers(name):
    seen = []
    for m in BOTH:
        m.manual_seed(6)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seen.append(INITS[name](m))
    same(*seen)
    assert prong.rand(1).item() == torch.rand(1).item()
