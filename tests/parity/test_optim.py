"""Optimizers against PyTorch's: parameters and state after each of many steps, state dicts, errors."""

import copy
import importlib
import io

import numpy as np
import prong
import pytest

torch = pytest.importorskip("torch")

CASES = {
    "SGD": [
        {},
        {"lr": 0.1, "momentum": 0.9},
        {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.01},
        {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True},
        {"lr": 0.1, "weight_decay": 0.1, "fused": True},
    ],
    "Adam": [
        {},
        {"lr": 0.05, "weight_decay": 0.01, "amsgrad": True},
        {"lr": 0.05, "betas": (0.5, 0.7), "eps": 1e-4, "maximize": True},
        {"lr": 0.01, "decoupled_weight_decay": True, "weight_decay": 0.1},
        {"lr": 0.01, "foreach": True},
        {"lr": 0.01, "fused": True},
    ],
    "AdamW": [{}, {"lr": 0.05, "weight_decay": 0.3, "amsgrad": True}],
    "RMSprop": [
        {},
        {"lr": 0.02, "momentum": 0.8, "weight_decay": 0.05},
        {"lr": 0.02, "centered": True, "maximize": True},
        {"lr": 0.02, "centered": True, "momentum": 0.5, "alpha": 0.8},
    ],
    "Adagrad": [
        {},
        {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5},
    ],
    "Adadelta": [{}, {"lr": 0.5, "rho": 0.7, "weight_decay": 0.1, "maximize": True}],
    "NAdam": [
        {},
        {"lr": 0.05, "weight_decay": 0.1, "momentum_decay": 0.1},
        {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True},
    ],
    "RAdam": [
        {},
        {"lr": 0.05, "betas": (0.8, 0.9), "weight_decay": 0.1},
        {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True},
    ],
    "Adamax": [{}, {"lr": 0.05, "weight_decay": 0.1, "maximize": True}],
    "ASGD": [{}, {"lr": 0.05, "weight_decay": 0.1, "t0": 10, "lambd": 0.01}],
    "Rprop": [{}, {"lr": 0.05, "etas": (0.4, 1.3), "step_sizes": (1e-4, 0.2), "maximize": True}],
}
ALL = [
    pytest.param(name, options, id=f"{name}-{i}")
    for name, cases in CASES.items()
    for i, options in enumerate(cases)
]
SHAPES = [(3, 4), (5,), (), (2, 3, 2)]
DTYPES = {"float32": 1e-6, "float64": 1e-12, "bfloat16": 1e-2, "float16": 2e-3}


def numbers(tensor):
    return np.array(tensor.detach().double().tolist())


class Both:
    """The same parameters and gradients on both sides."""

    def __init__(self, dtype="float32", shapes=SHAPES, seed=0):
        self.random = np.random.default_rng(seed)
        self.dtype, self.shapes = dtype, shapes
        start = [self.random.normal(size=s) for s in shapes]
        self.params = {m: [self.make(m, x, True) for x in start] for m in (prong, torch)}

    def make(self, module, array, requires_grad=False):
        made = module.tensor(array.tolist(), dtype=getattr(module, self.dtype))
        return made.requires_grad_(requires_grad)

    def set_grads(self, skip=()):
        for i, shape in enumerate(self.shapes):
            grad = self.random.normal(size=shape)
            for module, params in self.params.items():
                params[i].grad = None if i in skip else self.make(module, grad)

    def check(self, tolerance):
        for ours, theirs in zip(self.params[prong], self.params[torch], strict=True):
            np.testing.assert_allclose(
                numbers(ours), numbers(theirs), rtol=tolerance, atol=tolerance
            )


def same_state(ours, theirs, tolerance=1e-5):
    """Two state dicts have the same keys in the same order, and the same values."""
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        for key in theirs:
            same_state(ours[key], theirs[key], tolerance)
    elif isinstance(theirs, (list, tuple)):
        assert type(ours) is type(theirs) and len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            same_state(a, b, tolerance)
    elif isinstance(theirs, torch.Tensor):
        assert tuple(ours.shape) == tuple(theirs.shape)
        assert str(ours.dtype).split(".")[-1] == str(theirs.dtype).split(".")[-1]
        np.testing.assert_allclose(numbers(ours), numbers(theirs), rtol=tolerance, atol=tolerance)
    else:
        assert ours == theirs


