"""Times on a CUDA device: graphs of calls, timed by events, with the clock and the power of the card beside them."""

from __future__ import annotations

import statistics
import threading
import time
from typing import Any, Callable

import torch

from . import timing

SLICE, BURST, REST = 3e-3, 50e-3, 0.25  # seconds


class Board:
    """Clock of the multiprocessors in MHz and power in W of the current device, read from the driver.

    The driver counts all devices of the machine, whatever CUDA_VISIBLE_DEVICES says: the device is found by its UUID.
    """

    def __init__(self) -> None:
        import pynvml

        pynvml.nvmlInit()
        uuid = torch.cuda.get_device_properties(torch.cuda.current_device()).uuid
        self._nvml, self._handle = pynvml, pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")

    def read(self) -> tuple[float, float]:
        clock = self._nvml.nvmlDeviceGetClockInfo(self._handle, self._nvml.NVML_CLOCK_SM)
        instant = self._nvml.nvmlDeviceGetFieldValues(self._handle, [self._nvml.NVML_FI_DEV_POWER_INSTANT])[0]
        power = instant.value.uiVal if instant.nvmlReturn == 0 else self._nvml.nvmlDeviceGetPowerUsage(self._handle)
        return float(clock), power / 1000


class Watch:
    """Reads the board every 20 ms while it is open."""

    def __init__(self, board: Board):
        self.samples: list[tuple[float, float, float]] = []  # moment, MHz, W
        self._board, self._done = board, threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._done.wait(0.02):
            self.samples.append((time.monotonic(), *self._board.read()))

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._done.set()
        self._thread.join()


class Graph:
    """Calls in a row, as one graph."""

    def __init__(self, launches: list[Callable[[], Any]], at_least: int = 1):
        self.launches = [launches[i % len(launches)] for i in range(max(len(launches), at_least))]
        for launch in launches:  # what is only there after a first call must not be captured
            launch()
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            for launch in self.launches:
                launch()
        self.one_call = self.seconds(1)
        self.one_call = self.seconds(timing.calls_for(SLICE, self.one_call * len(self.launches)))

    def seconds(self, replays: int) -> float:
        """Of one call, over so many replays in a row."""
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(replays):
            self.graph.replay()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / 1e3 / replays / len(self.launches)

    def replays_for(self, seconds: float) -> int:
        return timing.calls_for(seconds, self.one_call * len(self.launches))

    def slice(self) -> float:
        return self.seconds(self.replays_for(SLICE))

    def short(self, board: Board) -> dict[str, float]:
        """Seconds of a call in the first 50 ms after a rest, and MHz and W at their end."""
        torch.cuda.synchronize()
        time.sleep(REST)
        replays = self.replays_for(BURST)
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(replays):
            self.graph.replay()
        end.record()
        time.sleep(BURST * 0.8)
        clock, power = board.read()
        end.synchronize()
        return {"seconds": start.elapsed_time(end) / 1e3 / replays / len(self.launches), "MHz": clock, "W": power}

    def sustained(self, board: Board, seconds: float) -> dict[str, float]:
        """Medians of the second half of the time: seconds of a call, MHz, W. Two pieces of 10 ms are always waiting."""
        replays = self.replays_for(10e-3)
        events = [torch.cuda.Event(enable_timing=True)]
        events[0].record()
        taken: list[tuple[float, float]] = []
        begin = time.monotonic()
        with Watch(board) as watch:
            while time.monotonic() - begin < seconds:
                for _ in range(replays):
                    self.graph.replay()
                events.append(torch.cuda.Event(enable_timing=True))
                events[-1].record()
                if len(events) > 3:
                    events[-3].synchronize()
                    taken.append((time.monotonic(), events[-4].elapsed_time(events[-3]) / 1e3 / replays / len(self.launches)))
            torch.cuda.synchronize()
        end = time.monotonic()
        late = [sample for sample in watch.samples if begin + (end - begin) / 2 <= sample[0]]
        return {"seconds": timing.second_half(taken), "MHz": statistics.median(each[1] for each in late),
                "W": statistics.median(each[2] for each in late)}
