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


def _require_product(t: Any, kind: str, layout: str, order: str = "TN") -> None:
    require(t.op == "grouped_gemm" and t.kind == kind and t.layout == order, f"not a product of kind {kind} in layout {order}")
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


def _require_one_group(t: Any) -> None:
    placed = t.get("grouped_layout", "splits")
    require(placed == "splits", f"grouped_layout is {placed}: expected splits")
    require(t.splits.shape[0] == 1, f"{t.splits.shape[0]} groups: expected one")


def _fp8_dense(t: Any) -> None:
    _require_product(t, "fp8_block", "splits")
    _require_one_group(t)
    require(t.x_rowwise_data.shape[0] > 0, "there are no rows")
    d = t.out.d.new_empty(t.out.d.shape)
    _library().fp8_gemm_nt((codes(t, "x_rowwise_data"), row_scales_of_groups(t)), (codes(t, "w_rowwise_data"), _contiguous(weight_scales(t)[0])), d)
    store_rows(t, d)


def _fp8_dense_1d1d(t: Any) -> None:
    """1x128 scales on both sides, onto C in f32: the library copies C into D and adds there."""
    require(t.op == "grouped_gemm" and t.kind == "fp8_block" and t.layout == "TN", "not a product of FP8 blocks in layout TN")
    _require_one_group(t)
    require_factors(t, 1.0)  # the library refuses a call without C
    require("bias" not in t.inputs, "a bias is given: expected none")
    require_arch(t)
    require(t.d_type == "f32", f"d_type is {t.d_type}: expected f32")
    require(t.weight_block == "1x128", f"weight_block is {t.weight_block}: expected 1x128")
    require(t.formats["x_rowwise_data"] == "e4m3" and t.formats["w_rowwise_data"] == "e4m3", "an operand is E5M2: expected E4M3")
    require_multiples(t, N=128, K=128)
    # For up to 32 rows the library chooses tiles of 16 or 32, of which this kernel does not compile (BLOCK_M % WGMMA::M == 0).
    require(t.x_rowwise_data.shape[0] > 32, f"{t.x_rowwise_data.shape[0]} rows: expected more than 32")
    d = t.out.d.new_empty(t.out.d.shape)
    w_scales = t.w_rowwise_scale_inv.view(t.K // 128, t.N).t()  # stored [K/128, N up to 4]
    _library().fp8_gemm_nt((codes(t, "x_rowwise_data"), row_scales_of_groups(t)), (codes(t, "w_rowwise_data"), w_scales), d, c=t.c,
                           recipe=(1, 1, 128))
    store_rows(t, d)


def _rows_of_k_groups(t: Any, kind: str) -> list[int]:
    """Rows of each group of D = dy^T x, onto C. The library wants them on the host too, so that a graph cannot hold the call."""
    require(t.op == "grouped_gemm" and t.kind == kind and t.layout == "NT", f"not a product of kind {kind} in layout NT")
    require(t.get("grouped_layout", "splits") == "splits", "groups do not follow one another")
    require_factors(t, 1.0)  # the library refuses a call without C
    require_arch(t)
    require(t.d_type == "f32", f"d_type is {t.d_type}: expected f32")
    require_multiples(t, N=128, K=128)
    require(not (t.splits.is_cuda and torch.cuda.is_current_stream_capturing()), "the call is captured: expected an eager call")
    rows = t.splits.tolist()
    require(all(each % 128 == 0 for each in rows) and sum(rows) > 0, f"splits are {rows}: expected multiples of 128")
    dy = t.dy if kind == "bf16" else t.dy_columnwise_data
    require(sum(rows) * t.N == dy.numel(), "there are rows beyond the splits")
    return rows


def _fp8_k_grouped(t: Any) -> None:
    rows = _rows_of_k_groups(t, "fp8_block")
    require(t.formats["dy_columnwise_data"] == "e4m3" and t.formats["x_columnwise_data"] == "e4m3", "an operand is E5M2: expected E4M3")
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


def _bf16_contiguous_nn(t: Any) -> None:
    """The gradient of x: D = dy w, where w is read as it lies."""
    _require_product(t, "bf16", "m_indices", "NN")
    _require_alignment(t)
    _library().m_grouped_bf16_gemm_nn_contiguous(t.dy, t.w.view(-1, t.N, t.K), t.out.d, t.m_indices)


def _bf16_k_grouped(t: Any) -> None:
    rows = _rows_of_k_groups(t, "bf16")
    _library().k_grouped_bf16_gemm_tn_contiguous(t.dy, t.x, t.out.d.view(-1, t.N, t.K), rows, t.splits.to(torch.int32), t.c.view(-1, t.N, t.K))


def _adds_onto_c(t: Any) -> bool:
    return isinstance(t.beta, float) and t.beta == 1.0


def _bf16_dense(t: Any) -> None:
    """One group in each layout, to bf16 or f32, or onto C in f32. NT sums over all rows: those beyond the splits are zeros there."""
    require(t.op == "grouped_gemm" and t.kind == "bf16", "not a product of kind bf16")
    _require_one_group(t)
    require_factors(t, 0.0, 1.0)
    require("bias" not in t.inputs, "a bias is given: expected none")
    require_arch(t)
    onto_c = _adds_onto_c(t)
    require(t.d_type in (("f32",) if onto_c else ("bf16", "f32")), f"d_type is {t.d_type}: expected {'f32, onto C' if onto_c else 'bf16 or f32'}")
    require_multiples(t, N=64, K=64)
    a, b = {"TN": ("x", "w"), "NN": ("dy", "w"), "NT": ("dy", "x")}[t.layout]
    require(t[a].shape[0] > 0, "there are no rows")
    call = {"TN": "bf16_gemm_nt", "NN": "bf16_gemm_nn", "NT": "bf16_gemm_tn"}[t.layout]  # the library's names have w as [N, K]
    left, right = t[a], t[b]
    if t.layout == "NT":
        inside = (torch.arange(left.shape[0], device=left.device) < t.splits.sum())[:, None]
        left, right = torch.where(inside, left, 0), torch.where(inside, right, 0)
    d = t.out.d.new_empty(t.out.d.shape)
    getattr(_library(), call)(left, right, d, c=t.c if onto_c else None)
    if t.layout == "NT":
        t.out.d.copy_(d)
    else:
        store_rows(t, d)


def _bf16_plan(t: Any) -> str:
    return "deepgemm.sm90.bf16" if not _adds_onto_c(t) else _BF16_ONTO_C


def _bf16_masked(t: Any) -> None:
    _require_product(t, "bf16", "masked")
    groups = groups_of(t)
    require(t.max_m > 0, "there are no rows")
    _library().m_grouped_bf16_gemm_nt_masked(t.x.view(groups, t.max_m, t.K), t.w.view(groups, t.N, t.K), t.out.d.view(groups, t.max_m, t.N),
                                             t.splits, _EXPECTED_ROWS)


# One chain over K, which the copy engine adds onto C in memory, as it does for FP8.
_BF16_ONTO_C = "unit=sm90.wgmma.f16,epilogue=reduce_add_ftz"


def _version() -> str:
    """That of the installed package; of a copy in another package, as vLLM has one, the number that it says itself."""
    try:
        return libraries.installed("sgl-deep-gemm")
    except LookupError:
        return f"DeepGEMM {getattr(_library(), '__version__', 'of an unknown version')}"


def _kernel(fn: Any, plan: Any) -> Kernel:
    return Kernel(fn, plan=plan, memory="torch", deterministic=True, version=_version)


fp8_contiguous = _kernel(_fp8_contiguous, "deepgemm.sm90.fp8_block.scales_first")
fp8_psum = _kernel(_fp8_psum, "deepgemm.sm90.fp8_block.scales_first")
fp8_masked = _kernel(_fp8_masked, "deepgemm.sm90.fp8_block.scales_first")
fp8_dense = _kernel(_fp8_dense, "deepgemm.sm90.fp8_block.scales_first")
fp8_dense_1d1d = _kernel(_fp8_dense_1d1d, "deepgemm.sm90.fp8_block.accumulate")
fp8_k_grouped = _kernel(_fp8_k_grouped, "deepgemm.sm90.fp8_block.accumulate")
bf16_contiguous = _kernel(_bf16_contiguous, "deepgemm.sm90.bf16")
bf16_psum = _kernel(_bf16_psum, "deepgemm.sm90.bf16")
bf16_masked = _kernel(_bf16_masked, "deepgemm.sm90.bf16")
bf16_contiguous_nn = _kernel(_bf16_contiguous_nn, "deepgemm.sm90.bf16")
bf16_k_grouped = _kernel(_bf16_k_grouped, _BF16_ONTO_C)
bf16_dense = _kernel(_bf16_dense, _bf16_plan)
