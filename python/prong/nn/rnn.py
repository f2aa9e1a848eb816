"""RNN, LSTM and GRU over one op each, and their single-step cells."""

import copy
import math
import warnings

import prong
from prong import Tensor
from prong._scripting import is_scripting

from . import functional as F
from . import init
from .module import Module
from .packed_rnn import run_packed
from .parameter import Parameter
from .projected_lstm import run_projected
from .utils.rnn import PackedSequence


class RNNBase(Module):
    """Parameters and shape checks of the recurrent modules. Weights are named and ordered as in PyTorch."""

    __constants__ = [
        "mode",
        "input_size",
        "hidden_size",
        "num_layers",
        "bias",
        "batch_first",
        "dropout",
        "bidirectional",
        "proj_size",
    ]
    mode: str
    input_size: int
    hidden_size: int
    num_layers: int
    bias: bool
    batch_first: bool
    dropout: float
    bidirectional: bool
    proj_size: int
    _flat_weights: list[Tensor]

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device=None,
        dtype=None,
    ):
        super().__init__()
        if (
            not isinstance(dropout, (int, float))
            or isinstance(dropout, bool)
            or not 0 <= dropout <= 1
        ):
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
                stacklevel=3,
            )
        if not isinstance(hidden_size, int):
            raise TypeError(f"hidden_size should be of type int, got: {type(hidden_size).__name__}")
        if hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if proj_size < 0:
            raise ValueError(
                "proj_size should be a positive integer or zero to disable projections"
            )
        if proj_size >= hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if proj_size > 0 and mode != "LSTM":
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        gates = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}[mode] * hidden_size
        directions = 2 if bidirectional else 1
        self._flat_weights_names = []
        for layer in range(num_layers):
            for direction in range(directions):
                size = input_size if layer == 0 else (proj_size or hidden_size) * directions
                suffix = f"_l{layer}" + ("_reverse" if direction else "")
                shapes: dict[str, tuple[int, ...]] = {
                    f"weight_ih{suffix}": (gates, size),
                    f"weight_hh{suffix}": (gates, proj_size or hidden_size),
                }
                if bias:
                    shapes |= {f"bias_ih{suffix}": (gates,), f"bias_hh{suffix}": (gates,)}
                if proj_size:
                    shapes[f"weight_hr{suffix}"] = (proj_size, hidden_size)
                for name, shape in shapes.items():
                    setattr(self, name, Parameter(prong.empty(shape, device=device, dtype=dtype)))
                    self._flat_weights_names.append(name)
        self._collect_weights()
        self.reset_parameters()

    def _collect_weights(self):
        self._flat_weights = [getattr(self, name) for name in self._flat_weights_names]

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        # A parameter put in another's place takes part from now on.
        if (
            name in self.__dict__.get("_flat_weights_names", ())
            and "_flat_weights" in self.__dict__
        ):
            self._collect_weights()

    def __setstate__(self, state):
        super().__setstate__(state)
        self._collect_weights()

    def __deepcopy__(self, memo):
        result = type(self).__new__(type(self))
        memo[id(self)] = result
        result.__setstate__({k: copy.deepcopy(v, memo) for k, v in self.__dict__.items()})
        return result

    def _apply(self, fn, recurse=True):
        super()._apply(fn, recurse)
        self._collect_weights()
        return self

    def flatten_parameters(self) -> None:
        """Nothing to do: weights are packed by the op when it first sees them."""

    @property
    def all_weights(self):
        per_layer = (4 if self.bias else 2) + (1 if self.proj_size else 0)
        weights = self._flat_weights
        return [weights[i : i + per_layer] for i in range(0, len(weights), per_layer)]

    def reset_parameters(self) -> None:
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        for name, usual in (
            ("proj_size", 0),
            ("num_layers", 1),
            ("bias", True),
            ("batch_first", False),
            ("dropout", 0.0),
            ("bidirectional", False),
        ):
            if getattr(self, name) != usual:
                text += f", {name}={getattr(self, name)}"
        return text

    def _check_input(self, input: Tensor) -> None:
        if input.dim() != 2 and input.dim() != 3:
            raise ValueError(
                f"{self.mode}: Expected input to be 2D or 3D, got {input.dim()}D instead"
            )
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )

    def _check_state(self, state: Tensor, input: Tensor, name: str, size: int) -> None:
        batch = input.size(0) if self.batch_first else input.size(1)
        layers = self.num_layers * (2 if self.bidirectional else 1)
        if (
            state.dim() != 3
            or state.size(0) != layers
            or state.size(1) != batch
            or state.size(2) != size
        ):
            raise RuntimeError(
                f"Expected {name} size ({layers}, {batch}, {size}), got {list(state.shape)}"
            )

    def _zero_state(self, input: Tensor, size: int) -> Tensor:
        batch = input.size(0) if self.batch_first else input.size(1)
        layers = self.num_layers * (2 if self.bidirectional else 1)
        return prong.zeros(layers, batch, size, dtype=input.dtype)


