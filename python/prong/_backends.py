"""Back ends of compile() by name or as callables. Called by _compile."""

import importlib
import os
import sys

from prong._compile_errors import BackendCompilerFailed, InvalidBackend

ENTRY_POINT_GROUP = "prong_backends"
_registered: dict = {}
# Back ends in C++, by the names that programs may write.
_NATIVE = {
    "llvm": "llvm",
    "interpreter": "interpreter",
    "eager": "interpreter",
    "aot_eager": "interpreter",
}
# Adapters over other packages: loaded when named.
_ADAPTERS = {
    "inductor": ("prong.bridge.torch_backends", ("torch",)),
    "torchscript": ("prong.bridge.torch_backends", ("torch",)),
    "onnxruntime": ("prong.bridge.onnx_backends", ("onnx", "onnxruntime")),
    "tvm": ("prong.bridge.onnx_backends", ("onnx", "tvm")),
}


def register_backend(compiler=None, name=None):
    """Makes a back end known by a name; also a decorator."""
    if compiler is None:
        return lambda c: register_backend(c, name)
    if not callable(compiler):
        raise TypeError(f"register_backend() takes a callable, got {type(compiler).__name__}")
    name = name or getattr(compiler, "__name__", None)
    if not isinstance(name, str):
        raise TypeError(f"register_backend(name=...) takes a string, got {name!r}")
    _registered[name] = compiler
    return compiler


def _entry_points():
    # Loaded late: it takes longer than all of prong, and few programs bring a back end along.
    return importlib.import_module("importlib.metadata").entry_points(group=ENTRY_POINT_GROUP)


def list_backends(exclude_tags=()):
    """The names that compile() takes here: adapters only where what they need is installed."""
    packages = importlib.import_module("prong.bridge.packages")
    found = {entry.name for entry in _entry_points()}
    adapters = {name for name, (_, needs) in _ADAPTERS.items() if packages.is_installed(*needs)}
    return sorted(set(_NATIVE) | set(_registered) | found | adapters)


def _callable_named(name):
    if name in _registered:
        return _registered[name]
    if name in _ADAPTERS:
        adapter = getattr(importlib.import_module(_ADAPTERS[name][0]), name)
        adapter.require()
        return adapter
    for entry in _entry_points():
        if entry.name == name:
            return entry.load()
    raise InvalidBackend(f"no back end named {name!r}; there are {', '.join(list_backends())}")


def lookup_backend(name):
    """What compile(backend=name) calls with (graph_module, example_inputs)."""
    if not isinstance(name, str):
        return name
    if name in _NATIVE and name not in _registered:
        return _run_the_graph
    return _callable_named(name)


def _run_the_graph(module, example_inputs):
    return module.forward


def name_of(backend):
    if isinstance(backend, str):
        return backend
    return getattr(backend, "__name__", type(backend).__name__)


def find_backend(backend, settings):
    """(what _core.capture_compile takes, what tells this back end from others). Callables get the settings."""
    if isinstance(backend, str) and backend not in _registered and backend in _NATIVE:
        name = _NATIVE[backend]
        return name, _identity_of(name)
    compiler = _callable_named(backend) if isinstance(backend, str) else backend
    if not callable(compiler):
        raise TypeError(
            f"compile(backend=...) takes a name or a callable, got {compiler!r} ({type(compiler).__name__})"
        )

    def build(description, example_inputs):
        fx = importlib.import_module("prong.fx")  # for back ends in Python alone
        module = fx.GraphModule.from_description(description, example_inputs)
        try:
            compiled = compiler(module, example_inputs, **settings)
        except Exception as error:
            if _suppresses_errors():
                return fx.GraphModule.from_description(description).forward
            raise BackendCompilerFailed(
                f"backend={name_of(compiler)!r} raised: {type(error).__name__}: {error}"
            ) from error
        if not callable(compiled):
            raise BackendCompilerFailed(
                f"backend={name_of(compiler)!r} must give a callable, but gave {compiled!r} "
                f"({type(compiled).__name__})"
            )
        return compiled

    return build, compiler


def _suppresses_errors():
    config = sys.modules.get("prong._dynamo.config")
    return config is not None and config.suppress_errors


_default = None


def default_backend():
    return _default or os.environ.get("PRONG_BACKEND") or "llvm"


def set_default_backend(backend):
    """What compile() without a back end takes from now on; None: prong's own choice again."""
    global _default
    if isinstance(backend, str):
        lookup_backend(backend)
    _default = backend


_identities: dict = {}


def _identity_of(name):
    return _identities.setdefault(name, object())
