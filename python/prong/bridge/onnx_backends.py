"""The back ends "onnxruntime" and "tvm": a graph goes to them as an ONNX model. Called by _backends when named."""

import prong
from prong.bridge import packages
from prong.bridge.onnx_model import ModelWriter


def _arrays(args):
    return [a.detach().contiguous().numpy() if isinstance(a, prong.Tensor) else a for a in args]


class OnnxRuntime:
    """Runs a graph in ONNX Runtime, on the CPU."""

    name = "onnxruntime"

    def require(self):
        packages.require(self.name, "ONNX Runtime", onnx="onnx", onnxruntime="onnxruntime")

    def __call__(self, module, example_inputs):
        model = ModelWriter(module.without_forks(), example_inputs).write()
        runtime, numpy = packages.load("onnxruntime"), packages.load("numpy")
        options = runtime.SessionOptions()
        options.log_severity_level = 3  # errors; it warns of constants that it folded away
        session = runtime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        inputs = session.get_inputs()

        def run(*args):
            given = zip(inputs, _arrays(args))
            found = session.run(None, {i.name: numpy.asarray(a) for i, a in given})
            return tuple(prong.from_numpy(numpy.asarray(a, order="C")) for a in found)

        return run


class Tvm:
    """Compiles a graph with TVM's Relax for this CPU, once for each set of shapes."""

    name = "tvm"

    def require(self):
        packages.require(self.name, "Apache TVM", onnx="onnx", tvm="apache-tvm")

    def __call__(self, module, example_inputs):
        model = ModelWriter(module.without_forks(), example_inputs).write()
        numpy = packages.load("numpy")
        compiled = {}

        def run(*args):
            arrays = [numpy.asarray(a) for a in _arrays(args)]
            key = tuple((a.shape, a.dtype.str) for a in arrays)
            if key not in compiled:
                compiled[key] = _relax_machine(model, arrays)
            return tuple(prong.from_numpy(a) for a in compiled[key](arrays))

        run(*example_inputs)  # so that what TVM refuses is told now
        return run


def _relax_machine(model, arrays):
    tvm = packages.load("tvm")
    relax = packages.load("tvm.relax")
    frontend = packages.load("tvm.relax.frontend.onnx")
    shapes = {i.name: list(a.shape) for i, a in zip(model.graph.input, arrays)}
    lowered = frontend.from_onnx(model, shapes)
    machine = relax.VirtualMachine(tvm.compile(lowered, target="llvm"), tvm.cpu())

    def run(arrays):
        found = machine["main"](*(tvm.runtime.tensor(a) for a in arrays))
        many = isinstance(found, (list, tuple)) or not hasattr(found, "numpy")
        return [f.numpy() for f in (found if many else [found])]

    return run


onnxruntime, tvm = OnnxRuntime(), Tvm()
