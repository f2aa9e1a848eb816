"""Reads pickles one opcode at a time and runs nothing but what `allowed.py` lets through. Called by readers.

A pickle is a program. This interpreter knows the opcodes that build data, looks names up in a list
instead of importing them, and calls only what came from that list.
"""

import struct
from pickle import UnpicklingError

from .allowed import Granted

_MARK = object()


def _unpacker(fmt):
    size, unpack = struct.calcsize(fmt), struct.Struct(fmt).unpack
    return lambda reader: unpack(reader.take(size))[0]


_u1, _u2, _u4, _u8, _i4 = map(_unpacker, ("<B", "<H", "<I", "<Q", "<i"))
_f8 = _unpacker(">d")


class PickleReader:
    """One pickle program over `file` (anything with read and readline)."""

    def __init__(self, file, granted: Granted, load_persistent):
        self._file = file
        self._granted = granted
        self._load_persistent = load_persistent
        self._stack: list = []
        self._memo: dict = {}

    # ── bytes ──

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        data = self._file.read(count) if count else b""
        if len(data) != count:
            raise UnpicklingError("pickle data was truncated")
        return data

    def _line(self) -> str:
        line = self._file.readline()
        if line[-1:] != b"\n":
            raise UnpicklingError("pickle data was truncated")
        return line[:-1].decode("utf-8")

    # ── running ──

    def load(self):
        """Runs the program to its end and gives what it made."""
        try:
            return self._run()
        except (UnpicklingError, NotImplementedError, RuntimeError):
            raise
        except RecursionError:
            raise UnpicklingError("the pickle is nested too deeply") from None
        except (
            TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError, AssertionError,
        ) as error:  # fmt: skip
            raise UnpicklingError(
                f"the pickle is damaged: {type(error).__name__}: {error}"
            ) from error

    def _run(self):
        while True:
            code = self.take(1)
            if code == b".":
                (result,) = self._stack
                return result
            action = _ACTIONS.get(code)
            if action is None:
                raise UnpicklingError(
                    f"Unsupported operand {code[0]}: prong reads no pickles that use this opcode"
                )
            action(self)

    def _push(self, value):
        self._stack.append(value)

    def _pop(self):
        value = self._stack.pop()
        if value is _MARK:
            raise UnpicklingError("the pickle is damaged: an argument is missing")
        return value

    def _pop_to_mark(self) -> list:
        stack = self._stack
        for i in range(len(stack) - 1, -1, -1):
            if stack[i] is _MARK:
                items = stack[i + 1 :]
                del stack[i:]
                return items
        raise UnpicklingError("the pickle is damaged: a mark is missing")

    def _top(self, kind):
        top = self._stack[-1]
        if not isinstance(top, kind):
            raise UnpicklingError(f"the pickle is damaged: it adds items to a {type(top).__name__}")
        return top

    # ── containers ──

    def _tuple(self, count):
        if count == 0:
            return self._push(())
        items = self._stack[-count:]
        if len(items) != count or any(item is _MARK for item in items):
            raise UnpicklingError("the pickle is damaged: an argument is missing")
        del self._stack[-count:]
        self._push(tuple(items))

    def _set_items(self, items):
        target = self._top(dict)
        for key, value in zip(items[::2], items[1::2], strict=True):
            target[key] = value

    def _append(self, items):
        self._top(list).extend(items)

    # ── objects ──

    def _global(self, module, name):
        if not isinstance(module, str) or not isinstance(name, str):
            raise UnpicklingError("the pickle is damaged: a name is no text")
        self._push(self._granted.find(module, name))

    def _stack_global(self):
        name, module = self._pop(), self._pop()
        self._global(module, name)

    def _reduce(self):
        arguments, function = self._pop(), self._pop()
        self._push(self._granted.call(function, arguments))

    def _new(self, arguments, keywords):
        self._push(self._granted.new(self._pop(), arguments, keywords))

    def _new_object(self):
        self._new(self._pop(), {})

    def _new_object_with_keywords(self):
        keywords = self._pop()
        self._new(self._pop(), keywords)

    def _build(self):
        state = self._pop()
        self._granted.build(self._stack[-1], state)

    def _persistent(self):
        self._push(self._load_persistent(self._pop()))

    # ── memo ──

    def _put(self, index):
        self._memo[index] = self._stack[-1]

    def _get(self, index):
        if index not in self._memo:
            raise UnpicklingError(f"Memo value not found at index {index}")
        self._push(self._memo[index])

    def _check_protocol(self):
        protocol = self.take(1)[0]
        if protocol > 5:
            raise UnpicklingError(f"unsupported pickle protocol: {protocol}")


