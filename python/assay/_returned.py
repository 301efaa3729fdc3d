"""Results that a function returns, in place of writing them to `t.out`."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _formats
from .oracle import resolve
from .tensors import Tensors


def by_name(t: Tensors, returned: Any) -> dict[str, Any]:
    """Returned arrays by the names of the outputs: a dict, or a sequence in the order of `t.out`, or one array."""
    names = list(t.out)
    if isinstance(returned, dict):
        made = {}
        for name, value in returned.items():
            found = resolve(t.out, name)
            if found is None:
                raise ValueError(f"the function returned '{name}', which is no output: expected {', '.join(names)}")
            made[found] = value
    else:
        values = list(returned) if isinstance(returned, (tuple, list)) else [returned]
        if len(values) != len(names):
            raise ValueError(f"the function returned {len(values)} arrays: expected {len(names)}: {', '.join(names)}")
        made = dict(zip(names, values))
    missing = [name for name in names if name not in made]
    if missing:
        raise ValueError(f"the function returned no {', '.join(missing)}")
    return made


def _fitted(value: np.ndarray, shape: tuple[int, ...], stored: np.ndarray, name: str) -> np.ndarray:
    """The value in the shape of the output. Of scales the padding may be left out: `stored` then shows through."""
    if value.shape == shape:
        return value
    if value.size == stored.size and [e for e in value.shape if e != 1] == [e for e in shape if e != 1]:
        return value.reshape(shape)
    if name.endswith("scale_inv") and value.ndim == len(shape) and all(a <= b for a, b in zip(value.shape, shape)):
        padded = stored.reshape(shape).copy()
        padded[tuple(slice(extent) for extent in value.shape)] = value
        return padded
    hint = "; it is that shape turned" if value.ndim == 2 and value.shape[::-1] == shape else ""
    raise ValueError(f"the function returned {name} of shape {list(value.shape)}: expected {list(shape)}{hint}")


def merged(name: str, value: Any, format: str, shape: tuple[int, ...], before: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The bytes of an output after its value was returned: `before` where the op leaves bytes as they are (mask 0)."""
    format, given, data = _formats.to_host(value, f"returned {name}", format)
    dtype = np.dtype(f"u{_formats.stored_bytes(format)}")
    fitted = _fitted(data.view(dtype).reshape(given), shape, before.view(dtype), name)
    return np.where(mask.astype(bool), np.ascontiguousarray(fitted).reshape(-1).view(np.uint8), before)
