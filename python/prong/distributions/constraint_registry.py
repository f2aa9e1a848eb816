"""torch.distributions.constraint_registry: which transform leads from real numbers to a constraint."""

from prong import _names
from prong.distributions import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Calling it with a constraint gives the transform that was registered for the constraint's class."""

    def __init__(self):
        self._registry = {}

    def register(self, constraint, factory=None):
        """Keeps the factory, a function of the constraint; without one this is a decorator."""
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        if isinstance(constraint, constraints.Constraint):
            constraint = type(constraint)
        if not (isinstance(constraint, type) and issubclass(constraint, constraints.Constraint)):
            raise TypeError(
                "Expected constraint to be either a Constraint subclass or instance, "
                f"but got {constraint}"
            )
        self._registry[constraint] = factory
        return factory

    def __call__(self, constraint):
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def _between(constraint):
    low, high = constraint.lower_bound, constraint.upper_bound
    sigmoid = transforms.SigmoidTransform()
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and (low, high) == (0, 1):
        return sigmoid
    return transforms.ComposeTransform([sigmoid, transforms.AffineTransform(low, high - low)])


def _above(constraint):
    shift = transforms.AffineTransform(constraint.lower_bound, 1)
    return transforms.ComposeTransform([transforms.ExpTransform(), shift])


def _below(constraint):
    turn = transforms.AffineTransform(constraint.upper_bound, -1)
    return transforms.ComposeTransform([transforms.ExpTransform(), turn])


def _of_parts(registry, transform, *names):
    def factory(constraint):
        parts = [registry(part) for part in constraint.cseq]
        return transform(parts, constraint.dim, *(getattr(constraint, name) for name in names))

    return factory


def _independent(registry):
    def factory(constraint):
        base = registry(constraint.base_constraint)
        return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)

    return factory


def _made(transform):
    return lambda constraint: transform()


_SHARED = (
    (constraints.real, lambda constraint: transforms.identity_transform),
    (constraints.greater_than, _above),
    (constraints.greater_than_eq, _above),
    (constraints.less_than, _below),
    (constraints.interval, _between),
    (constraints.half_open_interval, _between),
    (constraints.lower_cholesky, _made(transforms.LowerCholeskyTransform)),
    (constraints.positive_definite, _made(transforms.PositiveDefiniteTransform)),
    (constraints.positive_semidefinite, _made(transforms.PositiveDefiniteTransform)),
    (constraints.corr_cholesky, _made(transforms.CorrCholeskyTransform)),
)
for _registry in (biject_to, transform_to):
    for _constraint, _factory in _SHARED:
        _registry.register(_constraint, _factory)
    _registry.register(constraints.independent, _independent(_registry))
    _registry.register(constraints.cat, _of_parts(_registry, transforms.CatTransform, "lengths"))
    _registry.register(constraints.stack, _of_parts(_registry, transforms.StackTransform))
biject_to.register(constraints.simplex, _made(transforms.StickBreakingTransform))
transform_to.register(constraints.simplex, _made(transforms.SoftmaxTransform))

__getattr__ = _names.module_getattr(__name__)
