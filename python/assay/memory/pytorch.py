"""Memory of PyTorch, on a CUDA device or on the host."""

from __future__ import annotations

import platform
import time
from typing import Any, ContextManager

import numpy as np
import torch

from .base import Memory
from .host import ALIGNMENT, aligned, processor

_DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "i32": torch.int32, "i64": torch.int64}


def torch_memory(device: str = "") -> Memory:
    """Memory of a device of PyTorch, "cpu", "cuda" or "cuda:1"; "": CUDA where there is a device."""
    chosen = device or ("cuda" if torch.cuda.is_available() else "cpu")
    if chosen == "cpu":
        return TorchHostMemory()
    if not chosen.startswith("cuda") or not torch.cuda.is_available():
        raise RuntimeError(f"memory 'torch:{chosen}': PyTorch {torch.__version__} has no such device here: expected torch:cpu"
                           + (" or torch:cuda:N" if torch.cuda.is_available() else ""))
    return TorchCudaMemory(torch.device(chosen))


class _TorchMemory(Memory):
    where: torch.device

    def allocate(self, count: int) -> torch.Tensor:
        block = torch.empty(count + ALIGNMENT, dtype=torch.uint8, device=self.where)
        return aligned(block, block.data_ptr(), count)

    def address(self, block: torch.Tensor) -> int:
        return block.data_ptr()

    def view(self, block: torch.Tensor, offset: int, count: int, format: str, shape: tuple[int, ...]) -> torch.Tensor:
        dtype = _DTYPES.get(format, torch.uint8)
        if count == 0:
            return torch.empty(shape, dtype=dtype, device=self.where)
        # A copy of the slice's place, not of its bytes: view() wants the offset from the start of the storage to fit the type.
        return block[offset : offset + count].view(dtype).reshape(shape)


class TorchHostMemory(_TorchMemory):
    """PyTorch tensors on the host."""

    name = "torch:cpu"
    where = torch.device("cpu")

    def device(self) -> tuple[str, str, str]:
        return *processor(), f"Python {platform.python_version()}, PyTorch {torch.__version__}"


class TorchCudaMemory(_TorchMemory):
    """PyTorch tensors on a CUDA device, its streams and its CUDA graphs."""

    is_host = False
    can_capture = True

    def __init__(self, where: torch.device):
        self.where = where
        self.name = f"torch:{where}"
        torch.zeros(1, device=where)  # the context, outside any capture

    def device(self) -> tuple[str, str, str]:
        major, minor = torch.cuda.get_device_capability(self.where)
        software = f"Python {platform.python_version()}, PyTorch {torch.__version__}, CUDA {torch.version.cuda}"
        return torch.cuda.get_device_name(self.where), f"sm{major}{minor}", software

    def allocate(self, count: int) -> torch.Tensor:
        try:
            return super().allocate(count)
        except torch.cuda.OutOfMemoryError as error:
            raise MemoryError(str(error)) from error

    def copy(self, to: torch.Tensor, source: torch.Tensor, stream: Any) -> None:
        with self.on(stream):
            to.copy_(source, non_blocking=True)

    def copy_in(self, to: torch.Tensor, source: np.ndarray, stream: Any) -> None:
        with self.on(stream):
            to.copy_(torch.from_numpy(source), non_blocking=True)

    def copy_out(self, to: np.ndarray, source: torch.Tensor, stream: Any) -> None:
        with self.on(stream):
            torch.from_numpy(to).copy_(source, non_blocking=True)

    def fill(self, to: torch.Tensor, value: int, stream: Any) -> None:
        with self.on(stream):
            to.fill_(value)

    def stream(self) -> Any:
        return torch.cuda.Stream(self.where)

    def on(self, stream: Any) -> ContextManager[Any]:
        return torch.cuda.stream(stream)

    def wait(self, stream: Any, timeout_ms: int) -> bool:
        end = time.monotonic() + timeout_ms / 1000
        while not stream.query():
            if timeout_ms >= 0 and time.monotonic() > end:
                return False
            time.sleep(0.00005)
        return True

    def is_lost(self, error: BaseException) -> bool:
        # A library that refuses a call says "CUDA error: CUBLAS_STATUS_NOT_SUPPORTED": the device is as it was.
        return "CUDA error" in str(error) and "CUBLAS_STATUS" not in str(error) and not isinstance(error, torch.cuda.OutOfMemoryError)

    def capture_begin(self, stream: Any) -> Any:
        graph = torch.cuda.CUDAGraph()
        with self.on(stream):
            graph.capture_begin(capture_error_mode="thread_local")
        return graph

    def capture_end(self, graph: Any, stream: Any) -> None:
        with self.on(stream):
            graph.capture_end()

    def launch(self, graph: Any, stream: Any) -> None:
        with self.on(stream):
            graph.replay()
