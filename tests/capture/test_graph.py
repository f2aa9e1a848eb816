"""The graph for people: code, nodes, tables, pictures, editing, copies and files."""

import copy
import operator
import pickle
import xml.etree.ElementTree as ElementTree

import prong as torch
import pytest
from prong import fx


def graph_of(function, *args):
    graphs = []

    def backend(module, example_inputs):
        graphs.append(module)
        return module

    with torch.no_grad():
        torch.compile(function, backend=backend)(*args)
    assert len(graphs) == 1
    return graphs[0]


def example(x, y):
    a = x[:, 1:] + y[0] * 2
    largest = a.max(dim=1)
    return (
        torch.special.i0(largest.values),
        torch.where(a > 0, a, 0.5).to(torch.float64),
        a[1:, ::2],
    )


ARGS = torch.randn(4, 5), torch.randn(2, 4)
torch.special  # a module is loaded when first used, which pytest has opaque code look at


def test_code_is_readable_and_runs():
    module = graph_of(example, *ARGS)
    assert [line.strip() for line in module.code.splitlines()] == [
        "def forward(self, arg_1, arg_2):",
        "slice_1 = arg_1[:, 1:]",
        "select_1 = prong.select(arg_2, 0, 0)",
        "mul_1 = select_1 * 2",
        "add_1 = slice_1 + mul_1",
        "max_1 = prong.max(add_1, 1)",
        "max_1_0 = max_1[0]",
        "max_1_1 = max_1[1]",
        "special_i0_1 = prong.special.i0(max_1_0)",
        "gt_1 = add_1 > 0",
        "where_1 = prong.where(gt_1, add_1, 0.5)",
        "to_1 = where_1.to(prong.float64)",
        "slice_2 = add_1[1:]",
        "slice_3 = slice_2[:, ::2]",
        module.code.splitlines()[-1].strip(),
    ]
    scope = {"prong": torch}
    exec(module.code, scope)  # nothing but prong is needed to run it
    given = torch.randn(4, 5), torch.randn(2, 4)
    for got, again in zip(scope["forward"](None, *given), module(*given)):
        assert got.tolist() == again.tolist()
    assert module(*given)[0].tolist() == (given[0][:, 1:] + given[1][0] * 2).tolist()


def test_ops_without_a_name_of_their_own_are_written_through_ops():
    module = graph_of(torch.nn.MaxPool2d(2), torch.randn(1, 1, 4, 4))
    assert "prong.ops.aten.max_pool2d_with_indices(arg_1" in module.code
    x = torch.randn(1, 1, 4, 4)
    assert module(x)[0].tolist() == torch.nn.functional.max_pool2d(x, 2).tolist()
    assert torch.ops.aten.relu(torch.tensor([-1.0, 1.0])).tolist() == [0.0, 1.0]
    with pytest.raises(AttributeError, match="no op named 'nothing'"):
        torch.ops.aten.nothing


def test_nodes_and_tables(capsys):
    module = graph_of(example, *ARGS)
    nodes = {node.name: node for node in module.graph.nodes}
    assert [n.op for n in module.graph.nodes][:3] == ["placeholder", "placeholder", "call_function"]
    assert nodes["add_1"].target is operator.add and nodes["to_1"].op == "call_method"
    assert nodes["add_1"].args == (nodes["slice_1"], nodes["mul_1"])
    assert nodes["add_1"].users.keys() == {
        nodes["max_1"],
        nodes["gt_1"],
        nodes["where_1"],
        nodes["slice_2"],
        nodes["output"],
    }
    line = example.__code__.co_firstlineno
    assert nodes["add_1"].meta["shape"] == (4, 4) and nodes["add_1"].meta["place"] == (
        __file__,
        line + 1,
    )
    assert (
        nodes["max_1_1"].meta["dtype"] is torch.int64
        and nodes["max_1_1"].meta["place"][1] == line + 2
    )
    assert f"line {line + 1}, in example" in nodes["add_1"].stack_trace
    module.graph.print_tabular()
    rows = capsys.readouterr().out.splitlines()
    assert rows[0].split() == ["opcode", "name", "target", "args", "kwargs"]
    assert any(row.split()[:3] == ["call_function", "add_1", "operator.add"] for row in rows)
    assert "%add_1 : call_function[target=operator.add](args = (slice_1, mul_1)" in str(
        module.graph
    )


