"""PyTorch's own samples of its modules: state, results and gradients are PyTorch's; a table by module is printed."""

import inspect
import warnings
from collections import defaultdict

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")
import prong  # noqa: E402
from torch.testing._internal.common_modules import module_db  # noqa: E402

# What is not here, and why.
ABSENT = {
    "LinearCrossEntropyLoss": "PyTorch 2.13's joint product and loss, in no program of the list",
}
INFOS = {info.name: info for info in module_db}


class NotHere(Exception):
    """A sample uses what prong does not have; the reason is the text."""


def to_prong(value):
    """A value of PyTorch's as prong's."""
    if isinstance(value, torch.nn.Module):
        return module_to_prong(value)
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided or value.is_nested:
            raise NotHere("sparse and nested tensors")
        made = prong.from_numpy(value.detach().float().numpy().copy())
        if not value.dtype.is_floating_point or value.dtype == torch.float64:
            made = prong.from_numpy(value.detach().numpy().copy())
        made = made.to(getattr(prong, str(value.dtype).rpartition(".")[2]))
        return made.requires_grad_() if value.requires_grad else made
    if isinstance(value, torch.dtype):
        return getattr(prong, str(value).rpartition(".")[2])
    if isinstance(value, torch.device):
        return prong.device(str(value))
    if isinstance(value, torch.Size):
        return prong.Size(value)
    if isinstance(value, dict):
        return {k: to_prong(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(to_prong, value))
    if inspect.isroutine(value) and getattr(torch.nn.functional, value.__name__, None) is value:
        return getattr(prong.nn.functional, value.__name__)
    return value


def module_to_prong(module):
    """A module that is an argument: of the same class and state, made from the attributes that it shows."""
    kind = type(module).__name__
    if kind in ("TransformerEncoderLayer", "TransformerDecoderLayer"):
        args = (module.self_attn.embed_dim, module.self_attn.num_heads, module.linear1.out_features)
        made = getattr(prong.nn, kind)(
            *args, dropout=module.dropout.p, batch_first=module.self_attn.batch_first,
            norm_first=module.norm_first, activation=to_prong(module.activation),
            layer_norm_eps=module.norm1.eps, bias=module.linear1.bias is not None,
            dtype=to_prong(module.linear1.weight.dtype),
        )  # fmt: skip
    elif kind == "LayerNorm":
        made = prong.nn.LayerNorm(module.normalized_shape, module.eps)
    elif not list(module.parameters()):
        made = getattr(prong.nn, kind)()
    else:
        raise NotHere(f"a {kind} as an argument")
    load(made, module)
    return made.train(module.training)


def load(ours, theirs):
    state = {k: to_prong(v) for k, v in theirs.state_dict().items()}
    ours.load_state_dict(state)


def flat(value):
    if isinstance(value, (torch.Tensor, prong.Tensor)):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for part in value for t in flat(part)]
    if isinstance(value, dict):
        return [t for part in value.values() for t in flat(part)]
    return []


def close(a, b, what):
    assert tuple(a.shape) == tuple(b.shape), what
    assert str(a.dtype) == str(b.dtype), what
    a, b = a.detach().double().numpy(), b.detach().double().numpy()
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5, err_msg=what)


def gradients(module, inputs, result):
    """Of the sum of all results, for the parameters and the inputs that require them."""
    total = sum(t.double().sum() for t in flat(result) if t.requires_grad)
    if not hasattr(total, "backward") or not total.requires_grad:
        return {}
    total.backward()
    found = {f"parameter {n}": p.grad for n, p in module.named_parameters()}
    for i, t in enumerate(flat(inputs)):
        if t.requires_grad and t.is_leaf:
            found[f"input {i}"] = t.grad
    return found


def run(info, sample, training, dtype):
    theirs_arguments, inputs = sample.constructor_input, sample.forward_input
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours_type = getattr(prong.nn, info.module_cls.__name__)
        ours = ours_type(*to_prong(theirs_arguments.args), **to_prong(theirs_arguments.kwargs))
        theirs = info.module_cls(*theirs_arguments.args, **theirs_arguments.kwargs)
        ours.to(to_prong(dtype)), theirs.to(dtype)
        assert list(ours.state_dict()) == list(theirs.state_dict())
        if not hasattr(
            theirs, "has_uninitialized_params"
        ):  # lazy ones draw their numbers when called
            load(ours, theirs)
        ours.train(training), theirs.train(training)
        assert repr(ours) == repr(theirs)
        if inputs is None:
            return
        mine = to_prong((inputs.args, inputs.kwargs))
        prong.manual_seed(1), torch.manual_seed(1)
        got = ours(*mine[0], **mine[1])
        prong_after = prong.rand(1).item()
        want = theirs(*inputs.args, **inputs.kwargs)
        assert prong_after == torch.rand(1).item() or not training, "another number of draws"
    results = flat(got), flat(want)
    assert len(results[0]) == len(results[1])
    for i, (a, b) in enumerate(zip(*results)):
        close(a, b, f"result {i}")
    if not hasattr(prong.Tensor, "backward"):
        return
    mine_grads = gradients(ours, mine, got)
    want_grads = gradients(theirs, (inputs.args, inputs.kwargs), want)
    assert set(want_grads) <= set(mine_grads)  # what PyTorch computed is given to prong as a leaf
    for name, b in want_grads.items():
        a = mine_grads[name]
        assert (a is None) == (b is None), f"gradient of {name}"
        if a is not None:
            close(a, b, f"gradient of {name}")


def samples(info, dtype, training):
    torch.manual_seed(0)
    return list(
        info.module_inputs_func(
            info, device="cpu", dtype=dtype, requires_grad=True, training=training
        )
    )


TABLE: dict = defaultdict(lambda: [0, 0])
REASONS: dict = {}


# Transformers and the like have hundreds of samples: the quick run takes some of them.
MOST = 24
SLOW = [pytest.mark.slow, pytest.mark.timeout(900)]
RUNS = [
    pytest.param(name, dtype, most, id=f"{label}-{name}", marks=marks)
    for name, info in INFOS.items()
    if info.module_cls.__name__ not in ABSENT
    for dtype, most, label, marks in (
        (torch.float32, MOST, "some of float32", ()),
        (torch.float32, None, "float32", SLOW),
        (torch.float64, None, "float64", SLOW),
    )
    if dtype in info.dtypes
]


@pytest.mark.parametrize(("name", "dtype", "most"), RUNS)
def test_samples(name, dtype, most):
    info = INFOS[name]
    failed = []
    for training in (True, False):
        chosen = samples(info, dtype, training)
        for sample in chosen[:: 1 if most is None else max(1, len(chosen) // most)]:
            TABLE[name][1] += 1
            try:
                run(info, sample, training, dtype)
                TABLE[name][0] += 1
            except NotHere as reason:
                TABLE[name][1] -= 1
                REASONS.setdefault(name, str(reason))
            except Exception as error:  # collected, so that the table is whole
                text = str(error).strip().splitlines()
                failed.append(f"{training} {sample.desc}: {type(error).__name__}: {text[:6]}")
    assert not failed, "\n".join(failed[:3]) + f"\n{len(failed)} samples of {name} fail"


def test_table(capsys):
    passed, total = (sum(counts[i] for counts in TABLE.values()) for i in (0, 1))
    with capsys.disabled():
        print("\nmodule: samples passed of all")
        for name, (good, count) in sorted(TABLE.items()):
            print(f"  {name.removeprefix('nn.')}: {good} of {count} {REASONS.get(name, '')}")
        print(f"  all: {passed} of {total}")
    assert passed >= 0.99 * total
