"""The torch code of DeepGEMM and torchao, on CUDA."""

import importlib
import importlib.util

import torch

from calls import given
from libraries import fits, record
from peer_files import CODES, WIDE, source


def torch_deepgemm():
    peer = "DeepGEMM 54e2261, deep_gemm/utils/math.py, torch on CUDA"
    spec = importlib.util.spec_from_file_location("deepgemm_math", source("DeepGEMM/deep_gemm/utils/math.py"))
    m = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(m)

    def cast(op, name, preset, block, *arguments):
        def run():
            x = given(name)
            q, s = getattr(m, op)(x, *arguments)
            return record(peer, f"{op}(x, {', '.join(map(str, arguments))})", preset, x, q, s, block=block)
        return run

    for name in [*CODES, *WIDE]:
        for up in (False, True):
            tail = ".ue8m0" if up else ""
            if fits(name, 128):
                yield f"per_token{tail}/{name}", cast("per_token_cast_to_fp8", name, "deepgemm.cuda" + tail, "1x128", up)
                yield f"per_token_32{tail}/{name}", cast("per_token_cast_to_fp8", name, "deepgemm.cuda" + tail, "1x32", up, 32)
    for name in ("bf16_tall", "bf16_square", "bf16_blocks", "f32_blocks"):
        for up in (False, True):
            tail = ".ue8m0" if up else ""
            yield f"per_channel{tail}/{name}", cast("per_channel_cast_to_fp8", name, "deepgemm.cuda" + tail, "128x1", up)
            yield f"per_block{tail}/{name}", cast("per_block_cast_to_fp8", name, "deepgemm.cuda" + tail, "128x128", up)
    yield "per_token_packed/bf16_long", cast("per_token_cast_to_fp8", "bf16_long", "deepgemm.ue8m0.packed", "1x128", True, 128, True)
    for name in ("bf16", "bf16_special", "f32", "f32_middle_fp4"):
        for up in (False, True):
            yield f"fp4{'.ue8m0' if up else ''}/{name}", cast("per_token_cast_to_fp4", name, "deepgemm.fp4" + (".ue8m0" if up else ""), "1x128", up)


def torch_torchao():
    peer = "torchao 0.18.0, torch on CUDA"
    utils = importlib.import_module("torchao.float8.float8_utils")
    config = importlib.import_module("torchao.float8.config")

    def rowwise(name, pow2, fmt):
        def run():
            x = given(name)
            s = utils.tensor_to_scale(x, fmt, scaling_granularity=config.ScalingGranularity.AXISWISE, axiswise_dim=-1, round_scales_to_power_of_2=pow2)
            q = utils.to_fp8_saturated(x.float() * s, fmt)
            return record(peer, f"to_fp8_saturated(x.float() * tensor_to_scale(x, {fmt}, AXISWISE, -1, {pow2}))",
                          "torchao.rowwise" + (".pow2" if pow2 else ""), x, q, s, block="1xall")
        return run

    for name in ("bf16", "bf16_special", "bf16_middle", "f32", "f32_middle", "f32_middle_row", "f16"):
        for pow2 in (False, True):
            for fmt, word in ((torch.float8_e4m3fn, "e4m3"), (torch.float8_e5m2, "e5m2")):
                yield f"rowwise{'_pow2' if pow2 else ''}_{word}/{name}", rowwise(name, pow2, fmt)

    mx = importlib.import_module("torchao.prototype.mx_formats.mx_tensor")
    nv = importlib.import_module("torchao.prototype.mx_formats.nvfp4_tensor")

    def to_mx(name, mode, fmt):
        def run():
            x = given(name)
            s, q = mx.to_mx(x, fmt, 32, getattr(mx.ScaleCalculationMode, mode))
            return record(f"{peer}: mx_tensor.py", f"to_mx(x, {fmt}, 32, {mode})", f"torchao.mx_{mode.lower()}", x, q.view(torch.uint8), s.view(torch.uint8),
                          block="1x32", otype=str(fmt))
        return run

    for mode in ("FLOOR", "CEIL", "EVEN", "RCEIL"):
        for name in ("bf16", "bf16_special", "bf16_infinite", "f32", "f32_middle"):
            for fmt in (torch.float8_e4m3fn, torch.float8_e5m2, "fp6_e3m2", "fp6_e2m3", torch.float4_e2m1fn_x2):
                word = str(fmt).replace("torch.", "")
                yield f"mx_{mode.lower()}_{word}/{name}", to_mx(name, mode, fmt)

    def nvfp4(name, two):
        def run():
            x = given(name)
            t = nv.per_tensor_amax_to_scale(x.abs().amax().float()) if two else None
            s, q = nv.nvfp4_quantize(x, 16, t)
            more = {"out__tensor_scale": t.reshape(1)} if two else {}
            return record(f"{peer}: nvfp4_tensor.py", f"nvfp4_quantize(x, 16, {'per_tensor_amax_to_scale' if two else None})",
                          "nvfp4.torchao" + ("" if two else ".one_level"), x, q.view(torch.uint8), s.view(torch.uint8), block="1x16", **more)
        return run

    for name in ("bf16", "bf16_plain", "bf16_close", "f32_nvfp4", "f32", "bf16_special"):
        for two in (False, True):
            yield f"nvfp4{'_two_level' if two else ''}/{name}", nvfp4(name, two)

    def constants():
        x = given("f32").reshape(-1)
        out = {"in/x": x}
        for divisor in (448.0, 6.0, 2688.0, 57344.0, 127.0, 3.0):
            out[f"out/div_{int(divisor)}"] = x / divisor
            out[f"out/rdiv_{int(divisor)}"] = divisor / x
        out["out/reciprocal"], out["out/exp"], out["out/exp2"] = x.reciprocal(), x.exp(), x.exp2()
        out["out/log2"], out["out/rsqrt"], out["out/tanh"], out["out/sigmoid"] = x.abs().log2(), x.abs().rsqrt(), x.tanh(), x.sigmoid()
        out["out/silu"] = torch.nn.functional.silu(x)
        return {"peer": "torch on CUDA", "call": "x / c, c / x, reciprocal, exp, exp2, log2(abs), rsqrt(abs), tanh, sigmoid, silu", "preset": ""}, out

    yield "elementwise/f32", constants
