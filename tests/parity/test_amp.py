"""autocast on the CPU and GradScaler, against PyTorch's."""

import copy
import threading
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import prong  # noqa: E402

BOTH = (prong, torch)
CALLS = {
    "mm": lambda m, x: m.mm(x, x),
    "matmul": lambda m, x: x @ x,
    "bmm": lambda m, x: m.bmm(x[None], x[None]),
    "addmm": lambda m, x: m.addmm(x, x, x),
    "baddbmm": lambda m, x: m.baddbmm(x[None], x[None], x[None]),
    "linear": lambda m, x: m.nn.functional.linear(x, x, x[0]),
    "conv1d": lambda m, x: m.nn.functional.conv1d(x[None], x[:, :, None]),
    "conv2d": lambda m, x: m.nn.functional.conv2d(x[None, None], x[None, None, :2, :2]),
    "einsum": lambda m, x: m.einsum("ij,jk->ik", x, x),
    "prelu": lambda m, x: m.prelu(x, x[0, :1]),
    "attention": lambda m, x: m.nn.functional.scaled_dot_product_attention(
        x[None, None], x[None, None], x[None, None]
    ),
    "add": lambda m, x: x + x,
    "mv": lambda m, x: m.mv(x, x[0]),
    "softmax": lambda m, x: x.softmax(-1),
    "layer_norm": lambda m, x: m.nn.functional.layer_norm(x, (4,)),
    "gelu": lambda m, x: m.nn.functional.gelu(x),
    "mse_loss": lambda m, x: m.nn.functional.mse_loss(x, x.flip(0)),
    "l1_loss": lambda m, x: m.nn.functional.l1_loss(x, x.flip(0)),
    "huber_loss": lambda m, x: m.nn.functional.huber_loss(x, x.flip(0)),
    "cross_entropy": lambda m, x: m.nn.functional.cross_entropy(x, m.arange(4)),
    "nll_loss": lambda m, x: m.nn.functional.nll_loss(x, m.arange(4)),
    "bce_with_logits": lambda m, x: m.nn.functional.binary_cross_entropy_with_logits(
        x, x.sigmoid()
    ),
    "kl_div": lambda m, x: m.nn.functional.kl_div(x, x.sigmoid(), reduction="sum"),
    "prod": lambda m, x: x.prod(),
    "sum": lambda m, x: x.sum(),
    "cat": lambda m, x: m.cat([x, (x @ x)]),
    "cat of low ones": lambda m, x: m.cat([x.to(m.bfloat16), x.to(m.bfloat16)]),
    "stack": lambda m, x: m.stack([x.to(m.bfloat16), x]),
    "integers": lambda m, x: m.ones(2, 2).long() @ m.ones(2, 2).long(),
    "where": lambda m, x: m.where(x > 0, x, x @ x),
}


def square(m, dtype):
    return (m.arange(16.0).reshape(4, 4).sin() * 0.7).to(getattr(m, dtype))


def result_of(m, name, dtype):
    try:
        with m.autocast("cpu"):
            return CALLS[name](m, square(m, dtype))
    except RuntimeError:
        return None


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("name", CALLS)
def test_dtypes_and_values(name, dtype):
    got, want = result_of(prong, name, dtype), result_of(torch, name, dtype)
    if want is None:
        return  # dtypes that PyTorch does not mix either
    assert got is not None
    assert str(got.dtype) == str(want.dtype)
    scale = 2e-2 if "bfloat16" in (str(want.dtype).partition(".")[2], dtype) else 1e-5
    np.testing.assert_allclose(got.double().numpy(), want.double().numpy(), rtol=scale, atol=scale)


def regions(m):
    x = m.ones(2, 2)
    kind = lambda: str((x @ x).dtype)  # noqa: E731
    yield kind(), m.is_autocast_enabled("cpu"), str(m.get_autocast_dtype("cpu"))
    with m.autocast("cpu"):
        yield kind(), m.is_autocast_enabled("cpu")
        with m.autocast("cpu", enabled=False):
            yield kind(), m.is_autocast_enabled("cpu")
            with m.autocast("cpu", dtype=m.float16):
                yield kind(), str(m.get_autocast_dtype("cpu"))
            yield kind()
        yield kind(), str(m.get_autocast_dtype("cpu"))
        try:
            with m.amp.autocast("cpu", dtype=m.float16):
                raise KeyError
        except KeyError:
            yield kind()
    yield kind()

    @m.autocast("cpu")
    def decorated():
        return kind()

    region = m.autocast("cpu", dtype=m.bfloat16, cache_enabled=False)
    with region:
        yield kind(), m.is_autocast_cache_enabled()
    yield decorated(), kind(), m.is_autocast_cache_enabled()
    m.set_autocast_enabled("cpu", True)
    yield kind()
    m.set_autocast_enabled("cpu", False)
    yield kind(), m.amp.is_autocast_available("cpu")


def test_regions():
    assert list(regions(prong)) == list(regions(torch))


