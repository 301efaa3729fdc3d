"""Arrays of any framework as the extension takes them, and back.

A tensor goes to the extension as (format, shape, bytes): the format's name ("bf16", "e4m3", ...), the shape as stored (two FP4 codes
share a byte), and its bytes in host memory as a flat NumPy array. Contiguous host arrays are not copied.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

# Formats by the name of the dtype that NumPy with ml_dtypes, PyTorch and JAX have for them.
_BY_DTYPE = {
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2",
    "float8_e4m3fnuz": "e4m3_fnuz",
    "float8_e5m2fnuz": "e5m2_fnuz",
    "float8_e8m0fnu": "e8m0",
    "float4_e2m1fn_x2": "e2m1",
    "int32": "i32",
    "int64": "i64",
}
_BYTES = {"f32": 4, "bf16": 2, "f16": 2, "i32": 4, "i64": 8}  # all others: 1
_CODES = ("e4m3", "e5m2", "e4m3_fnuz", "e5m2_fnuz", "e8m0", "e2m1", "e3m2", "e2m3")  # as bytes

Host = tuple[str, list[int], np.ndarray]  # (format, shape, bytes)


def stored_bytes(format: str) -> int:
    """Bytes of one stored element of a format."""
    return _BYTES.get(format, 1)


def is_codes(format: str) -> bool:
    """True where arrays hold the codes of the format as plain bytes."""
    return format in _CODES


def bfloat16_of_numpy() -> np.dtype | None:
    """ml_dtypes' bfloat16, or None where ml_dtypes is not installed: bf16 values are then uint16."""
    try:
        import ml_dtypes
    except ImportError:
        return None
    return np.dtype(ml_dtypes.bfloat16)


def numpy_dtype(format: str) -> np.dtype:
    """The NumPy dtype in which arrays of a format are given: codes are uint8."""
    if format == "bf16":
        return bfloat16_of_numpy() or np.dtype(np.uint16)
    return np.dtype({"f32": np.float32, "f16": np.float16, "i32": np.int32, "i64": np.int64}.get(format, np.uint8))


def framework_of(array: Any) -> str:
    """The framework of an array: "torch", "jax", "cupy", or "numpy" for all others."""
    root = type(array).__module__.split(".")[0]
    return {"torch": "torch", "jax": "jax", "jaxlib": "jax", "cupy": "cupy"}.get(root, "numpy")


def _torch_to_numpy(tensor: Any) -> tuple[np.ndarray, str]:
    import torch

    name = str(tensor.dtype).removeprefix("torch.")
    tensor = tensor.detach().to("cpu").contiguous()
    if name == "bfloat16":
        tensor = tensor.view(torch.int16)
    elif name.startswith("float8") or name.startswith("float4"):
        tensor = tensor.view(torch.uint8)
    return tensor.numpy(), name


def to_numpy(array: Any) -> tuple[np.ndarray, str]:
    """A contiguous NumPy array of the same bytes, and the name of the dtype that it has in its own framework."""
    framework = framework_of(array)
    if framework == "torch":
        return _torch_to_numpy(array)
    if framework == "cupy":
        array = array.get()
    elif not isinstance(array, np.ndarray):
        array = np.asarray(array) if framework == "jax" or not hasattr(array, "__dlpack__") else np.from_dlpack(array)
    return np.ascontiguousarray(array).reshape(np.shape(array)), array.dtype.name


def to_host(array: Any, name: str, expected: str | None = None) -> Host:
    """An array of any framework as the extension takes it.

    Args:
        array: NumPy, PyTorch, JAX or CuPy array, anything with DLPack, or nested lists of numbers.
        name: what a message calls it.
        expected: the format that it has to have. bytes (uint8) then stand for codes, uint16 for bf16, and Python numbers take its type.

    Raises:
        TypeError: a dtype that no format has, or another than expected.
    """
    if isinstance(array, (int, float, list, tuple)) and expected in ("f32", "f16", "i32", "i64"):
        array = np.asarray(array, dtype=numpy_dtype(expected))
    values, dtype = to_numpy(array)
    format = _BY_DTYPE.get(dtype)
    if expected is not None and dtype == "uint8" and is_codes(expected):
        format = expected
    if expected == "bf16" and dtype == "uint16":
        format = "bf16"
    if format is None:
        wanted = f"{expected} ({_accepted(expected)})" if expected else ", ".join(sorted(_BY_DTYPE))
        raise TypeError(f"{name} has dtype {dtype}: expected {wanted}")
    if expected is not None and format != expected:
        raise TypeError(f"{name} has dtype {dtype}, which is {format}: expected {expected} ({_accepted(expected)})")
    flat = values.reshape(-1).view(np.uint8) if values.size else np.empty(0, np.uint8)
    return format, list(values.shape), flat


def _accepted(format: str) -> str:
    names = [dtype for dtype, each in _BY_DTYPE.items() if each == format]
    return " or ".join(names + (["uint8 codes"] if is_codes(format) else []) + (["uint16"] if format == "bf16" else []))


def from_host(tensor: Host) -> np.ndarray:
    """The NumPy array of a tensor of the extension; its memory is shared."""
    format, shape, data = tensor
    return np.asarray(data).view(numpy_dtype(format)).reshape(shape)


def like(values: np.ndarray, format: str, example: Any) -> Any:
    """`values` as an array of the framework, and on the device, of `example`."""
    framework = framework_of(example)
    if framework == "torch":
        torch = sys.modules["torch"]
        if format == "bf16":
            tensor = torch.from_numpy(values.view(np.int16)).view(torch.bfloat16)
        else:
            tensor = torch.from_numpy(values)
        return tensor.to(example.device)
    if framework == "jax":
        import jax.numpy as jnp

        return jnp.asarray(values)
    if framework == "cupy":
        import cupy

        return cupy.asarray(values if format != "bf16" else values.view(np.uint16))
    return values
