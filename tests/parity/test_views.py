"""View ops against PyTorch: values, strides, shared memory, messages."""

import pytest
from both import same, same_error

VIEWS = """
x(2, 6).view(3, 4)
x(2, 6).view(-1)
x(2, 6).view((4, -1))
x(0, 3).view(3, 0)
x().view(1, 1)
turned(4, 3).view(4, 3, 1)
turned(4, 3).view(2, 2, 3, 1)
gaps(4, 3).view(2, 2, 3)
x(2, 4).view(int32)
x(2, 4).view(float64)
x(2, 4).view(uint8)
x(2, 6).view_as(x(3, 4))
x(2, 6).reshape(3, 4)
turned(4, 3).reshape(-1)
x(4, 3).reshape(2, 2, -1)
turned(4, 6).reshape_as(x(3, 8))
x(2, 3, 4).flatten()
x(2, 3, 4).flatten(1)
x(2, 3, 4).flatten(0, -2)
x().flatten()
x(2, 6).unflatten(1, (2, 3))
x(2, 6).unflatten(-1, (2, -1))
turned(4, 3).ravel()
torch.transpose(x(2, 3, 4), 0, 2)
x(2, 3).swapaxes(0, 1)
x(2, 3).swapdims(-1, 0)
x(2, 3).t()
x(3).t()
x(2, 3).T
x(5, 2, 3).mT
x(2, 3, 4).permute(2, 0, 1)
torch.permute(x(2, 3, 4), (1, -1, 0))
x(2, 3, 4).movedim(0, -1)
x(2, 3, 4).movedim((0, 1), (1, 2))
torch.moveaxis(x(2, 3, 4), 2, 0)
x(2, 3).unsqueeze(0)
x(2, 3).unsqueeze(-1)
x().unsqueeze(0)
x(1, 3, 1).squeeze()
x(1, 3, 1).squeeze(0)
x(1, 3, 1).squeeze(1)
x(1, 3, 1).squeeze((0, 2))
x().squeeze(0)
x(3, 1).expand(3, 4)
x(3, 1).expand(2, -1, 4)
x(3).expand(0, 3)
x(3, 1).expand_as(x(2, 3, 4))
x(3, 1).broadcast_to((2, 3, 2))
x(3, 4).select(1, -1)
x(5, 3).narrow(0, 1, 3)
x(5, 3).narrow(1, -2, 2)
x(5, 2).split(2)
x(5, 2).split([1, 4])
torch.split(x(2, 6), 4, dim=1)
torch.split(x(2, 6), [2, 0, 4], dim=-1)
x(0, 2).split(3)
x(5, 2).chunk(2)
x(2, 7).chunk(3, 1)
x(0, 4).chunk(3)
x(7).tensor_split(3)
x(3, 2).unbind()
x(3, 2).unbind(1)
x(3, 4).diagonal()
x(3, 4).diagonal(1)
x(3, 4).diagonal(-5)
x(2, 3, 4).diagonal(-1, 1, 2)
x(3, 4).as_strided((2, 2), (1, 2))
x(3, 4).as_strided((2, 2), (1, 2), 3)
x(7, 2).unfold(0, 3, 2)
x(5).unfold(-1, 2, 1)
x(5).unfold(0, 5, 1)
x(2, 3).detach()
x(2, 3).contiguous()
turned(4, 3).contiguous()
torch.atleast_1d(x())
torch.atleast_2d(x(3))
x(4, 5)[1:3, ::2]
x(4, 5)[-1]
x(4, 5)[:, None, 2]
x(4, 5)[..., -1:]
x(4, 5)[10:]
x(4, 5)[3:1]
x(3, 4)[torch.tensor(1)]
x(3, 4)[True]
"""

ERRORS = """
x(2, 3).view(4)
x(2, 3).view(-1, -1)
x(2, 3).view(-1, 4)
x(2, 3).t().view(6)
x(2, 3).view(-2, 3)
x(2, 3).reshape(4)
x(0, 3).view(-1, 0)
x(2, 3).permute(0, 0)
x(2, 3).permute(0, 5)
x(2, 2, 2).t()
x(2, 3).transpose(0, 4)
x(2, 3).select(0, 5)
x(2, 3).select(0, -3)
x().select(0, 0)
x(2, 3).narrow(0, 1, 5)
x(2, 3).narrow(0, -3, 1)
x(2, 3).narrow(0, 0, -1)
x(2, 3).unfold(0, 5, 1)
x(2, 3).unfold(0, 1, 0)
x(2, 3).unfold(0, -1, 1)
x(2, 3).split(0)
x(2, 3).split(-1)
x(2, 3).split([1, 2])
x(2, 3).chunk(0)
x().split(1)
x().unbind()
x().chunk(1)
x(2, 3).diagonal(0, 0, 0)
x(2, 3).flatten(1, 0)
x(2, 3).unflatten(1, (2, 2))
x(2, 3).movedim((0, 0), (0, 1))
x(2, 3).movedim((0, 1), (1, 1))
x(2, 3).squeeze(4)
x(2, 3).unsqueeze(5)
x(3).mT
x(2, 3).expand(4, 3)
x(2, 3).expand(-1, 2, 3)
x(2, 3).broadcast_to((4, 3))
x(2, 3).as_strided((5,), (-1,))
x(2, 3).as_strided((5,), (4,))
x(2, 3).as_strided((5,), (1,), -3)
x(2, 3).size(3)
x().size(0)
x(2, 3).item()
x(2, 3)[5]
x(2, 3)[0, 0, 0]
x(2, 3)[:, 7]
x(2, 3)[::-1]
x()[0]
"""


def lines(text):
    return [line for line in text.strip().split("\n") if line]


@pytest.mark.parametrize("expression", lines(VIEWS))
def test_view(expression):
    expected, got = same(expression)
    for a, b in zip(*[r if isinstance(r, (list, tuple)) else [r] for r in (expected, got)]):
        if a.numel() > 0:
            assert tuple(a.stride()) == tuple(b.stride())
            assert a.storage_offset() == b.storage_offset()


@pytest.mark.parametrize("expression", lines(ERRORS))
def test_error(expression):
    same_error(expression)
