"""Indexing, gathering, scattering, masks and searches against PyTorch."""

import pytest
from both import same, same_error
from test_views import lines

READS = """
x(4, 5)[L([0, 2, -1])]
x(4, 5)[:, L([[0, 2], [1, 4]])]
x(4, 5)[L([0, 1]), L([2, 3])]
x(4, 5)[L([[0], [1]]), L([2, 3])]
x(4, 5, 6)[L([0, 1]), :, L([2, 3])]
x(4, 5, 6)[:, L([0, 1]), L([2, 3])]
x(4, 5, 6)[1, :, L([2, 3])]
x(4, 5, 6)[L([0, 1]), None, :, L([2, 3])]
x(4, 5, 6)[..., L([2, 3])]
x(4, 5, 6)[:, 1:3, L([2, 3])]
x(4, 5)[x(4, 5) > 7]
x(4, 5)[x(4) > 1]
x(4, 5)[:, x(5) > 1]
x(4, 5)[x(4) > 1, L([0, 2])]
x(4, 5)[[0, 2]]
x(4, 5)[[0, 2], [1, 3]]
x(4, 5)[L([0], dtype=int32)]
x(4, 5)[L([], dtype=int64)]
x(4, 5)[[]]
x(4, 5)[False]
x(4, 5)[None, True]
x()[L(True)]
x(4, 5)[L(2), L([1, 0])]
x(3)[L([[0, 1], [2, 0]])]
turned(4, 5)[L([0, 2])]
turned(4, 5)[:, L([0, 2])]
gaps(4, 5)[L([0, 2])]
x(4, 5, 6)[L([0, 1])]
x(4, 5, dtype='float16')[L([0, 1])]
x(4, 5, dtype='bool')[L([0, 1])]
x(4, 0)[L([0, 1])]
x(2, 3, 4, 5)[:, L([0, 1]), :, L([2, 3])]
x(2, 3, 4, 5)[0, L([[0], [1]]), :, L([2, 3])]
torch.gather(x(2, 3), 1, L([[0, 2], [1, 1]]))
torch.gather(x(2, 3), 0, L([[0, 1, 0]]))
turned(4, 3).gather(-1, L([[0, 2], [1, 1]]))
x(2, 3, 4).gather(1, L([[[2, 0, 1, 1]]]))
torch.gather(x(), 0, L(0))
x(4, 3).index_select(0, L([2, 0, 2]))
x(4, 3).index_select(-1, L([1]))
turned(4, 6).index_select(1, L([5, 0]))
x().index_select(0, L([0]))
x(4, 3).index_select(0, L(1))
x(2, 3, 4).index_select(1, L([], dtype=int64))
torch.take(x(4, 3), L([[0, 11], [-1, 5]]))
torch.take_along_dim(x(2, 3), L([[2], [0]]), 1)
torch.take_along_dim(x(2, 3), L([5, 0]))
torch.nonzero(x(2, 3) > 1)
torch.nonzero(x(2, 3), as_tuple=True)
torch.nonzero(L(5.))
torch.nonzero(L(5.), as_tuple=True)
torch.nonzero(x(2, 3, 4) % 5)
torch.argwhere(x(2, 3))
torch.where(x(2, 3) > 1)
torch.where(x(2, 3) > 1, x(2, 3), 0)
torch.masked_select(x(2, 3), x(3) > 1)
x(2, 3).masked_select(x(2, 3) > 9)
F.embedding(L([[0, 4], [2, 2]]), x(5, 3))
F.embedding(L(1), x(5, 3))
torch.searchsorted(L([1, 3, 5]), L([3, 0, 9]))
torch.searchsorted(L([1, 3, 5]), L([3, 0, 9]), right=True)
torch.searchsorted(L([1., 3., 5.]), 3.5)
torch.searchsorted(L([1, 3, 5]), L([3.5]))
torch.searchsorted(x(2, 3), L([[1., 5.], [3., 9.]]))
torch.searchsorted(L([1, 3, 5]), L([3]), side='right')
torch.bucketize(x(2, 3), L([1., 3.]))
torch.bucketize(L([nan, 1.]), L([1., 3.]), out_int32=True)
"""

