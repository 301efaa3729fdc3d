"""assay::device from Python: device_calls.h by ctypes. Tensors are torch's; a call goes to torch's current stream."""

from __future__ import annotations

import ctypes
import dataclasses
from typing import Any

import torch

PRODUCTION, BARE, ALONE, OWN = 0, 1, 2, 3  # routes of a product


class _Rows(ctypes.Structure):
    _fields_ = [("rows", ctypes.c_int64), ("splits", ctypes.c_void_p), ("groups", ctypes.c_int32)]


class _Quantize(ctypes.Structure):
    _fields_ = [("rows", _Rows), ("columns", ctypes.c_int64), ("preset", ctypes.c_char_p), ("block", ctypes.c_char_p),
                ("storage", ctypes.c_char_p), ("x", ctypes.c_void_p), ("data", ctypes.c_void_p), ("scale_inv", ctypes.c_void_p)]


class _Product(ctypes.Structure):
    _fields_ = [("rows", _Rows), ("N", ctypes.c_int64), ("K", ctypes.c_int64), ("x", ctypes.c_void_p), ("x_scales", ctypes.c_void_p),
                ("w", ctypes.c_void_p), ("w_scales", ctypes.c_void_p), ("d", ctypes.c_void_p)]


@dataclasses.dataclass
class Launch:
    """A call with what it needs: calling it launches it on the current stream."""

    library: "DeviceCalls"
    function: str
    before: tuple  # arguments before the workspace
    workspace: torch.Tensor
    bytes: Any
    status: torch.Tensor
    kept: tuple  # tensors and the structure, whose addresses the call has

    def __call__(self) -> None:
        stream = torch.cuda.current_stream().cuda_stream
        self.library.checked(self.function, *self.before, ctypes.c_void_p(self.workspace.data_ptr()), ctypes.byref(self.bytes),
                             ctypes.c_void_p(self.status.data_ptr()), ctypes.c_void_p(stream))

    def require_ok(self) -> None:
        """Raises RuntimeError: the call found its values in device memory wrong. Waits for the device."""
        found = int(self.status.item())
        if found:
            raise RuntimeError(f"{self.function}: status {found}")


class DeviceCalls:
    """The library that the build makes of device_calls.cc.

    Args:
        path: of the library. cublaslt: of the cuBLASLt to use; without it the loader's.
    """

    def __init__(self, path: str, cublaslt: str = ""):
        self._library = ctypes.CDLL(path)
        self._library.assay_bench_error.restype = ctypes.c_char_p
        if cublaslt:
            self.checked("assay_bench_use_cublaslt", cublaslt.encode())

    def checked(self, function: str, *arguments: Any) -> None:
        if getattr(self._library, function)(*arguments) != 0:
            raise RuntimeError(f"{function}: {self._library.assay_bench_error().decode()}")

    def cublaslt_version(self) -> str:
        version = ctypes.c_int()
        self.checked("assay_bench_cublaslt_version", ctypes.byref(version))
        return f"{version.value // 10000}.{version.value // 100 % 100}.{version.value % 100}"

    def _launch(self, function: str, before: tuple, where: torch.device, kept: tuple) -> Launch:
        size = ctypes.c_int64()
        self.checked(function, *before, None, ctypes.byref(size), None, None)
        workspace = torch.empty(max(size.value, 256), dtype=torch.uint8, device=where)
        return Launch(self, function, before, workspace, size, torch.zeros(1, dtype=torch.int32, device=where), kept)

    def quantize(self, x: torch.Tensor, data: torch.Tensor, scale_inv: torch.Tensor, splits: torch.Tensor | None = None, *, preset: str = "",
                 block: str = "", storage: str = "") -> Launch:
        """By the recipe block_1x128, or by a preset."""
        rows = _Rows(x.shape[0], splits.data_ptr() if splits is not None else None, splits.numel() if splits is not None else 1)
        call = _Quantize(rows, x.shape[1], preset.encode() or None, block.encode(), storage.encode(), x.data_ptr(), data.data_ptr(),
                         scale_inv.data_ptr())
        return self._launch("assay_bench_quantize", (ctypes.byref(call),), x.device, (call, x, data, scale_inv, splits))

    def _product(self, t: Any, d: torch.Tensor) -> tuple[_Product, tuple]:
        rows = _Rows(t.x_rowwise_data.shape[0], t.splits.data_ptr(), t.splits.numel())
        held = (t.x_rowwise_data, t.x_rowwise_scale_inv, t.w_rowwise_data, t.w_rowwise_scale_inv, d)
        return _Product(rows, t.N, t.K, *(each.data_ptr() for each in held)), (*held, t.splits)

    def product(self, t: Any, d: torch.Tensor, route: int = PRODUCTION) -> Launch:
        call, kept = self._product(t, d)
        return self._launch("assay_bench_product", (ctypes.byref(call), ctypes.c_int(route)), d.device, (call, *kept))

    def product_alone(self, t: Any, d: torch.Tensor) -> Launch:
        """cuBLASLt's kernels alone: the arrays of the groups are written now."""
        launch = self.product(t, d, BARE)
        launch()
        return dataclasses.replace(launch, before=(launch.before[0], ctypes.c_int(ALONE)))

    def predict(self, t: Any, plan: str) -> torch.Tensor:
        """D of this plan, by the emulated tensor core."""
        d = torch.zeros_like(t.out.d)
        call, kept = self._product(t, d)
        launch = self._launch("assay_bench_predict", (ctypes.byref(call), ctypes.c_char_p(plan.encode())), d.device, (call, *kept))
        launch()
        launch.require_ok()
        return d
