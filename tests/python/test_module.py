"""nn.Module's own behaviour: attributes, hooks, state, containers. Needs no PyTorch."""

import copy
import pickle

import prong as torch
import pytest
from prong import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.second = nn.Linear(4, 2)
        self.register_buffer("scale", torch.tensor(2.0))
        self.register_buffer("scratch", torch.zeros(1), persistent=False)

    def forward(self, x):
        return self.second(torch.relu(self.first(x))) * self.scale


def test_attributes_go_where_they_belong():
    net = Net()
    assert list(net.state_dict()) == [
        "scale",
        "first.weight",
        "first.bias",
        "second.weight",
        "second.bias",
    ]
    assert [n for n, _ in net.named_buffers()] == ["scale", "scratch"]
    net.first = None
    assert [n for n, _ in net.named_children()] == ["second"]
    del net.second
    assert list(net.parameters()) == []
    net.scale = torch.tensor(3.0)
    assert net.state_dict()["scale"].item() == 3.0
    with pytest.raises(TypeError, match="cannot assign 'str' as buffer 'scale'"):
        net.scale = "x"
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'third'"):
        net.third


def test_shared_parameters_are_listed_once():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].weight = net[0].weight
    assert len(list(net.parameters())) == 3
    assert len(list(net.named_parameters(remove_duplicate=False))) == 4
    assert len(net.state_dict()) == 4


def test_hooks_see_and_change_calls():
    layer = nn.ReLU()
    seen = []
    with layer.register_forward_pre_hook(lambda m, args: seen.append("pre") or (args[0] + 1,)):
        handle = layer.register_forward_hook(lambda m, args, out: out * 10)
        assert layer(torch.tensor([1.0])).tolist() == [20.0]
    assert layer(torch.tensor([1.0])).tolist() == [10.0]
    handle.remove()
    assert layer(torch.tensor([1.0])).tolist() == [1.0]
    assert seen == ["pre"]


def test_always_called_hook_runs_after_an_error():
    class Fails(nn.Module):
        def forward(self, x):
            raise ValueError("no")

    m, seen = Fails(), []
    m.register_forward_hook(lambda *a: seen.append(a[2]), always_call=True)
    with pytest.raises(ValueError):
        m(1)
    assert seen == [None]


def test_load_state_dict_says_what_is_wrong():
    net = Net()
    state = net.state_dict()
    state["extra"] = torch.ones(1)
    del state["first.bias"]
    state["second.weight"] = torch.ones(5, 5)
    with pytest.raises(RuntimeError) as e:
        net.load_state_dict(state)
    for part in (
        'Missing key(s) in state_dict: "first.bias"',
        'Unexpected key(s) in state_dict: "extra"',
        "size mismatch for second.weight",
    ):
        assert part in str(e.value)
    result = nn.Linear(1, 1).load_state_dict({"weight": torch.ones(1, 1)}, strict=False)
    assert result.missing_keys == ["bias"] and result.unexpected_keys == []


def test_copies_and_pickles_are_independent_and_equal():
    net = Net()
    x = torch.ones(2, 3)
    want = net(x).tolist()
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert twin(x).tolist() == want
        with torch.no_grad():
            twin.first.weight.fill_(0.0)
        assert net(x).tolist() == want
        assert isinstance(twin.first.weight, nn.Parameter) and twin.first.weight.requires_grad


def test_lstm_follows_its_weights():
    lstm = nn.LSTM(2, 3)
    x = torch.ones(4, 1, 2)
    with torch.no_grad():
        before = lstm(x)[0]
        for p in lstm.parameters():
            p.mul_(0.5)
        changed = lstm(x)[0]
        assert not torch.equal(before, changed)
        lstm.weight_hh_l0.numpy()[:] = 0.0  # a write that no version counter sees
        written = lstm(x)[0]
        assert not torch.equal(written, changed)
        lstm.weight_hh_l0.numpy()[:] = 1.0
        assert not torch.equal(lstm(x)[0], written)
        lstm.weight_ih_l0 = nn.Parameter(torch.zeros(12, 2))
        replaced = lstm(x)[0]
        twin = copy.deepcopy(lstm)
        assert torch.equal(twin(x)[0], replaced)


def test_conversion_keeps_parameters_the_same_objects():
    net = Net()
    weight = net.first.weight
    assert net.double() is net
    assert net.first.weight is weight and weight.dtype == torch.float64
    assert net(torch.ones(1, 3, dtype=torch.float64)).dtype == torch.float64
    with pytest.raises(TypeError, match="only accepts floating point"):
        net.to(torch.int64)


def test_sequential_and_module_list_edit_like_lists():
    s = nn.Sequential(nn.ReLU(), nn.Tanh())
    s.append(nn.Sigmoid()).insert(0, nn.Identity())
    assert [type(m).__name__ for m in s] == ["Identity", "ReLU", "Tanh", "Sigmoid"]
    assert len(s[1:3]) == 2 and isinstance(s[-1], nn.Sigmoid)
    del s[0]
    assert list(s._modules) == ["0", "1", "2"]
    both = nn.ModuleList([nn.ReLU()]) + [nn.Tanh()]
    both.insert(1, nn.Identity())
    assert [type(m).__name__ for m in both] == ["ReLU", "Identity", "Tanh"]
    assert type(both.pop(1)).__name__ == "Identity" and len(both) == 2
    assert repr(nn.ModuleList([nn.ReLU(), nn.ReLU()])) == "ModuleList(\n  (0-1): 2 x ReLU()\n)"


def test_train_and_eval_reach_everything():
    net = nn.Sequential(nn.Dropout(0.5), nn.Sequential(nn.Dropout(0.5)))
    net.eval()
    assert not any(m.training for m in net.modules())
    x = torch.ones(100)
    assert torch.equal(net(x), x)
    net.train()
    assert not torch.equal(net(x), x)
