"""Grad modes as context managers and decorators; settings of the process; seeds."""

import prong as torch
import pytest


def same(a, b):
    return a.tolist() == b.tolist()


def flags():
    return torch.is_grad_enabled(), torch.is_inference_mode_enabled()


def test_with_blocks_nest_and_restore():
    with torch.no_grad():
        assert flags() == (False, False)
        with torch.enable_grad():
            assert flags() == (True, False)
            with torch.inference_mode():
                assert flags() == (False, True)
                with torch.inference_mode(False):
                    assert flags() == (True, False)
        assert flags() == (False, False)
    assert flags() == (True, False)


def test_restored_after_an_exception():
    with pytest.raises(ValueError):
        with torch.no_grad():
            raise ValueError
    assert flags() == (True, False)


def test_one_object_used_twice_and_nested():
    mode = torch.no_grad()
    for _ in range(2):
        with mode:
            with mode:
                assert not torch.is_grad_enabled()
            assert not torch.is_grad_enabled()
        assert torch.is_grad_enabled()


@pytest.mark.parametrize(
    "decorate",
    [
        torch.no_grad(),
        torch.no_grad,
        torch.inference_mode(),
        torch.inference_mode,
        torch.set_grad_enabled(True),
    ],
)
def test_decorators(decorate):
    @decorate
    def inside(a, b=2):
        """Documented."""
        return flags(), a + b

    got, total = inside(1, b=3)
    assert total == 4 and inside.__doc__ == "Documented." and inside.__name__ == "inside"
    is_recording = isinstance(decorate, torch.set_grad_enabled)
    assert got[0] is is_recording
    assert flags() == (True, False)


def test_generator_functions_keep_the_mode_inside_only():
    @torch.no_grad()
    def numbers():
        for i in range(3):
            got = yield i, torch.is_grad_enabled()
            assert got is None or got == "sent"
        return "end"

    generator = numbers()
    assert next(generator) == (0, False) and torch.is_grad_enabled()
    assert generator.send("sent") == (1, False) and torch.is_grad_enabled()
    assert next(generator) == (2, False)
    with pytest.raises(StopIteration, match="end"):
        next(generator)


def test_set_grad_enabled_acts_at_once():
    torch.set_grad_enabled(False)
    assert not torch.is_grad_enabled()
    torch.set_grad_enabled(True)
    with torch.set_grad_enabled(False):
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()
    with pytest.raises(TypeError, match="must be bool"):
        torch.set_grad_enabled(1)


def test_threads():
    before = torch.get_num_threads()
    try:
        for n in (1, 3, 3):
            torch.set_num_threads(n)
            assert torch.get_num_threads() == n == torch.get_num_interop_threads()
        torch.set_num_interop_threads(2)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    for bad in (0, -1):
        with pytest.raises(RuntimeError, match="positive"):
            torch.set_num_threads(bad)
    with pytest.raises(TypeError, match="int"):
        torch.set_num_threads("2")


def test_default_dtype():
    assert torch.get_default_dtype() is torch.float32
    try:
        torch.set_default_dtype(torch.float64)
        assert torch.ones(1).dtype is torch.float64 and torch.tensor(1.5).dtype is torch.float64
        assert (torch.tensor([1]) / 2).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    with pytest.raises(TypeError, match="floating-point"):
        torch.set_default_dtype(torch.int64)


def test_print_options():
    before = torch.get_printoptions()
    try:
        torch.set_printoptions(precision=2)
        assert repr(torch.tensor([1.23456])) == "tensor([1.23])"
        torch.set_printoptions(profile="default")
        assert torch.get_printoptions()["precision"] == 4
    finally:
        torch.set_printoptions(**{**before, "profile": None})


def test_seeds():
    torch.manual_seed(5)
    a = torch.rand(3)
    assert torch.initial_seed() == 5
    state = torch.get_rng_state()
    b = torch.rand(3)
    torch.set_rng_state(state)
    assert same(torch.rand(3), b)
    torch.manual_seed(5)
    assert same(torch.rand(3), a)
    with torch.random.fork_rng():
        torch.rand(10)
    generator = torch.Generator().manual_seed(5)
    assert same(torch.rand(3, generator=generator), a) and generator.device.type == "cpu"
    assert torch.manual_seed(-1).initial_seed() == 2**64 - 1
    with pytest.raises(RuntimeError, match="Overflow"):
        torch.manual_seed(2**65)
    with pytest.raises(TypeError):
        torch.manual_seed("a")
    assert isinstance(torch.seed(), int)


@pytest.mark.needs_torch
@pytest.mark.parametrize("seed", [0, 1, 123456789, 2**40])
def test_numbers_are_those_of_pytorch(seed):
    pytorch = pytest.importorskip("torch")
    for lib in (torch, pytorch):
        lib.manual_seed(seed)
    for draw in (
        "rand(7)",
        "randint(-5, 5, (4, 3))",
        "randperm(9)",
        "empty(20).uniform_(-1, 1)",
        "bernoulli(lib.full((9,), 0.3))",
        "rand(2, 3, dtype=lib.float64)",
    ):
        got, want = (eval(f"lib.{draw}", {"lib": lib}) for lib in (torch, pytorch))
        assert got.tolist() == want.tolist(), draw
    # Their logarithms and cosines may differ in the last bit.
    for draw in (
        "randn(33)",
        "randn(3, dtype=lib.float64)",
        "empty(5).normal_(2, 3)",
        "normal(0.0, 1.0, (40,))",
    ):
        got, want = (eval(f"lib.{draw}", {"lib": lib}) for lib in (torch, pytorch))
        assert got.tolist() == pytest.approx(want.tolist(), rel=1e-5, abs=1e-6), draw
