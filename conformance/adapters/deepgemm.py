"""DeepGEMM, as sgl-deep-gemm 0.1.4.post1 has it: it compiles its kernels at run time, with nvcc. Judged on an H200: README.md."""

from __future__ import annotations

from typing import Any

import torch

from assay import Kernel

from . import libraries
from .operands import (codes, groups_of, require, require_arch, require_factors, require_multiples, require_plain_product, row_scales,
                       row_scales_masked, row_scales_of_groups, store_rows, weight_scales)

# deep_gemm asks for the rows of a typical group, to choose tiles: no result depends on it.
_EXPECTED_ROWS = 128


def _library() -> Any:
    import deep_gemm

    return deep_gemm


def _contiguous(tensor: torch.Tensor) -> torch.Tensor:
    """A copy whose strides are those of its shape, also where an extent is 1: the library checks them."""
    return tensor.clone(memory_format=torch.contiguous_format)


def _require_product(t: Any, kind: str, layout: str) -> None:
    require(t.op == "grouped_gemm" and t.kind == kind and t.layout == "TN", f"not a product of kind {kind} in layout TN")
    placed = t.get("grouped_layout", "splits")
    require(placed == layout, f"grouped_layout is {placed}: expected {layout}")
    require_plain_product(t)
    require(t.d_type == "bf16", f"d_type is {t.d_type}: expected bf16")
    if kind == "fp8_block":
        require(t.weight_block == "128x128", f"weight_block is {t.weight_block}: expected 128x128")
        require(t.formats["x_rowwise_data"] == "e4m3" and t.formats["w_rowwise_data"] == "e4m3", "an operand is E5M2: expected E4M3")
        require_multiples(t, N=128, K=128)
    else:
        require_multiples(t, N=64, K=64)


def _require_alignment(t: Any) -> None:
    unit = _library().get_mk_alignment_for_contiguous_layout()
    require(t.alignment == unit, f"alignment is {t.alignment}: expected {unit}")


def _fp8_operands(t: Any) -> tuple[Any, Any]:
    """(codes, scales) of x and of w, whose rows are those of one matrix."""
    x = (codes(t, "x_rowwise_data"), row_scales(t))
    return x, (codes(t, "w_rowwise_data").view(-1, t.N, t.K), _contiguous(weight_scales(t)))


def _fp8_contiguous(t: Any) -> None:
    _require_product(t, "fp8_block", "m_indices")
    _require_alignment(t)
    x, w = _fp8_operands(t)
    _library().m_grouped_fp8_gemm_nt_contiguous(x, w, t.out.d, t.m_indices)


def _fp8_psum(t: Any) -> None:
    _require_product(t, "fp8_block", "psum")
    _require_alignment(t)
    x, w = _fp8_operands(t)
    _library().m_grouped_fp8_gemm_nt_contiguous(x, w, t.out.d, t.psum, use_psum_layout=True)


def _fp8_masked(t: Any) -> None:
    _require_product(t, "fp8_block", "masked")
    groups = groups_of(t)
    require(t.max_m > 0, "there are no rows")
    x = (codes(t, "x_rowwise_data").view(groups, t.max_m, t.K), row_scales_masked(t))
    w = (codes(t, "w_rowwise_data").view(groups, t.N, t.K), _contiguous(weight_scales(t)))
    _library().m_grouped_fp8_fp4_gemm_nt_masked(x, w, t.out.d.view(groups, t.max_m, t.N), t.splits, _EXPECTED_ROWS)


def _fp8_dense(t: Any) -> None:
    _require_product(t, "fp8_block", "splits")
    require(groups_of(t) == 1, f"{groups_of(t)} groups: expected one")
    require(t.x_rowwise_data.shape[0] > 0, "there are no rows")
    d = t.out.d.new_empty(t.out.d.shape)
    _library().fp8_gemm_nt((codes(t, "x_rowwise_data"), row_scales_of_groups(t)), (codes(t, "w_rowwise_data"), _contiguous(weight_scales(t)[0])), d)
    store_rows(t, d)


