"""vLLM's and SGLang's FP8 quantizers and FBGEMM's in CUDA as torch expressions of their kernels, without fast math.

They have no form that runs on a CPU. torch.fmax and fmin are those of CUDA: they pass a NaN over.
"""

import torch

from peer_sources import Record

E4M3 = torch.float8_e4m3fn
HIGH, LOW = torch.tensor(448.0), torch.tensor(-448.0)
FLOOR = torch.tensor(1.0) / (448.0 * 512.0)
SETS = ["bf16", "bf16_middle", "bf16_special", "f32", "f32_middle"]
TENSORS = ["bf16", "bf16_plain", "bf16_special", "bf16_zero", "f32_middle_row"]


def fmax_of(groups):
    return torch.fmax(groups.abs(), torch.tensor(0.0)).amax(dim=-1, keepdim=True)


def grouped(x, size):
    return x.float().reshape(x.shape[0], -1, size)


def finish(codes, s, x, rows):
    return codes.to(E4M3).reshape(x.shape), s.reshape(rows, -1), None


def min_outside(y):
    return torch.fmin(torch.fmax(y, LOW), HIGH)


def max_outside(y):
    return torch.fmax(torch.fmin(y, HIGH), LOW)


def exponent_above(s):
    """Biased exponent of the least power of two not below s, by bits."""
    pattern = s.view(torch.int32)
    return (pattern >> 23 & 255) + ((pattern & 0x7FFFFF) != 0).int()


def vllm_group(x, ue8m0=False):
    g = grouped(x, 128)
    s = torch.fmax(fmax_of(g), torch.tensor(1e-10)) / HIGH
    if ue8m0:
        s = (exponent_above(torch.fmax(s.abs(), torch.tensor(1e-10))) << 23).view(torch.float32)
    return finish(min_outside(g * (1.0 / s) if ue8m0 else g / s), s, x, x.shape[0])


def vllm_per_token(x):
    g = grouped(x, x.shape[1])
    s = torch.fmax(fmax_of(g) / HIGH, FLOOR)
    return finish(max_outside(g / s), s, x, x.shape[0])


def vllm_per_tensor(x):
    s = fmax_of(x.float().reshape(1, 1, -1)) / HIGH
    return finish(max_outside(x.float().reshape(1, 1, -1) * (1.0 / s)), s, x, 1)


def sglang_group_v1(x):
    g = grouped(x, 128)
    s = torch.fmax(fmax_of(g), torch.tensor(1e-10)) / HIGH
    return finish(min_outside(g / s), s, x, x.shape[0])


def sglang_group_v2(x):
    g = grouped(x, 128)
    a = torch.fmax(fmax_of(g), torch.tensor(1e-10))
    return finish(min_outside(g * (HIGH / a)), a * (torch.tensor(1.0) / HIGH), x, x.shape[0])


def sglang_group_v2_ue8m0(x):
    g = grouped(x, 128)
    s = torch.fmax(fmax_of(g), torch.tensor(1e-10)) * (torch.tensor(1.0) / HIGH)
    exponent = exponent_above(s)
    up, down = (exponent << 23).view(torch.float32), ((254 - exponent) << 23).view(torch.float32)
    return finish(min_outside(g * down), up, x, x.shape[0])


def sglang_per_token(x, many=False):
    g = grouped(x, x.shape[1])
    s = fmax_of(g) / HIGH
    inverse = torch.where(s == 0, torch.zeros_like(s), 1.0 / s) if many else 1.0 / s
    return finish(max_outside(g * inverse), s, x, x.shape[0])


def fbgemm(x, rows):
    g = x.float().reshape(rows, 1, -1)
    s = torch.fmax(fmax_of(g) / HIGH, FLOOR)
    return finish(torch.clamp(g / s, -448.0, 448.0), s, x, rows)


def vllm_nvfp4(x):
    """As its emulation has it: divisions for reciprocals, 1e8 for a product of scales that is zero."""
    g = torch.tensor(448.0 * 6.0) / x.abs().max().float()
    b = grouped(x, 16)
    sf = torch.clamp(g * (b.abs().amax(dim=-1, keepdim=True) * (1.0 / 6.0)), -448.0, 448.0).to(E4M3)

    def inverse(value):
        return 1.0 / torch.where(value == 0, torch.full_like(value, 1e8), value)

    y = torch.clamp(b * inverse(sf.float() * inverse(g)), -6.0, 6.0)
    codes = torch.zeros(y.shape, dtype=torch.uint8)
    for number, bound in enumerate((0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0)):
        codes[(y.abs() >= bound) if number % 2 else (y.abs() > bound)] = number + 1
    codes[y < 0] |= 8
    return codes.reshape(x.shape), sf.reshape(x.shape[0], -1), g


def records():
    group = "vLLM 0f5257e, csrc/quantization/w8a8/fp8/per_token_group_quant.cu, as a torch expression"
    common = "vLLM 096d3dc, csrc/quantization/w8a8/fp8/common.cu, as a torch expression"
    sglang = "SGLang 037cd6e, sgl-kernel/csrc/gemm, as a torch expression of the build without fast math"
    cuda = "FBGEMM 71d6f8b, gen_ai/src/quantize/quantize.cu, as a torch expression"
    emulation = "vLLM 055e47c, quantization/utils/nvfp4_emulation_utils.py: ref_nvfp4_quant, as a torch expression"
    return [
        Record("nvfp4.vllm", {"emulated": True}, "e2m1", ["bf16", "bf16_plain", "f16", "f32_nvfp4"], emulation, vllm_nvfp4),
        Record("vllm.group", {}, "e4m3", SETS, group, vllm_group),
        Record("vllm.group.ue8m0", {}, "e4m3", SETS, group, lambda x: vllm_group(x, True)),
        Record("vllm.per_token", {}, "e4m3", SETS, common, vllm_per_token),
        Record("vllm.per_tensor", {}, "e4m3", TENSORS, common, vllm_per_tensor),
        Record("sglang.group_v1", {}, "e4m3", SETS, sglang, sglang_group_v1),
        Record("sglang.group_v2", {}, "e4m3", SETS, sglang, sglang_group_v2),
        Record("sglang.group_v2.ue8m0", {}, "e4m3", SETS, sglang, sglang_group_v2_ue8m0),
        Record("sglang.per_token", {}, "e4m3", SETS, sglang, sglang_per_token),
        Record("sglang.per_token", {"many_tokens": True}, "e4m3", ["bf16"], sglang, lambda x: sglang_per_token(x, True)),
        Record("sglang.per_tensor", {}, "e4m3", TENSORS, sglang, vllm_per_tensor),
        Record("fbgemm.per_row", {}, "e4m3", SETS, cuda, lambda x: fbgemm(x, x.shape[0])),
        Record("fbgemm.per_tensor", {}, "e4m3", ["bf16", "bf16_plain", "bf16_zero", "f32_middle_row"], cuda,
               lambda x: fbgemm(x, 1)),
    ]
