"""A captured graph as an ONNX model. Called by onnx_backends.

ONNX has ops of its own, so each op here is written out in those. What has no entry in WRITERS, or writes in place,
raises NotImplementedError by name.
"""

import prong
from prong.bridge import packages
from prong.bridge.onnx_ops import WRITERS
from prong.fx.graph import Node
from prong.fx.operations import op_name

OPSET = 18
LARGEST = 2**63 - 1


class ModelWriter:
    """Writes one model; `name(v)` is the ONNX name of a node's value or of a constant."""

    def __init__(self, module, example_inputs):
        self.onnx = packages.load("onnx")
        self.nodes, self.constants, self.names = [], [], {}
        self.given_as = {}  # of Python numbers, by node: their dtype as inputs of the model
        self.count = 0
        self.module, self.examples = module, example_inputs

    def write(self):
        helper, inputs, outputs = self.onnx.helper, [], []
        examples = iter(self.examples)
        for node in self.module.graph.nodes:
            if node.op == "placeholder":
                inputs.append(self.placeholder(node, next(examples)))
            elif node.op == "output":
                outputs = [self.output(value, i) for i, value in enumerate(node.args[0])]
            else:
                self.names[node] = self.node(node)
        graph = helper.make_graph(self.nodes, "captured", inputs, outputs, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        model.ir_version = 8
        return model

    def placeholder(self, node, example):
        if isinstance(example, float):
            self.given_as[node] = prong.float64  # in full; beside tensors it counts as below
        if not isinstance(example, prong.Tensor):
            example = prong.tensor(example)
        node.meta.setdefault("dtype", example.dtype)
        node.meta.setdefault("shape", tuple(example.shape))
        self.names[node] = node.name
        sizes = [f"{node.name}_{i}" for i in range(example.dim())]
        kind = self.type(self.given_as.get(node, example.dtype))
        return self.onnx.helper.make_tensor_value_info(node.name, kind, sizes)

    def output(self, value, index):
        name = self.emit("Identity", [self.name(value)], name=f"result_{index}")
        sizes = [f"result_{index}_{i}" for i in range(len(value.meta["shape"]))]
        kind = self.type(value.meta["dtype"])
        return self.onnx.helper.make_tensor_value_info(name, kind, sizes)

    def node(self, node):
        name = op_name(node)
        if node.meta.get("writes"):
            raise NotImplementedError(f"ONNX has no ops that write in place, as {name} does")
        writer = WRITERS.get(name)
        if writer is None:
            raise NotImplementedError(f"the op {name} is not written for ONNX (bridge/onnx_ops.py)")
        return writer(self, node, *node.args, **node.kwargs)

    # ── what the writers of ops call ──

    def type(self, dtype):
        return getattr(self.onnx.TensorProto, _TYPES[dtype])

    def emit(self, op, inputs, name=None, outputs=1, **attributes):
        """Adds an ONNX node; gives the name of its value, or a tuple of names."""
        self.count += 1
        made = [name or f"v{self.count}_{k}" for k in range(outputs)]
        self.nodes.append(self.onnx.helper.make_node(op, inputs, made, **attributes))
        return made[0] if outputs == 1 else tuple(made)

    def constant(self, value, dtype):
        self.count += 1
        name = f"c{self.count}"
        array = prong.tensor(value, dtype=dtype).numpy()
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def ints(self, values):
        if all(isinstance(v, int) for v in values):
            return self.constant(list(values), prong.int64)
        parts = [
            self.emit("Reshape", [self.cast(v, prong.int64), self.constant([1], prong.int64)])
            for v in values
        ]
        return self.emit("Concat", parts, axis=0)

    def dtype_of(self, value):
        """The dtype of a node; of a Python number None: it follows the tensors beside it."""
        if isinstance(value, Node) and "shape" in value.meta:
            return value.meta["dtype"]
        return None

    def rank(self, node):
        return len(node.meta["shape"])

    def name(self, value):
        return self.names[value] if isinstance(value, Node) else value

    def cast(self, value, dtype):
        """The value as an ONNX name of that dtype."""
        if not isinstance(value, (Node, str)):
            return self.constant(value, dtype)
        if isinstance(value, Node):
            if self.given_as.get(value, value.meta.get("dtype")) is dtype:
                return self.names[value]
        return self.emit("Cast", [self.name(value)], to=self.type(dtype))

    def promoted(self, *values):
        """The values as ONNX names of the one dtype that an op computes them in."""
        dtype = compute_dtype(values)
        return [self.cast(v, dtype) for v in values]


def compute_dtype(values):
    stand_ins = []
    for v in values:
        if isinstance(v, Node):
            shape = (1,) * len(v.meta["shape"])
            stand_ins.append(prong.zeros(shape, dtype=v.meta["dtype"]))
        else:
            stand_ins.append(v)
    found = stand_ins[0]
    for other in stand_ins[1:]:
        found = prong.zeros((), dtype=prong.result_type(found, other))
        if isinstance(other, prong.Tensor) and other.dim():
            found = found.reshape((1,) * other.dim())
    return found.dtype if isinstance(found, prong.Tensor) else prong.tensor(found).dtype


_TYPES = {
    prong.float32: "FLOAT",
    prong.float64: "DOUBLE",
    prong.float16: "FLOAT16",
    prong.bfloat16: "BFLOAT16",
    prong.int64: "INT64",
    prong.int32: "INT32",
    prong.int16: "INT16",
    prong.int8: "INT8",
    prong.uint8: "UINT8",
    prong.bool: "BOOL",
}
