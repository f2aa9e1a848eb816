"""Padded and packed sequences, and recurrent modules over them, against PyTorch's."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import prong  # noqa: E402

LENGTHS = [3, 5, 1, 5, 2]


def to_prong(t):
    return prong.from_numpy(t.detach().numpy().copy())


def same(a, b):
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=2e-5, atol=2e-6)


def same_packed(a, b):
    same(a.data, b.data)
    assert a.batch_sizes.tolist() == b.batch_sizes.tolist()
    for x, y in ((a.sorted_indices, b.sorted_indices), (a.unsorted_indices, b.unsorted_indices)):
        assert (x is None) == (y is None)
        assert x is None or x.tolist() == y.tolist()


def rows(seed=0):
    torch.manual_seed(seed)
    return [torch.randn(n, 4) for n in LENGTHS]


@pytest.mark.parametrize("batch_first", [False, True])
def test_packing(batch_first):
    def run(m, given):
        u = m.nn.utils.rnn
        padded = u.pad_sequence(given, batch_first, -1.0)
        packed = u.pack_padded_sequence(padded, LENGTHS, batch_first, enforce_sorted=False)
        return padded, packed, u

    ours, theirs = run(prong, list(map(to_prong, rows()))), run(torch, rows())
    same(ours[0], theirs[0])
    same_packed(ours[1], theirs[1])
    for options in ({}, {"padding_value": 7.0, "total_length": 8}, {"batch_first": True}):
        got = ours[2].pad_packed_sequence(ours[1], **options)
        want = theirs[2].pad_packed_sequence(theirs[1], **options)
        same(got[0], want[0])
        assert got[1].tolist() == want[1].tolist() == LENGTHS
    for a, b in zip(ours[2].unpack_sequence(ours[1]), rows()):
        same(a, b)


def test_sequences_in_order():
    given = sorted(rows(), key=len, reverse=True)
    a = prong.nn.utils.rnn.pack_sequence(list(map(to_prong, given)))
    b = torch.nn.utils.rnn.pack_sequence(given)
    same_packed(a, b)
    same(
        prong.nn.utils.rnn.pad_sequence(list(map(to_prong, given)), padding_side="left"),
        torch.nn.utils.rnn.pad_sequence(given, padding_side="left"),
    )
    assert a.double().data.dtype is prong.float64


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("given_state", [False, True])
@pytest.mark.parametrize(
    "options", [{}, {"num_layers": 2, "bidirectional": True}, {"bias": False, "num_layers": 2}]
)
def test_recurrent_modules(kind, given_state, options):
    results = []
    for m in (prong, torch):
        m.manual_seed(1)
        net = getattr(m.nn, kind)(4, 3, **options)
        given = rows() if m is torch else list(map(to_prong, rows()))
        packed = m.nn.utils.rnn.pack_sequence(given, enforce_sorted=False)
        cells = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
        state = m.linspace(-1, 1, cells * 15).reshape(cells, 5, 3)
        state = (state, -state) if kind == "LSTM" else state
        results.append(net(packed, state) if given_state else net(packed))
    (a, a_state), (b, b_state) = results
    same_packed(a, b)
    for x, y in zip(*((s if kind == "LSTM" else [s]) for s in (a_state, b_state)), strict=True):
        same(x, y)


FAULTS = {
    "a length of zero": lambda u, t: u.pack_padded_sequence(t.ones(3, 2, 1), [2, 0]),
    "not in order": lambda u, t: u.pack_padded_sequence(t.ones(3, 2, 1), [1, 2]),
    "too few lengths": lambda u, t: u.pack_padded_sequence(t.ones(3, 2, 1), [1]),
    "too short a total": lambda u, t: u.pad_packed_sequence(
        u.pack_sequence([t.ones(3)]), total_length=2
    ),
    "no sequences": lambda u, t: u.pad_sequence([]),
    "a side that is none": lambda u, t: u.pad_sequence([t.ones(1)], padding_side="top"),
    "a state of the wrong size": lambda u, t: t.nn.GRU(1, 2)(
        u.pack_sequence([t.ones(3, 1)]), t.ones(1, 2, 2)
    ),
    "features of the wrong size": lambda u, t: t.nn.GRU(1, 2)(u.pack_sequence([t.ones(3, 2)])),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults(name):
    with pytest.raises(Exception) as theirs:
        FAULTS[name](torch.nn.utils.rnn, torch)
    with pytest.raises(theirs.type):
        FAULTS[name](prong.nn.utils.rnn, prong)


@pytest.mark.parametrize("options", [{}, {"num_layers": 2, "bidirectional": True}, {"bias": False}])
def test_projections(options):
    results = []
    for m in (prong, torch):
        m.manual_seed(1)
        net = m.nn.LSTM(4, 5, proj_size=3, **options)
        given = rows() if m is torch else list(map(to_prong, rows()))
        packed = m.nn.utils.rnn.pack_sequence(given, enforce_sorted=False)
        output, (h, c) = net(packed)
        plain, (ph, pc) = net(given[1])
        results.append([output.data, h, c, plain, ph, pc, *net.parameters()])
    for a, b in zip(*results, strict=True):
        same(a, b)
