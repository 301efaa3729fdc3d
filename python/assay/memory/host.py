"""Host memory of NumPy, and JAX on top of it."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np

from .. import _formats
from .base import Memory

ALIGNMENT = 256


def processor() -> tuple[str, str]:
    """Name and architecture of the host, as the program has them."""
    return "host processor", {"x86_64": "x86-64"}.get(platform.machine(), platform.machine())


def aligned(block: Any, address: int, count: int) -> Any:
    """`count` bytes of a block from the first multiple of 256 on."""
    start = -address % ALIGNMENT
    return block[start : start + count]


class NumpyMemory(Memory):
    """NumPy arrays. bf16 is ml_dtypes.bfloat16 where ml_dtypes is installed, else uint16."""

    name = "numpy"

    def device(self) -> tuple[str, str, str]:
        return *processor(), f"Python {platform.python_version()}, NumPy {np.__version__}"

    def allocate(self, count: int) -> np.ndarray:
        block = np.empty(count + ALIGNMENT, np.uint8)
        return aligned(block, block.ctypes.data, count)

    def address(self, block: np.ndarray) -> int:
        return block.ctypes.data

    def view(self, block: np.ndarray, offset: int, count: int, format: str, shape: tuple[int, ...]) -> Any:
        return block[offset : offset + count].view(_formats.numpy_dtype(format)).reshape(shape)


class JaxMemory(NumpyMemory):
    """JAX on the host. Its arrays do not change: inputs are copies, and results have to be returned. Outputs in `t.out` are NumPy
    arrays, for their shapes."""

    name = "jax"

    def device(self) -> tuple[str, str, str]:
        import jax

        return *processor(), f"Python {platform.python_version()}, JAX {jax.__version__}"

    def input(self, array: np.ndarray) -> Any:
        """A JAX array with the values of a NumPy array. 64-bit integers become 32-bit ones unless JAX is configured otherwise."""
        import jax.numpy as jnp

        return jnp.array(array, copy=True)
