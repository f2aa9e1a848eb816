"""torch.random: seeds and generators, with PyTorch's own CPU numbers."""

from contextlib import contextmanager

from prong._core import Generator, default_generator

__all__ = [
    "Generator",
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]


def manual_seed(seed: int):
    """Seeds the default generator and gives it."""
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Seeds the default generator from the system's randomness; gives the seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed that the default generator began with."""
    return default_generator.initial_seed()


def get_rng_state():
    """The state of the default generator as a uint8 tensor."""
    return default_generator.get_state()


def set_rng_state(new_state) -> None:
    """Puts the default generator into a state of get_rng_state."""
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(devices=None, enabled=True, **ignored):
    """Puts the default generator's state back at the end of the with block."""
    state = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if state is not None:
            set_rng_state(state)
