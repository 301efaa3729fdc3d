"""Where the scales and rows of a call lie: products that read them through adapters.operands have the bits of the reference.

The sums are of small integers, exact in any order, so that torch on the CPU is the second route."""

import pathlib
import sys

import pytest

import assay

torch = pytest.importorskip("torch")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from adapters import operands  # noqa: E402


def values(matrix, scales, rows):
    """f32 values of codes whose 128 columns, and `rows` rows, share a scale."""
    return matrix.float() * scales.repeat_interleave(128, -1).repeat_interleave(rows, -2)


def fp8_block(t):
    w = values(operands.codes(t, "w_rowwise_data").view(-1, t.N, t.K), operands.weight_scales(t), 128)
    x = operands.codes(t, "x_rowwise_data")
    layout = t.get("grouped_layout", "splits")
    if layout == "masked":
        x = values(x.view(-1, t.max_m, t.K), operands.row_scales_masked(t), 1)
        for group, rows in enumerate(t.splits.tolist()):
            t.out.d.view(-1, t.max_m, t.N)[group, :rows] = (x[group, :rows] @ w[group].T).to(t.out.d.dtype)
    elif layout == "m_indices":
        x = values(x, operands.row_scales(t), 1)
        for row, group in enumerate(t.m_indices.tolist()):
            if group >= 0:
                t.out.d[row] = (x[row] @ w[group].T).to(t.out.d.dtype)
    else:
        x = values(x, operands.row_scales_of_groups(t), 1)
        d, first = torch.zeros(t.out.d.shape), 0
        for group, end in enumerate(operands.offsets(t).tolist()):
            d[first:end] = x[first:end] @ w[group].T
            first = end
        operands.store_rows(t, d)


@pytest.mark.parametrize("line", [
    "splits=5,0,33,1 N=128 K=384",
    "splits=5,0,33,1 extra_rows=7 N=256 K=256",
    "grouped_layout=m_indices splits=100,0,33,130 N=256 K=256",
    "grouped_layout=masked max_m=33 splits=10,0,33 N=256 K=256",
])
def test_scales_are_found(line):
    kernel = assay.Kernel(fp8_block, memory="torch:cpu")
    result = assay.check(kernel, f"grouped_gemm kind=fp8_block data=integers d_type=f32 {line}", memory="torch:cpu")
    result.raise_on_failure()


def test_a_wrong_row_of_scales_shows(monkeypatch):
    right = operands.row_scales_of_groups
    monkeypatch.setattr(operands, "row_scales_of_groups", lambda t: right(t).roll(1, 0))
    result = assay.check(fp8_block, "grouped_gemm kind=fp8_block data=integers d_type=f32 splits=5,33 N=128 K=256", memory="torch:cpu")
    assert not result.passed


@pytest.mark.parametrize("words, why", [
    ("alpha=0.5", "alpha is not 1"),
    ("beta=1", "beta is not 0"),
    ("bias=1", "a bias is given"),
    ("plan=unit=sm90.wgmma.fp8,promote=64,association=cols_first", "a plan is asked for"),
])
def test_what_a_kernel_lacks_is_an_absence(words, why):
    def plain(t):
        operands.require_plain_product(t)
        fp8_block(t)

    verdict = assay.check(plain, f"grouped_gemm kind=fp8_block splits=5 N=128 K=128 {words}", memory="torch:cpu").verdicts[0]
    assert verdict.verdict == "not run" and why in verdict.text
