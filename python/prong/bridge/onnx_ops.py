"""What each op is in ONNX: WRITERS[op](writer, node, *args, **kwargs) gives the name of its value, or a tuple of names.

`node` is the node that is written: its meta tells dtype and shape. Called by onnx_model.
"""

import prong
from prong.fx.graph import Node

WRITERS = {}
LARGEST = 2**63 - 1


def writes(*names):
    def put(function):
        WRITERS.update(dict.fromkeys(names, function))
        return function

    return put


# ── elementwise ──


def _unary(op, floats=False):
    def write(w, node, x):
        dtype = node.meta["dtype"]
        return w.emit(op, [w.cast(x, dtype) if floats else w.name(x)])

    return write


for _name, _op in {
    "neg": "Neg",
    "abs": "Abs",
    "relu": "Relu",
    "floor": "Floor",
    "ceil": "Ceil",
    "sign": "Sign",
}.items():
    WRITERS[_name] = _unary(_op)
for _name, _op in {
    "exp": "Exp",
    "log": "Log",
    "sqrt": "Sqrt",
    "sin": "Sin",
    "cos": "Cos",
    "tan": "Tan",
    "tanh": "Tanh",
    "sigmoid": "Sigmoid",
    "erf": "Erf",
    "reciprocal": "Reciprocal",
}.items():
    WRITERS[_name] = _unary(_op, floats=True)


def _binary(op):
    def write(w, node, x, y, alpha=1):
        x, y = (w.cast(v, node.meta["dtype"]) for v in (x, y))
        if alpha != 1:
            y = w.emit("Mul", [y, w.constant(alpha, node.meta["dtype"])])
        return w.emit(op, [x, y])

    return write


for _name, _op in {
    "add": "Add",
    "sub": "Sub",
    "mul": "Mul",
    "div": "Div",
    "maximum": "Max",
    "minimum": "Min",
}.items():
    WRITERS[_name] = _binary(_op)


@writes("div")
def _div(w, node, x, y, rounding_mode=None):
    if rounding_mode is not None:
        raise NotImplementedError("div with rounding_mode is not written for ONNX")
    return _binary("Div")(w, node, x, y)


@writes("rsub")
def _rsub(w, node, x, y, alpha=1):
    return _binary("Sub")(w, node, y, x, alpha)


@writes("pow")
def _pow(w, node, x, y):
    return w.emit("Pow", [w.cast(v, node.meta["dtype"]) for v in (x, y)])


@writes("rsqrt")
def _rsqrt(w, node, x):
    return w.emit("Reciprocal", [w.emit("Sqrt", [w.cast(x, node.meta["dtype"])])])


@writes("square")
def _square(w, node, x):
    return w.emit("Mul", [w.name(x), w.name(x)])


def _comparison(op, negated=False):
    def write(w, node, x, y):
        found = w.emit(op, w.promoted(x, y))
        return w.emit("Not", [found]) if negated else found

    return write


for _name, _op in {
    "eq": "Equal",
    "lt": "Less",
    "le": "LessOrEqual",
    "gt": "Greater",
    "ge": "GreaterOrEqual",
}.items():
    WRITERS[_name] = _comparison(_op)
WRITERS["ne"] = _comparison("Equal", negated=True)


def _logical(op):
    return lambda w, node, x, y: w.emit(op, [w.cast(x, prong.bool), w.cast(y, prong.bool)])


WRITERS["logical_and"], WRITERS["logical_or"] = _logical("And"), _logical("Or")
WRITERS["logical_xor"] = _logical("Xor")
WRITERS["logical_not"] = lambda w, node, x: w.emit("Not", [w.cast(x, prong.bool)])


@writes("where")
def _where(w, node, condition, x, y):
    dtype = node.meta["dtype"]
    return w.emit("Where", [w.cast(condition, prong.bool), w.cast(x, dtype), w.cast(y, dtype)])


@writes("clamp", "clip")
def _clamp(w, node, x, min=None, max=None):
    dtype = node.meta["dtype"]
    value = w.cast(x, dtype)
    if min is not None:
        value = w.emit("Max", [value, w.cast(min, dtype)])
    if max is not None:
        value = w.emit("Min", [value, w.cast(max, dtype)])
    return value


@writes("silu")
def _silu(w, node, x):
    return w.emit("Mul", [w.name(x), w.emit("Sigmoid", [w.name(x)])])


@writes("leaky_relu")
def _leaky_relu(w, node, x, negative_slope=0.01):
    return w.emit("LeakyRelu", [w.name(x)], alpha=float(negative_slope))


@writes("elu")
def _elu(w, node, x, alpha=1.0, scale=1.0, input_scale=1.0):
    if scale != 1 or input_scale != 1:
        raise NotImplementedError("elu with scales is not written for ONNX")
    return w.emit("Elu", [w.name(x)], alpha=float(alpha))


@writes("softplus")
def _softplus(w, node, x, beta=1.0, threshold=20.0):
    if beta != 1:
        raise NotImplementedError("softplus with beta is not written for ONNX")
    return w.emit("Softplus", [w.name(x)])


