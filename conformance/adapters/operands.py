"""Tensors of a product in the forms that frameworks take. Everything is computed on the device: splits are never read by the host."""

from __future__ import annotations

from typing import Any

import torch

FP8 = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}


def require(condition: bool, what: str) -> None:
    """Says that the kernel does not have the case."""
    if not condition:
        raise NotImplementedError(what)


def _is(factor: Any, value: float) -> bool:
    """A factor of the call is this number; where each group has its own, it is a tensor."""
    return isinstance(factor, float) and factor == value


def require_factors(t: Any, *betas: float) -> None:
    """alpha is 1, and beta one of `betas`."""
    require(_is(t.alpha, 1.0), "alpha is not 1")
    require(any(_is(t.beta, each) for each in betas), f"beta is not {' or '.join(f'{each:g}' for each in betas)}")


def require_arch(t: Any, arch: str = "sm90") -> None:
    """The arithmetic of this architecture, by the kernel's own plan; on a GPU, one of this architecture."""
    require(t.get("arch", arch) == arch, f"arch is {t.get('arch')}: expected {arch}")
    require("plan" not in t.parameters, "a plan is asked for: the kernel has its own")
    device = t.out.d.device
    if arch != "sm90" and device.type == "cuda":
        major, minor = torch.cuda.get_device_capability(device)
        require(arch == f"sm{major}{minor}", f"the device is sm{major}{minor}: expected {arch}")


def require_plain_product(t: Any, arch: str = "sm90") -> None:
    """D is the product: nothing is added, and there is no factor."""
    require_factors(t, 0.0)
    require("bias" not in t.inputs, "a bias is given: expected none")
    require_arch(t, arch)


def require_groups_in_turn(t: Any, kind: str, *d_types: str) -> None:
    """A plain product of this kind in layout TN: groups follow one another, D has one of `d_types`, FP8 operands are E4M3."""
    require(t.op == "grouped_gemm" and t.kind == kind and t.layout == "TN", f"not a product of kind {kind} in layout TN")
    require(t.get("grouped_layout", "splits") == "splits", f"grouped_layout is {t.get('grouped_layout')}: expected splits")
    require_plain_product(t)
    require(t.d_type in d_types, f"d_type is {t.d_type}: expected {' or '.join(d_types)}")
    if kind != "bf16":
        require(t.formats["x_rowwise_data"] == "e4m3" and t.formats["w_rowwise_data"] == "e4m3", "an operand is E5M2: expected E4M3")


def require_multiples(t: Any, **multiples: int) -> None:
    """N and K are multiples, and there is something to multiply."""
    for key, unit in multiples.items():
        require(t[key] > 0 and t[key] % unit == 0, f"{key} is {t[key]}: expected a positive multiple of {unit}")


def codes(t: Any, name: str) -> torch.Tensor:
    """Codes of FP8 as torch has them."""
    return t[name].view(FP8[t.formats[name]])


def groups_of(t: Any) -> int:
    """Number of groups, by the rows of w. N is not 0."""
    return int(next(t.inputs[name] for name in ("w", "w_rowwise_data") if name in t.inputs).shape[0]) // t.N


def offsets(t: Any) -> torch.Tensor:
    """Ends of the groups, i32 [G]."""
    return torch.cumsum(t.splits, 0).to(torch.int32)


def store_rows(t: Any, result: torch.Tensor) -> None:
    """Puts rows of the groups into D; those beyond the splits stay as they are."""
    inside = torch.arange(result.shape[0], device=result.device) < t.splits.sum()
    t.out.d.copy_(torch.where(inside[:, None], result.to(t.out.d.dtype), t.out.d))


def weight_scales(t: Any) -> torch.Tensor:
    """Scales of 128x128 blocks of w: f32 [G, N/128, K/128], a view. N and K are multiples of 128.

    Stored as [N/128, K/128 up to 4] for each group (spec fp8-block-2.1)."""
    blocks, padded = t.K // 128, (t.K // 128 + 3) // 4 * 4
    return t.w_rowwise_scale_inv.view(-1, t.N // 128, padded)[:, :, :blocks]


def row_scales(t: Any) -> torch.Tensor:
    """Scales of 1x128 blocks of x, where its rows are those of one matrix: f32 [R, K/128], a view with adjacent rows.

    Stored as [K/128, R up to 4] (spec fp8-block-2.1)."""
    rows = t.x_rowwise_data.shape[0]
    return t.x_rowwise_scale_inv.view(t.K // 128, (rows + 3) // 4 * 4)[:, :rows].t()


def row_scales_of_groups(t: Any) -> torch.Tensor:
    """Scales of 1x128 blocks of x, where the groups of `splits` follow one another: f32 [R, K/128], a copy.

    Each group is a matrix [K/128, rows up to 4] of its own, and these follow one another (spec layouts-2.1)."""
    rows, blocks = t.x_rowwise_data.shape[0], t.K // 128
    device = t.x_rowwise_data.device
    splits = t.splits.to(torch.int64)
    padded = (splits + 3) // 4 * 4
    ends, matrices = torch.cumsum(splits, 0), torch.cumsum(padded, 0) - padded
    row = torch.arange(rows, device=device)
    group = torch.searchsorted(ends, row, right=True).clamp(max=splits.shape[0] - 1)
    inner = row - (ends - splits)[group]
    inside = inner < splits[group]
    place = matrices[group] * blocks + inner
    index = place[:, None] + torch.arange(blocks, device=device)[None, :] * padded[group][:, None]
    scales = t.x_rowwise_scale_inv[torch.where(inside[:, None], index, 0)]
    return torch.where(inside[:, None], scales, 1.0)


def row_scales_masked(t: Any) -> torch.Tensor:
    """Scales of 1x128 blocks of x, where each group has room for max_m rows: f32 [G, max_m, K/128], a view."""
    padded = (t.max_m + 3) // 4 * 4
    return t.x_rowwise_scale_inv.view(groups_of(t), t.K // 128, padded)[:, :, : t.max_m].transpose(1, 2)