class LSTM(RNNBase):
    """Long short-term memory, ``num_layers`` deep, one or two directions."""

    def __init__(self, *args, **kwargs):
        super().__init__("LSTM", *args, **kwargs)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        if not is_scripting() and isinstance(input, PackedSequence):
            return run_packed(self, input, hx)
        self._check_input(input)
        is_batched = input.dim() == 3
        x = input
        if not is_batched:
            x = input.unsqueeze(0 if self.batch_first else 1)
        if hx is None:
            h0 = self._zero_state(x, self.proj_size or self.hidden_size)
            c0 = self._zero_state(x, self.hidden_size)
        else:
            h0 = hx[0]
            c0 = hx[1]
            if not is_batched:
                if h0.dim() != 2 or c0.dim() != 2:
                    raise RuntimeError(
                        "For unbatched 2-D input, hx and cx should also be 2-D but got "
                        f"({h0.dim()}-D, {c0.dim()}-D) tensors"
                    )
                h0 = h0.unsqueeze(1)
                c0 = c0.unsqueeze(1)
            elif h0.dim() != 3 or c0.dim() != 3:
                raise RuntimeError(
                    "For batched 3-D input, hx and cx should also be 3-D but got "
                    f"({h0.dim()}-D, {c0.dim()}-D) tensors"
                )
            self._check_state(h0, x, "hidden[0]", self.proj_size or self.hidden_size)
            self._check_state(c0, x, "hidden[1]", self.hidden_size)
        if self.proj_size > 0 and not is_scripting():
            output, hn, cn = run_projected(self, x, h0, c0)
        else:
            output, hn, cn = prong.lstm(
                x,
                [h0, c0],
                self._flat_weights,
                self.bias,
                self.num_layers,
                self.dropout,
                self.training,
                self.bidirectional,
                self.batch_first,
            )
        if not is_batched:
            return output.squeeze(0 if self.batch_first else 1), (hn.squeeze(1), cn.squeeze(1))
        return output, (hn, cn)


class GRU(RNNBase):
    """Gated recurrent unit, ``num_layers`` deep, one or two directions."""

    def __init__(self, *args, **kwargs):
        super().__init__("GRU", *args, **kwargs)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]:
        if not is_scripting() and isinstance(input, PackedSequence):
            return run_packed(self, input, hx)
        self._check_input(input)
        is_batched = input.dim() == 3
        x = input
        if not is_batched:
            x = input.unsqueeze(0 if self.batch_first else 1)
        if hx is None:
            h0 = self._zero_state(x, self.hidden_size)
        else:
            h0 = hx
            if not is_batched:
                if h0.dim() != 2:
                    raise RuntimeError(
                        f"For unbatched 2-D input, hx should also be 2-D but got {h0.dim()}-D tensor"
                    )
                h0 = h0.unsqueeze(1)
            elif h0.dim() != 3:
                raise RuntimeError(
                    f"For batched 3-D input, hx should also be 3-D but got {h0.dim()}-D tensor"
                )
            self._check_state(h0, x, "hidden", self.hidden_size)
        output, hn = prong.gru(
            x,
            h0,
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
            self.batch_first,
        )
        if not is_batched:
            return output.squeeze(0 if self.batch_first else 1), hn.squeeze(1)
        return output, hn


