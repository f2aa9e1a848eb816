"""utils.data against PyTorch's: the same samples in the same order for a seed, the same batches, the same faults."""

import collections
import os

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import prong  # noqa: E402

BOTH = (prong, torch)
Point = collections.namedtuple("Point", "x y")


def plain(value):
    """Tensors as (dtype, values), so that both sides compare with ==."""
    if isinstance(value, (prong.Tensor, torch.Tensor)):
        return (str(value.dtype), value.tolist())
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if hasattr(value, "_fields"):
        return (type(value).__name__, *map(plain, value))
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, *map(plain, value))
    return value


def same(run, *args):
    got = []
    for module in BOTH:
        module.manual_seed(11)
        got.append(plain(list(run(module, module.utils.data, *args))))
        got.append(
            module.initial_seed() and module.rand(2).tolist()
        )  # the generator stands where it should
    assert got[:2] == got[2:]
    return got[0]


SAMPLERS = {
    "sequential": lambda m, d: d.SequentialSampler(range(7)),
    "random": lambda m, d: d.RandomSampler(range(50)),
    "random, some": lambda m, d: d.RandomSampler(range(10), num_samples=23),
    "random with replacement": lambda m, d: d.RandomSampler(range(9), True, 70),
    "random of a generator": lambda m, d: d.RandomSampler(
        range(9), generator=m.Generator().manual_seed(5)
    ),
    "subset": lambda m, d: d.SubsetRandomSampler([3, 1, 8, 8]),
    "weighted": lambda m, d: d.WeightedRandomSampler([0.1, 0.9, 2.0, 0.0], 40),
    "weighted, none twice": lambda m, d: d.WeightedRandomSampler([1, 2, 3, 4, 5], 4, False),
    "batches": lambda m, d: d.BatchSampler(d.RandomSampler(range(10)), 3, False),
    "full batches": lambda m, d: d.BatchSampler(range(10), 3, True),
    "distributed": lambda m, d: d.DistributedSampler(range(11), 3, 1, seed=4),
    "distributed, dropping": lambda m, d: d.DistributedSampler(
        range(11), 3, 2, False, drop_last=True
    ),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers(name):
    same(lambda m, d: SAMPLERS[name](m, d))
    a, b = (SAMPLERS[name](m, m.utils.data) for m in BOTH)
    assert len(a) == len(b)


class Squares:
    def __init__(self, module, n=10):
        self.module, self.n = module, n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if not 0 <= i < self.n:
            raise IndexError(i)
        return self.module.tensor([i, i * i]), i


LOADERS = {
    "in order": {"batch_size": 3},
    "shuffled": {"batch_size": 3, "shuffle": True},
    "shuffled, full batches": {"batch_size": 4, "shuffle": True, "drop_last": True},
    "no batches": {"batch_size": None},
    "batches given": {"batch_sampler": [[1, 2], [5], [9, 0, 3]]},
    "sampler given": {"batch_size": 2, "sampler": [4, 4, 1]},
}


@pytest.mark.parametrize("name", LOADERS)
@pytest.mark.parametrize("workers", [0, 2])
def test_loaders(name, workers):
    def run(m, d):
        loader = d.DataLoader(Squares(m), num_workers=workers, **LOADERS[name])
        length = len(loader)
        first = list(loader)
        assert len(first) == length
        return first + list(loader)

    same(run)


@pytest.mark.parametrize("name", LOADERS)
def test_threads_give_what_the_caller_alone_gives(name):
    seen = []
    for options in ({}, {"num_workers": 3, "worker_method": "thread"}):
        prong.manual_seed(2)
        loader = prong.utils.data.DataLoader(Squares(prong), **LOADERS[name], **options)
        seen.append([plain(list(loader)) for _ in range(2)])
    assert seen[0] == seen[1]


def test_a_generator_of_ones_own():
    def run(m, d):
        g = m.Generator().manual_seed(3)
        loader = d.DataLoader(Squares(m), batch_size=4, shuffle=True, generator=g)
        return [*loader, *loader, g.initial_seed(), m.rand(3, generator=g)]

    same(run)


@pytest.mark.parametrize("method", ["multiprocessing", "thread"])
def test_persistent_workers(method):
    loader = prong.utils.data.DataLoader(
        Squares(prong), batch_size=2, num_workers=2, persistent_workers=True, worker_method=method
    )
    want = plain(list(prong.utils.data.DataLoader(Squares(prong), batch_size=2)))
    assert plain(list(loader)) == want
    workers = loader._iterator._workers
    for i, _ in enumerate(loader):  # a pass that is left early
        if i == 1:
            break
    assert plain(list(loader)) == want
    assert loader._iterator._workers is workers


class Count(prong.utils.data.IterableDataset):
    def __init__(self, n=10):
        self.n = n

    def __iter__(self):
        info = prong.utils.data.get_worker_info()
        step, first = (1, 0) if info is None else (info.num_workers, info.id)
        return iter(range(first, self.n, step))

    def __len__(self):
        return self.n


@pytest.mark.parametrize("method", ["multiprocessing", "thread"])
def test_iterable_data(method):
    data = prong.utils.data
    assert plain(list(data.DataLoader(Count(), batch_size=4))) == plain(
        [prong.tensor([0, 1, 2, 3]), prong.tensor([4, 5, 6, 7]), prong.tensor([8, 9])]
    )
    shared = data.DataLoader(Count(11), batch_size=2, num_workers=2, worker_method=method)
    assert len(shared) == 6
    got = [b.tolist() for b in shared]
    assert got == [[0, 2], [1, 3], [4, 6], [5, 7], [8, 10], [9]]
    chained = data.DataLoader(Count(2) + Count(3), batch_size=None)
    assert list(chained) == [0, 1, 0, 1, 2]


def seeds(worker):
    np.random.seed(np.random.randint(1000) + worker)


class Noise:
    def __init__(self, module):
        self.module = module

    def __len__(self):
        return 4

    def __getitem__(self, i):
        info = self.module.utils.data.get_worker_info()
        return self.module.rand(2), np.random.rand(), float(info.seed % 1000), os.getpid() > 0


def test_processes_have_pytorchs_seeds():
    same(lambda m, d: d.DataLoader(Noise(m), num_workers=2, worker_init_fn=seeds))


class Bad(Squares):
    def __getitem__(self, i):
        raise {0: KeyError, 1: ValueError}[i % 2](f"no sample {i}")


@pytest.mark.parametrize("method", ["multiprocessing", "thread"])
def test_a_workers_exception_arrives_with_its_traceback(method):
    for sampler, kind in (([0], KeyError), ([1], ValueError)):
        loader = prong.utils.data.DataLoader(
            Bad(prong), sampler=sampler, num_workers=1, worker_method=method
        )
        with pytest.raises(kind, match="DataLoader worker(.|\n)*in __getitem__(.|\n)*no sample"):
            list(loader)


class Dies(Squares):
    def __getitem__(self, i):
        os._exit(3)


def test_a_dead_worker_is_noticed(monkeypatch):
    monkeypatch.setattr("prong.utils.data.workers.CHECK_SECONDS", 0.2)
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(prong.utils.data.DataLoader(Dies(prong), num_workers=1))


COLLATED = {
    "numbers": lambda m: [1, 2, 3],
    "floats": lambda m: [1.5, 2.0],
    "bools": lambda m: [True, False],
    "texts": lambda m: ["a", "bc"],
    "tensors": lambda m: [m.ones(2), m.zeros(2)],
    "arrays": lambda m: [np.ones((2, 2), "float32"), np.zeros((2, 2), "float32")],
    "NumPy numbers": lambda m: [np.float32(1), np.float32(2)],
    "dicts": lambda m: [{"a": 1, "b": [m.ones(1), "x"]}, {"a": 2, "b": [m.zeros(1), "y"]}],
    "tuples": lambda m: [(1, 2.0), (3, 4.0)],
    "lists": lambda m: [[1, 2.0], [3, 4.0]],
    "named tuples": lambda m: [Point(1, m.ones(2)), Point(2, m.ones(2))],
}


@pytest.mark.parametrize("name", COLLATED)
def test_collate(name):
    same(lambda m, d: [d.default_collate(COLLATED[name](m))])
    same(lambda m, d: [d.default_convert(COLLATED[name](m))])


def test_datasets():
    def run(m, d):
        a = d.TensorDataset(m.arange(6).reshape(3, 2), m.tensor([7, 8, 9]))
        joined = d.ConcatDataset([a, d.Subset(a, [2, 0])])
        yield from [joined[i] for i in range(-5, 5)]
        yield from [len(joined), len(a), a[1:], joined.cumulative_sizes]
        stacked = d.StackDataset(a=a, b=[1, 2, 3])
        yield from [stacked[1], stacked.__getitems__([0, 2]), len(stacked), (a + a)[4]]
        for part in d.random_split(range(10), [0.31, 0.29, 0.4]):
            yield part.indices
        for part in d.random_split(range(9), [4, 5], m.Generator().manual_seed(42)):
            yield [part[i] for i in range(len(part))]

    same(run)


FAULTS = {
    "a negative count": lambda d: d.DataLoader([1], num_workers=-1),
    "shuffle and sampler": lambda d: d.DataLoader([1], shuffle=True, sampler=[0]),
    "batch_size with batches": lambda d: d.DataLoader([1], 2, batch_sampler=[[0]]),
    "drop_last without batches": lambda d: d.DataLoader([1], None, drop_last=True),
    "prefetch without workers": lambda d: d.DataLoader([1], prefetch_factor=2),
    "persistence without workers": lambda d: d.DataLoader([1], persistent_workers=True),
    "a context without workers": lambda d: d.DataLoader([1], multiprocessing_context="fork"),
    "an unknown context": lambda d: d.DataLoader(
        [1], num_workers=1, multiprocessing_context="knife"
    ),
    "a later change": lambda d: setattr(d.DataLoader([1]), "batch_size", 3),
    "batches of zero": lambda d: d.DataLoader([1], 0),
    "weights of two dims": lambda d: d.WeightedRandomSampler([[1.0]], 2),
    "no samples": lambda d: d.RandomSampler([]),
    "lengths that don't add up": lambda d: d.random_split([1, 2], [1, 2]),
    "sizes that differ": lambda d: d.StackDataset([1], [1, 2]),
    "nothing to join": lambda d: d.ConcatDataset([]),
    "objects": lambda d: d.default_collate([object()]),
    "lists of several lengths": lambda d: d.default_collate([[1], [1, 2]]),
    "text arrays": lambda d: d.default_collate([np.array(["a"])]),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults(name):
    with pytest.raises(Exception) as theirs:
        FAULTS[name](torch.utils.data)
    with pytest.raises(theirs.type) as ours:
        FAULTS[name](prong.utils.data)
    assert str(ours.value)
