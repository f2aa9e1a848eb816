"""torch.random: seeds and generators, with PyTorch's own CPU numbers."""

from prong import _core

Generator = getattr(_core, "Generator", None)
default_generator = getattr(_core, "default_generator", None)


def manual_seed(seed: int):
    """Seeds the default generator and gives it."""
    return default_generator.manual_seed(int(seed))


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