@writes("gelu")
def _gelu(w, node, x, approximate="none"):
    dtype, name = node.meta["dtype"], w.name(x)
    if approximate != "none":
        raise NotImplementedError("gelu by tanh is not written for ONNX")
    inner = w.emit("Erf", [w.emit("Mul", [name, w.constant(0.5**0.5, dtype)])])
    outer = w.emit("Add", [inner, w.constant(1.0, dtype)])
    return w.emit("Mul", [w.emit("Mul", [name, outer]), w.constant(0.5, dtype)])


@writes("to", "type_as", "float", "double")
def _to(w, node, x, *rest, **more):
    return w.cast(x, node.meta["dtype"])


@writes("clone", "contiguous", "detach", "alias", "lift_fresh")
def _same(w, node, x, *rest, **more):
    return w.emit("Identity", [w.name(x)])


@writes("dropout")
def _dropout(w, node, x, p=0.5, training=True):
    if training:
        raise NotImplementedError("dropout while training draws prong's numbers, not ONNX's")
    return w.emit("Identity", [w.name(x)])


# ── shapes ──


@writes("reshape", "view", "_unsafe_view")
def _reshape(w, node, x, *sizes):
    sizes = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], list) else sizes
    return w.emit("Reshape", [w.name(x), w.ints(sizes)], allowzero=int(0 in sizes))


@writes("flatten")
def _flatten(w, node, x, start_dim=0, end_dim=-1):
    rank = w.rank(x)
    start, end = start_dim % max(rank, 1), end_dim % max(rank, 1)
    if rank == 0:
        return w.emit("Reshape", [w.name(x), w.ints([1])])
    if end == rank - 1:
        return w.emit("Reshape", [w.name(x), w.ints([0] * start + [-1])])  # 0: as it is
    shape = w.emit("Shape", [w.name(x)])

    def piece(a, b):
        return w.emit("Slice", [shape, w.ints([a]), w.ints([b])])

    sizes = [piece(0, start)] if start else []
    sizes.append(w.emit("ReduceProd", [piece(start, end + 1), w.ints([0])], keepdims=1))
    sizes.append(piece(end + 1, rank))
    return w.emit("Reshape", [w.name(x), w.emit("Concat", sizes, axis=0)], allowzero=1)


@writes("permute")
def _permute(w, node, x, dims):
    return w.emit("Transpose", [w.name(x)], perm=[d % w.rank(x) for d in dims])


@writes("transpose", "swapaxes")
def _transpose(w, node, x, a, b):
    order = list(range(w.rank(x)))
    order[a], order[b] = order[b], order[a]
    return w.emit("Transpose", [w.name(x)], perm=order)


@writes("t", "numpy_T", "mT")
def _t(w, node, x):
    return w.emit("Transpose", [w.name(x)], perm=list(range(w.rank(x)))[::-1])


@writes("unsqueeze")
def _unsqueeze(w, node, x, dim):
    return w.emit("Unsqueeze", [w.name(x), w.ints([dim])])


@writes("squeeze")
def _squeeze(w, node, x, dim=None):
    before = x.meta["shape"]
    dims = range(len(before)) if dim is None else dim if isinstance(dim, list) else [dim]
    gone = [d for d in dims if before[d] == 1]
    return w.emit("Squeeze", [w.name(x), w.ints(gone)]) if gone else w.emit("Identity", [w.name(x)])


@writes("expand")
def _expand(w, node, x, *sizes):
    sizes = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], list) else sizes
    return w.emit("Expand", [w.name(x), w.ints([1 if s == -1 else s for s in sizes])])


@writes("select")
def _select(w, node, x, dim, index):
    return w.emit("Gather", [w.name(x), w.cast(index, prong.int64)], axis=dim)


@writes("slice")
def _slice(w, node, x, dim=0, start=None, end=None, step=1):
    bounds = [0 if start is None else start, LARGEST if end is None else end]
    return w.emit(
        "Slice", [w.name(x), *(w.ints([b]) for b in bounds), w.ints([dim]), w.ints([step])]
    )


@writes("narrow")
def _narrow(w, node, x, dim, start, length):
    return _slice(w, node, x, dim, start, start + length)


@writes("cat", "concat")
def _cat(w, node, tensors, dim=0):
    return w.emit("Concat", [w.cast(t, node.meta["dtype"]) for t in tensors], axis=dim)


@writes("stack")
def _stack(w, node, tensors, dim=0):
    pieces = [w.emit("Unsqueeze", [w.cast(t, node.meta["dtype"]), w.ints([dim])]) for t in tensors]
    return w.emit("Concat", pieces, axis=dim)


@writes("getitem")
def _getitem(w, node, values, index):
    found = w.name(values)
    return found[index] if isinstance(found, tuple) else found


@writes("chunk", "split", "unbind")
def _pieces(w, node, x, *rest, **more):
    raise NotImplementedError("chunk, split and unbind are not written for ONNX; slices are")


