"""A function in Python as a backend of the harness: the methods are those of conformance/backend.h, under the same names."""

from __future__ import annotations

import bisect
import ctypes
import itertools
import traceback
from typing import Any

import numpy as np

from . import _assay, _formats, _returned
from .kernel import Kernel
from .memory import Memory, memory_named
from .tensors import Missing, Tensors

_OK, _NOT_SUPPORTED, _INVALID_ARGUMENT, _OUT_OF_MEMORY, _TIMEOUT, _DEVICE_LOST, _FAILED = range(7)
_TRIED_AT_MOST = 1 << 30  # bytes of a call that is tried on copies


class FunctionBackend:
    """A kernel, and the memory that it is called with."""

    def __init__(self, kernel: Kernel, memory: str | Memory):
        self.kernel = kernel
        self.memory = memory_named(memory)
        self.name = "python"
        self.description = f"{kernel.title} with memory of {self.memory.name}"
        self.is_host = self.memory.is_host
        self.can_capture = self.memory.can_capture
        self.names_places = False  # True: the text of an error says where it was raised, since `trace` stays in this process
        self.trace = ""  # of the last exception of the function
        self.returns = False  # it has returned results: what surrounds them is not judged
        self._starts: list[int] = []
        self._blocks: dict[int, Any] = {}
        self._handles = itertools.count(1)
        self._streams: dict[int, Any] = {}
        self._graphs: dict[int, Any] = {}
        self._capturing: tuple[int, Any] | None = None

    def failed(self, error: BaseException) -> tuple[int, str]:
        """The status that an exception stands for, and its text in one line."""
        text = (f"{type(error).__name__}: {error}".splitlines() or [""])[0].strip()
        frames = traceback.extract_tb(error.__traceback__)
        if self.names_places and frames:
            text += f" (line {frames[-1].lineno} of {frames[-1].filename})"
        if isinstance(error, NotImplementedError):
            return _NOT_SUPPORTED, " ".join(str(error).split()) or f"{self.kernel.title} raises NotImplementedError"
        if isinstance(error, MemoryError):
            return _OUT_OF_MEMORY, text
        if self.memory.is_lost(error):
            return _DEVICE_LOST, text
        return _INVALID_ARGUMENT if isinstance(error, (ValueError, TypeError)) else _FAILED, text

    def device_info(self) -> tuple[str, str, str]:
        device, architecture, software = self.memory.device()
        version = self.kernel.version() if callable(self.kernel.version) else self.kernel.version
        return device, architecture, ", ".join(filter(None, [version, software]))

    # Memory.

    def allocate(self, count: int) -> int:
        block = self.memory.allocate(max(count, 1))
        start = self.memory.address(block)
        bisect.insort(self._starts, start)
        self._blocks[start] = block
        return start

    def release(self, address: int) -> None:
        if self._blocks.pop(address, None) is not None:
            self._starts.remove(address)

    def _slice(self, address: int, count: int) -> Any:
        start = self._starts[bisect.bisect_right(self._starts, address) - 1]
        return self._blocks[start][address - start : address - start + count]

    def copy_to_device(self, stream: int, device: int, host: int, count: int) -> None:
        self.memory.copy_in(self._slice(device, count), _host_bytes(host, count), self._streams[stream])

    def copy_to_host(self, stream: int, host: int, device: int, count: int) -> None:
        self.memory.copy_out(_host_bytes(host, count), self._slice(device, count), self._streams[stream])

    def fill(self, stream: int, device: int, value: int, count: int) -> None:
        self.memory.fill(self._slice(device, count), value, self._streams[stream])

    # Streams and graphs.

    def stream_create(self) -> int:
        handle = next(self._handles)
        self._streams[handle] = self.memory.stream()
        return handle

    def stream_destroy(self, stream: int) -> None:
        self._streams.pop(stream, None)

    def synchronize(self, stream: int, timeout_ms: int) -> bool:
        return self.memory.wait(self._streams[stream], timeout_ms)

    def capture_begin(self, stream: int) -> None:
        self._capturing = (stream, self.memory.capture_begin(self._streams[stream]))

    def capture_end(self, stream: int) -> int:
        if self._capturing is None:
            raise RuntimeError("no call is being captured")
        (_, graph), self._capturing = self._capturing, None
        self.memory.capture_end(graph, self._streams[stream])
        handle = next(self._handles)
        self._graphs[handle] = graph
        return handle

    def graph_launch(self, graph: int, stream: int) -> None:
        self.memory.launch(self._graphs[graph], self._streams[stream])

    def graph_destroy(self, graph: int) -> None:
        self._graphs.pop(graph, None)

    # Calls. A call is (op, attributes, inputs, outputs), a tensor (name, format, shape, address, bytes).

    def supports(self, call: Any) -> None:
        """Tries the call on copies of its tensors: NotImplementedError declares it absent. It also compiles what is compiled at the
        first call, which a capture would not allow. All other exceptions are those of the call itself later."""
        op, attributes, inputs, outputs = call
        if self.kernel.supports is not None:
            if not self.kernel.supports(self._tensors(call)):
                raise NotImplementedError(f"supports() of {self.kernel.title} says so")
            return
        if sum(each[4] for each in (*inputs, *outputs)) > _TRIED_AT_MOST:
            return
        copied: list[int] = []
        stream = self.stream_create()

        def copies(tensors: Any) -> list[Any]:
            made = []
            for name, format, shape, address, count in tensors:
                place = self.allocate(count)
                copied.append(place)
                if count:
                    self.memory.copy(self._slice(place, count), self._slice(address, count), self._streams[stream])
                made.append((name, format, shape, place, count))
            return made

        try:
            tried = (op, attributes, copies(inputs), copies(outputs))
            try:
                self._call(stream, tried)
            except NotImplementedError:
                raise
            except Exception:  # the call itself says it again, with its traceback
                pass
        finally:
            self.memory.wait(self._streams[stream], -1)
            self.stream_destroy(stream)
            for place in copied:
                self.release(place)

    def numerics(self, call: Any) -> tuple[str, str, int, int, int]:
        op = call[0]
        product = op == "grouped_gemm" or op.startswith("linear_")
        kernel = self.kernel
        stated = {None: -1, False: 0, True: 1}
        unit, plan = (kernel.unit or "", kernel.plan or "") if product else ("", "")
        if callable(plan):
            try:
                plan = plan(self._tensors(call)) or ""
            except (Missing, NotImplementedError):  # of a call that the kernel does not serve, as it says when it is called
                plan = ""
        return unit, plan, stated[kernel.keeps_zero_sign], stated[kernel.deterministic], stated[kernel.batch_invariant]

    def execute(self, stream: int, call: Any) -> None:
        self._call(stream, call)

    def _view(self, tensor: Any) -> Any:
        name, format, shape, address, count = tensor
        if count == 0 or address == 0:
            return self.memory.view(self.memory.allocate(1), 0, 0, format, tuple(shape))
        start = self._starts[bisect.bisect_right(self._starts, address) - 1]
        return self.memory.view(self._blocks[start], address - start, count, format, tuple(shape))

    def _tensors(self, call: Any) -> Tensors:
        op, attributes, inputs, outputs = call
        read = getattr(self.memory, "input", lambda array: array)
        return Tensors(op, _assay.in_words(op, attributes, True), {each[0]: read(self._view(each)) for each in inputs},
                       {each[0]: self._view(each) for each in outputs}, {each[0]: each[1] for each in inputs},
                       {each[0]: each[1] for each in outputs})

    def _call(self, stream: int, call: Any) -> None:
        self.trace = ""
        t = self._tensors(call)
        try:
            with self.memory.on(self._streams[stream]):
                returned = self.kernel(t)
        except Exception as error:
            self.trace = "".join(traceback.format_exception(type(error), error, _own_frames(error)))
            raise
        if returned is not None:
            self._store(stream, call, _returned.by_name(t, returned))

    def _store(self, stream: int, call: Any, values: dict[str, Any]) -> None:
        if self._capturing is not None:
            raise RuntimeError("the function returns its results, so that it cannot be captured into a graph: write them to t.out, or "
                               "say graphs=False")
        op, attributes, inputs, outputs = call
        self.returns = True
        where = self._streams[stream]
        read = {each[0]: (each[1], list(each[2]), self._host(each, where)) for each in inputs}
        masks = _assay.written(op, attributes, read, [each[0] for each in outputs])
        for output in outputs:
            name, format, shape, address, count = output
            mask = np.asarray(masks[name][2])
            made = _returned.merged(name, values[name], format, tuple(shape), self._host(output, where), mask)
            if count == 0:
                continue
            if self.is_host:
                _host_bytes(address, count)[:] = made
            else:
                self.memory.copy_in(self._slice(address, count), made, where)
                self.memory.wait(where, -1)

    def _host(self, tensor: Any, stream: Any) -> np.ndarray:
        _, _, _, address, count = tensor
        made = np.empty(count, np.uint8)
        if count and self.is_host:
            made[:] = _host_bytes(address, count)
        elif count:
            self.memory.copy_out(made, self._slice(address, count), stream)
            self.memory.wait(stream, -1)
        return made


def _host_bytes(address: int, count: int) -> np.ndarray:
    return np.ctypeslib.as_array((ctypes.c_uint8 * count).from_address(address))


def _own_frames(error: BaseException) -> Any:
    """The traceback from the author's code on."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None and frame.tb_frame.f_globals.get("__name__", "").startswith("assay."):
        frame = frame.tb_next
    return frame