class RNN(RNNBase):
    """h' = tanh or relu of (W_ih x + b_ih + W_hh h + b_hh), ``num_layers`` deep, one or two directions."""

    __constants__ = [*RNNBase.__constants__, "nonlinearity"]
    nonlinearity: str

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        **kwargs,
    ):
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        super().__init__(
            "RNN_" + nonlinearity.upper(), input_size, hidden_size, num_layers, **kwargs
        )
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]:
        if not is_scripting() and isinstance(input, PackedSequence):
            return run_packed(self, input, hx)
        self._check_input(input)
        is_batched = input.dim() == 3
        x = input
        if not is_batched:
            x = input.unsqueeze(0 if self.batch_first else 1)
        if hx is None:
            h0 = self._zero_state(x, self.hidden_size)
        else:
            h0 = hx
            if not is_batched:
                if h0.dim() != 2:
                    raise RuntimeError(
                        f"For unbatched 2-D input, hx should also be 2-D but got {h0.dim()}-D tensor"
                    )
                h0 = h0.unsqueeze(1)
            elif h0.dim() != 3:
                raise RuntimeError(
                    f"For batched 3-D input, hx should also be 3-D but got {h0.dim()}-D tensor"
                )
            self._check_state(h0, x, "hidden", self.hidden_size)
        if self.mode == "RNN_TANH":
            output, hn = prong.rnn_tanh(
                x,
                h0,
                self._flat_weights,
                self.bias,
                self.num_layers,
                self.dropout,
                self.training,
                self.bidirectional,
                self.batch_first,
            )
        else:
            output, hn = prong.rnn_relu(
                x,
                h0,
                self._flat_weights,
                self.bias,
                self.num_layers,
                self.dropout,
                self.training,
                self.bidirectional,
                self.batch_first,
            )
        if not is_batched:
            return output.squeeze(0 if self.batch_first else 1), hn.squeeze(1)
        return output, hn


class RNNCellBase(Module):
    """Parameters of the single-step cells."""

    __constants__ = ["input_size", "hidden_size", "bias"]
    input_size: int
    hidden_size: int
    bias: bool

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(prong.empty((rows, input_size), device=device, dtype=dtype))
        self.weight_hh = Parameter(prong.empty((rows, hidden_size), device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(
                name, Parameter(prong.empty(rows, device=device, dtype=dtype)) if bias else None
            )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")

    def _state(self, input: Tensor, hx: Tensor | None) -> Tensor:
        if input.dim() != 1 and input.dim() != 2:
            raise ValueError(f"RNN cell: Expected input to be 1D or 2D, got {input.dim()}D instead")
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {input.size(-1)} expected {self.input_size}"
            )
        if hx is None:
            if input.dim() == 1:
                return prong.zeros(self.hidden_size, dtype=input.dtype)
            return prong.zeros(input.size(0), self.hidden_size, dtype=input.dtype)
        if hx.dim() != input.dim():
            raise ValueError(
                f"RNN cell: Expected hidden to be {input.dim()}D, got {hx.dim()}D instead"
            )
        return hx


class LSTMCell(RNNCellBase):
    """One LSTM step: (h, c) from input and (h, c)."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device=None, dtype=None
    ):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        if hx is None:
            h = self._state(input, None)
            c = h
        else:
            h = self._state(input, hx[0])
            c = self._state(input, hx[1])
        gates = F.linear(input, self.weight_ih, self.bias_ih) + F.linear(
            h, self.weight_hh, self.bias_hh
        )
        i, f, g, o = gates.chunk(4, -1)
        c2 = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c2.tanh(), c2


class GRUCell(RNNCellBase):
    """One GRU step."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device=None, dtype=None
    ):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        h = self._state(input, hx)
        xr, xz, xn = F.linear(input, self.weight_ih, self.bias_ih).chunk(3, -1)
        hr, hz, hn = F.linear(h, self.weight_hh, self.bias_hh).chunk(3, -1)
        z = (xz + hz).sigmoid()
        n = (xn + (xr + hr).sigmoid() * hn).tanh()
        return (h - n) * z + n


class RNNCell(RNNCellBase):
    """One step of a plain recurrent layer."""

    __constants__ = [*RNNCellBase.__constants__, "nonlinearity"]
    nonlinearity: str

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device=None,
        dtype=None,
    ):
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        h = self._state(input, hx)
        sum = F.linear(input, self.weight_ih, self.bias_ih) + F.linear(
            h, self.weight_hh, self.bias_hh
        )
        if self.nonlinearity == "tanh":
            return sum.tanh()
        if self.nonlinearity == "relu":
            return sum.relu()
        raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")

    def extra_repr(self) -> str:
        return super().extra_repr() + (
            "" if self.nonlinearity == "tanh" else f", nonlinearity={self.nonlinearity}"
        )