def _long(count):
    def action(r):
        r._push(int.from_bytes(r.take(count(r)), "little", signed=True))

    return action


def _text(count):
    return lambda r: r._push(r.take(count(r)).decode("utf-8", "surrogatepass"))


def _octets(count, kind=bytes):
    return lambda r: r._push(kind(r.take(count(r))))


def _int_line(r):
    text = r._line()
    r._push({"00": False, "01": True}[text] if text in ("00", "01") else int(text))


_ACTIONS = {
    b"\x80": PickleReader._check_protocol,
    b"\x95": lambda r: r.take(8),  # FRAME: its length tells nothing that we need
    b"N": lambda r: r._push(None),
    b"\x88": lambda r: r._push(True),
    b"\x89": lambda r: r._push(False),
    b"I": _int_line,
    b"J": lambda r: r._push(_i4(r)),
    b"K": lambda r: r._push(_u1(r)),
    b"M": lambda r: r._push(_u2(r)),
    b"\x8a": _long(_u1),
    b"\x8b": _long(_u4),
    b"F": lambda r: r._push(float(r._line())),
    b"G": lambda r: r._push(_f8(r)),
    b"\x8c": _text(_u1),
    b"X": _text(_u4),
    b"\x8d": _text(_u8),
    b"C": _octets(_u1),
    b"B": _octets(_u4),
    b"\x8e": _octets(_u8),
    b"U": lambda r: r._push(r.take(_u1(r)).decode("ascii")),  # old text, as Python 2 wrote it
    b"T": lambda r: r._push(r.take(_u4(r)).decode("ascii")),
    b"\x96": _octets(_u8, bytearray),
    b"(": lambda r: r._push(_MARK),
    b"0": lambda r: r._pop(),
    b"1": lambda r: r._pop_to_mark(),
    b"2": lambda r: r._push(r._stack[-1]),
    b")": lambda r: r._tuple(0),
    b"\x85": lambda r: r._tuple(1),
    b"\x86": lambda r: r._tuple(2),
    b"\x87": lambda r: r._tuple(3),
    b"t": lambda r: r._push(tuple(r._pop_to_mark())),
    b"]": lambda r: r._push([]),
    b"l": lambda r: r._push(r._pop_to_mark()),
    b"a": lambda r: r._append([r._pop()]),
    b"e": lambda r: r._append(r._pop_to_mark()),
    b"}": lambda r: r._push({}),
    b"d": lambda r: (lambda items: r._push(dict(zip(items[::2], items[1::2], strict=True))))(
        r._pop_to_mark()
    ),
    b"s": lambda r: (lambda value: r._set_items([r._pop(), value]))(r._pop()),
    b"u": lambda r: r._set_items(r._pop_to_mark()),
    b"\x8f": lambda r: r._push(set()),
    b"\x90": lambda r: (lambda items: r._top(set).update(items))(r._pop_to_mark()),
    b"\x91": lambda r: r._push(frozenset(r._pop_to_mark())),
    b"c": lambda r: r._global(r._line(), r._line()),
    b"\x93": PickleReader._stack_global,
    b"R": PickleReader._reduce,
    b"\x81": PickleReader._new_object,
    b"\x92": PickleReader._new_object_with_keywords,
    b"b": PickleReader._build,
    b"Q": PickleReader._persistent,
    b"q": lambda r: r._put(_u1(r)),
    b"r": lambda r: r._put(_u4(r)),
    b"p": lambda r: r._put(int(r._line())),
    b"\x94": lambda r: r._put(len(r._memo)),
    b"h": lambda r: r._get(_u1(r)),
    b"j": lambda r: r._get(_u4(r)),
    b"g": lambda r: r._get(int(r._line())),
}
