"""Functions that are Python over ops, against PyTorch."""

import numpy as np
import prong
import pytest

torch = pytest.importorskip("torch")

CASES = """
torch.tensordot(x(3,4,5), x(4,3,2), dims=([1,0],[0,1]))
torch.tensordot(x(3,4), x(4,5), 1)
torch.tensordot(x(3), x(4), 0)
torch.inner(x(3,4), x(2,4))
torch.kron(x(2,3), x(3,2))
torch.kron(x(3), x(3,2))
torch.trace(x(3,4))
torch.cross(x(4,3), x(4,3))
torch.addmv(x(3), x(3,4), x(4), beta=0.5, alpha=2)
torch.addr(x(3,4), x(3), x(4), alpha=3)
torch.addbmm(x(3,5), x(2,3,4), x(2,4,5), beta=2)
x(3,5).addmm_(x(3,4), x(4,5), alpha=2)
x(3).addmv_(x(3,4), x(4))
x(2,3,5).baddbmm_(x(2,3,4), x(2,4,5))
torch.chain_matmul(x(3,4), x(4,5), x(5,2))
torch.cdist(x(4,3), x(5,3))
torch.cdist(x(2,4,3), x(2,5,3), p=1)
torch.cdist(x(2,4,3), x(2,5,3), p=3)
torch.cdist(x(2,4,3), x(2,5,3), p=float('inf'))
torch.cdist(x(30,3), x(40,3))
torch.pdist(x(5,3))
torch.pdist(x(5,3), 1)
torch.broadcast_shapes((2,1),(1,3),(3,))
torch.broadcast_tensors(x(2,1), x(3))
torch.atleast_3d(x(3))
torch.atleast_3d(x(2,3))
torch.column_stack((x(3), x(3,2)))
torch.dstack((x(3), x(3)))
torch.hsplit(x(4,6), 3)
torch.hsplit(x(6), [1,3])
torch.vsplit(x(4,6), 2)
torch.dsplit(x(2,3,4), 2)
torch.block_diag(x(2,3), x(2), x(1,1))
torch.cartesian_prod(torch.arange(3), torch.arange(2))
torch.combinations(torch.arange(5), 3)
torch.combinations(torch.arange(3), 2, True)
torch.diagflat(x(2,2), 1)
torch.unravel_index(torch.arange(12), (3,4))
torch.vander(x(4))
torch.vander(x(4), 3, increasing=True)
x(4,3).narrow_copy(0,1,2)
torch.cov(x(3,6))
torch.cov(x(3,6), correction=0, fweights=torch.arange(6))
torch.cov(x(3,6), aweights=x(6).abs())
torch.cov(x(6))
torch.corrcoef(x(3,6))
torch.nanmean(n(3,4), 1)
torch.nanmean(n(3,4))
torch.nanquantile(n(3,4), 0.3, 1)
torch.nanquantile(n(3,4), torch.tensor([0.1,0.9]), 1, True)
torch.nanquantile(n(3,4), 0.5)
torch.nanquantile(n(3,4), 0.4, 0, interpolation='nearest')
torch.nanquantile(n(3,4), 0.4, 0, interpolation='midpoint')
torch.logcumsumexp(x(3,7)*10, 1)
torch.trapezoid(x(3,5))
torch.trapezoid(x(3,5), x(5))
torch.trapezoid(x(3,5), x(3,5), dim=0)
torch.trapezoid(x(3,5), dx=0.5, dim=0)
torch.cumulative_trapezoid(x(3,5), x(5))
torch.gradient(x(5,6))
torch.gradient(x(5,6), spacing=2.0, dim=1, edge_order=2)
torch.gradient(x(5), spacing=(torch.tensor([0.,1.,3.,4.,6.]),))
torch.renorm(x(3,4), 2, 0, 1.0)
torch.histogram(x(20), 4)[0]
torch.histogram(x(20), 4)[1]
torch.histogram(x(20), torch.tensor([-1.,0.,2.]), density=True)[0]
torch.select_scatter(x(3,4), x(3), 1, 2)
torch.slice_scatter(x(6,4), x(2,4), 0, 1, 5, 2)
torch.diagonal_scatter(x(3,3), x(3))
torch.as_strided_scatter(x(3,4), x(2,2), (2,2), (1,2))
torch.index_reduce(x(4,3), 0, torch.tensor([0,2,0]), x(3,3), 'amax')
torch.index_reduce(x(4,3), 0, torch.tensor([0,2,0]), x(3,3), 'mean', include_self=False)
x(4,3).put_(torch.tensor([1,5]), x(2))
x(4,3).put(torch.tensor([1,1]), x(2), True)
torch.fill(x(3), 2.0)
x(4,4).fill_diagonal_(7.)
x(7,3).fill_diagonal_(7., wrap=True)
torch.isreal(x(3))
torch.hann_window(10)
torch.hann_window(9, periodic=False)
torch.hamming_window(10)
torch.hamming_window(10, True, 0.6)
torch.blackman_window(10)
torch.bartlett_window(9)
torch.stft(x(400), 64, 16, window=hann, return_complex=True)
torch.stft(x(2,400), 64, 16, 40, torch.hann_window(40), return_complex=False)
torch.stft(x(2,400), 64, center=False, normalized=True, onesided=False, return_complex=True)
torch.istft(torch.stft(x(2,400), 64, 16, window=hann, return_complex=True), 64, 16, window=hann)
torch.istft(torch.stft(x(400), 64, 16, window=hann, return_complex=True), 64, 16, window=hann, length=390)
torch.lstm_cell(x(2,3), (x(2,4), x(2,4)), x(16,3), x(16,4), x(16), x(16))
torch.gru_cell(x(2,3), x(2,4), x(12,3), x(12,4), x(12), x(12))
torch.rnn_tanh_cell(x(2,3), x(2,4), x(4,3), x(4,4))
torch.frexp(x(3,4))
F.unfold(x(2,3,6,7), 3)
F.unfold(x(2,3,6,7), (2,3), dilation=2, padding=1, stride=2)
F.fold(x(2,12,20), (5,6), 2)
F.fold(x(2,12,12), (5,6), 2, padding=1, stride=2)
F.grid_sample(x(2,3,5,6), x(2,4,4,2), align_corners=False)
F.grid_sample(x(2,3,5,6), x(2,4,4,2), align_corners=True, padding_mode='border')
F.grid_sample(x(2,3,5,6), x(2,4,4,2)*2, align_corners=False, padding_mode='reflection')
F.grid_sample(x(2,3,5,6), x(2,4,4,2), align_corners=False, mode='nearest')
F.grid_sample(x(2,3,5,6), x(2,4,4,2), align_corners=False, mode='bicubic')
F.grid_sample(x(2,3,5,6), x(2,4,4,2), align_corners=True, mode='bicubic', padding_mode='border')
F.grid_sample(x(2,3,5,6), x(2,4,4,2)*2, align_corners=False, mode='bicubic', padding_mode='reflection')
F.grid_sample(x(2,3,4,5,6), x(2,2,3,4,3), align_corners=False)
F.interpolate(x(2,3,5,6), scale_factor=2)
F.interpolate(x(2,3,5,6), size=(7,4))
F.interpolate(x(2,3,5,6), size=(7,4), mode='nearest-exact')
F.interpolate(x(2,3,5,6), scale_factor=1.7, mode='bilinear')
F.interpolate(x(2,3,5,6), size=(9,4), mode='bilinear', align_corners=True)
F.interpolate(x(2,3,5,6), size=(9,4), mode='bicubic')
F.interpolate(x(2,3,5,6), scale_factor=2.3, mode='bicubic', align_corners=True)
F.interpolate(x(2,3,15,16), size=(9,4), mode='bilinear', antialias=True)
F.interpolate(x(2,3,15,16), size=(9,40), mode='bicubic', antialias=True)
F.interpolate(x(2,3,7), size=11, mode='linear')
F.interpolate(x(2,3,4,5,6), scale_factor=(2,1.5,0.5), mode='trilinear')
F.interpolate(x(2,3,5,6), scale_factor=1.7, mode='bilinear', recompute_scale_factor=True)
torch.special.softmax(x(3,4), 1)
torch.linalg.cross(x(2,3), x(2,3))
torch.tensordot(x(3,4), x(4,5), 1, out=torch.empty(0))
torch.fft.fftfreq(7, 0.5)
torch.fft.rfftfreq(8)
torch.fft.fftshift(x(4,5))
torch.fft.ifftshift(x(4,5), 1)
"""


