"""Which calls into the standard library run no code of the program's, so that a plan of a compiled function may make
them again. Asked by src/capture/python_steps.cpp; each answer is None, or the classes whose code such a call runs.
"""

import io
import logging
import random
import sys
import types
import warnings

LOGGERS = (logging.Logger, logging.RootLogger)
HANDLERS = (logging.StreamHandler, logging.FileHandler, logging.NullHandler, logging._StderrHandler)
LOG_NAMES = {"debug", "info", "warning", "warn", "error", "critical", "log"}
BUFFERED = (io.BufferedWriter, io.BufferedRandom)


def is_untouched(cls):
    return all(
        f.__module__ == cls.__module__
        for f in vars(cls).values()
        if isinstance(f, types.FunctionType)
    )


def is_plain_stream(stream):
    if stream is None or type(stream) is io.StringIO:
        return True
    kind, own = type(stream), io.TextIOWrapper
    if not isinstance(stream, own) or kind.write is not own.write or kind.flush is not own.flush:
        return False
    buffer = stream.buffer
    raw = getattr(buffer, "raw", None) if type(buffer) in BUFFERED else buffer
    return type(raw) in (io.FileIO, io.BytesIO) and not {"write", "flush"} & set(vars(stream))


def is_plain_handler(handler):
    if type(handler) not in HANDLERS or handler.filters:
        return False
    if handler.formatter is not None and type(handler.formatter) is not logging.Formatter:
        return False
    return is_plain_stream(getattr(handler, "stream", None)) and not {
        "emit",
        "format",
        "handle",
    } & set(vars(handler))


def logs_plainly(function):
    name = function.__name__
    logger = getattr(function, "__self__", logging.root)
    owner = getattr(function, "__func__", None)
    if type(logger) not in LOGGERS or name not in LOG_NAMES:
        return None
    if owner is not (vars(logging.Logger).get(name)) and function is not vars(logging).get(name):
        return None
    if logging._logRecordFactory is not logging.LogRecord or not is_plain_stream(sys.stderr):
        return None
    classes = {type(logger), logging.Logger, logging.LogRecord, logging.Formatter}
    at = logger
    while at is not None:
        if at.filters or type(at) not in LOGGERS or not all(map(is_plain_handler, at.handlers)):
            return None
        classes.update(map(type, at.handlers))
        at = at.parent if at.propagate else None
    return tuple(classes) if all(map(is_untouched, classes)) else None


def would_log(call):
    """Fills the logger's memory of its levels on the way, so that a call that logs nothing is followed at once."""
    function, args = call
    name = function.__name__
    if name == "log":
        level = args[0] if args and isinstance(args[0], int) else logging.CRITICAL
    else:
        level = logging.WARNING if name == "warn" else getattr(logging, name.upper())
    return getattr(function, "__self__", logging.root).isEnabledFor(level) or None


def warns_plainly(_):
    shown = warnings._showwarnmsg_impl
    is_list = isinstance(shown, types.BuiltinMethodType) and type(shown.__self__) is list
    plain = (
        warnings.showwarning is warnings._showwarning_orig
        and warnings.formatwarning is warnings._formatwarning_orig
        and (is_list or getattr(shown, "__module__", None) == "warnings")
        and is_plain_stream(sys.stderr)
    )
    return (warnings.WarningMessage,) if plain else None


def draws_plainly(method):
    own = vars(random.Random)
    if not is_untouched(random.Random) or vars(method.__self__).keys() - {"gauss_next"}:
        return None
    return (random.Random,) if own.get(method.__name__) is method.__func__ else None
