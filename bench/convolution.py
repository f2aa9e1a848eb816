"""What do convolutions cost? Forward, and the gradients to the input and to the weight, against PyTorch."""

import sys

import prong
import torch
from measure import interleave, on_one_thread, unit

# batch, channels, outputs, size, kernel, stride, padding, groups
SHAPES = {
    "3x3": [(8, 64, 64, 56, 3, 1, 1, 1), (8, 128, 128, 28, 3, 1, 1, 1)]
    + [(8, 256, 256, 14, 3, 1, 1, 1), (8, 512, 512, 7, 3, 1, 1, 1)],
    "3x3, stride 2": [(8, 128, 128, 56, 3, 2, 1, 1)],
    "7x7, stride 2, of 3 channels": [(8, 3, 64, 224, 7, 2, 3, 1)],
    "1x1": [
        (8, 64, 256, 56, 1, 1, 0, 1),
        (8, 256, 64, 56, 1, 1, 0, 1),
        (8, 512, 2048, 7, 1, 1, 0, 1),
    ],
    "1x1, stride 2": [(8, 256, 128, 56, 1, 2, 0, 1)],
    "groups of 8": [(8, 256, 256, 14, 3, 1, 1, 32)],
    "groups of 1": [(8, 96, 96, 56, 3, 1, 1, 96), (8, 96, 96, 56, 3, 2, 1, 96)],
    "batch 1": [(1, 64, 64, 56, 3, 1, 1, 1), (1, 256, 256, 14, 3, 1, 1, 1)]
    + [(1, 512, 512, 7, 3, 1, 1, 1), (1, 3, 64, 224, 7, 2, 3, 1), (1, 96, 96, 56, 3, 1, 1, 96)],
    "batch 32": [(32, 1, 32, 28, 3, 1, 0, 1), (32, 32, 64, 26, 3, 1, 0, 1)],
}


def calls(module, shape):
    """Forward, to the input, to the weight."""
    n, c, o, size, kernel, stride, padding, groups = shape
    module.manual_seed(0)
    x, w = module.randn(n, c, size, size), module.randn(o, c // groups, kernel, kernel)

    def forward(a=x, b=w):
        return module.conv2d(a, b, None, stride, padding, 1, groups)

    dy = module.randn(*forward().shape)
    found = {"forward": forward}
    for name, leaf in (("to input", x), ("to weight", w)):
        own = leaf.clone().requires_grad_()
        y = forward(own, w) if leaf is x else forward(x, own)
        found[name] = lambda y=y, own=own: module.autograd.grad(y, own, dy, retain_graph=True)
    return found


def main():
    words = sys.argv[1:]
    if "--one-thread" in words:
        words.remove("--one-thread")
        on_one_thread(prong, torch)
    for kind, shapes in SHAPES.items():
        if words and not any(word in kind for word in words):
            continue
        print(kind)
        for shape in shapes:
            ours, theirs = calls(prong, shape), calls(torch, shape)
            line = f"  {shape[0]}x{shape[1]}x{shape[3]}x{shape[3]} -> {shape[2]}".ljust(28)
            for name in ours:
                variants = {"PyTorch": theirs[name], "Prong": ours[name]}
                medians = interleave(variants, repeats=7, sample_s=0.04)
                ratio = medians["Prong"] / medians["PyTorch"]
                line += f"{name} {unit(medians['Prong'])} ({ratio:.2f})   "
            print(line, flush=True)


if __name__ == "__main__":
    main()