WRITES = """
put(x(4, 5), 1, 7.)
put(x(4, 5), (slice(1, 3), 2), 7)
put(x(4, 5), slice(None), x(5))
put(x(4, 5), L([0, 2]), 7.)
put(x(4, 5), L([0, 2]), x(5))
put(x(4, 5), L([0, 2]), x(2, 5))
put(x(4, 5), (slice(None), L([0, 2])), x(4, 2))
put(x(4, 5), (L([0, 1]), L([2, 3])), L([5., 6.]))
put(x(4, 5), x(4, 5) > 7, 0.)
put(x(4, 5), x(4, 5) > 16, L([1., 2., 3.]))
put(x(4, 5), x(4) > 1, x(5))
put(x(4, 5), [0, 2], -1)
put(x(4, 5), (0, None), x(1, 5))
put(x(4, 5), E, 3)
put(x(), E, 3)
put(x(4, 5), L([[0], [1]]), x(1, 1, 1, 5))
put(x(4, 5), (slice(0, 2),), x(1, 1, 5))
put(x(4, 5, dtype='int64'), L([1]), 7)
put(x(4, 5, 6), (L([0, 1]), slice(None), L([2, 3])), x(2, 5))
put(turned(4, 5), (L([0, 1]), L([2, 3])), L([5., 6.]))
put(x(3), L([0, 1, 2]), L(9.))
put(x(3), L([], dtype=int64), 5.)
x(4, 3).index_put_((L([0, 0]),), x(2, 3), accumulate=True)
x(4, 3, dtype='int64').index_put((L([1, 1]), L([2, 2])), L([5, 6]), True)
x(2, 3).scatter(1, L([[0, 2], [1, 0]]), x(2, 2) + 50)
x(2, 3).scatter(1, L([[0, 2], [1, 0]]), 1.5)
x(2, 3).scatter_(0, L([[1, 0, 1]]), x(1, 3) + 50)
x(2, 3).scatter(1, L([[0, 0], [1, 0]]), x(2, 2), reduce='add')
x(2, 3).scatter(1, L([[0, 0], [1, 0]]), 2., reduce='multiply')
x(2, 3).scatter_add(1, L([[0, 0], [1, 0]]), x(2, 2))
turned(4, 3).scatter_add_(0, L([[0, 3, 3], [0, 1, 2]]), x(2, 3))
x(2, 3).scatter_reduce(1, L([[0, 0], [1, 0]]), x(2, 2) + 2, 'sum')
x(2, 3).scatter_reduce(1, L([[0, 0], [1, 0]]), x(2, 2) + 2, 'prod')
x(2, 3).scatter_reduce(1, L([[0, 0], [1, 0]]), x(2, 2) - 2, 'amax')
x(2, 3).scatter_reduce(1, L([[0, 0], [1, 0]]), x(2, 2) - 2, 'amin', include_self=False)
x(2, 3).scatter_reduce(1, L([[0, 0], [1, 0]]), x(2, 2) + 2, 'mean')
x(2, 3, dtype='int64').scatter_reduce(1, L([[0, 0], [1, 0]]), x(2, 2, dtype='int64') - 5, 'mean', include_self=False)
x(4, 3).index_add(0, L([2, 0, 2]), x(3, 3))
x(4, 3).index_add_(1, L([1]), x(4, 1), alpha=2)
x(4, 3, dtype='int64').index_add(0, L([2]), x(1, 3, dtype='int64'), alpha=3)
x(4, 3).index_copy(0, L([2, 0]), x(2, 3) + 50)
x(4, 3).index_copy_(1, L([2]), x(4, 1))
x(4, 3).index_fill(0, L([2, -1]), 1.5)
x(4, 3).index_fill_(1, L([0]), L(7.))
x(2, 3).masked_fill(x(2, 3) > 1, 5.)
x(2, 3).masked_fill_(x(3) > 1, 5)
x(2, 3).masked_scatter(x(2, 3) > 1, x(9) + 50)
turned(2, 3).masked_scatter_(x(3) > 0, x(9) + 50)
"""

ERRORS = """
put(x(3, 4), L([0]), L([1]))
put(x(3, 4), (L([0]), L([1])), torch.zeros(3))
put(x(3, 4), L([0, 1]), torch.zeros(3))
x(3, 4)[L([5])]
x(3, 4)[L([-4])]
x(3, 4)[L([0, 1]), L([0, 1, 2])]
x(3, 4)[torch.ones(3, 3, dtype=torch.bool)]
x(3, 4)[torch.ones(4, dtype=torch.bool)]
x(3, 4)[L([0]), L([0]), L([0])]
x(3, 4)[L([0.])]
x(3, 4)[torch.ones(3, dtype=torch.bool), L([0, 1])]
torch.zeros(0, 3)[L([0])]
put(x(3, 4), x(3, 4) > 5, torch.zeros(3))
put(x(3, 4), x(3, 4) > 5, torch.zeros(6).double())
torch.gather(x(3, 4), 1, L([[5]]))
torch.gather(x(3, 4), 1, L([[-1]]))
torch.gather(x(3, 4), 1, L([0]))
torch.gather(x(3, 4), 0, torch.zeros(1, 6, dtype=torch.long))
torch.gather(x(3, 4), 1, L([[0.]]))
x(3, 4).scatter(1, L([[5]]), 1.)
x(3, 4).scatter(1, L([[0]]), torch.zeros(1, 1, dtype=torch.long))
x(3, 4).scatter(1, L([[0, 1]]), torch.zeros(1, 1))
x(3, 4).scatter(0, L([[0]]), 2., reduce='foo')
x(3, 4).scatter_reduce(0, L([[0]]), x(3, 4), reduce='foo')
x(3, 4).index_select(0, L([5]))
x(3, 4).index_select(0, L([-1]))
x(3, 4).index_select(0, L([[0]]))
x(3, 4).index_select(0, L([0.]))
x().index_select(0, L([0, 0]))
x(3, 4).index_add_(0, L([0]), x(3, 4))
x(3, 4).index_add_(0, L([0]), x(1, 2))
x(3, 4).index_add_(0, L([0]), x(1, 4).double())
x(3, 4).index_copy_(0, L([5]), x(1, 4))
x(3, 4).index_copy_(0, L([0]), x(3, 4))
x(3, 4).index_fill_(0, L([5]), 1)
x(3, 4).index_fill_(0, L([0]), torch.zeros(2))
x(3, 4).masked_select(L([1]))
x(3, 4).masked_scatter(x(3, 4) > 5, torch.zeros(2))
x(3, 4).take(L([12]))
x(3, 4).take(L([0.]))
torch.take_along_dim(x(3, 4), L([0]), 1)
torch.searchsorted(x(3, 4), L([1.]))
torch.bucketize(L([1, 2]), x(3, 4))
torch.searchsorted(L([1, 3, 5]), L([1]), side='foo')
torch.searchsorted(L([1, 3, 5]), L([1]), side='left', right=True)
torch.embedding(x(3, 4), L([5]))
torch.embedding(x(3, 4), L([1.]))
"""


@pytest.mark.parametrize("expression", lines(READS))
def test_read(expression):
    same(expression)


@pytest.mark.parametrize("expression", lines(WRITES))
def test_write(expression):
    same(expression)


@pytest.mark.parametrize("expression", lines(ERRORS))
def test_error(expression):
    same_error(expression)
