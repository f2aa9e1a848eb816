"""torch.return_types: the types of named results, such as max(values, indices)."""

from prong import _core, _names


def __getattr__(name: str):
    found = _core._result_type_of(name)
    if found is None:
        _names.raise_missing("prong.return_types", name)
    return found