def names(module):
    def x(*sizes):
        random = np.random.RandomState(sum(sizes) * 7 + len(sizes))
        return module.from_numpy(random.standard_normal(sizes).astype("float32"))

    def n(*sizes):
        """Some of them NaN."""
        a = np.random.RandomState(3).standard_normal(sizes).astype("float32")
        a[0, 1] = a[2, 2] = np.nan
        return module.from_numpy(a)

    hann = module.hann_window(64)
    return {"torch": module, "F": module.nn.functional, "x": x, "n": n, "hann": hann}


def flat(value):
    if isinstance(value, (tuple, list)) and not isinstance(value, (torch.Size, prong.Size)):
        return [leaf for item in value for leaf in flat(item)]
    return [value]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", CASES.strip().splitlines())
def test_value(expression):
    got, want = flat(eval(expression, names(prong))), flat(eval(expression, names(torch)))
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        if not isinstance(w, torch.Tensor):
            assert list(g) == list(w)
            continue
        assert repr(g.dtype) == repr(w.dtype) and tuple(g.shape) == tuple(w.shape)
        np.testing.assert_allclose(
            g.numpy(), w.resolve_conj().numpy(), rtol=1e-4, atol=1e-5, equal_nan=True
        )


# What gives no gradient, or writes into a leaf.
NOT_DIFFERENTIABLE = ("_(", "arange", "broadcast_shapes", "histogram", "frexp", "window(", "isreal")
NOT_DIFFERENTIABLE += ("fftfreq", "rfftfreq", "put(", "out=", "fill(", "mode='nearest'")
# PyTorch keeps what was overwritten and drops the rest.
NOT_DIFFERENTIABLE += ("as_strided_scatter", "vander")


def gradients(module, expression):
    made = []
    env = names(module)

    def recorded(make):
        def with_gradient(*sizes):
            made.append(make(*sizes).requires_grad_())
            return made[-1]

        return with_gradient

    env["x"], env["n"] = recorded(env["x"]), recorded(env["n"])
    results = [r for r in flat(eval(expression, env)) if r.requires_grad]
    total = 0
    for r in results:
        r = r.real + 0.5 * r.imag if r.is_complex() else r
        weights = module.arange(r.numel(), dtype=r.dtype).cos().reshape(r.shape)
        total = total + (r * weights).nan_to_num().sum()
    total.backward()
    return [t.grad for t in made]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "expression",
    [c for c in CASES.strip().splitlines() if not any(w in c for w in NOT_DIFFERENTIABLE)],
)
def test_gradient(expression):
    got, want = gradients(prong, expression), gradients(torch, expression)
    for g, w in zip(got, want, strict=True):
        assert (g is None) == (w is None)
        if w is not None:
            np.testing.assert_allclose(g.numpy(), w.numpy(), rtol=2e-3, atol=2e-4, equal_nan=True)
