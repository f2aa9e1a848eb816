"""Tensors whose shape or memory changes in place (t_, unsqueeze_, resize_, set_) while work that
knows them in the old shape is put off; writes over memory that is read."""

import prong as torch
import pytest

BACKENDS = ["eager", "interpreter", "llvm"]


def transposed_result(x):
    y = x * 2
    y.t_()
    return y, y + 1


def transposed_argument(x):
    y = x + 1
    x.t_()
    return y, x * 2


def written_and_transposed(x):
    x.mul_(2)
    x.t_()
    x.add_(1)
    return (x,)


def several_dimensions(x):
    y = x * 2
    y.unsqueeze_(0)
    z = y + 1
    y.squeeze_(0).t_()
    return y, z, y @ x


def resized_argument(x):
    v = x.view(-1)
    x.resize_(2)
    x[0] = 7
    return v, x


def resized_result(x):
    y = x + 1
    y.resize_(2, 2)
    return (y,)


def other_memory(x):
    v, w = x[1:], x + 1
    x.set_(torch.ones(2))
    x[0] = 9
    return v, w, x


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "f",
    [
        transposed_result,
        transposed_argument,
        written_and_transposed,
        several_dimensions,
        resized_argument,
        resized_result,
        other_memory,
    ],
)
def test_a_shape_changed_in_place_is_as_in_plain_python(f, backend):
    compiled = torch.compile(f, backend=backend)
    for rows in (2, 3, 2, 2):
        given = torch.arange(rows * 3.0).view(rows, 3)
        want, got = f(given.clone()), compiled(given.clone())
        assert [(t.shape, t.tolist()) for t in got] == [(t.shape, t.tolist()) for t in want]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_write_over_memory_that_is_read_is_refused_where_it_stands(backend):
    @torch.compile(backend=backend)
    def with_out(x, y):
        try:
            torch.addcmul(x[:-1], y, y, out=x[1:])
        except RuntimeError:
            return "refused"
        return "written"

    @torch.compile(backend=backend)
    def shifted(x):
        x.add_(1)
        try:
            x[1:] = x[:-1]
        except RuntimeError:
            return "refused"
        return "written"

    for _ in range(3):
        x = torch.arange(5.0)
        assert with_out(x, torch.ones(4)) == "refused" and x.tolist() == [0, 1, 2, 3, 4]
        assert shifted(x) == "refused" and x.tolist() == [1, 2, 3, 4, 5]


def test_a_copy_between_arguments_that_come_to_overlap_is_refused():
    @torch.compile
    def f(x, y):
        x.mul_(2)
        try:
            x.copy_(y)
        except RuntimeError:
            return "refused"
        return "written"

    base = torch.arange(8.0)
    for _ in range(3):
        assert f(torch.ones(4), torch.ones(4)) == "written"
        assert f(base[:4], base[4:]) == "written"
        assert f(base[:4], base[2:6]) == "refused"
        assert f(base[:4], base[:4]) == "written"


@pytest.mark.parametrize("backend", BACKENDS)
def test_strides_that_a_program_asks_for(backend):
    @torch.compile(backend=backend)
    def f(x):
        out = torch.empty_strided(x.shape, (16, 1))
        out[:] = x + x
        return out, out.stride(), out.is_contiguous()

    for rows in (2, 3, 2, 2):
        out, strides, is_contiguous = f(torch.ones(rows, 8))
        assert strides == out.stride() == (16, 1) and not is_contiguous
        assert out.tolist() == torch.full((rows, 8), 2.0).tolist()
