"""load: scripted functions and modules out of what save wrote."""

import os

from prong import _core
from prong.jit.functions import ScriptFunction
from prong.jit.modules import from_object


def from_bytes(data, extra_files=None):
    function, handle, found = _core.load_script(data)
    if extra_files is not None:
        for name in extra_files:
            if name in found:
                extra_files[name] = found[name]
    return from_object(handle) if handle is not None else ScriptFunction(function)


def load(f, map_location=None, _extra_files=None, _restore_shapes=False):
    """Reads what save wrote, from a file or file object. There is only the CPU to map to."""
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            data = file.read()
    else:
        data = f.read()
    return from_bytes(data, _extra_files)
