"""Back ends of compile() by name or as callables. Called by _compile."""

import importlib

from prong._compile_errors import BackendCompilerFailed

_registered = {}
_NATIVE = {
    "llvm": "llvm",
    # PyTorch's name for its own default, which programs write out: it means the default here too.
    # It is not PyTorch's compiler.
    "inductor": "llvm",
    "interpreter": "interpreter",
    "eager": "interpreter",
    "aot_eager": "interpreter",
}


def register_backend(compiler=None, name=None):
    """Makes a back end known by a name; also a decorator."""
    if compiler is None:
        return lambda c: register_backend(c, name)
    _registered[name or compiler.__name__] = compiler
    return compiler


def _entry_points():
    # Loaded late: it takes longer than all of prong, and few programs bring a back end along.
    return importlib.import_module("importlib.metadata").entry_points(group="prong.backends")


def list_backends(exclude_tags=()):
    found = {e.name for e in _entry_points()}
    return sorted(set(_NATIVE) | set(_registered) | found)


def _callable_named(name):
    if name in _registered:
        return _registered[name]
    for entry in _entry_points():
        if entry.name == name:
            return entry.load()
    raise RuntimeError(f"no back end named {name!r}; there are {', '.join(list_backends())}")


def find_backend(backend):
    """(what _core.capture_compile takes, what tells this back end from others)."""
    if isinstance(backend, str) and backend not in _registered and backend in _NATIVE:
        name = _NATIVE[backend]
        return name, _identity_of(name)
    compiler = _callable_named(backend) if isinstance(backend, str) else backend
    if not callable(compiler):
        raise TypeError(f"backend must be a name or a callable, got {type(compiler).__name__}")

    def build(description, example_inputs):
        fx = importlib.import_module("prong.fx")  # for back ends in Python alone
        module = fx.GraphModule.from_description(description, example_inputs)
        try:
            return compiler(module, example_inputs)
        except Exception as error:
            raise BackendCompilerFailed(
                f"backend={getattr(compiler, '__name__', compiler)!r} raised: {type(error).__name__}: {error}"
            ) from error

    return build, compiler


_identities = {}


def _identity_of(name):
    return _identities.setdefault(name, object())
