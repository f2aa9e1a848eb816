"""The names that files use for storages, dtypes and places. Used by the readers and the writer."""

import prong

_STORAGE_DTYPES = {
    "FloatStorage": "float32",
    "DoubleStorage": "float64",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "ByteStorage": "uint8",
    "CharStorage": "int8",
    "ShortStorage": "int16",
    "IntStorage": "int32",
    "LongStorage": "int64",
    "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
    "UntypedStorage": "uint8",
}
# Dtypes of PyTorch that a file may name; those that prong lacks are refused by name.
DTYPE_NAMES = frozenset(_STORAGE_DTYPES.values()) | {
    "uint16", "uint32", "uint64", "complex32", "float8_e4m3fn", "float8_e5m2",
}  # fmt: skip


class StorageType:
    """Stands for the class torch.FloatStorage and its like, which files name as a storage's type."""

    def __init__(self, name: str):
        self.name = name

    @property
    def dtype(self):
        """The dtype of the elements; raises where prong has no such dtype."""
        return dtype_named(_STORAGE_DTYPES[self.name])

    def __repr__(self):
        return f"torch.{self.name}"


STORAGE_TYPES = {name: StorageType(name) for name in _STORAGE_DTYPES}
_NAMES = {dtype: name for name, dtype in _STORAGE_DTYPES.items() if name != "UntypedStorage"}


def dtype_named(name: str):
    """prong's dtype of that name."""
    found = getattr(prong, name, None) if name in DTYPE_NAMES else None
    if not isinstance(found, prong.dtype):
        raise NotImplementedError(f"prong has no dtype torch.{name}, which the file uses")
    return found


def dtype_name(dtype) -> str:
    """float32 for prong.float32."""
    return repr(dtype).rpartition(".")[2]


def storage_name(dtype) -> str:
    """What files call a storage of that dtype."""
    return _NAMES[dtype_name(dtype)]


def place(location: str, map_location, data) -> None:
    """Raises unless a storage saved at ``location`` goes to the CPU under torch.load's ``map_location``."""
    if callable(map_location):
        if map_location(data.untyped_storage(), location) is not None:
            return
    elif isinstance(map_location, dict):
        location = map_location.get(location, location)
    elif map_location is not None:
        location = str(map_location)
    kind = str(location).partition(":")[0]
    if kind == "cpu":
        return
    if kind == "meta":
        raise RuntimeError("prong loads no tensors of the meta device: they have no data")
    raise RuntimeError(
        f"Attempting to deserialize object on a {kind.upper()} device, but prong computes on the CPU "
        "only. Please use torch.load with map_location=torch.device('cpu') to map your storages to "
        "the CPU."
    )
