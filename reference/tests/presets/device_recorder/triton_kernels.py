"""Triton kernels of DeepSeek-V3, vLLM, SGLang, FBGEMM and torchao."""

import importlib
import importlib.util
import sys
import types

import torch

import inputs
from calls import TYPES, given, poisoned, tensor
from libraries import FP8, fits, record
from peer_files import CODES, WIDE, functions, one_config, source


def triton_deepseek():
    peer = "DeepSeek-V3 9b4e978, inference/kernel.py"
    spec = importlib.util.spec_from_file_location("deepseek_kernel", source("DeepSeek-V3/inference/kernel.py"))
    kernel = importlib.util.module_from_spec(spec)
    sys.modules["deepseek_kernel"] = kernel
    spec.loader.exec_module(kernel)

    def quantize(name, fmt):
        def run():
            x = given(name)
            q, s = kernel.act_quant(x, 128, fmt)
            return record(peer, f"act_quant(x, 128, {fmt})", "deepseek_v3" + (".ue8m0" if fmt else ""), x, q, s, block="1x128")
        return run

    for name in [*CODES, *WIDE, "bf16_square", "bf16_plain", "bf16_close"]:
        if fits(name, 128):
            yield f"act_quant/{name}", quantize(name, None)
            yield f"act_quant_ue8m0/{name}", quantize(name, "ue8m0")

    def dequantize(out):
        def run():
            rows, columns = 256, 384
            x = torch.from_numpy(inputs.some_bytes(9000, rows * columns).reshape(rows, columns)).cuda().view(FP8)
            s = tensor(inputs.floats(9001, 6, 12).reshape(2, 3))
            torch.set_default_dtype(TYPES[out])
            try:
                y = kernel.weight_dequant(x, s)
            finally:
                torch.set_default_dtype(torch.float32)
            return record(peer, f"weight_dequant(x, s), {out}", "dequantize 128x128", x, None, None, in__scale=s, out__y=y, block="128x128")
        return run

    for out in TYPES:
        yield f"weight_dequant/{out}", dequantize(out)


