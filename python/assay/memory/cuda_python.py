"""Memory of CuPy."""

from __future__ import annotations

import platform
import time
from typing import Any, ContextManager

import cupy
import numpy as np

from .base import Memory
from .host import ALIGNMENT, aligned

_DTYPES = {"f32": np.float32, "bf16": np.uint16, "f16": np.float16, "i32": np.int32, "i64": np.int64}


class CupyMemory(Memory):
    """CuPy arrays on the current CUDA device, its streams and its graphs. bf16 is uint16, which CuPy has no other type for."""

    name = "cupy"
    is_host = False
    can_capture = True

    def device(self) -> tuple[str, str, str]:
        properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
        software = f"Python {platform.python_version()}, CuPy {cupy.__version__}, CUDA {cupy.cuda.runtime.runtimeGetVersion()}"
        return properties["name"].decode(), f"sm{properties['major']}{properties['minor']}", software

    def allocate(self, count: int) -> Any:
        try:
            block = cupy.empty(count + ALIGNMENT, np.uint8)
        except cupy.cuda.memory.OutOfMemoryError as error:
            raise MemoryError(str(error)) from error
        return aligned(block, block.data.ptr, count)

    def address(self, block: Any) -> int:
        return block.data.ptr

    def view(self, block: Any, offset: int, count: int, format: str, shape: tuple[int, ...]) -> Any:
        return block[offset : offset + count].view(_DTYPES.get(format, np.uint8)).reshape(shape)

    def copy_in(self, to: Any, source: np.ndarray, stream: Any) -> None:
        to.set(source, stream=stream)

    def copy_out(self, to: np.ndarray, source: Any, stream: Any) -> None:
        source.get(stream=stream, out=to, blocking=False)

    def fill(self, to: Any, value: int, stream: Any) -> None:
        with stream:
            to.fill(value)

    def stream(self) -> Any:
        return cupy.cuda.Stream(non_blocking=True)

    def on(self, stream: Any) -> ContextManager[Any]:
        return stream

    def wait(self, stream: Any, timeout_ms: int) -> bool:
        end = time.monotonic() + timeout_ms / 1000
        while not stream.done:
            if timeout_ms >= 0 and time.monotonic() > end:
                return False
            time.sleep(0.00005)
        stream.synchronize()  # raises what the work has left
        return True

    def is_lost(self, error: BaseException) -> bool:
        return isinstance(error, cupy.cuda.runtime.CUDARuntimeError)

    def capture_begin(self, stream: Any) -> Any:
        stream.begin_capture()
        return []

    def capture_end(self, graph: Any, stream: Any) -> None:
        graph.append(stream.end_capture())

    def launch(self, graph: Any, stream: Any) -> None:
        graph[0].launch(stream)
