"""Weights, statistics and index tables of the wrong size are errors, never reads past their end."""

import prong as torch
import pytest
from prong.nn import functional as F

ones = torch.ones


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: F.batch_norm(ones(2, 3), ones(0), ones(0), training=True), "running_mean"),
        (lambda: F.batch_norm(ones(2, 3), ones(3), ones(2)), "running_var should contain 3"),
        (lambda: F.batch_norm(ones(2, 3), None, None, ones(7), training=True), "weight should"),
        (lambda: F.batch_norm(ones(2, 3), ones(3), ones(3), None, ones(1)), "bias should"),
        (lambda: F.group_norm(ones(2, 4), 2, ones(1)), "weight should contain 4"),
        (lambda: F.group_norm(ones(2, 4), 2, ones(4), ones(2)), "bias should contain 4"),
        (lambda: F.embedding_bag(torch.tensor([1]), ones(3, 2), torch.tensor([0, 5])), "between"),
        (lambda: F.embedding_bag(torch.tensor([1]), ones(3, 2), torch.tensor([0, -1])), "between"),
        (lambda: torch.linalg.householder_product(ones(2, 2), ones(5)), "tau"),
        (lambda: torch.linalg.householder_product(ones(3, 2, 2), ones(1, 2)), "batch"),
    ],
)
def test_is_refused(call, text):
    with pytest.raises(RuntimeError, match=text):
        call()


@pytest.mark.parametrize("pivots", [[7, 9], [0, 1]])
def test_row_exchanges_name_rows(pivots):
    with pytest.raises(RuntimeError, match="between 1 and 2"):
        torch.linalg.lu_solve(torch.eye(2), torch.tensor(pivots, dtype=torch.int32), ones(2, 1))


def test_sides_of_a_system_fit():
    swaps = torch.tensor([1, 2], dtype=torch.int32)
    with pytest.raises(RuntimeError, match="Incompatible shapes"):
        torch.linalg.lu_solve(torch.eye(2), swaps, ones(3, 1))


def test_renorm_asks_for_a_dimension_that_is_there():
    with pytest.raises(IndexError, match="out of range"):
        ones(2, 3).renorm(2, 5, 1.0)