def vllm_functions():
    platform = types.SimpleNamespace(fp8_dtype=lambda: FP8, is_fp8_fnuz=lambda: False, is_cuda_alike=lambda: False, is_xpu=lambda: False)
    return functions(source("vllm/fp8_utils.py"),
                     ["_per_token_group_quant_fp8", "_per_token_group_quant_fp8_colmajor", "per_token_group_quant_fp8",
                      "_silu_mul_quant_fp8_packed_kernel", "silu_mul_quant_fp8_packed_triton",
                      "_silu_mul_per_token_group_quant_fp8_colmajor", "silu_mul_per_token_group_quant_fp8_colmajor"],
                     {"current_platform": platform, "is_deep_gemm_e8m0_used": lambda: False, "get_fp8_min_max": lambda: (-448.0, 448.0),
                      "get_tma_aligned_size": lambda x, size: (x + 16 // size - 1) // (16 // size) * (16 // size)})


def triton_vllm():
    peer, v = "vllm 0.26.0, quantization/utils/fp8_utils.py (Triton)", vllm_functions()

    def quantize(name, size, ue8m0, columns=False):
        def run():
            x = given(name)
            q, s = v.per_token_group_quant_fp8(x, size, use_ue8m0=ue8m0, column_major_scales=columns)
            return record(peer, f"per_token_group_quant_fp8(x, {size}, use_ue8m0={ue8m0}, column_major_scales={columns})",
                          "vllm.group, Triton" + (", ue8m0" if ue8m0 else ""), x, q, s, block=f"1x{size}")
        return run

    for name in [*CODES, *WIDE]:
        for size in (128, 32):
            if fits(name, size) and (size == 128 or name in ("bf16", "f32_middle")):
                for ue8m0 in (False, True):
                    yield f"group{'_ue8m0' if ue8m0 else ''}/{size}/{name}", quantize(name, size, ue8m0)
    yield "group_columns/128/bf16", quantize("bf16", 128, False, True)
    yield "group_columns_ue8m0/128/bf16", quantize("bf16", 128, True, True)


def triton_sglang():
    peer = "sglang 0.5.23, kernels/ops/quantization/fp8_kernel.py (Triton)"
    g = functions(source("sglang/fp8_kernel.py"),
                  ["_per_token_group_quant_8bit", "_per_token_group_quant_8bit_colmajor", "_static_quant_fp8", "_per_tensor_quant_mla_fp8_stage1",
                   "_per_tensor_quant_mla_fp8_stage2", "per_tensor_quant_mla_fp8", "_per_token_group_quant_mla_deep_gemm_masked_fp8",
                   "per_token_group_quant_mla_deep_gemm_masked_fp8"],
                  {"fp8_dtype": FP8, "fp8_max": 448.0, "fp8_min": -448.0, "fp8_dtype_to_triton": lambda _: __import__("triton").language.float8e4nv})

    def quantize(name, size, columns=False, ue8m0=False):
        def run():
            x = given(name)
            m, n = x.shape
            q = poisoned((m, n), FP8)
            s = poisoned((n // size, m), torch.float32).t() if columns else poisoned((m, n // size), torch.float32)
            count, block = m * n // size, size
            warps = min(max(block // 256, 1), 8)
            if columns:
                g._per_token_group_quant_8bit_colmajor[(count,)](x, q, s, size, n, s.stride(1), 1e-10, bit8_min=-448.0, bit8_max=448.0, BLOCK=block,
                                                                 num_warps=warps, num_stages=1, SCALE_UE8M0=ue8m0)
            else:
                g._per_token_group_quant_8bit[(count,)](x, q, s, size, size, 1e-10, bit8_min=-448.0, bit8_max=448.0, BLOCK=block, num_warps=warps,
                                                        num_stages=1)
            return record(peer, f"_per_token_group_quant_8bit{'_colmajor' if columns else ''}(size {size}, ue8m0 {ue8m0}), called as "
                          "_per_token_group_quant_8bit_raw does", "sglang.group, Triton", x, q, s, block=f"1x{size}")
        return run

    for name in [*CODES, *WIDE]:
        if fits(name, 128):
            yield f"group/128/{name}", quantize(name, 128)
            yield f"group_columns/128/{name}", quantize(name, 128, True)
            yield f"group_columns_ue8m0/128/{name}", quantize(name, 128, True, True)

    def static(name):
        def run():
            import triton.language as tl
            x, s = given(name), torch.tensor([0.0237], device="cuda")
            m, n = x.shape
            q = poisoned((m, n), FP8)
            block = 1 << (n - 1).bit_length()
            g._static_quant_fp8[(m,)](x, q.view(torch.uint8), s, None, n, n, fp8_min=-448.0, fp8_max=448.0, BLOCK=block, FP8_DTYPE=tl.float8e4nv,
                                      REPEAT_SCALE=False, num_warps=min(max(block // 256, 1), 8), num_stages=1)
            return record(peer, "_static_quant_fp8(x, 0.0237)", "s given", x, q, None, in__scale=s, block="allxall")
        return run

    for name in ("bf16", "f32", "bf16_middle", "f32_middle"):
        yield f"static/{name}", static(name)

    def mla_tensor(name):
        def run():
            x = given(name)
            s = torch.zeros(1, device="cuda")
            q, s = g.per_tensor_quant_mla_fp8(x.reshape(1, *x.shape), s)
            return record(peer, "per_tensor_quant_mla_fp8(x, zeros)", "per tensor, Triton", x, q.reshape(x.shape), s, block="allxall")
        return run

    def mla_group(name):
        def run():
            x = given(name)
            q, s, _, m, _ = g.per_token_group_quant_mla_deep_gemm_masked_fp8(x.reshape(1, *x.shape))
            return record(peer, "per_token_group_quant_mla_deep_gemm_masked_fp8(x), the rows of x", "group, Triton, eps 1e-12", x, q[0, :m], s[0, :m],
                          block="1x128")
        return run

    for name in ("bf16", "bf16_middle", "f32", "f32_middle", "bf16_plain"):
        yield f"mla_tensor/{name}", mla_tensor(name)
        yield f"mla_group/{name}", mla_group(name)


def triton_fbgemm():
    peer = "FBGEMM GenAI 1.6.0, experimental/gemm/triton_gemm/fp8_gemm.py"
    gemm = importlib.import_module("fbgemm_gpu.experimental.gemm.triton_gemm.fp8_gemm")
    one_config(gemm)

    def row(name):
        def run():
            x = given(name)
            q, s = gemm.triton_quantize_fp8_row(x)
            return record(peer, "triton_quantize_fp8_row(x)", "fbgemm.row, Triton", x, q, s.reshape(-1, 1), block="1xall")
        return run

    def group_(name):
        def run():
            x = given(name)
            q, s = gemm.triton_quantize_fp8_group(x)
            return record(peer, "triton_quantize_fp8_group(x)", "fbgemm.group, Triton", x, q, s, block="1x128")
        return run

    def block(name, size):
        def run():
            x = given(name)
            q, s = gemm.triton_quantize_fp8_block(x, size, size)
            return record(peer, f"triton_quantize_fp8_block(x, {size}, {size})", "fbgemm.block, Triton", x, q, s, block=f"{size}x{size}")
        return run

    def bound(name):
        def run():
            x = given(name)
            q, s = gemm.triton_quantize_fp8_row(x, torch.tensor([12.5], device="cuda"))
            return record(peer, "triton_quantize_fp8_row(x, 12.5)", "fbgemm.row, Triton, bound", x, q, s.reshape(-1, 1), block="1xall")
        return run

    for name in [*CODES, *WIDE, "f32_middle_row"]:
        yield f"row/{name}", row(name)
        if fits(name, 128):
            yield f"group/{name}", group_(name)
    yield "row_bound/bf16", bound("bf16")
    for name in ("bf16_square", "bf16_tall", "bf16_blocks", "f32_blocks"):
        yield f"block/128/{name}", block(name, 128)
    yield "block/256/bf16_blocks", block("bf16_blocks", 256)

    def dequantize(name):
        def run():
            x = given(name)
            q, s = gemm.triton_quantize_fp8_row(x)
            y = gemm.dequantize_fp8_row(q, s)
            return record(peer, "dequantize_fp8_row(q, s)", "dequantize rows", q, None, None, in__scale=s, out__y=y, block="1xall")
        return run

    yield "dequantize_row/bf16", dequantize("bf16")


def triton_torchao():
    peer = "torchao 0.18.0"
    blockwise = importlib.import_module("torchao.prototype.blockwise_fp8_training.kernels")
    one_config(blockwise)

    def run_op(op, name, block, module=blockwise, **options):
        def run():
            x = given(name)
            q, s = getattr(module, op)(x, **options)
            attributes, arrays = record(f"{peer}, {module.__name__}", f"{op}(x{', ' if options else ''}{options or ''})", "torchao", x, q, s, block=block)
            attributes["codes_strides"] = str(list(q.stride()))
            return attributes, arrays
        return run

    for name in [*[n for n in CODES if n != "bf16_zero"], *WIDE]:
        if fits(name, 128):
            yield f"act_lhs/{name}", run_op("triton_fp8_blockwise_act_quant_lhs", name, "1x128")
    for name in ("bf16_tall", "bf16_square", "bf16_blocks", "f32_blocks"):
        yield f"act_rhs/{name}", run_op("triton_fp8_blockwise_act_quant_rhs", name, "128x1")
        yield f"act_transposed/{name}", run_op("triton_fp8_blockwise_act_quant_transposed_lhs", name, "128x1")
        yield f"weight_rhs/{name}", run_op("triton_fp8_blockwise_weight_quant_rhs", name, "128x128")
        yield f"weight_transposed/{name}", run_op("triton_fp8_blockwise_weight_quant_transposed_rhs", name, "128x128")

    old = importlib.import_module("torchao.kernel.blockwise_quantization")
    for name in ("bf16", "bf16_middle", "f32_middle", "bf16_special"):
        yield f"kernel_act/{name}", run_op("fp8_blockwise_act_quant", name, "1x128", old)
    for name in ("bf16_tall", "bf16_square", "bf16_blocks"):
        yield f"kernel_weight/{name}", run_op("fp8_blockwise_weight_quant", name, "128x128", old)

    rowwise = importlib.import_module("torchao.prototype.moe_training.kernels.float8_rowwise")
    one_config(rowwise)
    for name in ("bf16", "bf16_special", "bf16_middle", "f32", "f32_middle", "f32_middle_row", "bf16_zero", "bf16_long"):
        for pow2 in (False, True):
            yield (f"rowwise{'_pow2' if pow2 else ''}/{name}",
                   run_op("triton_fp8_rowwise_2d_scale_and_cast", name, "1xall", rowwise, round_scales_to_power_of_2=pow2))


def triton_torchao_mx():
    """The file asks for SM100, for a conversion that the mode floor does not use: report 10.0 during the import."""
    real = torch.cuda.get_device_capability
    torch.cuda.get_device_capability = lambda *_: (10, 0)
    try:
        module = importlib.import_module("torchao.prototype.mx_formats.kernels")
    finally:
        torch.cuda.get_device_capability = real
    one_config(module)

    def mx(name, op):
        def run():
            x = given(name)
            q, s = getattr(module, op)(x, 32, "floor")
            return record("torchao 0.18.0, prototype/mx_formats/kernels.py", f"{op}(x, 32, floor)", "torchao.mx_floor, Triton", x, q, s, block="1x32")
        return run

    for name in ("bf16", "bf16_special", "bf16_infinite", "bf16_middle", "bf16_plain"):
        yield f"floor/{name}", mx(name, "triton_to_mxfp8_dim0")
    yield "floor_columns/bf16_blocks", mx("bf16_blocks", "triton_to_mxfp8_dim1")
