"""Products of groups whose rows the device knows: one call of TransformerEngine, and in it one grouped product of cuBLASLt.

    TN    D [rows, N] = x [rows, K] . w [N, K]^T       A: n matrices w, all of one shape     B: x, rows by the splits
    NN    D [rows, K] = dy [rows, N] . w [N, K]        A: w                                  B: dy, rows by the splits
    NT    D [N, K]    = dy [rows, N]^T . x [rows, K]   A: x, rows by the splits              B: dy, likewise

On SM90 the function needs cuBLASLt 13.4 beside it, 13.5 for FP8 per tensor, and 13.6 to be sure of an algorithm for blocks.
"""

from __future__ import annotations

import ctypes as c
from typing import Any

import torch

from .. import nvte
from ..nvte import BLOCK_1D, BLOCK_2D, TENSOR, GroupedTensor, Tensor, array, call
from ..operands import require
from .calls import is_captured, operator, placed_by, require_multiples_of, row_offsets, scratch
from .products import OPERANDS, TRANSPOSED, WORKSPACE, add_bias, grouped_plan, require_product, split_accumulator

_SETUP_ALIGNMENT = 16


def _require_rows(t: Any) -> None:
    """The library reads the rows of groups on the device and checks nothing: an eager call looks at them. A captured one follows an eager
    call of the same tensors."""
    require(t.splits.shape[0] > 0, "there are no groups")
    if is_captured() or t.kind in ("bf16", "f16") or t.layout != "NT":
        return
    require_multiples_of(t.splits.tolist(), 16, ", so that rows of transposed codes begin at 16 bytes")


class _Groups:
    """How each grouped tensor of the call names its groups."""

    def __init__(self, t: Any):
        self.t, self.groups = t, t.splits.shape[0]
        self.first_dims = t.splits.to(torch.int64)
        self.offsets: dict[int, torch.Tensor] = {}

    def by_splits(self, rows: int, columns: int) -> dict[str, Any]:
        """A tensor of `rows` rows in memory, of which each group has those of its split."""
        if columns not in self.offsets:
            self.offsets[columns] = row_offsets(self.first_dims, columns)
        return placed_by(self.first_dims, self.offsets[columns], rows, columns)

    def weights(self) -> dict[str, Any]:
        """A tensor with a matrix [N, K] for each group."""
        return {"groups": self.groups, "logical": (self.groups * self.t.N, self.t.K)}

    def operand(self, name: str, data: torch.Tensor) -> dict[str, Any]:
        if name == "w":
            return self.weights()
        columns = self.t.N if name == "dy" else self.t.K
        return self.by_splits(data.numel() // columns, columns)

    def result(self) -> dict[str, Any]:
        if self.t.layout == "NT":
            return self.weights()
        columns = self.t.N if self.t.layout == "TN" else self.t.K
        return self.by_splits(self.t.out.d.shape[0], columns)


def _operand(groups: _Groups, name: str, along: str) -> GroupedTensor:
    t = groups.t
    if t.kind in ("bf16", "f16"):
        data = t.inputs[name]
        return GroupedTensor(TENSOR, **groups.operand(name, data), data=data.view(-1))
    codes, scales, kind = t.inputs[f"{name}_{along}_data"], t.inputs[f"{name}_{along}_scale_inv"], t.formats[f"{name}_{along}_data"]
    data, scale_inv = ("data", "scale_inv") if along == "rowwise" else ("columnwise_data", "columnwise_scale_inv")
    square = name == "w" and t.get("weight_block") == "128x128"
    mode = TENSOR if t.kind == "fp8_per_tensor" else BLOCK_2D if square else BLOCK_1D
    fields = {data: array(codes, kind, (codes.numel(),)), scale_inv: scales.view(-1)}
    return GroupedTensor(mode, **groups.operand(name, codes), **fields)


class _Config(nvte.Handle):
    """An NVTEGroupedMatmulConfig."""

    kind = "grouped_matmul_config"

    def __init__(self, split_accumulator: int):
        self._create()
        held = (c.c_uint8 * 1)(split_accumulator)
        call("nvte_set_grouped_matmul_config_attribute", self, 4, held, c.sizeof(held))


def _grouped_gemm(t: Any) -> None:
    require_product(t)
    _require_rows(t)
    groups = _Groups(t)
    a, b = (_operand(groups, *each) for each in OPERANDS[t.layout])
    placed = groups.result()
    d = GroupedTensor(TENSOR, **placed, data=t.out.d.view(-1))
    added = GroupedTensor(TENSOR, **placed, data=t.c.view(-1)) if t.beta != 0 else d
    factors = [Tensor(data=torch.full((1,), each, dtype=torch.float32, device=t.out.d.device)) for each in (t.alpha, t.beta)]
    size = nvte.library().functions.nvte_get_grouped_gemm_setup_workspace_size(groups.groups)
    setup, work = scratch(t, size + _SETUP_ALIGNMENT), scratch(t, WORKSPACE)
    start = -setup.data_ptr() % _SETUP_ALIGNMENT
    transposed = TRANSPOSED[t.layout]
    call("nvte_grouped_gemm", a, transposed[0], b, transposed[1], added, d, *factors, Tensor(data=setup[start : start + size]), Tensor(data=work),
         _Config(split_accumulator(t)), nvte.stream())
    add_bias(t)


# The plans of cuBLASLt's grouped products (grouped-gemm, measured), which this call is made of.
grouped_gemm = operator(_grouped_gemm, plan=grouped_plan)
