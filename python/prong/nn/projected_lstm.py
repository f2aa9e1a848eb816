"""LSTM whose hidden state is projected to a smaller size; called by LSTM of rnn.py. Step by step, in plain ops."""

import prong
from prong import Tensor

from . import functional as F


def one_direction(x, h, c, weights, bias, reverse):
    """One layer, one way: outputs of [T, B, P], last states."""
    if bias:
        w_ih, w_hh, b_ih, b_hh, w_hr = weights
    else:
        w_ih, w_hh, w_hr = weights
        b_ih = b_hh = None
    entered = F.linear(x, w_ih, b_ih)
    outputs = []
    steps = range(x.size(0))
    for t in reversed(steps) if reverse else steps:
        i, f, g, o = (entered[t] + F.linear(h, w_hh, b_hh)).chunk(4, -1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = F.linear(o.sigmoid() * c.tanh(), w_hr)
        outputs.append(h)
    if reverse:
        outputs.reverse()
    return prong.stack(outputs), h, c


def run_projected(module, input: Tensor, h0: Tensor, c0: Tensor):
    """Output, last h and last c, as the op lstm gives them."""
    x = input.transpose(0, 1) if module.batch_first else input
    directions = 2 if module.bidirectional else 1
    per_cell = 5 if module.bias else 3
    last_h, last_c = [], []
    for layer in range(module.num_layers):
        outputs = []
        for direction in range(directions):
            cell = layer * directions + direction
            weights = module._flat_weights[cell * per_cell : (cell + 1) * per_cell]
            output, h, c = one_direction(
                x, h0[cell], c0[cell], weights, module.bias, direction == 1
            )
            outputs.append(output)
            last_h.append(h)
            last_c.append(c)
        x = outputs[0] if directions == 1 else prong.cat(outputs, -1)
        if module.dropout and module.training and layer < module.num_layers - 1:
            x = F.dropout(x, module.dropout, True)
    output = x.transpose(0, 1) if module.batch_first else x
    return output, prong.stack(last_h), prong.stack(last_c)
