"""The oracle against NumPy and ml_dtypes."""

import assay
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as of_numpy

import formulas

FLOATS = st.floats(min_value=-(2.0**99), max_value=2.0**99, width=32).filter(lambda each: each == 0 or abs(each) > 2.0**-99)
MATRICES = of_numpy.arrays(np.float32, st.tuples(st.integers(1, 9), st.integers(1, 300)), elements=FLOATS)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(MATRICES)
def test_block_1x128(x):
    codes, scale_inv = assay.quantize(x, recipe="block_1x128")
    want_codes, want_scales = formulas.block_1x128(x)
    np.testing.assert_array_equal(codes, want_codes)
    np.testing.assert_array_equal(scale_inv[:, : x.shape[0]], want_scales)
    assert scale_inv.shape == (-(-x.shape[1] // 128), -(-x.shape[0] // 4) * 4)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(MATRICES)
def test_mxfp8(x):
    codes, scale_inv = assay.quantize(x, recipe="mxfp8")
    want_codes, want_scales = formulas.mxfp8(x)
    np.testing.assert_array_equal(scale_inv[: x.shape[0], : want_scales.shape[1]], want_scales)
    np.testing.assert_array_equal(codes, want_codes)


def test_groups_lie_one_behind_the_other():
    x = np.random.default_rng(1).normal(size=(33, 272)).astype(np.float32)
    splits = [8, 0, 25]
    made = assay.quantize(x, recipe="block_1x128", splits=splits)
    codes, scales = np.zeros_like(made.codes), np.zeros_like(made.scale_inv)
    formulas.grouped_block_1x128(x, splits, codes, scales)
    np.testing.assert_array_equal(made.codes, codes)
    np.testing.assert_array_equal(made.scale_inv, scales)
    again = assay.expect("quantize recipe=block_1x128 direction=rowwise", x=x, splits=np.array(splits))
    np.testing.assert_array_equal(again.scale_inv, scales)


def test_dequantize_is_code_times_scale():
    x = np.random.default_rng(2).normal(size=(12, 256)).astype(np.float32)
    made = assay.quantize(x, recipe="mxfp8")
    values = made.codes.view(formulas.E4M3).astype(np.float64).reshape(12, 8, 32)
    scales = np.ldexp(1.0, made.scale_inv[:12, :8].astype(int) - 127)
    np.testing.assert_array_equal(assay.dequantize(made), (values * scales[:, :, None]).reshape(12, 256).astype(np.float32))


def test_a_preset_is_the_rule_of_another_library():
    x = np.random.default_rng(3).normal(size=(33, 272)).astype(np.float32)
    want = assay.expect("quantize recipe=block_1x128 preset=deepgemm R=33 K=272", x=x)
    # DeepGEMM's per_token_cast_to_fp8: amax not below 1e-4, the scale is amax / 448, codes are x / scale.
    tiles = np.pad(x, ((0, 0), (0, 112))).reshape(33, 3, 128)
    amax = np.maximum(np.abs(tiles).max(axis=2), np.float32(1e-4))
    scales = (amax / np.float32(448)).astype(np.float32)
    codes = formulas.e4m3_codes(tiles * (np.float32(1) / scales)[:, :, None]).reshape(33, -1)[:, :272]
    given = sorted(np.unique(want.scale_inv[want.scale_inv != 0]))
    np.testing.assert_array_equal(given, sorted(np.unique(scales)))
    assert (want.codes == codes).mean() > 0.99
    tiles = assay.expect("quantize recipe=block_128x128 preset=deepgemm", x=x)
    assert np.count_nonzero(tiles.scale_inv) == 3, "one scale for each tile of 128 columns, since there are 33 rows"
    by_name = assay.quantize(x, recipe="block_1x128", preset="deepgemm")
    np.testing.assert_array_equal(by_name.codes, want.codes)


@pytest.mark.parametrize(("line", "said"), [
    ("quantize recipe=block_1x128 preset=deepgemm pow2=1", "pow2=1 beside preset=deepgemm"),
    ("quantize recipe=block_1x128 preset=deepgemm direction=columnwise", "block=128x1"),
    ("quantize recipe=tensor_delayed preset=deepgemm", "recipe=tensor_delayed beside preset=deepgemm: expected one of block_1x128"),
    ("quantize recipe=block_1x128 preset=deepgem", "did you mean deepgemm"),
    ("quantize recipe=block_1x128 K=7", "K is 7|shape .*expected .*7"),
    ("quantize recipe=block_1x128 x_type=bf16", "x has dtype float32, which is f32: expected bf16"),
    ("quantize recipe", "expected KEY=VALUE"),
])
def test_what_makes_no_sense_is_named(line, said):
    with pytest.raises((ValueError, TypeError), match=said):
        assay.expect(line, x=np.ones((4, 128), np.float32))


def gate_and_up(rows, columns, dtype):
    """Gate then up [rows, 2 columns], with silu(gate) = gate or -0: 1 + exp(-gate) is 1 in f32 from 32 on, infinite at -128."""
    rng = np.random.default_rng(8)
    gate = np.where(rng.random((rows, columns)) < 0.3, -128, rng.integers(32, 256, (rows, columns)))
    up = rng.integers(-255, 256, (rows, columns)) / 64
    return np.concatenate([gate, up], axis=1).astype(dtype), np.where(gate > 0, gate, 0) * up


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
@pytest.mark.parametrize("columns", [272, 8])
def test_codes_of_an_activation(dtype, columns):
    x, product = gate_and_up(33, columns, dtype)
    want_codes, want_scales = formulas.block_1x128(product.astype(dtype).astype(np.float32))
    made = assay.quantize(x, recipe="block_1x128", activation="swiglu")
    np.testing.assert_array_equal(made.codes & 0x7F, want_codes & 0x7F)
    np.testing.assert_array_equal((made.codes >> 7)[product != 0], (want_codes >> 7)[product != 0])  # the sign of 0 is -0 * up
    np.testing.assert_array_equal(made.scale_inv[:, :33], want_scales)
    assert (made.rows, made.columns) == (33, columns)
    np.testing.assert_array_equal(assay.dequantize(made) != 0, (want_codes & 0x7F) != 0)
    both = assay.expect("quantize recipe=block_1x128 activation=swiglu", x=x)
    np.testing.assert_array_equal(both.rowwise_data, made.codes)
    assert both.columnwise_data.shape == (columns, 33)


def test_gate_and_up_of_a_preset():
    x, product = gate_and_up(16, 256, ml_dtypes.bfloat16)
    made = assay.quantize(x, recipe="block_1x128", preset="sglang.swiglu.triton")
    assert (made.rows, made.columns, made.codes.shape) == (16, 256, (16, 256))
    np.testing.assert_array_equal((made.codes & 0x7F) != 0, product != 0)


@pytest.mark.parametrize("line", ["quantize recipe=block_1x128 activation=swiglu", "quantize_by_rule preset=sglang.swiglu.triton"])
def test_gate_without_up(line):
    with pytest.raises(ValueError, match=r"x has the shape \[4, 31\]: expected an even number of columns, gate then up"):
        assay.expect(line, x=np.ones((4, 31), np.float16))


def test_an_input_that_is_none_of_the_op():
    with pytest.raises(ValueError, match="'scale' is no input .*: expected one of x"):
        assay.expect("quantize recipe=mxfp8", x=np.ones((4, 32), np.float32), scale=np.ones(1, np.float32))


@pytest.mark.parametrize("layout", ["TN", "NN", "NT"])
def test_a_product_of_integers_is_exact(layout):
    rng = np.random.default_rng(4)
    splits, N, K = [5, 0, 11], 16, 32
    x, w, dy = (rng.integers(-8, 8, size).astype(ml_dtypes.bfloat16) for size in ((16, K), (3 * N, K), (16, N)))
    operands = {"TN": {"x": x, "w": w}, "NN": {"dy": dy, "w": w}, "NT": {"dy": dy, "x": x}}[layout]
    d = assay.grouped_gemm(kind="bf16", splits=splits, N=N, K=K, layout=layout, d_type="f32", **operands)
    exact, row = [], 0
    for group, rows in enumerate(splits):
        part = slice(row, row + rows)
        weight = w[group * N : (group + 1) * N].astype(np.float64)
        exact.append({"TN": lambda: x[part].astype(np.float64) @ weight.T, "NN": lambda: dy[part].astype(np.float64) @ weight,
                      "NT": lambda: dy[part].astype(np.float64).T @ x[part].astype(np.float64)}[layout]())
        row += rows
    np.testing.assert_array_equal(d, np.concatenate(exact).astype(np.float32))


def test_a_quantized_product_under_a_plan():
    rng = np.random.default_rng(5)
    x = rng.integers(-7, 8, (6, 256)).astype(np.float32) * np.float32(64)
    w = rng.integers(-7, 8, (2 * 128, 256)).astype(np.float32) * np.float32(64)
    x[:, ::128] = w[::128, ::128] = 448  # scales of 1: codes are the values
    splits = [2, 4]
    qx = assay.quantize(x, recipe="block_1x128", splits=splits)
    qw = assay.quantize(w, recipe="block_128x128", splits=[128, 128])
    d = assay.grouped_gemm(kind="fp8_block", splits=splits, N=128, K=256, x=qx, w=qw, d_type="f32",
                           plan="unit=sm90.wgmma.fp8,promote=128,association=rows_first")
    assert set(np.unique(qx.scale_inv[:2])) <= {0.0, 1.0}
    want = np.concatenate([assay.dequantize(qx)[:2] @ assay.dequantize(qw)[:128].T, assay.dequantize(qx)[2:] @ assay.dequantize(qw)[128:].T])
    np.testing.assert_allclose(d, want, rtol=2e-3)  # a unit that keeps 13 bits; its bits are tested in reference/tests
    narrow = assay.grouped_gemm(kind="fp8_block", splits=splits, N=128, K=256, x=qx, w=qw, d_type="bf16")
    np.testing.assert_array_equal(narrow, d.astype(ml_dtypes.bfloat16))
    with pytest.raises(ValueError, match="w is absent in layout TN"):
        assay.grouped_gemm(kind="fp8_block", splits=splits, N=128, K=256, x=qx)
    with pytest.raises(TypeError, match="w is ndarray: expected assay.Quantized"):
        assay.grouped_gemm(kind="fp8_block", splits=splits, N=128, K=256, x=qx, w=w)


def test_bf16_and_views_that_are_not_contiguous():
    x = np.random.default_rng(6).normal(size=(8, 128)).astype(np.float32)
    turned = np.asfortranarray(x)
    np.testing.assert_array_equal(assay.quantize(turned, recipe="mxfp8").codes, assay.quantize(x, recipe="mxfp8").codes)
    half = x.astype(ml_dtypes.bfloat16)
    as_words = assay.expect("quantize recipe=mxfp8 x_type=bf16 direction=rowwise", x=half.view(np.uint16))
    np.testing.assert_array_equal(as_words.codes, assay.quantize(half, recipe="mxfp8").codes)
    assert assay.dequantize(assay.quantize(half, recipe="mxfp8"), d_type="bf16").dtype == ml_dtypes.bfloat16


def test_listings():
    assert {"te", "deepgemm"} <= {each.name for each in assay.presets()}
    assert any(each.name == "sm90.wgmma.fp8" and each.fraction_bits == 13 and each.products_per_step == 32 for each in assay.units())
    assert any(each.line == "unit=sm90.wgmma.f16" for each in assay.plans())
    chosen = assay.cases("grouped_gemm kind=fp8_block", profile="smoke")
    assert len(chosen) > 0 and all("kind=fp8_block" in each for each in chosen)
    assert sorted(chosen.shard(0, 2) + chosen.shard(1, 2)) == sorted(chosen)
    with pytest.raises(ValueError, match="where is grouped_gem_m"):
        len(assay.cases("grouped_gem_m"))
    with pytest.raises(ValueError, match="profile is .*: expected smoke, standard or full"):
        len(assay.cases(profile="small"))
