"""Pooling with windows, where nn.functional asks for more than the op: indices, sizes that stay."""

from prong import Tensor, _core
from prong._out import takes_out

_OPS = _core.nn_functional_ops()


def _windows(value, otherwise=()):
    return list(otherwise) if value is None else value


def _max_pool(name: str):
    with_indices = _OPS[f"{name}_with_indices"]

    def pool(
        input: Tensor,
        kernel_size,
        stride=None,
        padding=0,
        dilation=1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ):
        result, indices = with_indices(
            input, kernel_size, _windows(stride), padding, dilation, ceil_mode
        )
        return (result, indices) if return_indices else result

    def pool_with_indices(
        input: Tensor,
        kernel_size,
        stride=None,
        padding=0,
        dilation=1,
        ceil_mode: bool = False,
        return_indices: bool = True,
    ):
        return with_indices(input, kernel_size, _windows(stride), padding, dilation, ceil_mode)

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = "The largest element of each window, with its place where asked for."
    pool_with_indices.__name__ = pool_with_indices.__qualname__ = f"{name}_with_indices"
    pool_with_indices.__doc__ = "The largest element of each window, and its place in its plane."
    return pool, pool_with_indices


max_pool1d, max_pool1d_with_indices = _max_pool("max_pool1d")
max_pool2d, max_pool2d_with_indices = _max_pool("max_pool2d")
max_pool3d, max_pool3d_with_indices = _max_pool("max_pool3d")


def _average_pool(name: str):
    op = _OPS[name]

    def pool(
        input: Tensor,
        kernel_size,
        stride=None,
        padding=0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:
        return op(
            input,
            kernel_size,
            _windows(stride),
            padding,
            ceil_mode,
            count_include_pad,
            divisor_override,
        )

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = "The mean of each window."
    return takes_out(pool)


avg_pool1d = _average_pool("avg_pool1d")
avg_pool2d = _average_pool("avg_pool2d")
avg_pool3d = _average_pool("avg_pool3d")


def _sizes(input: Tensor, output_size, spatial: int) -> list[int]:
    """None stays as it is; one number stands for all."""
    given = [output_size] * spatial if isinstance(output_size, int) else list(output_size)
    if len(given) == 1:
        given = given * spatial
    return [input.shape[i - spatial] if size is None else size for i, size in enumerate(given)]


def _adaptive(spatial: int):
    average = _OPS[f"adaptive_avg_pool{spatial}d"]
    largest = _OPS[f"adaptive_max_pool{spatial}d_with_indices"]

    def adaptive_avg_pool(input: Tensor, output_size) -> Tensor:
        return average(input, _sizes(input, output_size, spatial))

    def adaptive_max_pool(input: Tensor, output_size, return_indices: bool = False):
        result, indices = largest(input, _sizes(input, output_size, spatial))
        return (result, indices) if return_indices else result

    def adaptive_max_pool_with_indices(input: Tensor, output_size, return_indices: bool = False):
        return largest(input, _sizes(input, output_size, spatial))

    functions = (adaptive_avg_pool, adaptive_max_pool, adaptive_max_pool_with_indices)
    for function in functions:
        name = function.__name__.replace("_pool", f"_pool{spatial}d", 1)
        function.__name__ = function.__qualname__ = name
        function.__doc__ = "Pooling over as many windows as the result shall have elements."
    return functions


adaptive_avg_pool1d, adaptive_max_pool1d, adaptive_max_pool1d_with_indices = _adaptive(1)
adaptive_avg_pool2d, adaptive_max_pool2d, adaptive_max_pool2d_with_indices = _adaptive(2)
adaptive_avg_pool3d, adaptive_max_pool3d, adaptive_max_pool3d_with_indices = _adaptive(3)
