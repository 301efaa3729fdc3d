"""Operators of sglang-kernel, vLLM and FBGEMM GenAI, loaded as one library each."""

import torch

import inputs
from calls import SETS, TYPES, given, poisoned, tensor
import calls

FP8, FP8_2 = torch.float8_e4m3fn, torch.float8_e5m2
CODES = ["bf16", "bf16_special", "bf16_infinite", "bf16_middle", "bf16_zero", "f16", "f16_long", "bf16_long"]
WIDE = ["f32", "f32_middle", "f32_long"]


def record(peer, call, preset, x, q, s, **more):
    attributes = {"peer": peer, "call": call, "preset": preset}
    arrays = {"in/x": x, "out/codes": q, "out/scale": s}
    for key, value in more.items():
        if isinstance(value, torch.Tensor):
            arrays[key.replace("__", "/")] = value
        else:
            attributes[key] = value
    if s is not None:
        attributes["scale_shape"] = str(list(s.shape))
        attributes["scale_strides"] = str(list(s.stride()))
    return attributes, arrays


def fits(name, group):
    return SETS[name][1].shape[1] % group == 0


# --- sglang-kernel -------------------------------------------------------------------------------------------------------------


def sglang(build="sm90"):
    """build: sm90, with fast math, or sm100, without. The library of either has code for SM90."""
    tail = "" if build == "sm90" else f".{build}"
    torch.ops.load_library(str(calls.PEERS / ("sglang.so" if build == "sm90" else f"sglang_{build}.so")))
    ops, peer = torch.ops.sgl_kernel, f"sglang-kernel 0.4.6, {build}/common_ops.abi3.so"

    def grouped(version, name, size, layout="row", ue8m0=False, eps=1e-10):
        def run():
            x = given(name)
            m, g = x.shape[0], x.shape[1] // size
            q = poisoned(tuple(x.shape), FP8)
            if layout == "row":
                s = poisoned((m, g), torch.float32)
            elif layout == "column":
                s = poisoned((g, (m + 3) // 4 * 4), torch.float32).t()[:m]
            else:
                s = poisoned(((g + 3) // 4, (m + 3) // 4 * 4), torch.int32).t()[:m]
            if version == 1:
                ops.sgl_per_token_group_quant_8bit.default(x, q, s, size, eps, -448.0, 448.0, ue8m0)
                text = f"sgl_per_token_group_quant_8bit(x, q, s, {size}, {eps}, -448, 448, {ue8m0})"
            else:
                ops.sgl_per_token_group_quant_8bit_v2.default(x, q, s, size, eps, -448.0, 448.0, ue8m0, False, None)
                text = f"sgl_per_token_group_quant_8bit_v2(x, q, s, {size}, {eps}, -448, 448, {ue8m0}, False, None)"
            preset = f"sglang.group_v{version}" + (".ue8m0" if ue8m0 else "") + tail
            whole = s if layout == "row" else torch.as_strided(s, (s.stride(1) * s.shape[1],), (1,))
            return record(peer, text, preset, x, q, s, block=f"1x{size}", layout=layout, out__scale_storage=whole)
        return run

    for version in (1, 2):
        for name in [*CODES, *WIDE]:
            for size in (128, 64, 32, 16):
                if fits(name, size) and (size == 128 or name in ("bf16", "bf16_zero", "f32_middle")):
                    yield f"group_v{version}/{size}/{name}", grouped(version, name, size)
            if fits(name, 128):
                yield f"group_v{version}_columns/128/{name}", grouped(version, name, 128, "column")
                if SETS[name][1].shape[1] >= 512 or name in ("bf16", "bf16_special", "f32"):
                    yield f"group_v{version}_ue8m0_packed/128/{name}", grouped(version, name, 128, "packed", True)
                yield f"group_v{version}_ue8m0/128/{name}", grouped(version, name, 128, "row", True)
        yield f"group_v{version}_eps/128/bf16", grouped(version, "bf16", 128, eps=1e-4)

    def per_token(name):
        def run():
            x = given(name)
            q, s = poisoned(tuple(x.shape), FP8), poisoned((x.shape[0], 1), torch.float32)
            ops.sgl_per_token_quant_fp8.default(x, q, s)
            many = x.shape[0] >= 16 * torch.cuda.get_device_properties(0).multi_processor_count
            return record(peer, "sgl_per_token_quant_fp8(x, q, s)", "sglang.per_token" + (".many" if many else "") + tail, x, q, s,
                          block="1xall")
        return run

    for name in [*CODES, *WIDE, "f32_middle_row", "bf16_many"]:
        yield f"per_token/{name}", per_token(name)

    def many_edges():
        x = given("bf16")
        x = x.repeat(192, 1)
        q, s = poisoned(tuple(x.shape), FP8), poisoned((x.shape[0], 1), torch.float32)
        ops.sgl_per_token_quant_fp8.default(x, q, s)
        return record(peer, "sgl_per_token_quant_fp8(x.repeat(192, 1), q, s), the first rows of its result", "sglang.per_token.many" + tail,
                      given("bf16"), q[:given("bf16").shape[0]], s[:given("bf16").shape[0]], block="1xall")

    yield "per_token_many/bf16", many_edges
    if build == "sm100":
        return  # SiLU has another form where the device is an SM100: what follows would say nothing about it

    def fused(x_type, masked, ue8m0=False, packed=False):
        def run():
            experts, tokens, columns = 2, 24, 512
            flat = inputs.gates(400, experts * tokens, columns, x_type)
            x = tensor(flat, x_type)
            masked_m = None
            if masked:
                x, masked_m = x.reshape(experts, tokens, -1), torch.tensor([24, 11], dtype=torch.int32, device="cuda")
            q = poisoned((*x.shape[:-1], columns), FP8)
            g = columns // 128
            if packed:
                s = poisoned((*x.shape[:-2], g // 4, x.shape[-2]), torch.int32).transpose(-1, -2)
            else:
                s = poisoned((*x.shape[:-2], g, x.shape[-2]), torch.float32).transpose(-1, -2)
            ops.sgl_per_token_group_quant_8bit_v2.default(x, q, s, 128, 1e-10, -448.0, 448.0, ue8m0, True, masked_m)
            extra = {"in__masked_m": masked_m} if masked else {}
            return record(peer, f"sgl_per_token_group_quant_8bit_v2(x, q, s, 128, 1e-10, -448, 448, {ue8m0}, True, masked_m)",
                          "fused SwiGLU, group_v2", x, q, s, block="1x128", **extra)
        return run

    for x_type in ("bf16", "f16", "f32"):
        for masked in (False, True):
            for ue8m0, packed in ((False, False), (True, True), (True, False)):
                yield (f"silu_group_v2/{x_type}{'_masked' if masked else ''}{'_ue8m0' if ue8m0 else ''}{'_packed' if packed else ''}",
                       fused(x_type, masked, ue8m0, packed))

    def silu(x_type):
        def run():
            x = tensor(inputs.gates(400, 48, 512, x_type), x_type)
            y = poisoned((48, 512), TYPES[x_type])
            ops.silu_and_mul.default(y, x)
            return record(peer, "silu_and_mul(y, x)", "SwiGLU", x, None, None, out__y=y)
        return run

    for x_type in ("bf16", "f16"):
        yield f"silu_and_mul/{x_type}", silu(x_type)


# --- vLLM ----------------------------------------------------------------------------------------------------------------------


def vllm(version="0.26.0"):
    """0.31.0 is the first whose kernel for 128 elements of 16 bits takes the power of two from the bits; of it only groups are called."""
    torch.ops.load_library(str(calls.PEERS / ("vllm.so" if version == "0.26.0" else f"vllm_{version}.so")))
    ops, peer = torch.ops._C, f"vllm {version}, _C_stable_libtorch.abi3.so"

    def grouped(name, size, ue8m0, transposed=False, eps=1e-10):
        def run():
            x = given(name)
            m, g = x.shape[0], x.shape[1] // size
            q = poisoned(tuple(x.shape), FP8)
            s = poisoned((g, m), torch.float32).t() if transposed else poisoned((m, g), torch.float32)
            by_bits = version != "0.26.0" and size == 128 and x.dtype != torch.float32
            power = ".ue8m0" if by_bits else ".ue8m0.log2"
            ops.per_token_group_fp8_quant.default(x, q, s, size, eps, -448.0, 448.0, ue8m0, transposed, False)
            return record(peer, f"per_token_group_fp8_quant(x, q, s, {size}, {eps}, -448, 448, {ue8m0}, {transposed}, False)",
                          "vllm.group" + (power if ue8m0 else ""), x, q, s, block=f"1x{size}")
        return run

    def packed(name, size):
        def run():
            x = given(name)
            m, g = x.shape[0], x.shape[1] // size
            q = poisoned(tuple(x.shape), FP8)
            aligned = (m + 3) // 4 * 4
            whole = poisoned(((g + 3) // 4 * aligned,), torch.int32)
            s = torch.as_strided(whole, (m, (g + 3) // 4), (1, aligned))
            ops.per_token_group_fp8_quant_packed.default(x, q, s, size, 1e-10, -448.0, 448.0)
            return record(peer, f"per_token_group_fp8_quant_packed(x, q, s, {size}, 1e-10, -448, 448)", "vllm.group.ue8m0, packed",
                          x, q, s, block=f"1x{size}", out__scale_storage=whole)
        return run

    for name in [*CODES, *WIDE]:
        for size in (128, 64, 32):
            if fits(name, size) and (size == 128 or name in ("bf16", "bf16_zero", "f32_middle")):
                for ue8m0 in (False, True):
                    yield f"group{'_ue8m0' if ue8m0 else ''}/{size}/{name}", grouped(name, size, ue8m0)
        if fits(name, 128):
            yield f"group_columns/128/{name}", grouped(name, 128, False, True)
            yield f"group_packed/128/{name}", packed(name, 128)
    yield "group_packed/32/bf16", packed("bf16", 32)
    yield "group_eps/128/bf16", grouped("bf16", 128, False, eps=1e-4)
    if version != "0.26.0":
        return

    def token(name, upper=None):
        def run():
            x = given(name)
            q, s = poisoned(tuple(x.shape), FP8), poisoned((x.shape[0], 1), torch.float32)
            ub = None if upper is None else torch.tensor([upper], device="cuda")
            ops.dynamic_per_token_scaled_fp8_quant.default(q, x, s, ub)
            return record(peer, f"dynamic_per_token_scaled_fp8_quant(q, x, s, {upper})", "vllm.per_token", x, q, s, block="1xall",
                          scale_ub=0.0 if upper is None else upper)
        return run

    def whole_tensor(name):
        def run():
            x = given(name)
            q, s = poisoned(tuple(x.shape), FP8), torch.zeros(1, device="cuda")
            ops.dynamic_scaled_fp8_quant.default(q, x, s)
            return record(peer, "dynamic_scaled_fp8_quant(q, x, s)", "vllm.per_tensor", x, q, s, block="allxall")
        return run

    def static(name, scale):
        def run():
            x = given(name)
            q, s = poisoned(tuple(x.shape), FP8), torch.tensor([scale], dtype=torch.float32, device="cuda")
            ops.static_scaled_fp8_quant.default(q, x, s, None)
            return record(peer, "static_scaled_fp8_quant(q, x, s, None)", "x * RN(1/s), s given", x, q, s, block="allxall", in__scale=s)
        return run

    for name in [*CODES, *WIDE, "f32_middle_row", "bf16_plain", "bf16_square"]:
        yield f"per_token/{name}", token(name)
        yield f"per_tensor/{name}", whole_tensor(name)
        yield f"static/{name}", static(name, 0.0237)
    yield "per_token_ub/bf16", token("bf16", 12.5)

    def static_groups():
        x = given("bf16_blocks")
        s = tensor(inputs.floats(500, 2 * 3, 6).reshape(2, 3))
        q = poisoned(tuple(x.shape), FP8)
        ops.static_scaled_fp8_quant.default(q, x, s, [128, 128])
        return record(peer, "static_scaled_fp8_quant(q, x, s, [128, 128])", "s given", x, q, None, block="128x128", in__scale=s)

    yield "static_blocks/bf16_blocks", static_groups

    def silu_block(x_type, size, transposed, upper=None):
        def run():
            x = tensor(inputs.gates(410, 48, 512, x_type), x_type)
            q = poisoned((48, 512), FP8)
            s = poisoned((512 // size, 48), torch.float32).t() if transposed else poisoned((48, 512 // size), torch.float32)
            ub = None if upper is None else torch.tensor([upper], device="cuda")
            ops.silu_and_mul_per_block_quant.default(q, x, s, size, ub, transposed)
            return record(peer, f"silu_and_mul_per_block_quant(q, x, s, {size}, {upper}, {transposed})", "fused SwiGLU", x, q, s,
                          block=f"1x{size}")
        return run

    def silu_static(x_type):
        def run():
            x = tensor(inputs.gates(410, 48, 512, x_type), x_type)
            q, s = poisoned((48, 512), FP8), torch.tensor([0.0371], device="cuda")
            ops.silu_and_mul_quant.default(q, x, s)
            return record(peer, "silu_and_mul_quant(q, x, s)", "fused SwiGLU, s given", x, q, s, block="allxall")
        return run

    def silu_plain(x_type, op="silu_and_mul"):
        def run():
            x = tensor(inputs.gates(410, 48, 512, x_type), x_type)
            y = poisoned((48, 512), TYPES[x_type])
            getattr(ops, op).default(y, x)
            return record(peer, f"{op}(y, x)", "SwiGLU", x, None, None, out__y=y)
        return run

    for x_type in ("bf16", "f16", "f32"):
        for size in (128, 64):
            yield f"silu_block/{size}/{x_type}", silu_block(x_type, size, False)
        yield f"silu_block_columns/128/{x_type}", silu_block(x_type, 128, True)
        yield f"silu_static/{x_type}", silu_static(x_type)
        yield f"silu_and_mul/{x_type}", silu_plain(x_type)
    yield "silu_block_ub/128/bf16", silu_block("bf16", 128, False, 3.5)

    def masked(ue8m0, packed_scales):
        def run():
            experts, tokens, columns = 3, 16, 1024
            x = tensor(inputs.gates(420, experts * tokens, columns, "bf16"), "bf16").reshape(experts, tokens, -1)
            counts = torch.tensor([16, 0, 7], dtype=torch.int32, device="cuda")
            q = poisoned((experts, tokens, columns), FP8)
            g = columns // 128
            if packed_scales:
                s = torch.as_strided(poisoned((experts * tokens * g // 4,), torch.int32), (experts, tokens, g // 4),
                                     (tokens * g // 4, 1, tokens))
            else:
                s = torch.as_strided(poisoned((experts * tokens * g,), torch.float32), (experts, tokens, g), (tokens * g, 1, tokens))
            ops.persistent_masked_m_silu_mul_quant.default(x, counts, q, s, ue8m0)
            return record(peer, f"persistent_masked_m_silu_mul_quant(x, counts, q, s, {ue8m0})", "fused SwiGLU", x, q, s, block="1x128",
                          in__masked_m=counts)
        return run

    yield "silu_masked/bf16", masked(False, False)
    yield "silu_masked_ue8m0/bf16", masked(True, False)
    yield "silu_masked_packed/bf16", masked(True, True)

    def fp4(swizzled):
        def run():
            x = given("bf16_plain")
            q, s = ops.scaled_fp4_quant.default(x, torch.tensor([1.0], device="cuda"), swizzled)
            return record(peer, f"scaled_fp4_quant(x, 1, {swizzled})", "NVFP4", x, q, s.view(torch.uint8))
        return run

    yield "fp4", fp4(False)


# --- FBGEMM --------------------------------------------------------------------------------------------------------------------


def fbgemm():
    torch.ops.load_library(str(calls.PEERS / "fbgemm.so"))
    ops, peer = torch.ops.fbgemm, "FBGEMM GenAI 1.6.0, fbgemm_gpu_experimental_gen_ai.so"

    def call(op, name, preset, block, *arguments, text=""):
        def run():
            x = given(name)
            q, s = getattr(ops, op)(x, *arguments)
            return record(peer, f"{op}(x{text})", preset, x, q, s, block=block)
        return run

    for name in [*CODES, *WIDE, "f32_middle_row"]:
        yield f"per_row/{name}", call("quantize_fp8_per_row", name, "fbgemm.per_row", "1xall")
        yield f"per_tensor/{name}", call("quantize_fp8_per_tensor", name, "fbgemm.per_tensor", "allxall")
        yield f"per_column/{name}", call("quantize_fp8_per_col", name, "fbgemm.per_row, columns", "allx1")

    def e5m2(name):
        def run():
            x = given(name)
            q, s = ops.quantize_fp8_per_row(x, None, None, FP8_2)
            return record(peer, "quantize_fp8_per_row(x, None, None, float8_e5m2)", "fbgemm.per_row", x, q, s, block="1xall", otype="e5m2")
        return run

    def upper(name):
        def run():
            x = given(name)
            q, s = ops.quantize_fp8_per_row(x, None, torch.tensor([12.5], device="cuda"))
            return record(peer, "quantize_fp8_per_row(x, None, 12.5)", "fbgemm.per_row, bound", x, q, s, block="1xall")
        return run

    for name in ("bf16", "f32"):
        yield f"per_row_e5m2/{name}", e5m2(name)
        yield f"per_row_bound/{name}", upper(name)

    def fixed(name):
        def run():
            x, s = given(name), torch.tensor([0.0237], device="cuda")
            q = ops.quantize_fp8_per_tensor_fixed_scale(x, s)
            return record(peer, "quantize_fp8_per_tensor_fixed_scale(x, s)", "s given", x, q, s, block="allxall")
        return run

    for name in ("bf16", "f32", "f16", "f32_middle", "bf16_middle"):
        yield f"fixed/{name}", fixed(name)

    def fake(name):
        def run():
            x = given(name)
            y = ops.fake_quantize_nvfp4_per_tensor(x)
            return record(peer, "fake_quantize_nvfp4_per_tensor(x)", "NVFP4, dequantized", x, None, None,
                          **{f"out__y{i}": t for i, t in enumerate(y)})
        return run

    for name in ("bf16_plain", "bf16", "f16"):
        yield f"fake_nvfp4/{name}", fake(name)


def group(name):
    if name == "sglang_per_tensor":
        import sglang_per_tensor
        return sglang_per_tensor.sglang_per_tensor()
    return {"sglang": sglang, "sglang_sm100": lambda: sglang("sm100"), "vllm": vllm, "vllm_0_31": lambda: vllm("0.31.0"), "fbgemm": fbgemm}[name]()