# Not fused ones in float16: PyTorch's does not round in between, ours rounds as its others do.
STEPS = [
    pytest.param(*case.values, dtype, id=f"{case.id}-{dtype}")
    for case in ALL
    for dtype in DTYPES
    if not (case.values[1].get("fused") and dtype == "float16")
]


@pytest.mark.parametrize(("name", "options", "dtype"), STEPS)
def test_steps(name, options, dtype):
    both = Both(dtype)
    mine = getattr(prong.optim, name)(both.params[prong], **options)
    theirs = getattr(torch.optim, name)(both.params[torch], **options)
    tolerance = DTYPES[dtype]
    # Small types amplify a bit of difference: fewer steps there.
    for step in range(100 if tolerance < 1e-3 else 5):
        both.set_grads(skip=(1,) if step < 2 else ())
        mine.step()
        theirs.step()
    both.check(tolerance)
    same_state(mine.state_dict(), theirs.state_dict(), max(tolerance, 1e-5))
    assert repr(mine) == repr(theirs)


@pytest.mark.parametrize("name", CASES)
def test_large_and_strided_parameters(name):
    options = CASES[name][1]
    both = Both(shapes=[(300, 301), (70000,)])
    for module, params in both.params.items():
        params[0] = params[0].detach().t().requires_grad_(True)
        both.params[module] = params
    both.shapes = [(301, 300), (70000,)]
    mine = getattr(prong.optim, name)(both.params[prong], **options)
    theirs = getattr(torch.optim, name)(both.params[torch], **options)
    for _ in range(3):
        both.set_grads()
        mine.step()
        theirs.step()
    both.check(1e-6)


@pytest.mark.parametrize("name", CASES)
def test_bits_do_not_depend_on_threads(name):
    results = []
    for threads in (1, 4):
        before = prong.get_num_threads()
        prong.set_num_threads(threads)
        both = Both(shapes=[(90001,), (7,)])
        mine = getattr(prong.optim, name)(both.params[prong], **CASES[name][-1])
        for _ in range(3):
            both.set_grads()
            mine.step()
        prong.set_num_threads(before)
        results.append([p.detach().clone() for p in both.params[prong]])
    for a, b in zip(*results, strict=True):
        assert prong.equal(a, b)


@pytest.mark.parametrize(("name", "options"), ALL)
def test_state_dicts_go_across(name, options):
    """A run that moves to the other side midway, through a file, ends as one that did not."""
    both = Both()
    mine = getattr(prong.optim, name)(both.params[prong], **options)
    theirs = getattr(torch.optim, name)(both.params[torch], **options)
    for _ in range(3):
        both.set_grads()
        mine.step()
        theirs.step()
    for here, there, target, module in (
        (theirs, torch, mine, prong),
        (mine, prong, theirs, torch),
    ):
        file = io.BytesIO()
        there.save(here.state_dict(), file)
        file.seek(0)
        target.load_state_dict(module.load(file))
        for _ in range(3):
            both.set_grads()
            mine.step()
            theirs.step()
        both.check(1e-5)


def test_groups():
    both = Both()
    optimizers = []
    for module, params in both.params.items():
        optimizer = module.optim.SGD(
            [{"params": params[:2], "lr": 0.5}, {"params": params[2], "momentum": 0.9}], lr=0.1
        )
        optimizer.add_param_group({"params": iter(params[3:]), "weight_decay": 0.1})
        optimizers.append(optimizer)
    for _ in range(4):
        both.set_grads()
        for optimizer in optimizers:
            optimizer.step()
    both.check(1e-6)
    same_state(optimizers[0].state_dict(), optimizers[1].state_dict())
    assert repr(optimizers[0]) == repr(optimizers[1])


def test_named_parameters():
    for module in (prong, torch):
        model = module.nn.Linear(2, 3)
        optimizer = module.optim.Adam(model.named_parameters())
        assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["weight", "bias"]


