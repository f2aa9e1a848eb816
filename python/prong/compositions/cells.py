"""One step of recurrent networks, and functions of nn.functional that torch shows too."""

import prong
from prong import Tensor

from .registering import composition


def _gates(input, hx, w_ih, w_hh, b_ih, b_hh):
    linear = prong.nn.functional.linear
    return linear(input, w_ih, b_ih), linear(hx, w_hh, b_hh)


@composition(takes_out=False)
def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih=None, b_hh=None
) -> Tensor:
    """tanh of the sum of both products."""
    x, h = _gates(input, hx, w_ih, w_hh, b_ih, b_hh)
    return (x + h).tanh()


@composition(takes_out=False)
def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih=None, b_hh=None
) -> Tensor:
    """relu of the sum of both products."""
    x, h = _gates(input, hx, w_ih, w_hh, b_ih, b_hh)
    return (x + h).relu()


@composition(takes_out=False)
def lstm_cell(
    input: Tensor, hx, w_ih: Tensor, w_hh: Tensor, b_ih=None, b_hh=None
) -> tuple[Tensor, Tensor]:
    """One step of an LSTM: the new hidden and cell states."""
    hidden, cell = hx
    x, h = _gates(input, hidden, w_ih, w_hh, b_ih, b_hh)
    i, f, g, o = (x + h).chunk(4, -1)
    cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
    return o.sigmoid() * cell.tanh(), cell


@composition(takes_out=False)
def gru_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih=None, b_hh=None) -> Tensor:
    """One step of a GRU."""
    x, h = _gates(input, hx, w_ih, w_hh, b_ih, b_hh)
    xr, xz, xn = x.chunk(3, -1)
    hr, hz, hn = h.chunk(3, -1)
    reset, update = (xr + hr).sigmoid(), (xz + hz).sigmoid()
    new = (xn + reset * hn).tanh()
    return new + update * (hx - new)


@composition()
def frexp(input: Tensor) -> tuple[Tensor, Tensor]:
    """A mantissa of size [0.5, 1) and a power of two."""
    is_plain = (input != 0) & input.isfinite()
    size = prong.where(is_plain, input.abs(), 1.0)
    exponent = size.log2().floor() + 1
    mantissa = size / exponent.exp2()
    exponent = prong.where(mantissa < 0.5, exponent - 1, exponent)
    exponent = prong.where(size / exponent.exp2() >= 1, exponent + 1, exponent)
    mantissa = prong.where(is_plain, input / exponent.exp2(), input)
    return mantissa, prong.where(is_plain, exponent, 0.0).to(prong.int32)
