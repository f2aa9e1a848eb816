"""save and load of scripted functions and modules."""


def save(m, f, _extra_files=None):
    """Writes a scripted function or module to a file or file object."""
    raise NotImplementedError("prong has no torch.jit.save yet")


def load(f, map_location=None, _extra_files=None):
    """Reads what save wrote."""
    raise NotImplementedError("prong has no torch.jit.load yet")