# ── reductions and products ──


def _axes(w, x, dim):
    if dim is None or dim == []:
        return None
    return [d % max(w.rank(x), 1) for d in (dim if isinstance(dim, list) else [dim])]


def _reduction(op):
    def write(w, node, x, dim=None, keepdim=False, dtype=None):
        axes, value = _axes(w, x, dim), w.cast(x, node.meta["dtype"])
        inputs = [value] if axes is None else [value, w.ints(axes)]
        return w.emit(op, inputs, keepdims=int(keepdim))

    return write


WRITERS["sum"], WRITERS["mean"] = _reduction("ReduceSum"), _reduction("ReduceMean")


@writes("prod")
def _prod(w, node, x, dim=None, keepdim=False, dtype=None):
    return _reduction("ReduceProd")(w, node, x, dim, keepdim)


@writes("amax", "amin")
def _extreme(w, node, x, dim=None, keepdim=False):
    name = getattr(node.target, "__name__", node.target)
    return _reduction("ReduceMax" if name == "amax" else "ReduceMin")(w, node, x, dim, keepdim)


@writes("argmax", "argmin")
def _arg(w, node, x, dim=None, keepdim=False):
    op = "ArgMax" if getattr(node.target, "__name__", node.target) == "argmax" else "ArgMin"
    if dim is None:
        flat = w.emit("Reshape", [w.name(x), w.ints([-1])])
        return w.emit(op, [flat], axis=0, keepdims=0)
    return w.emit(op, [w.name(x)], axis=dim, keepdims=int(keepdim))


@writes("softmax", "log_softmax")
def _softmax(w, node, x, dim, dtype=None):
    op = "Softmax" if getattr(node.target, "__name__", node.target) == "softmax" else "LogSoftmax"
    return w.emit(op, [w.cast(x, node.meta["dtype"])], axis=dim)


@writes("matmul", "mm", "bmm", "mv", "dot")
def _matmul(w, node, x, y):
    return w.emit("MatMul", [w.name(x), w.name(y)])


@writes("linear")
def _linear(w, node, x, weight, bias=None):
    turned = w.emit("Transpose", [w.name(weight)], perm=list(range(w.rank(weight)))[::-1])
    product = w.emit("MatMul", [w.name(x), turned])
    return product if bias is None else w.emit("Add", [product, w.name(bias)])


@writes("addmm")
def _addmm(w, node, bias, x, y, beta=1, alpha=1):
    return w.emit(
        "Gemm", [w.name(x), w.name(y), w.name(bias)], alpha=float(alpha), beta=float(beta)
    )


# ── layers ──


def _each(value, n):
    values = value if isinstance(value, list) else [value]
    return values * n if len(values) == 1 else list(values)


@writes("conv1d", "conv2d", "conv3d")
def _conv(w, node, x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    n = w.rank(weight) - 2
    if isinstance(padding, str):
        raise NotImplementedError(f"a convolution with padding={padding!r} is not written for ONNX")
    inputs = [w.name(v) for v in (x, weight, bias) if v is not None]
    return w.emit(
        "Conv",
        inputs,
        strides=_each(stride, n),
        pads=_each(padding, n) * 2,
        dilations=_each(dilation, n),
        group=groups,
    )


@writes(
    "max_pool1d", "max_pool2d", "max_pool3d", "max_pool2d_with_indices", "max_pool1d_with_indices"
)
def _max_pool(w, node, x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    n = len(kernel_size) if isinstance(kernel_size, list) else w.rank(x) - 2
    value = w.emit(
        "MaxPool",
        [w.name(x)],
        kernel_shape=_each(kernel_size, n),
        strides=_each(stride or kernel_size, n),
        pads=_each(padding, n) * 2,
        dilations=_each(dilation, n),
        ceil_mode=int(ceil_mode),
    )
    return value if "shape" in node.meta else (value, _missing("the indices of max_pool"))


class _missing(str):
    """A value that is not written: whoever reads it fails when the model is checked."""


@writes("batch_norm")
def _batch_norm(w, node, x, weight, bias, mean, var, training=False, momentum=0.1, eps=1e-5):
    if training:
        raise NotImplementedError("batch_norm while training is not written for ONNX")
    names = [w.name(v) for v in (x, weight, bias, mean, var)]
    return w.emit("BatchNormalization", names, epsilon=float(eps))


@writes("layer_norm")
def _layer_norm(w, node, x, sizes, weight=None, bias=None, eps=1e-5):
    if not isinstance(weight, Node):
        weight = w.constant(prong.ones(sizes).tolist(), node.meta["dtype"])
    inputs = [w.name(v) for v in (x, weight, bias) if v is not None]
    return w.emit("LayerNormalization", inputs, axis=-len(sizes), epsilon=float(eps))


@writes("embedding")
def _embedding(w, node, weight, indices, padding_idx=-1, *rest):
    return w.emit("Gather", [w.name(weight), w.name(indices)], axis=0)
