"""Scripted functions: source text of a Python function, compiled at its first need."""

import ast
import functools
import inspect
import textwrap
import types
import weakref

from prong import _core
from prong.jit import markers
from prong.jit.archive import save
from prong.jit.markers import Handling
from prong.jit.resolve import FunctionNames, TextNames, describes, python_call


def source_of(obj):
    """(text without indentation, file, number of the first line, columns taken away)"""
    try:
        lines, first = inspect.getsourcelines(obj)
        file = inspect.getsourcefile(obj) or "<unknown>"
    except (OSError, TypeError) as error:
        raise RuntimeError(
            f"the source of {getattr(obj, '__qualname__', obj)!r} cannot be read ({error}); "
            f"scripts are compiled from source: "
            "put the function into a file, or use torch.jit.CompilationUnit(text)"
        ) from None
    text = "".join(lines)
    plain = textwrap.dedent(text)
    indent = len(lines[0]) - len(lines[0].lstrip())
    return plain, file, max(first, 1), indent


# Entries live as long as their functions.
_entries: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def entry_of(function):
    """The compiler's entry of a function: one for each function object."""
    function = (
        inspect.unwrap(function, stop=lambda f: f in _entries)
        if not hasattr(function, "__wrapped__")
        else function
    )
    entry = _entries.get(function)
    if entry is None:
        text, file, first, indent = source_of(function)
        entry = _core.declare_script(
            function.__name__,
            f"{function.__module__}.{function.__qualname__}",
            text,
            file,
            first,
            indent,
            FunctionNames(function),
        )
        _entries[function] = entry
    return entry


@describes(types.FunctionType)
def describe_function(function):
    """What a Python function is to a script that names it."""
    handling = markers.handling_of(function)
    if handling in (Handling.IGNORE, Handling.UNUSED):
        return python_call(function, handling)
    return ("function", entry_of(function))


class ScriptFunction:
    """A compiled function. Called like the Python function it was made of.

    ``graph`` and ``code`` show what became of it.
    """

    def __init__(self, graph_function, original=None, entry=None):
        self._function = graph_function
        self._call = graph_function.__call__
        self._entry = entry
        if original is not None:
            functools.update_wrapper(self, original)

    def __call__(self, *args, **kwargs):
        return self._call(*args, **kwargs)

    def _describe(self):
        if self._entry is not None:
            return ("function", self._entry)
        return ("compiled", self._function)

    @property
    def name(self):
        return self._function.name

    qualified_name = name

    @property
    def schema(self):
        return self._function.schema

    @property
    def graph(self):
        return Graph(self._function.graph)

    inlined_graph = graph

    @property
    def code(self):
        return self._function.graph

    def graph_for(self, *args, **kwargs):
        return self.graph

    def save(self, f, **kwargs):
        save(self, f)

    def _saved_parts(self):
        return self._function, None

    def __repr__(self):
        return f"<torch.jit.ScriptFunction {self.name}>"

    def __reduce__(self):
        raise RuntimeError("scripted functions cannot be pickled: use torch.jit.save")

    def __deepcopy__(self, memo):
        return self

    __copy__ = __deepcopy__


@describes(ScriptFunction)
def _describe_script_function(function):
    return function._describe()


class Graph:
    """The text of a graph, for people."""

    def __init__(self, text):
        self._text = text

    def __str__(self):
        return self._text

    __repr__ = __str__

    def __contains__(self, part):
        return part in self._text


def script_function(function):
    """Compiles a Python function."""
    entry = entry_of(function)
    return ScriptFunction(entry.compile(), function, entry)


class CompilationUnit:
    """Functions compiled from one text; each is an attribute."""

    def __init__(self, lang=None, _frames_up=0):
        self._entries = {}
        self._functions = {}
        if lang is not None:
            self.define(lang)

    def define(self, lang, rcb=None, _frames_up=0):
        text = textwrap.dedent(lang)
        names = TextNames(self._entries)
        # The compiler has a parser of its own; this one only finds where each def begins and ends.
        lines = text.splitlines(keepends=True)
        try:
            tree = ast.parse(text)
        except SyntaxError as error:
            raise RuntimeError(
                f"syntax error in the text of a CompilationUnit, line {error.lineno}: {error.msg}"
                f"\n    {(error.text or '').strip()}"
            ) from None
        for node in tree.body:
            if not isinstance(node, ast.FunctionDef):
                raise RuntimeError(
                    f"line {node.lineno} of a CompilationUnit: only functions can stand there"
                )
            first = min([node.lineno] + [d.lineno for d in node.decorator_list])
            part = "".join(lines[first - 1 : node.end_lineno])
            self._entries[node.name] = _core.declare_script(
                node.name, node.name, part, "<string>", first, 0, names
            )
        for name in list(self._entries):
            self._find(name)

    def _find(self, name):
        if name not in self._functions:
            entry = self._entries[name]
            self._functions[name] = ScriptFunction(entry.compile(), entry=entry)
        return self._functions[name]

    def __getattr__(self, name):
        entries = self.__dict__.get("_entries", {})
        if name in entries:
            return self._find(name)
        raise AttributeError(f"the CompilationUnit has no function '{name}'")

    def find_function(self, name):
        return self._find(name) if name in self._entries else None

    def get_functions(self):
        return [self._find(name) for name in self._entries]
