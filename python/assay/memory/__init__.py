"""Memory of the caller's framework, in which a function is judged: where tensors lie, how they are copied, streams and graphs.

A `Memory` for another framework needs the methods of `base.Memory`; pass an instance as `memory=` of `assay.check`.
"""

from __future__ import annotations

from .base import Memory

__all__ = ["Memory", "memory_named"]


def memory_named(name: str | Memory) -> Memory:
    """The memory with this name.

    Args:
        name: "numpy"; "torch" (CUDA where PyTorch has it, else the CPU), "torch:cpu", "torch:cuda", "torch:cuda:1"; "cupy"; "jax" (on
            the host: arrays that do not change, so that results must be returned); or a Memory, which is returned.

    Raises:
        ValueError: another name. ImportError: the framework is not installed. RuntimeError: it has no such device.
    """
    if isinstance(name, Memory):
        return name
    framework, _, device = name.partition(":") if isinstance(name, str) else ("", "", "")
    if framework == "numpy" and not device:
        from .host import NumpyMemory

        return NumpyMemory()
    if framework == "jax" and not device:
        from .host import JaxMemory

        return JaxMemory()
    if framework == "torch":
        from .pytorch import torch_memory

        return torch_memory(device)
    if framework == "cupy" and not device:
        from .cuda_python import CupyMemory

        return CupyMemory()
    raise ValueError(f"memory is {name!r}: expected 'numpy', 'torch', 'torch:DEVICE', 'cupy', 'jax' or an assay.memory.Memory")
