"""Node and Graph. Made by GraphModule.from_description; edited by back ends and people."""

import importlib
import operator
from collections import namedtuple

from prong.fx.drawing import draw
from prong.fx.operations import SYMBOLS, _Op, function_named

KINDS = ("placeholder", "get_attr", "call_function", "call_method", "call_module", "output")


def map_nodes(value, function):
    """The value with function(node) in place of each node, in tuples, lists, dicts and slices too."""
    if isinstance(value, Node):
        return function(value)
    if isinstance(value, tuple):
        items = [map_nodes(v, function) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, list):
        return [map_nodes(v, function) for v in value]
    if isinstance(value, dict):
        return {k: map_nodes(v, function) for k, v in value.items()}
    if isinstance(value, slice):
        return slice(*(map_nodes(v, function) for v in (value.start, value.stop, value.step)))
    return value


class Node:
    """One value of a graph. `op` is one of KINDS; `meta` has shape, dtype and the line that it comes from."""

    def __init__(self, graph, name, op, target, args=(), kwargs=None):
        self.graph, self.name, self.op, self.target = graph, name, op, target
        self.users = {}
        self.meta = {}
        self.type = None
        self._args, self._kwargs = (), {}
        self.args, self.kwargs = args, kwargs or {}

    @property
    def args(self):
        return self._args

    @args.setter
    def args(self, value):
        self._change(tuple(value), self._kwargs)

    @property
    def kwargs(self):
        return self._kwargs

    @kwargs.setter
    def kwargs(self, value):
        self._change(self._args, dict(value))

    def _change(self, args, kwargs):
        for node in self.all_input_nodes:
            node.users.pop(self, None)
        self._args, self._kwargs = args, kwargs
        for node in self.all_input_nodes:
            node.users[self] = None

    @property
    def all_input_nodes(self):
        found = {}
        map_nodes((self._args, self._kwargs), lambda node: found.setdefault(node))
        return list(found)

    @property
    def next(self):
        nodes = self.graph._nodes
        at = nodes.index(self) + 1
        return nodes[at] if at < len(nodes) else None

    @property
    def prev(self):
        nodes = self.graph._nodes
        at = nodes.index(self)
        return nodes[at - 1] if at else None

    @property
    def stack_trace(self):
        return self.meta.get("stack_trace")

    def replace_all_uses_with(
        self, replace_with, delete_user_cb=lambda user: True, *, propagate_meta=False
    ):
        """Has its users read another node; gives those back. `delete_user_cb(user)` says which of them."""
        if not isinstance(replace_with, Node):
            raise TypeError(
                f"replace_all_uses_with() takes a Node, got {type(replace_with).__name__}"
            )
        if propagate_meta:
            replace_with.meta.update(self.meta)
        changed = [user for user in self.users if delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    def update_arg(self, index, value):
        args = list(self._args)
        args[index] = value
        self.args = args

    def insert_arg(self, index, value):
        args = list(self._args)
        args.insert(index, value)
        self.args = args

    def update_kwarg(self, key, value):
        self.kwargs = {**self._kwargs, key: value}

    def is_impure(self):
        """Whether it does more than give its value, so that it stays though nobody reads it."""
        return self.op in ("placeholder", "output") or bool(self.meta.get("writes"))

    def replace_input_with(self, old, new):
        def put(node):
            return new if node is old else node

        self._change(map_nodes(self._args, put), map_nodes(self._kwargs, put))

    def append(self, node):
        """Moves `node` to just after this one."""
        self.graph._move(node, self, 1)

    def prepend(self, node):
        """Moves `node` to just before this one."""
        self.graph._move(node, self, 0)

    def format_node(self):
        parts = [f"{self.op}[target={target_name(self.target)}]"]
        if self.op == "placeholder":
            return f"%{self.name} : placeholder"
        if self.op == "output":
            return f"return {self.args[0]!r}"
        return f"%{self.name} : {parts[0]}(args = {self.args!r}, kwargs = {self.kwargs!r})"

    def __repr__(self):
        return self.name


def target_name(target):
    if isinstance(target, str):
        return target
    if target in SYMBOLS or target is operator.getitem:
        return f"operator.{target.__name__}"
    if isinstance(target, _Op):
        return repr(target)
    if getattr(target, "__name__", "") in ("fork", "wait"):
        return f"prong.jit.{target.__name__}"
    module = getattr(target, "__module__", "") or ""
    return f"{module}.{getattr(target, '__name__', repr(target))}"


class Body:
    """What a fork node calls: a graph of its own. Its code stands inside of that of the graph that forks it."""

    def __init__(self, graph, name="body"):
        self.graph, self.__name__ = graph, name

    def __call__(self, *args):
        return importlib.import_module("prong.fx.code").run_body(self, args)

    def __reduce__(self):
        return (Body, (self.graph, self.__name__))

    def __repr__(self):
        return self.__name__


class Graph:
    """A list of nodes in the order in which they run: placeholders first, one output last."""

    owning_module = None  # the GraphModule that runs it

    def __init__(self):
        self._nodes = []
        self._names = {}
        self._before = None  # where new nodes go; None: the end

    @property
    def nodes(self):
        return NodeList(self)

    def _fresh(self, wanted):
        name = wanted
        while name in self._names:
            self._names[wanted] += 1
            name = f"{wanted}_{self._names[wanted]}"
        self._names.setdefault(name, 0)
        return name

    def create_node(self, op, target, args=(), kwargs=None, name=None, type_expr=None):
        if op not in KINDS:
            raise ValueError(f"a node's op is one of {', '.join(KINDS)}, not {op!r}")
        if op == "call_function" and not callable(target):
            raise TypeError(
                f"call_function takes a function, got {target!r} ({type(target).__name__})"
            )
        if op != "call_function" and not isinstance(target, str):
            raise TypeError(f"{op} takes a name, got {target!r} ({type(target).__name__})")
        stem = name or (target if isinstance(target, str) else getattr(target, "__name__", op))
        node = Node(self, self._fresh(stem.replace(".", "_")), op, target, args, kwargs)
        at = len(self._nodes) if self._before is None else self._nodes.index(self._before)
        self._nodes.insert(at, node)
        return node

    def placeholder(self, name, type_expr=None):
        return self.create_node("placeholder", name, name=name)

    def call_function(self, the_function, args=(), kwargs=None, type_expr=None):
        return self.create_node("call_function", the_function, args, kwargs)

    def call_method(self, method_name, args=(), kwargs=None, type_expr=None):
        return self.create_node("call_method", method_name, args, kwargs)

    def call_module(self, module_name, args=(), kwargs=None, type_expr=None):
        return self.create_node("call_module", module_name, args, kwargs)

    def get_attr(self, qualified_name, type_expr=None):
        return self.create_node("get_attr", qualified_name)

    def output(self, result, type_expr=None):
        return self.create_node("output", "output", (result,), name="output")

    def output_node(self):
        return next(node for node in reversed(self._nodes) if node.op == "output")

    def find_nodes(self, *, op, target=None, sort=True):
        """The nodes of one kind, in order; with `target`, those that call it."""
        return [n for n in self._nodes if n.op == op and (target is None or n.target == target)]

    def python_code(self, root_module="self"):
        """The graph as source: an object with `src` and `globals`."""
        source, scope = importlib.import_module("prong.fx.code").write_code(self, root_module)
        return PythonCode(source, scope)

    def graph_copy(self, g, val_map, return_output_node=False):
        """Copies the nodes of `g` to where nodes go here; gives what it puts out. `val_map` has the copies."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_nodes(node.args[0], val_map.__getitem__)
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    def node_copy(self, node, arg_transform=lambda n: n):
        copied = self.create_node(
            node.op,
            node.target,
            map_nodes(node.args, arg_transform),
            map_nodes(node.kwargs, arg_transform),
            name=node.name,
        )
        copied.meta = dict(node.meta)
        return copied

    def erase_node(self, to_erase):
        node = to_erase
        self._check_own(node)
        if node.users:
            raise RuntimeError(f"node {node} is used by {', '.join(n.name for n in node.users)}")
        node.args, node.kwargs = (), {}
        self._nodes.remove(node)

    def _move(self, node, at, offset):
        if node in self._nodes:
            self._nodes.remove(node)
        self._nodes.insert(self._nodes.index(at) + offset, node)

    def _check_own(self, node):
        if not isinstance(node, Node):
            raise TypeError(f"expected a Node, got {type(node).__name__}")
        if node.graph is not self:
            raise RuntimeError(f"node {node} is one of another graph")
        if node not in self._nodes:
            raise RuntimeError(f"node {node} was erased")

    def inserting_before(self, n=None):
        """Where new nodes go: before this one, or before all; in a with block, else from now on."""
        if n is not None:
            self._check_own(n)
        return _Inserting(self, n if n is not None else next(iter(self._nodes), None))

    def inserting_after(self, n=None):
        """Where new nodes go: after this one, or after the placeholders."""
        if n is not None:
            self._check_own(n)
            return _Inserting(self, n.next)
        return _Inserting(self, next((x for x in self._nodes if x.op != "placeholder"), None))

    def eliminate_dead_code(self, is_impure_node=None):
        """Erases calls that nobody reads, save those that write in place; True if there were any."""
        changed = False
        for node in reversed(list(self._nodes)):
            if node.users or (is_impure_node or Node.is_impure)(node):
                continue
            self.erase_node(node)
            changed = True
        return changed

    def lint(self):
        """Raises RuntimeError where a node reads one that comes later or is not here, or has a name or place that no
        node may have.
        """
        seen, names = set(), set()
        for i, node in enumerate(self._nodes):
            if node.graph is not self:
                raise RuntimeError(f"node {node} is one of another graph")
            for read in node.all_input_nodes:
                if read.graph is not self:
                    raise RuntimeError(f"node {node} reads {read}, which is one of another graph")
                if read not in seen:
                    where = "is not defined before it" if read in self._nodes else "was erased"
                    raise RuntimeError(f"node {node} reads {read}, which {where}")
            if node.name in names:
                raise RuntimeError(f"two nodes are named {node.name}")
            if node.op == "output" and i != len(self._nodes) - 1:
                raise RuntimeError("the last node of a graph is its output, but others follow it")
            if node.op == "placeholder" and any(n.op != "placeholder" for n in seen):
                raise RuntimeError(f"placeholder {node} stands behind other nodes")
            seen.add(node)
            names.add(node.name)
        if self._nodes and self._nodes[-1].op != "output":
            raise RuntimeError("the last node of a graph is its output")

    def print_tabular(self):
        rows = [("opcode", "name", "target", "args", "kwargs")]
        rows += [
            (n.op, n.name, target_name(n.target), repr(n.args), repr(n.kwargs)) for n in self._nodes
        ]
        widths = [max(len(r[i]) for r in rows) for i in range(5)]
        lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in rows]
        lines.insert(1, "  ".join("-" * w for w in widths))
        print("\n".join(lines))

    def svg(self):
        """The graph as a picture: the text of an SVG file."""
        return draw(self)

    def __getstate__(self):
        # A flat list, so that a long chain of nodes is no deep recursion. Examples are not saved.
        rows = [
            (
                node.name,
                node.op,
                _target_state(node.target),
                map_nodes(node.args, _reference),
                map_nodes(node.kwargs, _reference),
                {k: v for k, v in node.meta.items() if k != "example_value"},
            )
            for node in self._nodes
        ]
        return {"nodes": rows, "names": dict(self._names)}

    def __setstate__(self, state):
        self.__init__()
        made = {}
        for name, op, target, args, kwargs, meta in state["nodes"]:
            args, kwargs = (_resolve(value, made) for value in (args, kwargs))
            if isinstance(target, _Function):
                target = _fork() if target.name == "jit.fork" else function_named(target.name)
            made[name] = Node(self, name, op, target, args, kwargs)
            made[name].meta.update(meta)
            self._nodes.append(made[name])
        self._names.update(state["names"])

    def __str__(self):
        lines = ["graph():"] + [f"    {node.format_node()}" for node in self._nodes]
        return "\n".join(lines)


PythonCode = namedtuple("PythonCode", "src globals")
_Reference = namedtuple("_Reference", "name")
_Function = namedtuple("_Function", "name")  # the function of an op, by the op's name


def _is_op(target):
    return callable(target) and function_named(getattr(target, "__name__", "")) is target


def _fork():
    return importlib.import_module("prong.jit").fork


def _target_state(target):
    if callable(target) and target is _fork():
        return _Function("jit.fork")
    return _Function(target.__name__) if _is_op(target) else target


def _reference(node):
    return _Reference(node.name)


def _resolve(value, made):
    """The value with nodes in place of references."""
    if isinstance(value, _Reference):
        return made[value.name]
    if isinstance(value, tuple):
        items = [_resolve(v, made) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, list):
        return [_resolve(v, made) for v in value]
    if isinstance(value, dict):
        return {k: _resolve(v, made) for k, v in value.items()}
    if isinstance(value, slice):
        return slice(*(_resolve(v, made) for v in (value.start, value.stop, value.step)))
    return value


class NodeList:
    """The nodes of a graph as a sequence; safe to walk while nodes are erased."""

    def __init__(self, graph):
        self._graph = graph

    def __iter__(self):
        return iter(list(self._graph._nodes))

    def __reversed__(self):
        return reversed(list(self._graph._nodes))

    def __len__(self):
        return len(self._graph._nodes)

    def __getitem__(self, index):
        return self._graph._nodes[index]


def map_arg(a, fn):
    """fn(node) in place of each node in a value."""
    return map_nodes(a, fn)


class _Inserting:
    def __init__(self, graph, before):
        self._graph, self._next = graph, before
        self._saved, graph._before = graph._before, before

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._graph._before = self._saved