def test_devices_and_dtypes_that_are_not_here():
    for m in BOTH:
        for arguments in (("cuda",), ("cpu", m.float32)):
            with pytest.warns(UserWarning, match="Disabling autocast"):
                with m.autocast(*arguments):
                    assert (m.ones(1, 1) @ m.ones(1, 1)).dtype is m.float32
        with pytest.raises(RuntimeError):
            m.autocast("nothing")
        with pytest.raises(ValueError):
            m.autocast(3)


def test_threads_and_tasks():
    seen = []
    x = prong.ones(2, 2)
    with prong.autocast("cpu"):
        worker = threading.Thread(target=lambda: seen.append((x @ x).dtype))
        worker.start(), worker.join()
        seen.append(prong.jit.wait(prong.jit.fork(lambda: (x @ x).dtype)))
    assert seen == [prong.float32, prong.bfloat16]


def test_a_training_step():
    losses = []
    for m in BOTH:
        m.manual_seed(0)
        net = m.nn.Sequential(
            m.nn.Linear(8, 16), m.nn.GELU(), m.nn.LayerNorm(16), m.nn.Linear(16, 3)
        )
        x, y = m.linspace(-1, 1, 40).reshape(5, 8), m.arange(5) % 3
        with m.autocast("cpu"):
            loss = m.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        assert all(p.grad.dtype is m.float32 for p in net.parameters())
        losses.append([loss.item(), *(p.grad.flatten()[0].item() for p in net.parameters())])
    np.testing.assert_allclose(*losses, rtol=5e-2, atol=5e-3)


class Half:
    """An optimizer: enough of one for a scaler."""

    def __init__(self, parameters):
        self.param_groups = [{"params": parameters}]
        self.steps = 0

    def step(self):
        self.steps += 1


def scaling(m):
    p = m.nn.Parameter(m.ones(3))
    optimizer = Half([p])
    scaler = m.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    yield scaler.is_enabled(), scaler.get_scale(), scaler.state_dict()
    for factor in (1.0, 2.0, float("inf"), 1.0, 1.0, float("nan"), 4.0):
        loss = scaler.scale(m.ones(3) * 2)
        p.grad = m.full((3,), factor) * loss[0].item()
        scaler.unscale_(optimizer)
        grad = p.grad[0].item()
        scaler.step(optimizer)
        scaler.update()
        yield str(grad), optimizer.steps, scaler.get_scale(), scaler.state_dict()
    scaler.update(32.0)
    fresh = m.amp.GradScaler("cpu")
    fresh.load_state_dict(scaler.state_dict())
    yield (
        fresh.get_scale(),
        fresh._get_growth_tracker(),
        [t.tolist() for t in scaler.scale([m.ones(1)])],
    )
    off = m.amp.GradScaler("cpu", enabled=False)
    p.grad = m.ones(3)
    off.unscale_(optimizer), off.step(optimizer), off.update()
    yield off.get_scale(), off.state_dict(), optimizer.steps, off.scale(3)


def test_scaler():
    assert list(scaling(prong)) == list(scaling(torch))


def misuse(m):
    p = m.nn.Parameter(m.ones(3))
    p.grad = m.ones(3)
    optimizer, scaler = Half([p]), m.amp.GradScaler("cpu")
    faults = [
        lambda: scaler.unscale_(optimizer),
        lambda: scaler.update(),
        lambda: (scaler.scale(m.ones(1)), scaler.unscale_(optimizer), scaler.unscale_(optimizer)),
        lambda: (scaler.step(optimizer), scaler.step(optimizer)),
        lambda: scaler.unscale_(optimizer),
        lambda: scaler.scale(3),
        lambda: scaler.load_state_dict({}),
        lambda: m.amp.GradScaler("cpu", growth_factor=0.5),
        lambda: copy.deepcopy(scaler),
    ]
    for fault in faults:
        with pytest.raises(Exception) as raised:
            fault()
        yield raised.type


def test_misuse_of_a_scaler():
    assert list(misuse(prong)) == list(misuse(torch))


def test_scalers_for_devices_that_are_not_here():
    for m in BOTH:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            scaler = m.cuda.amp.GradScaler()
            with m.cuda.amp.autocast():
                assert (m.ones(1, 1) @ m.ones(1, 1)).dtype is m.float32
        assert seen and not scaler.is_enabled()


def test_custom_functions():
    assert list(custom(prong)) == list(custom(torch))


def custom(m):
    seen = []

    class Product(m.autograd.Function):
        @staticmethod
        @m.amp.custom_fwd(device_type="cpu", cast_inputs=m.float32)
        def forward(ctx, a):
            seen.append(("cast", str(a.dtype), str((a @ a).dtype)))
            return a * 2

        @staticmethod
        @m.amp.custom_bwd(device_type="cpu")
        def backward(ctx, g):
            seen.append(("backward", m.is_autocast_enabled("cpu")))
            return g * 2

    class Same(Product):
        @staticmethod
        @m.amp.custom_fwd(device_type="cpu")
        def forward(ctx, a):
            seen.append(("same", str(a.dtype), str((a @ a).dtype)))
            return a * 2

    for kind in (Product, Same):
        x = m.ones(2, 2, requires_grad=True)
        with m.autocast("cpu"):
            out = kind.apply(x @ x)
        out.sum().backward()
    return seen
