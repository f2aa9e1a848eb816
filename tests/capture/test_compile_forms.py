"""What compile() and its companions take: classes, modules, wrong arguments, names that programs of PyTorch use."""

import asyncio
import copy
import pickle

import prong as torch
import pytest
from prong import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def forward(self, x):
        return self.inner(x).relu()


def test_a_module_is_compiled_in_place():
    net, x = Net(), torch.ones(3, 2)
    want, names = net(x).tolist(), list(net.state_dict())
    assert net.compile(backend="eager", fullgraph=True) is None
    for _ in range(2):
        assert net(x).tolist() == want
    assert type(net) is Net and list(net.state_dict()) == names
    assert net._compiled_call_impl._counters()["replays"] == 1
    seen = []
    net.register_forward_hook(lambda module, args, result: seen.append(module is net))
    assert net(x).tolist() == want and seen == [True]
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(Net()))):
        assert other._compiled_call_impl is None and other(x).shape == (3, 2)


def test_a_class_has_calls_of_its_instances_compiled():
    @torch.compile(backend="eager")
    class Scaled(nn.Module):
        def forward(self, x):
            return x * 3, torch.compiler.is_compiling()

    value, is_compiling = Scaled()(torch.ones(2))
    assert value.tolist() == [3.0, 3.0] and is_compiling and isinstance(Scaled(), nn.Module)

    class Nothing:
        pass

    with pytest.raises(TypeError, match="Nothing cannot be called: it has no __call__"):
        torch.compile(Nothing)


def test_decorators_of_methods_in_any_order():
    class Thing:
        factor = 2

        @torch.compile
        @staticmethod
        def static(x):
            return x + 1

        @torch.compile
        @classmethod
        def of_class(cls, x):
            return x * cls.factor

        @torch.compile
        @property
        def ones(self):
            return torch.ones(2) * self.factor

    x = torch.ones(2)
    assert Thing().static(x).tolist() == Thing.static(x).tolist() == [2.0, 2.0]
    assert Thing().of_class(x).tolist() == Thing().ones.tolist() == [2.0, 2.0]

    @torch.compile
    async def later(x):
        await asyncio.sleep(0)
        return x * 2

    assert asyncio.run(later(x)).tolist() == [2.0, 2.0]
    assert later._torchdynamo_orig_callable is later.__wrapped__


@pytest.mark.parametrize(
    "setting, kind, text",
    [
        ({"dynamic": 1}, TypeError, r"dynamic=\.\.\.\) takes True, False or None, got 1 \(int\)"),
        ({"mode": []}, RuntimeError, r"Unrecognized mode=\[\], should be one of: check, default, "),
        ({"options": "triton"}, TypeError, r"takes a dict of names and values, got 'triton'"),
        ({"name": 5}, TypeError, r"compile\(name=\.\.\.\) takes a string, got 5 \(int\)"),
        ({"backend": 5}, TypeError, r"backend=\.\.\.\) takes a name or a callable, got 5 \(int\)"),
        ({"backend": "inductr"}, torch._dynamo.exc.InvalidBackend, "no back end named 'inductr'"),
    ],
)
def test_wrong_arguments_are_named(setting, kind, text):
    with pytest.raises(kind, match=text):
        torch.compile(lambda x: x, **setting)


def test_compiled_modules_stand_for_what_they_hold():
    layers = torch.compile(nn.Sequential(nn.Linear(2, 2), nn.Tanh()))
    assert len(layers) == 2 and isinstance(layers[1], nn.Tanh) and len(list(layers)) == 2
    assert "a" in torch.compile(nn.ModuleDict({"a": nn.ReLU()}))
    assert torch.compile(Net()) and "(inner)" in repr(torch.compile(Net()))
    with pytest.raises(TypeError, match="Net"):
        len(torch.compile(Net()))
    prefixed = {f"_orig_mod.{name}": value * 0 for name, value in layers.state_dict().items()}
    layers.load_state_dict(prefixed)  # a file that PyTorch's compiled module has saved
    assert layers[0].weight.tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_a_disabled_module_keeps_its_parameters():
    net = nn.Sequential(nn.Linear(2, 2), torch.compiler.disable(nn.Linear(2, 2)))
    assert len(list(net.parameters())) == 4
    x = torch.ones(1, 2)
    want = net(x).tolist()
    assert torch.compile(net)(x).tolist() == want
    assert copy.deepcopy(net)(x).tolist() == want
    report = torch._dynamo.explain(lambda x: net(x).sin())(x)
    assert [each.id for each in report.break_reasons] == ["C011"]
    with pytest.raises(TypeError, match=r"disable\(\) takes a callable, got int"):
        torch.compiler.disable(5)


