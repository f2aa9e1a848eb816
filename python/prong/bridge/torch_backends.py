"""The back ends "inductor" and "torchscript": PyTorch's own compilers. Called by _backends when named."""

from prong.bridge import packages, pytorch


def _across(compiled):
    """A callable over prong's tensors from one over PyTorch's."""

    def run(*args):
        torch = packages.load("torch")
        with torch.no_grad():
            results = compiled(*map(pytorch.to_torch, args))
        return tuple(map(pytorch.from_torch, results))

    return run


class Inductor:
    """torch.compile of the graph, with PyTorch's default back end; it needs a C++ compiler at run time."""

    name = "inductor"

    def require(self):
        packages.require(self.name, "PyTorch's compiler", torch="torch")

    def __call__(self, module, example_inputs, **settings):
        torch = packages.load("torch")
        graph = pytorch.to_torch_module(module.without_forks())
        return _across(torch.compile(graph, backend="inductor", **settings))


class TorchScript:
    """torch.jit.script of the graph."""

    name = "torchscript"

    def require(self):
        packages.require(self.name, "PyTorch's TorchScript", torch="torch")

    def __call__(self, module, example_inputs):
        torch = packages.load("torch")
        graph = pytorch.to_torch_module(module.without_forks())
        if all(hasattr(e, "dtype") for e in example_inputs):
            # The graph is straight-line code with constants in it, so a trace of it is all of it.
            examples = tuple(pytorch.to_torch(e.clone()) for e in example_inputs)
            with torch.no_grad():
                return _across(torch.jit.trace(graph, examples, check_trace=False))
        return _across(torch.jit.script(graph))


inductor, torchscript = Inductor(), TorchScript()