def test_the_picture_has_a_box_a_node_and_a_line_an_edge(tmp_path):
    module = graph_of(example, *ARGS)
    module.draw(tmp_path / "graph.svg")
    root = ElementTree.parse(tmp_path / "graph.svg").getroot()
    space = {"s": "http://www.w3.org/2000/svg"}
    boxes = root.findall("s:g", space)
    assert len(boxes) == len(module.graph.nodes)
    texts = ["".join(box.itertext()) for box in boxes]
    assert any(
        "add_1 = add" in t and "float32 [4, 4]" in t and "test_graph.py:" in t for t in texts
    )
    edges = sum(len(node.all_input_nodes) for node in module.graph.nodes)
    assert len(root.findall("s:path", space)) == edges
    placed = [
        (float(r.get("x")), float(r.get("y")), float(r.get("width")))
        for r in root.findall("s:g/s:rect", space)
    ]
    for i, (x, y, width) in enumerate(placed):  # no two boxes of a layer overlap
        assert all(
            other_y != y or other_x >= x + width or x >= other_x + w
            for other_x, other_y, w in placed[i + 1 :]
        )


def test_a_graph_is_edited_and_compiled_again():
    module = graph_of(lambda x: (x * 2).sin() + 1, torch.ones(2))
    graph = module.graph
    sin = next(n for n in graph.nodes if n.target is torch.sin)
    with graph.inserting_after(sin):
        twice = graph.call_function(operator.mul, (sin, 10))
    sin.replace_all_uses_with(twice)
    twice.args = (sin, 10)
    graph.lint()
    module.recompile()
    x = torch.randn(2)
    assert module(x)[0].tolist() == ((x * 2).sin() * 10 + 1).tolist()
    unused = graph.nodes[1]
    with graph.inserting_before(unused):
        graph.call_function(torch.relu, (graph.nodes[0],))
    assert graph.eliminate_dead_code() and not graph.eliminate_dead_code()
    with pytest.raises(RuntimeError, match="is used by"):
        graph.erase_node(sin)


def every_copy(module, path):
    yield copy.deepcopy(module)
    yield copy.copy(module)
    yield pickle.loads(pickle.dumps(module))
    module.save(path)
    yield fx.GraphModule.load(path)


def test_copies_and_files_run_the_same(tmp_path):
    module = graph_of(example, *ARGS)
    given = torch.randn(4, 5), torch.randn(2, 4)
    want = [value.tolist() for value in module(*given)]
    for other in every_copy(module, tmp_path / "graph.pt"):
        assert other.code == module.code and str(other.graph) == str(module.graph)
        assert [value.tolist() for value in other(*given)] == want
        for mine, its in zip(module.graph.nodes, other.graph.nodes):
            assert mine.meta.get("shape") == its.meta.get("shape")
            assert mine.meta.get("place") == its.meta.get("place")
    changed = copy.deepcopy(module)
    next(n for n in changed.graph.nodes if n.target is operator.mul).target = operator.sub
    changed.recompile()
    assert "-" in changed.code and "-" not in module.code


def test_a_long_graph_is_saved_without_recursion():
    def f(x):
        for _ in range(3000):
            x = x + 1
        return x

    module = graph_of(f, torch.zeros(2))
    again = pickle.loads(pickle.dumps(module))
    assert len(again.graph.nodes) == 3002 and again(torch.zeros(2))[0].tolist() == [3000.0] * 2


