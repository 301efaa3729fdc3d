"""The problems on which implementations are timed beside one another. Needs nothing but Python."""

from __future__ import annotations

import dataclasses
import random

MOST_ROWS_OF_A_TILE = 128  # of DeepGEMM: its groups begin at multiples of it


def zipf(groups: int, rows: int, seed: int) -> tuple[int, ...]:
    """Rows of groups in proportion to 1, 1/2, 1/3, ..., in an order drawn from the seed."""
    whole = sum(1 / (place + 1) for place in range(groups))
    counts = [int(rows / (place + 1) / whole) for place in range(groups)]
    counts[0] += rows - sum(counts)
    random.Random(seed).shuffle(counts)
    return tuple(counts)


def few(groups: int, most: int, seed: int) -> tuple[int, ...]:
    """1 to `most` rows for each group; one group has 1 and one has `most`."""
    draw = random.Random(seed)
    counts = [1, most] + [draw.randint(1, most) for _ in range(groups - 2)]
    draw.shuffle(counts)
    return tuple(counts)


@dataclasses.dataclass(frozen=True)
class Quantization:
    """bf16 x [rows, columns] to e4m3 codes and f32 scales, rowwise.

    Attributes:
        block: what shares a scale: "1x128", "1xall".
        name, splits: rows of the groups; without them x is one tensor.
    """

    rows: int
    columns: int
    block: str = "1x128"
    name: str = ""
    splits: tuple[int, ...] = ()

    @property
    def label(self) -> str:
        groups = f" splits={self.name} groups={len(self.splits)}" if self.splits else " groups=0"
        return f"problem=quantize block={self.block}{groups} rows={self.rows} columns={self.columns}"

    @property
    def bytes(self) -> int:
        """What has to be moved: x is read once, codes and scales are written once."""
        scales = self.columns // 128 if self.block == "1x128" else 1
        return self.rows * (3 * self.columns + 4 * scales)


@dataclasses.dataclass(frozen=True)
class Product:
    """D [rows, N] = x [rows, K] . w [N, K]^T for each group: FP8 blocks of 1x128 by 128x128, bf16 D.

    Attributes:
        name, splits: rows of the groups.
        sustained: whether it is also timed at the card's limit of power.
    """

    name: str
    splits: tuple[int, ...]
    N: int
    K: int
    sustained: bool = False

    @property
    def rows(self) -> int:
        return sum(self.splits)

    @property
    def label(self) -> str:
        return f"problem=product splits={self.name} groups={len(self.splits)} rows={self.rows} N={self.N} K={self.K}"

    @property
    def flops(self) -> int:
        return 2 * self.rows * self.N * self.K

    @property
    def bytes(self) -> int:
        """What has to be moved: operands, scales and D once."""
        blocks = self.K // 128
        weights = sum(1 for rows in self.splits if rows > 0) * (self.N * self.K + 4 * self.N // 128 * blocks)
        return weights + self.rows * (self.K + 4 * blocks + 2 * self.N)

    @property
    def aligned(self) -> bool:
        """Whether groups that follow one another begin at multiples of the rows of a tile."""
        return all(rows % MOST_ROWS_OF_A_TILE == 0 for rows in self.splits)


def quantizations() -> list[Quantization]:
    return [
        Quantization(32768, 7168),
        Quantization(32768, 7168, name="zipf", splits=zipf(64, 32768, 1)),
        Quantization(8192, 7168),
        Quantization(4096, 4096),
        Quantization(32768, 7168, block="1xall"),
        Quantization(8192, 7168, block="1xall"),
    ]


def products() -> list[Product]:
    return [
        Product("8x4096", (4096,) * 8, 4096, 7168, sustained=True),
        Product("zipf(8,32768)", zipf(8, 32768, 2), 4096, 7168, sustained=True),
        Product("64x1024", (1024,) * 64, 2048, 2048, sustained=True),
        Product("32x256", (256,) * 32, 4096, 7168),
        Product("1..64", few(64, 64, 3), 4096, 7168),
        Product("64x1", (1,) * 64, 4096, 7168),
    ]
