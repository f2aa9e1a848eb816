"""No op lacks a facet without a written reason."""

import prong
import pytest
from prong import _core

OPS = _core.ops()


def missing(op: dict) -> list[str]:
    """The facets that the op lacks."""
    lacks = []
    if not op["doc"]:
        lacks.append("doc")
    if not op["has_kernel"]:
        lacks.append("kernel")
    if not op["has_shape"] and not op["dynamic_shape"]:
        lacks.append("shape rule, or dynamic_shape with the reason")
    if not op["samples"] and not op["inplace_of"]:  # in-place forms run on the samples of their op
        lacks.append("samples")
    if op["family"] != "host":
        differentiates = op["has_grad"] or op["composite"]
        if not (differentiates or op["no_grad"] or op["not_differentiable"]):
            lacks.append("gradient, composite(), or no_grad or not_differentiable with the reason")
        if op["batching"] == "loop" and not (op["no_vmap"] or op["dynamic_shape"]):
            lacks.append("batching rule, or no_vmap with the reason why it runs sample by sample")
    return lacks


@pytest.mark.parametrize("op", OPS, ids=lambda op: op["name"])
def test_complete(op):
    assert not missing(op), f"op {op['name']} lacks: " + "; ".join(missing(op))


def test_there_are_ops():
    assert len(OPS) > 100


def test_names_do_not_collide_with_settings():
    """An op's function must not hide a name that the package itself defines."""
    for name, function in _core.functions.items():
        assert getattr(prong, name) is function or name in prong._OWN_NAMES, name
