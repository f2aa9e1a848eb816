"""What do gradients cost? Forward and backward of rows, losses, activations and small ops, against
PyTorch."""

import sys

import prong
import torch
from measure import interleave, on_one_thread, report

ROWS = (4096, 1024)


def step(module, sizes, make):
    """One forward and backward: make(module, input) gives the call and the leaves."""
    module.manual_seed(0)
    x = module.randn(*sizes, requires_grad=True)
    call, leaves = make(module, x)
    ones = module.ones_like(call())

    def run():
        for leaf in (x, *leaves):
            leaf.grad = None
        call().backward(ones)

    return run


def norm(name, shape_of):
    def make(module, x):
        shape = shape_of(x)
        w = module.ones(shape, requires_grad=True)
        b = module.zeros(shape, requires_grad=True)
        function = getattr(module.nn.functional, name)
        if name == "layer_norm":
            return (lambda: function(x, shape, w, b)), (w, b)
        if name == "rms_norm":
            return (lambda: function(x, shape, w)), (w,)
        if name == "group_norm":
            return (lambda: function(x, 8, w, b)), (w, b)
        return (lambda: function(x, None, None, w, b, True)), (w, b)

    return make


def unary(name, **kwargs):
    return lambda module, x: (lambda: getattr(module.nn.functional, name)(x, **kwargs), ())


def cross_entropy(module, x):
    target = module.arange(x.shape[0]) % x.shape[1]
    return (lambda: module.nn.functional.cross_entropy(x, target)), ()


def against_zeros(name):
    def make(module, x):
        y = module.zeros_like(x)
        return (lambda: getattr(module.nn.functional, name)(x, y)), ()

    return make


CASES = {
    "softmax": (ROWS, unary("softmax", dim=-1)),
    "log_softmax": (ROWS, unary("log_softmax", dim=-1)),
    "cross_entropy": (ROWS, cross_entropy),
    "layer_norm": (ROWS, norm("layer_norm", lambda x: list(x.shape[-1:]))),
    "rms_norm": (ROWS, norm("rms_norm", lambda x: list(x.shape[-1:]))),
    "batch_norm 32×64×28×28": ((32, 64, 28, 28), norm("batch_norm", lambda x: [x.shape[1]])),
    "batch_norm 1024×512": ((1024, 512), norm("batch_norm", lambda x: [x.shape[1]])),
    "group_norm 32×64×28×28": ((32, 64, 28, 28), norm("group_norm", lambda x: [x.shape[1]])),
    **{
        name: ((1024, 1024), unary(name))
        for name in ("relu", "gelu", "silu", "sigmoid", "tanh", "softplus", "leaky_relu", "elu")
    },
    "gelu tanh": ((1024, 1024), unary("gelu", approximate="tanh")),
    **{name: ((1024, 1024), against_zeros(name)) for name in ("mse_loss", "l1_loss", "huber_loss")},
    "small relu": ((4, 4), unary("relu")),
    "small sigmoid": ((4, 4), unary("sigmoid")),
    "small softmax": ((4, 4), unary("softmax", dim=-1)),
    "small layer_norm": ((4, 4), norm("layer_norm", lambda x: list(x.shape[-1:]))),
    "small cross_entropy": ((4, 4), cross_entropy),
    "small mse_loss": ((4, 4), against_zeros("mse_loss")),
}


def main():
    if "--one-thread" in sys.argv:
        sys.argv.remove("--one-thread")
        on_one_thread(prong, torch)
    for title, (sizes, make) in CASES.items():
        if len(sys.argv) > 1 and not any(word in title for word in sys.argv[1:]):
            continue
        variants = {
            name: step(m, sizes, make) for name, m in (("PyTorch", torch), ("Prong", prong))
        }
        report(title, interleave(variants, repeats=7, sample_s=0.02), "PyTorch")


if __name__ == "__main__":
    main()
