"""Every op under vmap against a loop over the samples, and its gradients with it."""

import functools

import prong
import pytest
from prong import _core
from prong.func import grad, vmap
from samples import call_of
from test_gradients import NO_GRADIENT
from test_ops import OPS, assert_same, facet, flat, has_values

SIZE = 3
BY_NAME = {op["name"]: op for op in OPS}


# Ops that a loop cannot be compared with.
NO_LOOP = {
    "recurrent_backward": "its loops use the gates it is given, its ops make them from the inputs;"
    " the sample's gates are of no forward pass",
}
# Ops whose gradients a loop cannot be compared with.
NO_LOOP_OF_GRADIENTS = {
    "masked_scatter": "its gradient to source has as many numbers as the mask says",
}


def samples_of(op: dict, sample: str) -> list[tuple]:
    """(args, kwargs) of SIZE calls of the same shapes with other numbers."""
    return [call_of(op, sample, f"#{i}" if i else "") for i in range(SIZE)]


class Calls:
    """Calls that differ in some of their tensors: as one call of batches, and one by one."""

    def __init__(self, op: dict, sample: str, which: str):
        self.op, self.calls = op, samples_of(op, sample)
        nests = [tensors_of(args, kwargs) for args, kwargs in self.calls]
        count = len(nests[0])
        self.mapped = {"all": range(count), "first": range(min(1, count)), "rest": range(1, count)}[
            which
        ]
        self.samples = [[nest[k] for k in self.mapped] for nest in nests]

    def run(self, *tensors):
        """The op with these in place of the mapped tensors."""
        given = dict(zip(self.mapped, tensors, strict=True))
        counter = iter(range(10**6))
        args, kwargs = put(*self.calls[0], lambda x: given.get(next(counter), x))
        if self.op["mutates"] >= 0:  # not the sample's own tensor
            args = [own(x) if k == 0 else x for k, x in enumerate(args)]
        return _core.call_op(self.op["name"], *args, **kwargs)

    def batches(self) -> list:
        return [prong.stack(list(column)) for column in zip(*self.samples, strict=True)]


def tensors_of(args, kwargs) -> list:
    found = []
    put(args, kwargs, lambda x: found.append(x) or x)
    return found


def own(x):
    return x.clone() if isinstance(x, prong.Tensor) else x


def put(args, kwargs, change):
    def walk(v):
        if isinstance(v, prong.Tensor):
            return change(v)
        if isinstance(v, (list, tuple)) and not isinstance(v, prong.Size):
            return type(v)(walk(x) for x in v)
        return v

    return walk(tuple(args)), {k: walk(v) for k, v in kwargs.items()}


def writes_lists(op) -> bool:
    return op["mutates"] >= 0 and op["arguments"][op["mutates"]]["type"].startswith("List")


def is_batchable(op) -> bool:
    return (
        not op["dynamic_shape"]
        and op["name"] not in NO_LOOP
        and op["batching"] not in ("refused", "host")
        and not writes_lists(op)
    )


@functools.cache
def _shapes(name: str, sample: str, seed: str) -> list:
    return [x.shape for x in tensors_of(*call_of({"name": name}, sample, seed))]


def maps(least: int):
    """Whether a sample has so many tensors, of shapes that do not depend on their numbers."""

    def holds(op, sample) -> bool:
        shapes = _shapes(op["name"], sample, "")
        return len(shapes) >= least and all(
            _shapes(op["name"], sample, f"#{i}") == shapes for i in range(1, SIZE)
        )

    return holds


def flat_tensors(result) -> tuple:
    return tuple(x for x in flat(result) if isinstance(x, prong.Tensor))


def check_against_loop(op, sample, which):
    calls = Calls(op, sample, which)
    wanted = [flat_tensors(calls.run(*s)) for s in calls.samples]
    got = vmap(lambda *x: flat_tensors(calls.run(*x)))(*calls.batches())
    assert_same(got, [prong.stack(list(column)) for column in zip(*wanted, strict=True)])


@facet(lambda op: is_batchable(op) and has_values(op), maps(1))
def test_all_tensors_mapped(op, sample):
    check_against_loop(op, sample, "all")


@facet(lambda op: is_batchable(op) and has_values(op), maps(1))
def test_first_tensor_mapped(op, sample):
    check_against_loop(op, sample, "first")


@facet(lambda op: is_batchable(op) and has_values(op) and op["mutates"] < 0, maps(2))
def test_first_tensor_shared(op, sample):
    check_against_loop(op, sample, "rest")


@facet(lambda op: op["dynamic_shape"] and has_values(op) and op["batching"] == "loop", maps(1))
def test_shapes_that_depend_on_numbers_are_refused(op, sample):
    calls = Calls(op, sample, "all")
    with pytest.raises(RuntimeError, match="vmap"):
        vmap(lambda *x: flat_tensors(calls.run(*x)))(*calls.batches())


