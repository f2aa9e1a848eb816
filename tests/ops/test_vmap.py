"""Every op under vmap against a loop over the samples, and its gradients with it."""

import prong
import pytest
from prong import _core
from prong.func import grad, vmap
from samples import call_of
from test_ops import OPS, assert_same, facet, flat, has_values

SIZE = 3


# Ops that a loop cannot be compared with, in the tests of these names.
EXCEPTIONS = {
    "recurrent_backward": "its loops use the gates it is given, its ops make them from the inputs;"
    " the sample's gates are of no forward pass",
    "masked_scatter": "its gradient to source has as many numbers as the mask says",
}


def samples_of(op: dict, sample: str) -> list[tuple]:
    """(args, kwargs) of SIZE calls of the same shapes with other numbers."""
    return [call_of(op, sample, f"#{i}" if i else "") for i in range(SIZE)]


class Calls:
    """Calls that differ in some of their tensors: as one call of batches, and one by one."""

    def __init__(self, op: dict, sample: str, which: str):
        if op["name"] == "recurrent_backward":
            pytest.skip(EXCEPTIONS[op["name"]])
        self.op, self.calls = op, samples_of(op, sample)
        nests = [self._tensors(args, kwargs) for args, kwargs in self.calls]
        for other in nests[1:]:
            if [x.shape for x in other] != [x.shape for x in nests[0]]:
                pytest.skip("the shapes of its samples depend on their numbers")
        count = len(nests[0])
        self.mapped = {"all": range(count), "first": range(min(1, count)), "rest": range(1, count)}[
            which
        ]
        if not self.mapped:
            pytest.skip("no tensors to map over")
        self.samples = [[nest[k] for k in self.mapped] for nest in nests]

    @staticmethod
    def _tensors(args, kwargs) -> list:
        found = []
        put(args, kwargs, lambda x: found.append(x) or x)
        return found

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
        and op["batching"] not in ("refused", "host")
        and not writes_lists(op)
    )


def flat_tensors(result) -> tuple:
    return tuple(x for x in flat(result) if isinstance(x, prong.Tensor))


def check_against_loop(op, sample, which):
    calls = Calls(op, sample, which)
    wanted = [flat_tensors(calls.run(*s)) for s in calls.samples]
    got = vmap(lambda *x: flat_tensors(calls.run(*x)))(*calls.batches())
    assert_same(got, [prong.stack(list(column)) for column in zip(*wanted, strict=True)])


@facet(lambda op: is_batchable(op) and has_values(op))
def test_all_tensors_mapped(op, sample):
    check_against_loop(op, sample, "all")


@facet(lambda op: is_batchable(op) and has_values(op))
def test_first_tensor_mapped(op, sample):
    check_against_loop(op, sample, "first")


@facet(lambda op: is_batchable(op) and has_values(op) and op["mutates"] < 0)
def test_first_tensor_shared(op, sample):
    check_against_loop(op, sample, "rest")


@facet(lambda op: op["dynamic_shape"] and has_values(op) and op["batching"] == "loop")
def test_shapes_that_depend_on_numbers_are_refused(op, sample):
    calls = Calls(op, sample, "all")
    with pytest.raises(RuntimeError, match="vmap"):
        vmap(lambda *x: flat_tensors(calls.run(*x)))(*calls.batches())


@facet(writes_lists)
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
    )


def total(result):
    """One number that every floating-point result takes part in."""
    parts = [x.sum() for x in flat_tensors(result) if x.is_floating_point() and x.requires_grad]
    return sum(parts) if parts else None


class Differentiable(Calls):
    """Calls as functions of their floating-point tensors."""

    def __init__(self, op, sample, which):
        if op["name"] == "masked_scatter":
            pytest.skip(EXCEPTIONS[op["name"]])
        super().__init__(op, sample, which)
        self.float = [k for k, x in enumerate(self.samples[0]) if x.is_floating_point()]
        if not self.float:
            pytest.skip("no floating-point tensors")
        if total(self.run(*self.wanting(self.samples[0]))) is None:
            pytest.skip("no gradients")

    def wanting(self, tensors):
        return [
            x.detach().clone().requires_grad_() if k in self.float else x
            for k, x in enumerate(tensors)
        ]

    def loop(self):
        """Gradients of each sample, stacked."""
        try:
            return self._loop()
        except Exception as error:  # the tests of gradients count those
            pytest.skip(f"has no gradient even without vmap: {error}")

    def _loop(self):
        columns = []
        for sample in self.samples:
            inputs = self.wanting(sample)
            found = prong.autograd.grad(
                total(self.run(*inputs)), [inputs[k] for k in self.float], materialize_grads=True
            )
            columns.append(found)
        return [prong.stack(list(c)) for c in zip(*columns, strict=True)]


@facet(differentiated)
def test_vmap_of_gradients(op, sample):
    calls = Differentiable(op, sample, "all")
    one = grad(lambda *x: total(calls.run(*x)), argnums=tuple(calls.float))
    want = calls.loop()
    assert_same(vmap(one)(*calls.batches()), want)


@facet(differentiated)
def test_vmap_of_gradients_to_what_samples_share(op, sample):
    """The first tensor is one for all, but its gradients are each sample's own."""
    calls = Differentiable(op, sample, "all")
    if len(calls.samples[0]) < 2 or 0 not in calls.float:
        pytest.skip("no second tensor")
    shared = calls.samples[0][0]
    for sample_tensors in calls.samples:
        sample_tensors[0] = shared
    one = grad(lambda *x: total(calls.run(*x)), argnums=tuple(calls.float))
    batches = [shared, *calls.batches()[1:]]
    want = calls.loop()
    assert_same(vmap(one, in_dims=(None, *(0 for _ in batches[1:])))(*batches), want)


@facet(differentiated)
def test_gradients_of_vmap(op, sample):
    calls = Differentiable(op, sample, "all")
    inputs = calls.wanting(calls.batches())
    results = vmap(lambda *x: flat_tensors(calls.run(*x)))(*inputs)
    want = calls.loop()
    try:
        found = prong.autograd.grad(
            total(results), [inputs[k] for k in calls.float], materialize_grads=True
        )
    except RuntimeError as error:
        if "derivative for prong::" in str(error):
            pytest.skip(f"what vmap applies has no gradient: {error}")
        raise
    assert_same(found, want)


def test_there_are_ops_of_every_kind():
    kinds = {op["batching"] for op in OPS}
    assert kinds >= {"loop", "pointwise", "rule", "samples", "host", "refused"}