def test_a_graph_of_ones_own():
    class Root(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Sequential(torch.nn.Linear(2, 2))
            self.scale = torch.nn.Parameter(torch.tensor(3.0))

    root, graph = Root(), fx.Graph()
    x = graph.placeholder("x")
    called = graph.create_node("call_module", "inner.0", (x,))
    graph.output(graph.call_function(operator.mul, (called, graph.get_attr("scale"))))
    module = fx.GraphModule(root, graph)
    value = torch.randn(3, 2)
    assert isinstance(module, torch.nn.Module)
    assert module(value).tolist() == (root.inner(value) * 3).tolist()
    assert [name for name, _ in module.named_parameters()] == [
        "scale",
        "inner.0.weight",
        "inner.0.bias",
    ]
    again = pickle.loads(pickle.dumps(module))
    assert again(value).tolist() == module(value).tolist()
    assert fx.Interpreter(module).run(value).tolist() == module(value).tolist()


def test_code_needs_nothing_but_prong():
    module = graph_of(lambda x: (x * float("inf"), x + float("nan"), x - float("-inf")), ARGS[0])
    scope = {"prong": torch}
    exec(module.code, scope)
    assert str(scope["forward"](None, ARGS[0])) == str(module(ARGS[0]))
    assert "float('inf')" in module.code and "float('nan')" in module.code


def test_what_back_ends_of_pytorch_ask_of_graphs():
    module = graph_of(lambda x: (x * 2).sin() + 1, torch.ones(2))
    graph, x = module.graph, torch.randn(2)
    assert graph.owning_module is module and graph.output_node() is graph.nodes[-1]
    (sin,) = graph.find_nodes(op="call_function", target=torch.sin)
    assert [n.name for n in graph.find_nodes(op="placeholder")] == ["arg_1"]
    assert graph.python_code("self").src == module.code
    mul = sin.args[0]
    mul.update_arg(1, 3)
    assert mul.args[1] == 3 and not sin.is_impure() and graph.output_node().is_impure()
    sin.target = torch.add
    sin.insert_arg(1, mul)
    sin.update_kwarg("alpha", 2)
    module.recompile()
    assert module(x)[0].tolist() == (torch.add(x * 3, x * 3, alpha=2) + 1).tolist()
    other, copies = fx.Graph(), {}
    other.output(other.graph_copy(graph, copies))
    assert fx.GraphModule({}, other)(x)[0].tolist() == module(x)[0].tolist()
    assert fx.map_arg((mul, [mul, 1]), lambda n: n.name) == ("mul_1", ["mul_1", 1])
    with graph.inserting_after():
        first = graph.call_function(torch.neg, (graph.nodes[0],))
    assert graph.nodes[1] is first

    class Doubled(fx.Interpreter):
        def call_function(self, target, args, kwargs):
            return super().call_function(target, args, kwargs) * 2

        def output(self, target, args, kwargs):
            return {"out": super().output(target, args, kwargs)[0]}

    plain = graph_of(lambda x: (x * 2).sin(), torch.ones(2))
    assert Doubled(plain).run(x)["out"].tolist() == ((x * 2 * 2).sin() * 2).tolist()
    with pytest.raises(RuntimeError, match="no value for the input arg_1"):
        Doubled(plain).run()


def test_wrong_edits_say_what_is_wrong():
    module, other = (graph_of(lambda x: (x * 2).sin() + 1, torch.ones(2)) for _ in range(2))
    graph = module.graph
    x, mul, sin = list(graph.nodes)[:3]
    with pytest.raises(RuntimeError, match="sin_1 is one of another graph"):
        other.graph.erase_node(sin)
    with pytest.raises(TypeError, match="call_function takes a function, got 'sin'"):
        graph.call_function("sin", (x,))
    with pytest.raises(TypeError, match="call_method takes a name, got"):
        graph.call_method(torch.sin, (x,))
    with pytest.raises(TypeError, match="takes a Node, got int"):
        sin.replace_all_uses_with(5)
    loose = graph.call_function(torch.neg, (x,))
    with pytest.raises(RuntimeError, match="the last node of a graph is its output"):
        graph.lint()
    graph.erase_node(loose)
    with pytest.raises(RuntimeError, match="was erased"):
        graph.erase_node(loose)
    sin.args = (loose,)
    with pytest.raises(RuntimeError, match="sin_1 reads neg, which was erased"):
        graph.lint()
    sin.args = (other.graph.nodes[1],)
    with pytest.raises(RuntimeError, match="mul_1, which is one of another graph"):
        graph.lint()


def test_files_that_are_no_graphs_are_refused(tmp_path):
    module, path = graph_of(lambda x: x * 2 + 1, torch.ones(2)), tmp_path / "graph.pt"
    torch.save({"prong_graph": 99, "nodes": []}, path)
    with pytest.raises(ValueError, match="holds no graph that this version of prong knows"):
        fx.GraphModule.load(path)
    module.save(path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(RuntimeError, match="graph.pt"):
        fx.GraphModule.load(path)


def test_each_value_of_a_graph_has_an_example_without_memory():
    seen = {}

    def backend(module, inputs):
        for node in module.graph.nodes:
            if node.op != "output":
                seen[node.name] = node.meta["example_value"]
        return module

    def f(x):
        top = x.long().max(1)
        return top.values + 1, x.sum()

    torch.compile(f, backend=backend)(torch.ones(2, 3))
    shapes = [
        v.shape if isinstance(v, torch.Tensor) else [i.shape for i in v] for v in seen.values()
    ]
    assert shapes[:3] == [(2, 3), (2, 3), [(2,), (2,)]] and shapes[-1] == ()
    dtypes = {v.dtype for v in seen.values() if isinstance(v, torch.Tensor)}
    assert dtypes == {torch.float32, torch.int64}
    made = [v for name, v in list(seen.items())[1:] if isinstance(v, torch.Tensor)]
    assert all(v.untyped_storage().nbytes() <= 8 for v in made)
