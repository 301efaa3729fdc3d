"""DeepGEMM's dense and K-grouped products get their operands as the library expects them, on a CPU, with functions of the same names."""

import pathlib
import sys

import pytest

torch = pytest.importorskip("torch")

import assay

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

import fake_deep_gemm
from adapters import deepgemm

ONTO_C = "beta=1 d_type=f32"
LINES = {
    "fp8_dense": [f"kind=fp8_block splits={rows} N=256 K=384" for rows in ("1", "130", "13 extra_rows=5")],
    "fp8_dense_1d1d": [f"kind=fp8_block weight_block=1x128 {ONTO_C} splits={rows} N=256 K=384" for rows in ("33", "66", "50 extra_rows=5")],
    "fp8_k_grouped": [f"kind=fp8_block layout=NT {ONTO_C} splits={rows} N=128 K=256" for rows in ("128,0,384", "256", "0,128,0")],
    "bf16_k_grouped": [f"kind=bf16 layout=NT {ONTO_C} splits={rows} N=128 K=256" for rows in ("128,0,384", "256", "0,128,0")],
    "bf16_contiguous_nn": [f"kind=bf16 layout=NN grouped_layout=m_indices splits={rows} N=128 K=64" for rows in ("100,0,33", "1,1,1")],
    "bf16_dense": [f"kind=bf16 layout={layout} {ending} splits={rows} N=64 K=192" for layout in ("TN", "NN", "NT")
                   for ending in ("", "d_type=f32", ONTO_C) for rows in ("5", "72 extra_rows=9")],
}


@pytest.fixture(autouse=True)
def library(monkeypatch):
    monkeypatch.setitem(sys.modules, "deep_gemm", fake_deep_gemm)


def judged(name, lines):
    """Sums of float64 follow no plan: D is judged by bounds, which a wrong scale leaves at once."""
    kernel = getattr(deepgemm, name)
    return assay.check(lambda t: kernel(t), lines, memory="torch:cpu", explain=False)


@pytest.mark.parametrize("name", LINES)
def test_operands_and_results(name):
    lines = [f"grouped_gemm {line} seed={seed}" for seed, line in enumerate(LINES[name])]
    result = judged(name, lines)
    assert result.passed and not result.absent, result
    # Small integers have exact sums in any order: bits, under the plan that the adapter states.
    exact = assay.check(getattr(deepgemm, name), [f"{line} data=integers" for line in lines], memory="torch:cpu", explain=False)
    assert exact.passed and not exact.absent and all("bits" in verdict.ground for verdict in exact.verdicts), exact


@pytest.mark.parametrize("name, line, why", [
    ("fp8_dense_1d1d", "kind=fp8_block weight_block=1x128 d_type=f32 splits=8 N=128 K=128", "beta is not 1"),
    ("fp8_dense_1d1d", f"kind=fp8_block {ONTO_C} splits=40 N=128 K=128", "weight_block is 128x128: expected 1x128"),
    ("fp8_dense_1d1d", f"kind=fp8_block weight_block=1x128 {ONTO_C} splits=32 N=128 K=128", "32 rows: expected more than 32"),
    ("bf16_dense", "kind=bf16 grouped_layout=psum splits=8 N=64 K=64", "grouped_layout is psum: expected splits"),
    ("fp8_dense_1d1d", f"kind=fp8_block weight_block=1x128 {ONTO_C} splits=8,8 N=128 K=128", "2 groups: expected one"),
    ("bf16_k_grouped", f"kind=bf16 layout=NT {ONTO_C} splits=64 N=128 K=128", "splits are [64]: expected multiples of 128"),
    ("bf16_k_grouped", "kind=bf16 layout=NT d_type=f32 splits=128 N=128 K=128", "beta is not 1"),
    ("bf16_dense", "kind=bf16 beta=1 splits=8 N=64 K=64", "d_type is bf16: expected f32, onto C"),
    ("bf16_dense", "kind=bf16 splits=8 N=32 K=64", "N is 32: expected a positive multiple of 64"),
    ("bf16_contiguous_nn", "kind=bf16 grouped_layout=m_indices splits=8 N=64 K=64", "not a product of kind bf16 in layout NN"),
])
def test_what_is_absent_is_said(name, line, why):
    result = judged(name, "grouped_gemm " + line)
    assert [each.verdict for each in result.verdicts] == ["not run"] and why in result.absent[0].text, result


def test_a_wrong_order_of_scales_is_found(monkeypatch):
    line = "grouped_gemm kind=fp8_block weight_block=1x128 beta=1 d_type=f32 splits=40 N=256 K=384 seed=1"
    assert judged("fp8_dense_1d1d", line).passed
    right = deepgemm.row_scales_of_groups
    monkeypatch.setattr(deepgemm, "row_scales_of_groups", lambda t: right(t).flip(1))
    assert len(judged("fp8_dense_1d1d", line).failures) == 1
