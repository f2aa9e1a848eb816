"""save: a scripted function or module as bytes of an archive."""

import os

from prong import _core


def to_bytes(m, extra_files=None):
    """The archive of what torch.jit.script gave."""
    parts = getattr(m, "_saved_parts", None)
    if parts is None:
        raise RuntimeError(
            f"torch.jit.save takes a scripted function or module, not a value of type '{type(m).__name__}'"
        )
    return _core.save_script(*parts(), dict(extra_files or {}))


def save(m, f, _extra_files=None):
    """Writes a scripted function or module to a file or file object."""
    data = to_bytes(m, _extra_files)
    if isinstance(f, (str, os.PathLike)):
        with open(f, "wb") as file:
            file.write(data)
    else:
        f.write(data)
