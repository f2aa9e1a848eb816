"""torch.nn.utils: clipping gradients and moving parameters to and from one vector."""

import prong


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scales the gradients so that their total norm is at most ``max_norm``; gives the norm before."""
    if isinstance(parameters, prong.Tensor):
        parameters = [parameters]
    grads = [p.grad for p in parameters if p.grad is not None]
    if not grads:
        return prong.tensor(0.0)
    total = prong.stack([g.norm(norm_type) for g in grads]).norm(norm_type)
    if error_if_nonfinite and not prong.isfinite(total):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it "
            "cannot be clipped. "
            "To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    factor = (float(max_norm) / (total + 1e-6)).clamp(max=1.0)
    with prong.no_grad():
        for g in grads:
            g.mul_(factor)
    return total


def clip_grad_value_(parameters, clip_value, foreach=None):
    """Clamps each gradient to [-clip_value, clip_value]."""
    if isinstance(parameters, prong.Tensor):
        parameters = [parameters]
    with prong.no_grad():
        for p in parameters:
            if p.grad is not None:
                p.grad.clamp_(-float(clip_value), float(clip_value))


def parameters_to_vector(parameters):
    """All parameters, flattened and joined."""
    return prong.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec, parameters):
    """Copies the pieces of a vector into the parameters."""
    start = 0
    with prong.no_grad():
        for p in parameters:
            p.copy_(vec[start : start + p.numel()].view_as(p))
            start += p.numel()