def _fp8_k_grouped(t: Any) -> None:
    """D = dy^T x for each group, onto C. The library wants the splits on the host too, so that a graph cannot hold the call."""
    require(t.op == "grouped_gemm" and t.kind == "fp8_block" and t.layout == "NT", "not a product of FP8 blocks in layout NT")
    require(t.get("grouped_layout", "splits") == "splits", "groups do not follow one another")
    require_factors(t, 1.0)  # the library refuses a call without C
    require_arch(t)
    require(t.d_type == "f32", f"d_type is {t.d_type}: expected f32")
    require(t.formats["dy_columnwise_data"] == "e4m3" and t.formats["x_columnwise_data"] == "e4m3", "an operand is E5M2: expected E4M3")
    require_multiples(t, N=128, K=128)
    require(not torch.cuda.is_current_stream_capturing(), "the call is captured: expected an eager call")
    rows = t.splits.tolist()
    require(all(each % 128 == 0 for each in rows) and sum(rows) > 0, f"splits are {rows}: expected multiples of 128")
    require(sum(rows) * t.N == t.dy_columnwise_data.numel(), "there are rows beyond the splits")
    blocks = sum(rows) // 128
    dy = (codes(t, "dy_columnwise_data").view(-1), t.dy_columnwise_scale_inv.view(blocks, t.N).t())
    x = (codes(t, "x_columnwise_data").view(-1), t.x_columnwise_scale_inv.view(blocks, t.K).t())
    _library().k_grouped_fp8_gemm_nt_contiguous(dy, x, t.out.d.view(-1, t.N, t.K), rows, t.splits.to(torch.int32),
                                                t.c.view(-1, t.N, t.K))


def _bf16_contiguous(t: Any) -> None:
    _require_product(t, "bf16", "m_indices")
    _require_alignment(t)
    _library().m_grouped_bf16_gemm_nt_contiguous(t.x, t.w.view(-1, t.N, t.K), t.out.d, t.m_indices)


def _bf16_psum(t: Any) -> None:
    _require_product(t, "bf16", "psum")
    _require_alignment(t)
    _library().m_grouped_bf16_gemm_nt_contiguous(t.x, t.w.view(-1, t.N, t.K), t.out.d, t.psum, use_psum_layout=True)


def _bf16_masked(t: Any) -> None:
    _require_product(t, "bf16", "masked")
    groups = groups_of(t)
    require(t.max_m > 0, "there are no rows")
    _library().m_grouped_bf16_gemm_nt_masked(t.x.view(groups, t.max_m, t.K), t.w.view(groups, t.N, t.K), t.out.d.view(groups, t.max_m, t.N),
                                             t.splits, _EXPECTED_ROWS)


def _kernel(fn: Any, plan: str) -> Kernel:
    return Kernel(fn, plan=plan, memory="torch", deterministic=True, version=lambda: libraries.distribution("sgl-deep-gemm"))


fp8_contiguous = _kernel(_fp8_contiguous, "deepgemm.sm90.fp8_block.scales_first")
fp8_psum = _kernel(_fp8_psum, "deepgemm.sm90.fp8_block.scales_first")
fp8_masked = _kernel(_fp8_masked, "deepgemm.sm90.fp8_block.scales_first")
fp8_dense = _kernel(_fp8_dense, "deepgemm.sm90.fp8_block.scales_first")
fp8_k_grouped = _kernel(_fp8_k_grouped, "deepgemm.sm90.fp8_block.accumulate")
bf16_contiguous = _kernel(_bf16_contiguous, "deepgemm.sm90.bf16")
bf16_psum = _kernel(_bf16_psum, "deepgemm.sm90.bf16")
bf16_masked = _kernel(_bf16_masked, "deepgemm.sm90.bf16")
