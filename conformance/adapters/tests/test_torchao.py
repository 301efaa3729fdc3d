"""The adapter of torchao gives its Triton kernels operands in the order that they assert, and reads their results as they lie: judged on a CPU,
with functions of the same names."""

import importlib
import pathlib
import sys
import types

import pytest

torch = pytest.importorskip("torch")

import assay

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from fake_libraries import by_blocks, store_blocks

CASES = pathlib.Path(__file__).resolve().parents[1] / "torchao.txt"
RULE = "quantize_by_rule preset=torchao.block.triton"
PRODUCT = "grouped_gemm kind=fp8_block"


def act_quant(x, block_size=128, dtype=torch.float8_e4m3fn):
    assert x.is_contiguous() and x.shape[1] % 128 == 0
    codes, scales = torch.empty(x.shape, dtype=dtype), torch.empty((x.shape[0], x.shape[1] // 128))
    store_blocks(x, codes, scales, 128, "torchao.block.triton storage=k_major")
    return codes, scales.t().contiguous().t()


def weight_quant(x, block_size=128, dtype=torch.float8_e4m3fn):
    rows, columns = x.shape
    made = assay.expect(f"{RULE} block=128x128 R={rows} K={columns}", x=x)
    codes = torch.as_tensor(made.data).view(dtype)
    return codes.t().contiguous().t(), torch.as_tensor(made.scale_inv).view(columns // 128, rows // 128).t()


def gemm(a, b, a_s, b_s, block_size=128, out_dtype=torch.float32):
    assert a.is_contiguous() and b.stride(0) == 1 and a_s.stride() == (1, a.shape[0]) and b_s.stride(0) == 1
    assert b_s.shape == (b.shape[0] // 128, b.shape[1] // 128) and a_s.shape == (a.shape[0], a.shape[1] // 128)
    return by_blocks(a, b.t(), a_s, b_s.t()).to(out_dtype)


@pytest.fixture(scope="module")
def torchao():
    kernels = types.ModuleType("torchao.prototype.blockwise_fp8_training.kernels")
    kernels.triton_fp8_blockwise_act_quant_lhs = act_quant
    kernels.triton_fp8_blockwise_weight_quant_rhs = weight_quant
    kernels.triton_fp8_gemm_1x128_128x128 = gemm
    patch = pytest.MonkeyPatch()
    parents = ["torchao", "torchao.prototype", "torchao.prototype.blockwise_fp8_training"]
    for name in parents:
        patch.setitem(sys.modules, name, types.ModuleType(name))
    patch.setattr(sys.modules[parents[-1]], "kernels", kernels, raising=False)
    patch.setitem(sys.modules, kernels.__name__, kernels)
    yield importlib.import_module("adapters.torchao")
    patch.undo()


def judged(kernel, lines, plan=None):
    return assay.check(lambda t: kernel(t), lines, memory="torch:cpu", plan=plan, deterministic=True, explain=False)


PASSING = {
    "act_quant": [f"{RULE} {words} seed=1" for words in
                  ("R=36 K=256", "x_type=f32 R=1 K=384", "storage=k_major R=20 K=512", "storage=k_major splits=5,0,3 K=128 extra_rows=7", "outputs=data R=9 K=256",
                   "outputs=scale_inv R=9 K=256")],
    "weight_quant": [f"{RULE} block=128x128 {words} seed=1" for words in
                     ("R=256 K=384", "storage=k_major R=128 K=512", "outputs=data R=128 K=128", "outputs=scale_inv storage=k_major R=384 K=256")],
    "gemm": [f"{PRODUCT} splits={rows} N={n} K={k} {words} seed=1" for rows, n, k, words in
             ((66, 128, 256, ""), (1, 256, 128, ""), (1, 256, 384, "d_type=f32"), ("13 extra_rows=9", 384, 256, "d_type=f16"))],
}


@pytest.mark.parametrize("name", PASSING)
def test_calls_are_bound(torchao, name):
    result = judged(getattr(torchao, name), PASSING[name])
    assert result.passed and not result.absent, result


def test_a_wrong_order_is_found(torchao, monkeypatch):
    kernels = sys.modules["torchao.prototype.blockwise_fp8_training.kernels"]
    monkeypatch.setattr(torchao, "weight_scales", lambda t: t.w_rowwise_scale_inv.view(-1, t.N // 128, 4)[:, :, : t.K // 128].flip(2))
    assert not judged(torchao.gemm, f"{PRODUCT} splits=9 N=256 K=384 seed=1").passed
    monkeypatch.setattr(kernels, "triton_fp8_blockwise_act_quant_lhs", lambda x: (act_quant(x)[0], act_quant(x)[1].flip(1)))
    assert not judged(torchao.act_quant, PASSING["act_quant"][0]).passed


@pytest.mark.parametrize("name, line, why", [
    ("act_quant", f"{RULE} R=4 K=130", "K is 130: expected a multiple of 128"),
    ("act_quant", f"{RULE} block=128x128 R=128 K=128", "block is 128x128: expected 1x128"),
    ("weight_quant", f"{RULE} block=128x128 R=130 K=128", "x is [130, 128]: expected multiples of 128"),
    ("gemm", f"{PRODUCT} splits=5,3 N=128 K=128", "2 groups: expected one"),
    ("gemm", f"{PRODUCT} splits=5 N=136 K=128", "N is 136: expected a positive multiple of 128"),
])
def test_what_is_absent_is_said(torchao, name, line, why):
    result = judged(getattr(torchao, name), line)
    assert [each.verdict for each in result.verdicts] == ["not run"] and why in result.absent[0].text, result


def test_case_file():
    lines = [line for line in CASES.read_text().splitlines() if line and not line.startswith("#")]
    assert len(lines) > 100 and len(lines) == len(set(lines))
    for line in lines:
        assert assay._lines.canonical(line) == line
