"""PyTorch's products of MXFP8 and NVFP4 get codes, swizzled scales and recipes as torch.nn.functional.scaled_mm documents them, on a CPU,
where a function of this name computes in float64."""

import pathlib
import sys

import pytest

torch = pytest.importorskip("torch")

import assay

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from adapters import operands, pytorch

SCALING, SWIZZLE = torch.nn.functional.ScalingType, torch.nn.functional.SwizzleType
FP4 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=torch.float64)


def unswizzled(scales, rows, blocks):
    """[rows, blocks] of scales in tiles of 128 x 4, each of which has rows r, r + 32, r + 64, r + 96 side by side."""
    row, block = torch.arange(rows)[:, None], torch.arange(blocks)[None, :]
    tile = row // 128 * ((blocks + 3) // 4) + block // 4
    return scales.view(torch.uint8)[tile * 512 + row % 32 * 16 + row % 128 // 32 * 4 + block % 4]


def element_values(codes):
    if codes.dtype == torch.float4_e2m1fn_x2:
        byte = codes.view(torch.uint8).to(torch.int64)
        return torch.stack([FP4[byte & 15], FP4[byte >> 4]], -1).flatten(1)
    return codes.to(torch.float64)


def wide(codes, scales, recipe, swizzle):
    values = element_values(codes)
    if codes.dtype == torch.float4_e2m1fn_x2:
        (scales, of_tensor), block = scales, 16
        assert recipe == [SCALING.BlockWise1x16, SCALING.TensorWise] and swizzle == [SWIZZLE.SWIZZLE_32_4_4, SWIZZLE.NO_SWIZZLE]
        assert scales.dtype == torch.float8_e4m3fn and of_tensor.dtype == torch.float32 and of_tensor.numel() == 1
        of_blocks = unswizzled(scales, values.shape[0], values.shape[1] // block).view(torch.float8_e4m3fn).to(torch.float64) * of_tensor
    else:
        block = 32
        assert recipe == SCALING.BlockWise1x32 and swizzle == SWIZZLE.SWIZZLE_32_4_4 and scales.dtype == torch.float8_e8m0fnu
        of_blocks = torch.exp2(unswizzled(scales, values.shape[0], values.shape[1] // block).to(torch.float64) - 127)
    assert scales.numel() == (values.shape[0] + 127) // 128 * 128 * ((values.shape[1] // block + 3) // 4 * 4)
    return values * of_blocks.repeat_interleave(block, 1)


def scaled_mm(a, b, scale_a, recipe_a, scale_b, recipe_b, swizzle_a=None, swizzle_b=None, output_dtype=torch.bfloat16):
    assert a.is_contiguous() and b.t().is_contiguous()
    return (wide(a, scale_a, recipe_a, swizzle_a) @ wide(b.t(), scale_b, recipe_b, swizzle_b).t()).to(output_dtype)


@pytest.fixture
def fake(monkeypatch):
    monkeypatch.setattr(pytorch.F, "scaled_mm", scaled_mm)


def judged(name, lines):
    return assay.check(getattr(pytorch, name), lines, memory="torch:cpu", explain=False)


@pytest.mark.parametrize("name, kind", [("scaled_mm_mx", "mxfp8"), ("scaled_mm_nvfp4", "nvfp4")])
def test_operands_and_results(fake, name, kind):
    lines = [f"grouped_gemm kind={kind} {keys} seed={seed}" for seed, keys in enumerate(
        ("splits=128 N=128 K=128", "splits=33 N=48 K=160", "splits=300 N=144 K=96", "d_type=f32 splits=1 N=16 K=32", "splits=70 N=256 K=512"))]
    result = judged(name, lines)
    assert result.passed and not result.absent, result


def test_scales_in_another_order_are_found(fake, monkeypatch):
    line = "grouped_gemm kind=mxfp8 splits=70 N=48 K=512 seed=7"
    assert judged("scaled_mm_mx", line).passed
    right = unswizzled
    monkeypatch.setitem(globals(), "unswizzled", lambda scales, rows, blocks: right(scales, rows, blocks).flip(1))
    assert len(judged("scaled_mm_mx", line).failures) == 1


@pytest.mark.parametrize("name, line, why", [
    ("scaled_mm_mx", "kind=mxfp8 splits=8,8 N=32 K=32", "2 groups: expected one"),
    ("scaled_mm_mx", "kind=mxfp8 splits=8 N=32 K=32 scale_layout=compact", "scale_layout is compact: expected swizzled"),
    ("scaled_mm_mx", "kind=mxfp8 w_type=e2m1 splits=8 N=32 K=32", "an operand is not E4M3"),
    ("scaled_mm_mx", "kind=mxfp8 arch=sm120 splits=8 N=32 K=32", "arch is sm120: expected sm100"),
    ("scaled_mm_mx", "kind=mxfp8 splits=120 extra_rows=9 N=32 K=32", "there are rows beyond the splits"),
    ("scaled_mm_nvfp4", "kind=nvfp4 splits=8 N=32 K=48", "K is 48: expected a positive multiple of 32"),
])
def test_what_is_absent_is_said(fake, name, line, why):
    result = judged(name, "grouped_gemm " + line)
    assert [each.verdict for each in result.verdicts] == ["not run"] and why in result.absent[0].text, result


def test_another_device_is_said(monkeypatch):
    """A call on an SM90 device: tensors alone are enough to see it."""
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    call = type("Call", (), {"out": type("Out", (), {"d": type("D", (), {"device": torch.device("cuda", 0)})}), "parameters": {},
                             "get": lambda self, name, default=None: default})()
    operands.require_arch(call)
    with pytest.raises(NotImplementedError, match="the device is sm90: expected sm100"):
        operands.require_arch(call, "sm100")
