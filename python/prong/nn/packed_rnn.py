"""Recurrent layers over packed sequences; called by the modules of rnn.py.

While no sequence ends, a stretch of steps is a plain batch for the op; its states go on to the next stretch.
"""

import prong
from prong import Tensor

from . import functional as F
from .projected_lstm import one_direction
from .utils.rnn import PackedSequence, groups_of

_OPS = {"LSTM": "lstm", "GRU": "gru", "RNN_TANH": "rnn_tanh", "RNN_RELU": "rnn_relu"}


def run_packed(module, input: PackedSequence, hx):
    """The output as packed as the input, and the last states of each sequence."""
    data, sizes = input.data, input.batch_sizes.tolist()
    if data.dim() != 2:
        raise RuntimeError(f"input must have 2 dimensions, got {data.dim()}")
    if data.size(-1) != module.input_size:
        raise RuntimeError(
            "input.size(-1) must be equal to input_size. Expected "
            f"{module.input_size}, got {data.size(-1)}"
        )
    states = _first_states(module, data, sizes[0], hx, input.sorted_indices)
    per_layer = 2 if module.bidirectional else 1
    per_cell = (4 if module.bias else 2) + (1 if module.proj_size else 0)
    last = []
    for layer in range(module.num_layers):
        outputs = []
        for direction in range(per_layer):
            cell = layer * per_layer + direction
            weights = module._flat_weights[cell * per_cell : (cell + 1) * per_cell]
            step = _Step(module, weights)
            run = _backward if direction else _forward
            output, state = run(step, data, sizes, [s[cell] for s in states])
            outputs.append(output)
            last.append(state)
        data = outputs[0] if per_layer == 1 else prong.cat(outputs, -1)
        if module.dropout and module.training and layer < module.num_layers - 1:
            data = F.dropout(data, module.dropout, True)
    finals = [prong.stack(parts) for parts in zip(*last)]
    if input.unsorted_indices is not None:
        finals = [s.index_select(1, input.unsorted_indices) for s in finals]
    output = input._replace(data=data)
    return output, (tuple(finals) if module.mode == "LSTM" else finals[0])


def _first_states(module, data, batch, hx, order):
    cells = module.num_layers * (2 if module.bidirectional else 1)
    sizes = [module.proj_size or module.hidden_size]
    if module.mode == "LSTM":
        sizes.append(module.hidden_size)
    if hx is None:
        return [data.new_zeros([cells, batch, size]) for size in sizes]
    states = list(hx) if len(sizes) == 2 else [hx]
    for i, (state, size) in enumerate(zip(states, sizes, strict=True)):
        expected = (cells, batch, size)
        if tuple(state.shape) != expected:
            name = f"hidden[{i}]" if len(sizes) == 2 else "hidden"
            raise RuntimeError(f"Expected {name} size {expected}, got {list(state.shape)}")
    return states if order is None else [s.index_select(1, order) for s in states]


class _Step:
    """One direction of one layer over a plain batch."""

    def __init__(self, module, weights):
        self._op = getattr(prong, _OPS[module.mode])
        self._has_cell = module.mode == "LSTM"
        self._projected = module.proj_size > 0
        self._settings = (list(weights), module.bias, 1, 0.0, module.training, False, False)

    def __call__(self, x: Tensor, states: list[Tensor]):
        if self._projected:
            weights, bias = self._settings[:2]
            output, h, c = one_direction(x, states[0], states[1], weights, bias, False)
            return output, [h, c]
        before = [s.unsqueeze(0) for s in states]
        given = before if self._has_cell else before[0]
        output, *after = self._op(x, given, *self._settings)
        return output, [s.squeeze(0) for s in after]


def _stretches(data, sizes):
    begin = 0
    for start, end, count in groups_of(sizes):
        rows = (end - start) * count
        yield data[begin : begin + rows].reshape([end - start, count, data.size(1)]), count
        begin += rows


def _forward(step, data, sizes, states):
    outputs, ended = [], []
    for x, count in _stretches(data, sizes):
        if count < states[0].size(0):
            ended.append([s[count:] for s in states])
            states = [s[:count] for s in states]
        output, states = step(x, states)
        outputs.append(output.reshape([-1, output.size(-1)]))
    parts = [states, *reversed(ended)]
    return prong.cat(outputs), [prong.cat(list(each)) for each in zip(*parts)]


def _backward(step, data, sizes, first):
    outputs = []
    states = [s[:0] for s in first]
    for x, count in reversed(list(_stretches(data, sizes))):
        begun = states[0].size(0)
        states = [prong.cat([s, f[begun:count]]) for s, f in zip(states, first)]
        output, states = step(x.flip(0), states)
        outputs.append(output.flip(0).reshape([-1, output.size(-1)]))
    return prong.cat(list(reversed(outputs))), states