def test_back_ends_that_give_what_does_not_fit_are_told_so():
    def gives(value):
        return torch.compile(lambda x: (x + 1, x * 2), backend=lambda module, inputs: value)

    x, error = torch.ones(2), torch._dynamo.exc.BackendCompilerFailed
    with pytest.raises(error, match=r"must give a callable, but gave 5 \(int\)"):
        gives(5)(x)
    with pytest.raises(TypeError, match="must give a tuple of the graph's outputs, not NoneType"):
        gives(lambda *args: None)(x)
    with pytest.raises(RuntimeError, match="gave 1 value, but the graph has 2 outputs"):
        gives(lambda x: (x,))(x)
    with pytest.raises(TypeError, match=r"register_backend\(\) takes a callable, got int"):
        torch._dynamo.register_backend(5)


def test_settings_that_refuse_and_switch_off():
    config, x = torch._dynamo.config, torch.ones(2)
    with config.patch(disable=True):
        assert torch.compile(lambda: torch.compiler.is_compiling())() is False
    with config.patch(recompile_limit=1, fail_on_recompile_limit_hit=True):
        f = torch.compile(lambda x, n: x * 2 if n > 1 else x)
        f(x, 1)
        with pytest.raises(torch._dynamo.exc.FailOnRecompileLimitHit, match="has 1 plan, as many"):
            f(x, 2)
    with config.patch(error_on_recompile=True):
        f = torch.compile(lambda x, n: x * 2 if n > 1 else x)
        f(x, 1)
        with pytest.raises(torch._dynamo.exc.RecompileError, match="argument 'n' > 1 was False"):
            f(x, 2)
    with pytest.raises(AttributeError, match=r"config\.nothing does not exist"):
        config.patch(nothing=1).__enter__()
    with pytest.raises(TypeError, match="takes a number of plans, 0 or more, not -1"):
        config.recompile_limit = -1


def test_names_that_programs_use():
    counter = torch._dynamo.testing.CompileCounterWithBackend("eager")
    torch.compile(lambda x: x.sin() + 1, backend=counter)(torch.ones(2))
    assert (counter.frame_count, counter.op_count, len(counter.graphs)) == (1, 2, 1)
    same = torch._dynamo.utils.same
    assert same([torch.ones(2), {"a": 1.0}], (torch.ones(2), {"a": 1.0}))
    assert not same(torch.ones(2), torch.ones(2).double()) and not same(torch.ones(2), None)
    assert torch._dynamo.testing.rand_strided((2, 3), (1, 2)).stride() == (1, 2)
    assert torch._dynamo.is_dynamo_supported()
    compiled = torch.compile(Net())
    assert isinstance(compiled, torch._dynamo.OptimizedModule)
    assert torch._dynamo.eval_frame.innermost_fn(torch.compile(len)) is len
    counters = torch._dynamo.utils.counters
    counters.clear()
    kept = torch.compile(lambda x: x + 1)
    kept(torch.ones(2))
    assert counters["stats"]["unique_graphs"] == 1 and not counters["graph_break"]
    x = torch.ones(2, 3)
    torch._dynamo.mark_dynamic(x, [0, 1])
    torch._dynamo.mark_static(x)
    assert torch._dynamo.mark_static(Net) is Net
    with pytest.raises(IndexError, match="2 dimensions has no dimension 5"):
        torch._dynamo.mark_dynamic(x, 5)
    with pytest.warns(UserWarning, match="coordinate_descent_tuning has no effect"):
        torch._inductor.config.coordinate_descent_tuning = True
    assert torch._inductor.config.coordinate_descent_tuning is True
    with pytest.warns(UserWarning, match="PRONG_LOG"):
        torch._logging.set_logs(recompiles=True)
