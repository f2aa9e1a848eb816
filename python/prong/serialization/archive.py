"""The zip files of torch.save: records stored as they are, aligned, so that they can be mapped."""

import mmap as memory_map
import os
import zipfile
import zlib

import prong
from prong import _core

_ALIGNMENT = 64
_LOCAL_HEADER = 30  # bytes before the name


class ArchiveWriter:
    """Writes records under one folder named for the file."""

    def __init__(self, file, name: str):
        self._file = file
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED)
        self._folder = name

    def write(self, name: str, data) -> None:
        """One record: bytes, or what has the buffer protocol."""
        data = memoryview(data).cast("B") if len(data) else memoryview(b"")
        info = zipfile.ZipInfo(f"{self._folder}/{name}", (1980, 1, 1, 0, 0, 0))
        info.file_size = data.nbytes
        begin = self._file.tell() + _LOCAL_HEADER + len(info.filename.encode()) + 4
        if info.file_size * 1.05 > zipfile.ZIP64_LIMIT:
            begin += 20  # the long sizes, which zipfile puts before our own field
        gap = -begin % _ALIGNMENT
        info.extra = b"FB" + gap.to_bytes(2, "little") + b"Z" * gap
        with self._zip.open(info, "w") as record:
            record.write(data)

    def close(self) -> None:
        """Writes the directory."""
        self._zip.close()


class ArchiveReader:
    """Reads records by name; every fault of the file is a RuntimeError with a reason."""

    def __init__(self, file, size: int):
        self._file, self._size = file, size
        try:
            self._zip = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise _failed(error) from error
        self._records = {}
        for info in self._zip.infolist():
            _, slash, name = info.filename.partition("/")
            self._check(info)
            if slash:
                self._records[name] = info

    def _check(self, info):
        # Stored records are as long as they say, so that no small file unpacks into a huge one.
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 0x1:
            raise _failed(f"record {info.filename!r} is compressed or encrypted")
        if info.file_size != info.compress_size or info.header_offset + info.file_size > self._size:
            raise _failed(f"record {info.filename!r} is longer than the file")

    def __contains__(self, name: str) -> bool:
        return name in self._records

    def length(self, name: str) -> int:
        """How many bytes the record has."""
        return self._record(name).file_size

    def _record(self, name):
        if name not in self._records:
            raise _failed(f"file not found: {name!r}")
        return self._records[name]

    def read(self, name: str) -> bytes:
        """The bytes of a record; their checksum has to fit."""
        try:
            return self._zip.read(self._record(name))
        except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, ValueError) as error:
            raise _failed(error) from error

    def read_tensor(self, name: str):
        """A record as a new uint8 tensor; its checksum has to fit."""
        info = self._record(name)
        made = prong.empty(info.file_size, dtype=prong.uint8)
        begin = self.offset(name)
        view, done = memoryview(made.numpy()), 0
        self._file.seek(begin)
        while done < info.file_size:
            count = self._file.readinto(view[done:])
            if not count:
                raise _failed(f"record {info.filename!r} ends early")
            done += count
        if zlib.crc32(view) != info.CRC:
            raise _failed(f"Bad CRC-32 for record {info.filename!r}")
        return made

    def offset(self, name: str) -> int:
        """Where the record's bytes begin in the file."""
        info = self._record(name)
        file = self._file
        file.seek(info.header_offset)
        header = file.read(_LOCAL_HEADER)
        if len(header) != _LOCAL_HEADER or header[:4] != b"PK\x03\x04":
            raise _failed(f"record {info.filename!r} has no header")
        begin = info.header_offset + _LOCAL_HEADER
        begin += int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
        if begin + info.file_size > self._size:
            raise _failed(f"record {info.filename!r} is longer than the file")
        return begin


class MappedFile:
    """A file in memory, page by page as it is touched; writes stay with this process."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self._memory = memory_map.mmap(file.fileno(), 0, access=memory_map.ACCESS_COPY)

    def tensor(self, offset: int, count: int):
        """`count` bytes as a uint8 tensor that shares the mapped memory."""
        if count == 0:
            return prong.empty(0, dtype=prong.uint8)
        return _core._from_buffer(memoryview(self._memory), prong.uint8, offset, count)


def archive_name(file) -> str:
    """The folder inside the archive: the file's name without its ending."""
    if not isinstance(file, (str, os.PathLike)):
        return "archive"
    return os.path.splitext(os.path.basename(os.fspath(file)))[0] or "archive"


def _failed(reason):
    return RuntimeError(f"PytorchStreamReader failed reading zip archive: {reason}")