def test_rate_as_tensor():
    both = Both()
    optimizers = [
        module.optim.Adam(params, lr=module.tensor(0.05)) for module, params in both.params.items()
    ]
    for _ in range(5):
        both.set_grads()
        for optimizer in optimizers:
            optimizer.step()
    both.check(1e-6)


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
@pytest.mark.parametrize("history", [3, 100])
def test_lbfgs(search, history):
    results = []
    for module in (prong, torch):
        x = module.tensor([-1.5, 2.0, 0.3, 1.1], dtype=module.float64, requires_grad=True)
        y = module.tensor([[0.5]], dtype=module.float64, requires_grad=True)
        optimizer = module.optim.LBFGS(
            [x, y], lr=0.02 if search is None else 1, history_size=history, line_search_fn=search
        )
        losses = []

        def closure():
            optimizer.zero_grad()  # noqa: B023
            a, b = x[1:], x[:-1]  # noqa: B023
            loss = (100 * (a - b * b) * (a - b * b) + (1 - b) * (1 - b)).sum()
            loss = loss + ((y - x[0]) * (y - x[0])).sum()  # noqa: B023
            loss.backward()
            return loss

        losses = [optimizer.step(closure).item() for _ in range(8)]
        results.append((losses, x.tolist(), optimizer.state_dict()))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-6)
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-6)
    ours, theirs = results[0][2]["state"][0], results[1][2]["state"][0]
    assert sorted(ours) == sorted(theirs)
    assert ours["func_evals"] == theirs["func_evals"] and ours["n_iter"] == theirs["n_iter"]


# ── what both refuse ──

