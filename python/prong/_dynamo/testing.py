"""torch._dynamo.testing: back ends that count, and comparisons, for tests of programs."""

import prong
from prong import _names
from prong._backends import lookup_backend


class CompileCounter:
    """A back end that counts graphs and their calls: frame_count, op_count."""

    def __init__(self):
        self.frame_count = self.op_count = 0

    def __call__(self, module, example_inputs):
        self._count(module)
        return module.forward

    def _count(self, module):
        self.frame_count += 1
        self.op_count += sum("call" in node.op for node in module.graph.nodes)

    def clear(self):
        self.frame_count = self.op_count = 0


class CompileCounterWithBackend(CompileCounter):
    """The same before another back end; `graphs` has what it was given."""

    def __init__(self, backend):
        super().__init__()
        self.backend, self.graphs = backend, []

    def __call__(self, module, example_inputs):
        self._count(module)
        self.graphs.append(module)
        return lookup_backend(self.backend)(module, example_inputs)

    def clear(self):
        super().clear()
        self.graphs = []


class EagerAndRecordGraphs:
    """A back end that keeps the graphs that it runs."""

    def __init__(self):
        self.graphs = []

    def __call__(self, module, example_inputs):
        self.graphs.append(module)
        return module.forward


def same(a, b, tol=1e-4, equal_nan=False):
    """Whether two results are alike: containers item for item, tensors up to `tol`."""
    if isinstance(a, (list, tuple)):
        return (
            isinstance(b, (list, tuple))
            and len(a) == len(b)
            and all(same(x, y, tol, equal_nan) for x, y in zip(a, b))
        )
    if isinstance(a, dict):
        return (
            isinstance(b, dict)
            and a.keys() == b.keys()
            and all(same(a[k], b[k], tol, equal_nan) for k in a)
        )
    if isinstance(a, prong.Tensor):
        if not isinstance(b, prong.Tensor) or a.dtype is not b.dtype or a.shape != b.shape:
            return False
        if a.is_complex():
            a, b = prong.view_as_real(a), prong.view_as_real(b)
        return prong.allclose(a.double(), b.double(), rtol=tol, atol=tol, equal_nan=equal_nan)
    if isinstance(a, float):
        return isinstance(b, float) and (abs(a - b) <= tol or a == b or (equal_nan and a != a))
    return type(a) is type(b) and a == b


def rand_strided(size, stride, dtype=prong.float32, device="cpu", extra_size=0):
    """A random tensor with these strides."""
    needed = sum((n - 1) * s for n, s in zip(size, stride)) + 1 + extra_size
    if dtype.is_floating_point:
        buffer = prong.randn(needed, dtype=dtype, device=device)
    else:
        buffer = prong.zeros(needed, dtype=dtype, device=device)
    return prong.as_strided(buffer, size, stride)


__getattr__ = _names.module_getattr("prong._dynamo.testing")
