"""What there is: case lines, scale rules, tensor-core units, accumulation plans."""

from __future__ import annotations

import dataclasses

from . import _assay


@dataclasses.dataclass(frozen=True)
class Preset:
    """A scale rule of a library: `rule` is its formula in f32, step by step; `source` says where it stands."""

    name: str
    blocks: tuple[str, ...]
    outputs: tuple[str, ...]
    scale_type: str
    storage: str
    rule: str
    activation: str
    source: str
    evidence: str


@dataclasses.dataclass(frozen=True)
class Unit:
    """A row of the tensor-core table: `products_per_step` products are summed at once, with `fraction_bits` kept below the largest term
    (0: the sum is of another form, which `evidence` or the specification says)."""

    name: str
    architecture: str
    instruction: str
    products_per_step: int
    fraction_bits: int
    measured: bool
    evidence: str


@dataclasses.dataclass(frozen=True)
class Plan:
    """An accumulation plan that has a name: `line` says all that decides the last bit of a product."""

    name: str
    line: str
    evidence: str


def presets() -> list[Preset]:
    """The scale rules that are known, for `preset=`."""
    return [Preset(**each) for each in _assay.presets()]


def units() -> list[Unit]:
    """The rows of the tensor-core table, for `unit=` of a plan."""
    return [Unit(**each) for each in _assay.units()]


def plans() -> list[Plan]:
    """The accumulation plans that have names, for `plan=`."""
    return [Plan(**each) for each in _assay.plans()]