FAULTS = {
    "no parameters": lambda t, p: t.optim.SGD([], lr=1),
    "one tensor": lambda t, p: t.optim.SGD(p[0], lr=1),
    "not a tensor": lambda t, p: t.optim.SGD([1], lr=1),
    "a set": lambda t, p: t.optim.SGD([{"params": set(p)}], lr=1),
    "no leaf": lambda t, p: t.optim.SGD([p[0] * 2], lr=1),
    "group is no dict": lambda t, p: t.optim.SGD(p, lr=1).add_param_group(p),
    "twice": lambda t, p: t.optim.SGD(p, lr=1).add_param_group({"params": p[:1]}),
    "some names": lambda t, p: t.optim.SGD([("a", p[0]), p[1]], lr=1),
    "names in one group": lambda t, p: t.optim.SGD([("a", p[0])]).add_param_group({"params": p[1]}),
    "negative rate": lambda t, p: t.optim.Adam(p, lr=-1),
    "rates": lambda t, p: t.optim.Adam(p, lr=t.tensor([1.0, 2.0])),
    "tensor rate, foreach": lambda t, p: t.optim.Adam(p, lr=t.tensor(1.0), foreach=True),
    "eps": lambda t, p: t.optim.Adam(p, eps=-1),
    "beta 0": lambda t, p: t.optim.Adam(p, betas=(1.0, 0.5)),
    "beta 1": lambda t, p: t.optim.Adam(p, betas=(0.5, -1.0)),
    "betas of two kinds": lambda t, p: t.optim.Adam(p, betas=(0.5, t.tensor(0.5))),
    "decay": lambda t, p: t.optim.AdamW(p, weight_decay=-1),
    "momentum": lambda t, p: t.optim.SGD(p, momentum=-1),
    "nesterov": lambda t, p: t.optim.SGD(p, nesterov=True),
    "fused and foreach": lambda t, p: t.optim.SGD(p, fused=True, foreach=True),
    "fused and differentiable": lambda t, p: t.optim.Adam(p, fused=True, differentiable=True),
    "rho": lambda t, p: t.optim.Adadelta(p, rho=2),
    "etas": lambda t, p: t.optim.Rprop(p, etas=(2, 3)),
    "momentum decay": lambda t, p: t.optim.NAdam(p, momentum_decay=-1),
    "LBFGS groups": lambda t, p: t.optim.LBFGS([{"params": p[:1]}, {"params": p[1:]}]),
    "base step": lambda t, p: t.optim.Optimizer(p, {}).step(),
    "number of groups": lambda t, p: t.optim.SGD(p).load_state_dict(
        {"state": {}, "param_groups": []}
    ),
    "size of a group": lambda t, p: t.optim.SGD(p).load_state_dict(t.optim.SGD(p[:1]).state_dict()),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults(fault):
    raised = []
    for module in (torch, prong):
        params = [module.zeros(2, requires_grad=True) for _ in range(2)]
        with pytest.raises(Exception) as info:
            FAULTS[fault](module, params)
        raised.append(info.value)
    assert type(raised[1]).__name__ == type(raised[0]).__name__
    assert str(raised[1]).replace("prong.", "torch.") == str(raised[0])


def test_hooks():
    log = []
    for module in (prong, torch):
        calls = []
        param = module.zeros(2, requires_grad=True)
        param.grad = module.ones(2)
        optimizer = module.optim.SGD([param], lr=0.1)
        optimizers = importlib.import_module(f"{module.__name__}.optim.optimizer")
        register_all = optimizers.register_optimizer_step_pre_hook
        handles = [
            register_all(lambda o, a, k: calls.append(("all", len(a), k))),  # noqa: B023
            optimizer.register_step_pre_hook(lambda o, a, k: calls.append("pre")),  # noqa: B023
            optimizer.register_step_post_hook(lambda o, a, k: calls.append("post")),  # noqa: B023
            optimizer.register_state_dict_pre_hook(lambda o: calls.append("dict")),  # noqa: B023
            optimizer.register_state_dict_post_hook(lambda o, d: {**d, "more": 1}),
            optimizer.register_load_state_dict_pre_hook(
                lambda o, d: calls.append(sorted(d))  # noqa: B023
            ),
            optimizer.register_load_state_dict_post_hook(
                lambda o: calls.append("loaded")  # noqa: B023
            ),
        ]
        optimizer.step()
        optimizer.load_state_dict(optimizer.state_dict())
        for handle in handles:
            handle.remove()
        optimizer.step()
        assert "more" not in optimizer.state_dict()
        log.append(calls)
    assert log[0] == log[1]


def test_closure_and_zero_grad():
    for module in (prong, torch):
        param = module.ones(3, requires_grad=True)
        optimizer = module.optim.SGD([param], lr=0.1)

        def closure():
            assert module.is_grad_enabled()  # noqa: B023
            optimizer.zero_grad()  # noqa: B023
            loss = (param * param).sum()  # noqa: B023
            loss.backward()
            return loss

        assert optimizer.step(closure).item() == 3.0
        assert param.tolist() == pytest.approx([0.8] * 3)
        optimizer.zero_grad(set_to_none=False)
        assert param.grad.tolist() == [0.0] * 3
        optimizer.zero_grad()
        assert param.grad is None


def test_subclass_of_a_user():
    class Halving(prong.optim.Optimizer):
        def step(self, closure=None):
            with prong.no_grad():
                for group in self.param_groups:
                    for p in group["params"]:
                        p.mul_(0.5)

    param = prong.ones(2, requires_grad=True)
    optimizer = Halving([param], {"lr": prong.optim.optimizer.required} | {"lr": 1})
    seen = []
    optimizer.register_step_post_hook(lambda *_: seen.append(1))
    optimizer.step()
    assert param.tolist() == [0.5, 0.5] and seen == [1]
    with pytest.raises(ValueError, match="required optimization parameter lr"):
        Halving([param], {"lr": prong.optim.optimizer.required})


def test_deepcopy_and_pickle_of_settings():
    param = prong.ones(2, requires_grad=True)
    param.grad = prong.ones(2)
    optimizer = prong.optim.Adam([param])
    optimizer.step()
    twin = copy.deepcopy(optimizer)
    assert twin.state_dict()["param_groups"] == optimizer.state_dict()["param_groups"]
    assert twin.param_groups[0]["params"][0] is not param


def test_versions_go_up():
    param = prong.ones(2, requires_grad=True)
    loss = (param * param).sum()
    param.grad = prong.ones(2)
    prong.optim.Adam([param]).step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_capturable_needs_an_accelerator():
    for module in (prong, torch):
        param = module.ones(2, requires_grad=True)
        param.grad = module.ones(2)
        with pytest.raises(AssertionError, match="If capturable=True, params and state_steps"):
            module.optim.Adam([param], capturable=True).step()
