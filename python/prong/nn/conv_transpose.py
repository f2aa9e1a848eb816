"""ConvTranspose1d, ConvTranspose2d, ConvTranspose3d."""

from prong import Tensor

from . import functional as F
from .conv import _ConvNd, _spread


class _ConvTransposeNd(_ConvNd):
    """The convolutions' gradients as layers; ``output_padding`` settles which of several sizes is meant."""

    _transposed = True

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups=1,
        bias=True,
        dilation=1,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )
        self.output_padding = _spread(output_padding, self._spatial)

    def _output_padding(self, input: Tensor, output_size: list[int] | None) -> list[int]:
        if output_size is None:
            return [p for p in self.output_padding]
        n = self._spatial
        lead = 2 if input.dim() == n + 2 else 1
        if len(output_size) == lead + n:
            output_size = output_size[lead:]
        if len(output_size) != n:
            raise ValueError(
                f"ConvTranspose{n}D: for {input.dim()}D input, output_size must have {n} or "
                f"{lead + n} elements (got {len(output_size)})"
            )
        smallest: list[int] = []
        largest: list[int] = []
        for d in range(n):
            size = (
                (input.size(d + lead) - 1) * self.stride[d]
                - 2 * self.padding[d]
                + self.dilation[d] * (self.kernel_size[d] - 1)
                + 1
            )
            smallest.append(size)
            largest.append(size + self.stride[d] - 1)
        added: list[int] = []
        for d in range(n):
            if output_size[d] < smallest[d] or output_size[d] > largest[d]:
                raise ValueError(
                    f"requested an output size of {output_size}, but valid sizes range from "
                    f"{smallest} to {largest} (for an input of {input.size()[2:]})"
                )
            added.append(output_size[d] - smallest[d])
        return added


class ConvTranspose1d(_ConvTransposeNd):
    """Transposed convolution over [N, C, L]."""

    _spatial = 1
    kernel_size: tuple[int]
    stride: tuple[int]
    padding: tuple[int]
    dilation: tuple[int]

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        return F.conv_transpose1d(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self._output_padding(input, output_size),
            self.groups,
            self.dilation,
        )


class ConvTranspose2d(_ConvTransposeNd):
    """Transposed convolution over [N, C, H, W]."""

    _spatial = 2
    kernel_size: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        return F.conv_transpose2d(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self._output_padding(input, output_size),
            self.groups,
            self.dilation,
        )


class ConvTranspose3d(_ConvTransposeNd):
    """Transposed convolution over [N, C, D, H, W]."""

    _spatial = 3
    kernel_size: tuple[int, int, int]
    stride: tuple[int, int, int]
    padding: tuple[int, int, int]
    dilation: tuple[int, int, int]

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        return F.conv_transpose3d(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self._output_padding(input, output_size),
            self.groups,
            self.dilation,
        )
