"""torch.serialization: save and load, in PyTorch's own file format; reading a file runs none of its code."""

import io
import os
import zlib
from pickle import UnpicklingError

from prong import _names

from .allowed import (
    Granted,
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    safe_globals,
)
from .archive import ArchiveReader, ArchiveWriter, MappedFile, archive_name
from .legacy import load_legacy
from .opcodes import PickleReader
from .pickling import pickled
from .rebuild import LoadedStorage
from .storages import StorageType, place

__all__ = [
    "add_safe_globals",
    "clear_safe_globals",
    "get_safe_globals",
    "load",
    "safe_globals",
    "save",
]
__getattr__ = _names.module_getattr("prong.serialization")

DEFAULT_PROTOCOL = 2


def save(
    obj,
    f,
    pickle_module=None,
    pickle_protocol=DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization=True,
) -> None:
    """Writes an object (a state dict, tensors, containers of them) to a path or a file opened for writing."""
    if not _use_new_zipfile_serialization:
        raise NotImplementedError("prong writes no files of the format before PyTorch 1.6")
    if not isinstance(f, (str, os.PathLike)) and not hasattr(f, "write"):
        raise AttributeError(
            "expected 'f' to be string, path, or a file-like object with a 'write' attribute"
        )
    program, storages = pickled(obj, pickle_protocol)
    if isinstance(f, (str, os.PathLike)):
        parent = os.path.dirname(os.path.abspath(f))
        if not os.path.isdir(parent):
            raise RuntimeError(f"Parent directory {parent} does not exist.")
        with open(f, "wb") as file:
            _write(file, archive_name(f), program, storages)
    else:
        _write(f, archive_name(f), program, storages)


def _write(file, name, program, storages):
    archive = ArchiveWriter(file, name)
    archive.write("data.pkl", program)
    archive.write(".format_version", b"1")
    archive.write(".storage_alignment", b"64")
    archive.write("byteorder", b"little")
    checksum = zlib.crc32(program)
    for number, storage in enumerate(storages):
        data = storage._bytes.numpy() if storage.nbytes() else b""
        archive.write(f"data/{number}", data)
        checksum = zlib.crc32(str(storage.nbytes()).encode(), checksum)
    archive.write("version", b"3\n")
    archive.write(".data/serialization_id", f"{checksum:040d}".encode())
    archive.close()


def load(
    f, map_location=None, pickle_module=None, *, weights_only=None, mmap=None, **pickle_load_args
):
    """Reads what save (or PyTorch's save) wrote.

    No code of the file runs, with ``weights_only=False`` neither: that only widens the list of data types
    that are read (NumPy arrays, namespaces, modules of prong.nn). Classes of the program's own are let
    through by ``add_safe_globals``. ``mmap=True`` reads pages of the file as they are touched.
    """
    if pickle_load_args.pop("encoding", "utf-8") not in ("utf-8", "ascii", "latin1", "bytes"):
        raise ValueError("load: the encoding is not known")
    if pickle_load_args:
        raise TypeError(f"load: unexpected arguments {sorted(pickle_load_args)}")
    granted = Granted(weights_only=weights_only is not False)
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            return _load_file(file, os.fspath(f), granted, map_location, bool(mmap))
    if mmap:
        raise ValueError("f must be a file path in order to use the mmap argument")
    if not hasattr(f, "read") or not hasattr(f, "seek"):
        raise AttributeError(
            "You can only torch.load from a file that is seekable. Please pre-load the data into a "
            "buffer like io.BytesIO and try to load from it instead."
        )
    return _load_file(f, None, granted, map_location, False)


def _load_file(file, path, granted, map_location, mapped):
    begin = file.tell()
    head = file.read(4)
    file.seek(begin)
    if head == b"":
        raise EOFError("Ran out of input")
    if head == b"PK\x03\x04":
        return _load_zip(file, path, granted, map_location, mapped)
    if mapped:
        raise RuntimeError(
            "mmap can only be used with files saved with `torch.save(_use_new_zipfile_serialization="
            "True), please torch.save your checkpoint with this option in order to use mmap."
        )
    if head[:1] != b"\x80":
        raise UnpicklingError(f"no file of torch.save: it begins with {head!r}")
    return load_legacy(file, granted, map_location)


def _load_zip(file, path, granted, map_location, mapped):
    begin = file.tell()
    size = file.seek(0, 2)
    file.seek(begin)
    archive = ArchiveReader(file, size)
    if "constants.pkl" in archive:
        raise RuntimeError(
            "the file is a TorchScript archive: torch.jit.load reads those that prong has saved"
        )
    if "byteorder" in archive and archive.read("byteorder") != b"little":
        raise NotImplementedError("prong reads no files of big-endian machines")
    memory = MappedFile(path) if mapped else None
    loaded: dict[str, LoadedStorage] = {}

    def storage(identity):
        if not isinstance(identity, tuple) or len(identity) != 5 or identity[0] != "storage":
            raise UnpicklingError("an unknown kind of persistent id")
        _, kind, key, location, count = identity
        if not isinstance(kind, StorageType) or not isinstance(key, str) or type(count) is not int:
            raise UnpicklingError("a storage's description is damaged")
        if key not in loaded:
            name = f"data/{key}"
            if archive.length(name) < count * kind.dtype.itemsize or count < 0:
                raise UnpicklingError(
                    f"a storage of {count} elements in a record of {archive.length(name)} bytes"
                )
            if memory is None:
                data = archive.read_tensor(name)
            else:
                data = memory.tensor(archive.offset(name), archive.length(name))
            loaded[key] = LoadedStorage(data, kind.dtype)
            place(location, map_location, data)
        return LoadedStorage(loaded[key].data, kind.dtype)

    program = io.BytesIO(archive.read("data.pkl"))
    return PickleReader(program, granted, storage).load()
