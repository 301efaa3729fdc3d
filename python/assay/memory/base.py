"""What `assay.check` needs of a framework's memory."""

from __future__ import annotations

import contextlib
from typing import Any, ContextManager

import numpy as np


class Memory:
    """Memory, streams and graphs of one device of a framework.

    A block is a flat array of bytes (uint8) of the framework. Its slices are views, and assigning to a slice copies.

    Attributes:
        name: as `memory=` takes it.
        is_host: blocks are host memory: the harness then copies and fills them itself, and calls none of copy_in, copy_out and fill.
        can_capture: calls can be captured into a graph (the last three methods).
    """

    name = "memory"
    is_host = True
    can_capture = False

    def device(self) -> tuple[str, str, str]:
        """Name of the device, its architecture ("sm90", "x86-64"), and versions of the software, one line each."""
        raise NotImplementedError

    def allocate(self, count: int) -> Any:
        """A block of at least `count` bytes at a multiple of 256. Raises MemoryError where there is none."""
        raise NotImplementedError

    def address(self, block: Any) -> int:
        """The address of its first byte."""
        raise NotImplementedError

    def view(self, block: Any, offset: int, count: int, format: str, shape: tuple[int, ...]) -> Any:
        """`count` bytes of a block as an array of the framework: codes are uint8, bf16 is bfloat16 where the framework has it."""
        raise NotImplementedError

    def copy(self, to: Any, source: Any, stream: Any) -> None:
        """Copies a slice of a block to one of the same length, in the order of the stream."""
        with self.on(stream):
            to[...] = source

    def copy_in(self, to: Any, source: np.ndarray, stream: Any) -> None:
        """Copies host bytes to a slice, in the order of the stream."""
        raise NotImplementedError

    def copy_out(self, to: np.ndarray, source: Any, stream: Any) -> None:
        """Copies a slice to host memory, in the order of the stream."""
        raise NotImplementedError

    def fill(self, to: Any, value: int, stream: Any) -> None:
        """Sets every byte of a slice, in the order of the stream."""
        raise NotImplementedError

    def stream(self) -> Any:
        """A new stream. Work on two of them may overlap."""
        return None

    def on(self, stream: Any) -> ContextManager[Any]:
        """Within it, work goes to the stream."""
        return contextlib.nullcontext()

    def wait(self, stream: Any, timeout_ms: int) -> bool:
        """Waits for all work of the stream; False after the timeout (-1: no limit)."""
        return True

    def is_lost(self, error: BaseException) -> bool:
        """True where the device cannot be used any more after this exception."""
        return False

    def capture_begin(self, stream: Any) -> Any:
        """From here on work on the stream is recorded. Returns the graph."""
        raise NotImplementedError

    def capture_end(self, graph: Any, stream: Any) -> None:
        """Ends the recording."""
        raise NotImplementedError

    def launch(self, graph: Any, stream: Any) -> None:
        """Carries the recorded work out."""
        raise NotImplementedError
