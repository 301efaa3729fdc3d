"""Tensors of the timed problems, as the specification stores them (spec fp8-block-2.1, layouts-2.1, grouped-gemm-1.4)."""

from __future__ import annotations

import torch

from .calls import Call
from .problems import MOST_ROWS_OF_A_TILE, Product, Quantization

E4M3 = torch.float8_e4m3fn


def up(value: int, unit: int) -> int:
    return (value + unit - 1) // unit * unit


def _codes(rows: int, columns: int, generator: torch.Generator) -> torch.Tensor:
    """Normal values over the whole range of e4m3, as blocks quantized by their largest magnitude have them; a megabyte at a time."""
    codes = torch.empty((rows, columns), dtype=torch.uint8, device=generator.device)
    for part in codes.split(1 << 14):
        drawn = torch.randn(part.shape, generator=generator, device=generator.device).mul_(120).clamp_(-448, 448)
        part.copy_(drawn.to(E4M3).view(torch.uint8))
    return codes


def _scales(*shape: int, generator: torch.Generator) -> torch.Tensor:
    return torch.rand(shape, generator=generator, device=generator.device) * 0.01 + 0.005


def stored_scales(scales: torch.Tensor) -> torch.Tensor:
    """[M, K/128] as a matrix of its own is stored: [K/128, M up to 4], flat; the padding is 0."""
    rows, blocks = scales.shape
    stored = scales.new_zeros((blocks, up(rows, 4)))
    stored[:, :rows] = scales.t()
    return stored.view(-1)


class ProductTensors:
    """Operands of one problem, and the calls that hold them in each layout of groups."""

    def __init__(self, problem: Product, where: str, seed: int = 1):
        self.problem = problem
        generator = torch.Generator(where).manual_seed(seed)
        groups, n, k = len(problem.splits), problem.N, problem.K
        self.x, self.w = _codes(problem.rows, k, generator), _codes(groups * n, k, generator)
        self.x_scales = _scales(problem.rows, k // 128, generator=generator)
        w_scales = torch.ones((groups, n // 128, up(k // 128, 4)), device=where)
        w_scales[:, :, : k // 128] = _scales(groups, n // 128, k // 128, generator=generator)
        self.w_scales = w_scales.view(-1)
        self.where = where

    def _call(self, x: torch.Tensor, x_scales: torch.Tensor, more: dict, **parameters: object) -> Call:
        inputs = {"x_rowwise_data": x, "x_rowwise_scale_inv": x_scales, "w_rowwise_data": self.w, "w_rowwise_scale_inv": self.w_scales, **more}
        d = torch.full((x.shape[0], self.problem.N), -1, dtype=torch.int16, device=self.where).view(torch.bfloat16)  # NaN
        return Call("grouped_gemm", {"kind": "fp8_block", "layout": "TN", "N": self.problem.N, "K": self.problem.K, "d_type": "bf16",
                                     "weight_block": "128x128", "alpha": 1.0, "beta": 0.0, **parameters},
                    inputs, {"d": d}, {"x_rowwise_data": "e4m3", "w_rowwise_data": "e4m3"})

    def plain(self) -> tuple[Call, None]:
        """Groups that follow one another."""
        parts = [stored_scales(part) for part in self.x_scales.split(list(self.problem.splits))]
        return self._call(self.x, torch.cat(parts), {"splits": torch.tensor(self.problem.splits, device=self.where)}), None

    def _spread(self, starts: list[int], rows: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """x and its scales with the groups at these rows of a larger matrix, and the row of each row."""
        places = torch.cat([torch.arange(start, start + count) for start, count in zip(starts, self.problem.splits, strict=True)]).to(self.where)
        x = torch.zeros((rows, self.problem.K), dtype=torch.uint8, device=self.where)
        scales = torch.ones((rows, self.problem.K // 128), device=self.where)
        x[places], scales[places] = self.x, self.x_scales
        return x, scales, places

    def contiguous(self) -> tuple[Call, torch.Tensor]:
        """m_indices: each block of a tile's rows is of one group."""
        starts, rows = self._aligned()
        x, scales, places = self._spread(starts, rows)
        of_rows = torch.full((rows,), -1, dtype=torch.int32, device=self.where)
        of_rows[places] = torch.repeat_interleave(torch.arange(len(starts), dtype=torch.int32), torch.tensor(self.problem.splits)).to(self.where)
        return self._call(x, stored_scales(scales), {"m_indices": of_rows}, grouped_layout="m_indices", alignment=MOST_ROWS_OF_A_TILE), places

    def psum(self) -> tuple[Call, torch.Tensor]:
        """Groups begin at multiples of a tile's rows; the ends are given."""
        starts, rows = self._aligned()
        x, scales, places = self._spread(starts, rows)
        ends = torch.tensor([start + count for start, count in zip(starts, self.problem.splits, strict=True)], dtype=torch.int32, device=self.where)
        return self._call(x, stored_scales(scales), {"psum": ends}, grouped_layout="psum", alignment=MOST_ROWS_OF_A_TILE), places

    def masked(self) -> tuple[Call, torch.Tensor]:
        """Each group has room for max_m rows."""
        most = up(max(self.problem.splits), MOST_ROWS_OF_A_TILE)
        groups = len(self.problem.splits)
        x, scales, places = self._spread([group * most for group in range(groups)], groups * most)
        stored = torch.cat([stored_scales(part) for part in scales.split(most)])
        splits = torch.tensor(self.problem.splits, dtype=torch.int32, device=self.where)
        return self._call(x, stored, {"splits": splits}, grouped_layout="masked", max_m=most), places

    def _aligned(self) -> tuple[list[int], int]:
        starts, end = [], 0
        for count in self.problem.splits:
            starts.append(end)
            end += up(count, MOST_ROWS_OF_A_TILE)
        return starts, end


def quantize_input(problem: Quantization, where: str, seed: int) -> torch.Tensor:
    """Normal values, each block of 128 with an exponent of its own."""
    generator = torch.Generator(where).manual_seed(seed)
    x = torch.empty((problem.rows, problem.columns), dtype=torch.bfloat16, device=where)
    for part in x.split(1 << 12):
        drawn = torch.randn(part.shape, generator=generator, device=where).view(part.shape[0], -1, 128)
        exponents = torch.randint(-12, 13, drawn.shape[:2], generator=generator, device=where)
        part.copy_(torch.ldexp(drawn, exponents[:, :, None]).view(part.shape))
    return x


def quantize_call(problem: Quantization, x: torch.Tensor, preset: str) -> Call:
    """One tensor of all rows, scales [rows, blocks of a row] with adjacent columns."""
    blocks = problem.columns // 128 if problem.block == "1x128" else 1
    out = {"data": torch.full(x.shape, 0x7F, dtype=torch.uint8, device=x.device),
           "scale_inv": torch.full((x.shape[0] * blocks,), float("nan"), device=x.device)}
    return Call("quantize_by_rule", {"preset": preset, "block": problem.block, "storage": "k_major", "otype": "e4m3", "transposed": 0}, {"x": x}, out,
                {"x": "bf16"})


def recipe_call(call: Call, splits: torch.Tensor | None) -> Call:
    """The quantization by the recipe block_1x128 into the same codes and scales."""
    groups = {} if splits is None else {"splits": splits}
    return Call("quantize", {"recipe": "block_1x128", "otype": "e4m3", "pow2": 0, "eps": 0.0}, {"x": call.x, **groups},
                {"rowwise_data": call.out.data, "rowwise_scale_inv": call.out.scale_inv}, {"x": "bf16"})
