"""torch.utils.dlpack: capsules for libraries that exchange tensors without copies."""

from prong._creation import from_dlpack


def to_dlpack(tensor):
    """A DLPack capsule over the tensor's memory."""
    return tensor._dlpack_capsule(False)


__all__ = ["from_dlpack", "to_dlpack"]