@facet(writes_lists, maps(1))
def test_ops_that_write_lists_are_refused(op, sample):
    calls = Calls(op, sample, "all")
    with pytest.raises(RuntimeError, match="vmap"):
        vmap(lambda *x: calls.run(*x) or x[0])(*calls.batches())


@facet(lambda op: op["random"] and op["batching"] != "composite")
def test_random_ops_are_refused_unless_asked_for(op, sample):
    args, kwargs = call_of(op, sample)
    with pytest.raises(RuntimeError, match="randomness"):
        vmap(lambda x: _core.call_op(op["name"], *args, **kwargs))(prong.zeros(2))


@facet(lambda op: op["random"] and op["batching"] != "composite")
def test_random_ops_differ_or_are_the_same(op, sample):
    args, kwargs = call_of(op, sample)

    def call(x):
        first = [x.new_zeros(1) + args[0], *args[1:]] if op["mutates"] >= 0 else args
        return _core.call_op(op["name"], *first, **kwargs)

    one = _core.call_op(op["name"], *(own(x) for x in args), **kwargs)
    batch = prong.zeros(SIZE, dtype=one.dtype if op["mutates"] >= 0 else prong.float32)
    for randomness in ("same", "different"):
        made = vmap(call, randomness=randomness)(batch)
        assert made.shape == (SIZE, *one.shape)
        if randomness == "same" and made.numel():
            assert_same(made[0], made[1], exact=True)


def differentiated(op) -> bool:
    return (
        is_batchable(op)
        and has_values(op)
        and (op["has_grad"] or op["composite"])
        and op["mutates"] < 0
        and not op["not_differentiable"]
        and op["name"] not in NO_LOOP_OF_GRADIENTS
    )


def total(result):
    """One number that every floating-point result takes part in."""
    wanted = [x for x in flat_tensors(result) if x.requires_grad]
    parts = [prong.view_as_real(x).sum() if x.is_complex() else x.sum() for x in wanted]
    return sum(parts) if parts else None


@functools.cache
def _has_gradient(name: str, sample: str) -> bool:
    op = BY_NAME[name]
    if (name, sample) in NO_GRADIENT or not maps(1)(op, sample):
        return False
    calls = Differentiable(op, sample, "all")
    return bool(calls.float) and total(calls.run(*calls.wanting(calls.samples[0]))) is not None


def has_gradient(op, sample) -> bool:
    """A result of the sample requires grad where its floating-point tensors do."""
    return _has_gradient(op["name"], sample)


def has_gradient_to_what_is_shared(op, sample) -> bool:
    if not has_gradient(op, sample):
        return False
    calls = Differentiable(op, sample, "all")
    return len(calls.samples[0]) > 1 and 0 in calls.float


class Differentiable(Calls):
    """Calls as functions of their floating-point tensors."""

    def __init__(self, op, sample, which):
        super().__init__(op, sample, which)
        self.float = [k for k, x in enumerate(self.samples[0]) if x.is_floating_point()]

    def wanting(self, tensors):
        return [
            x.detach().clone().requires_grad_() if k in self.float else x
            for k, x in enumerate(tensors)
        ]

    def loop(self):
        """Gradients of each sample, stacked."""
        columns = []
        for sample in self.samples:
            inputs = self.wanting(sample)
            found = prong.autograd.grad(
                total(self.run(*inputs)), [inputs[k] for k in self.float], materialize_grads=True
            )
            columns.append(found)
        return [prong.stack(list(c)) for c in zip(*columns, strict=True)]


@facet(differentiated, has_gradient)
def test_vmap_of_gradients(op, sample):
    calls = Differentiable(op, sample, "all")
    one = grad(lambda *x: total(calls.run(*x)), argnums=tuple(calls.float))
    want = calls.loop()
    assert_same(vmap(one)(*calls.batches()), want)


@facet(differentiated, has_gradient_to_what_is_shared)
def test_vmap_of_gradients_to_what_samples_share(op, sample):
    """The first tensor is one for all, but its gradients are each sample's own."""
    calls = Differentiable(op, sample, "all")
    shared = calls.samples[0][0]
    for sample_tensors in calls.samples:
        sample_tensors[0] = shared
    one = grad(lambda *x: total(calls.run(*x)), argnums=tuple(calls.float))
    batches = [shared, *calls.batches()[1:]]
    want = calls.loop()
    assert_same(vmap(one, in_dims=(None, *(0 for _ in batches[1:])))(*batches), want)


@facet(differentiated, has_gradient)
def test_gradients_of_vmap(op, sample):
    calls = Differentiable(op, sample, "all")
    inputs = calls.wanting(calls.batches())
    results = vmap(lambda *x: flat_tensors(calls.run(*x)))(*inputs)
    found = prong.autograd.grad(
        total(results), [inputs[k] for k in calls.float], materialize_grads=True
    )
    assert_same(found, calls.loop())


def test_there_are_ops_of_every_kind():
    kinds = {op["batching"] for op in OPS}
    assert kinds >= {"loop", "pointwise", "rule", "samples", "host", "refused"}
