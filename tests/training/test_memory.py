"""Memory of training: it does not grow, and graphs that are dropped are freed."""

import gc
import weakref

import prong
import pytest
from prong import _core


def step_of(module, optimizer_type):
    model = module.nn.Sequential(
        module.nn.Linear(10, 16), module.nn.ReLU(), module.nn.Linear(16, 4)
    )
    optimizer = optimizer_type(model.parameters())
    x, y = module.randn(8, 10), module.randn(8, 4)

    def step():
        optimizer.zero_grad()
        loss = module.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()

    return step


@pytest.mark.parametrize("kind", ["SGD", "Adam", "RMSprop"])
def test_no_growth(kind):
    """10,000 steps end with the tensors and the bytes that the first 100 left."""
    step = step_of(prong, getattr(prong.optim, kind))
    for _ in range(100):
        step()
    gc.collect()
    before = _core.memory_stats()["bytes_in_use"]
    for _ in range(10_000 if kind == "Adam" else 1_000):
        step()
    gc.collect()
    assert _core.memory_stats()["bytes_in_use"] <= before


def test_dropped_graph_is_freed():
    x = prong.randn(4, 4).requires_grad_()
    y = x
    middle = None
    for i in range(1000):
        y = y * x
        if i == 500:
            middle = weakref.ref(y)
    before = _core.memory_stats()["bytes_in_use"]
    del y
    gc.collect()
    assert middle() is None
    assert _core.memory_stats()["bytes_in_use"] < before


def test_gradients_are_freed_by_zero_grad():
    model = prong.nn.Linear(100, 100)
    optimizer = prong.optim.SGD(model.parameters(), lr=0.1)
    model(prong.randn(2, 100)).sum().backward()
    before = _core.memory_stats()["bytes_in_use"]
    optimizer.zero_grad()
    assert _core.memory_stats()["bytes_in_use"] <= before - 4 * 100 * 101


def test_freed_memory_serves_other_sizes():
    """What is kept for later and what is in use are together little more than a step ever needs."""
    nn = prong.nn
    model = nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1280), nn.ReLU())
    optimizer = prong.optim.SGD(model.parameters(), lr=0.01)
    x = prong.randn(1536, 784)
    gc.collect()
    _core.empty_memory_cache()
    _core.reset_peak_memory()
    for _ in range(4):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
    stats = _core.memory_stats()
    assert stats["peak_bytes_in_use"] > 25 << 20
    assert stats["bytes_in_use"] + stats["bytes_cached"] < 1.3 * stats["peak_bytes_in_use"]
