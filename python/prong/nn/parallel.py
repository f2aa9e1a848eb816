"""torch.nn.parallel: wrappers for several devices. There is one here, and it is not copied to."""

from prong import _names

from .module import Module
from .normalization import _BatchNorm


class DataParallel(Module):
    """Calls its module; where there are several devices PyTorch splits the batch among them."""

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        if device_ids:
            raise ValueError(f"prong computes on the CPU only, but device_ids is {device_ids}")
        self.module = module
        self.device_ids: list[int] = []
        self.dim = dim

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)


class SyncBatchNorm(_BatchNorm):
    """Batch norm over all processes; of one process, which is what there is here, it is a batch norm."""

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        process_group=None,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None):
        """The module with its batch norms turned into SyncBatchNorm."""
        made = module
        if isinstance(module, _BatchNorm):
            made = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            made._parameters.update(module._parameters)
            made._buffers.update(module._buffers)
            made.training = module.training
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made


__getattr__ = _names.module_getattr("prong.nn.parallel")
