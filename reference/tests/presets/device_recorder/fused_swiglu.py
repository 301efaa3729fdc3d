"""SwiGLU fused with quantization: Triton kernels of vLLM, SGLang and FBGEMM, and the pieces they are made of."""

import importlib.util
import sys

import torch

import calls
import inputs
from calls import given, poisoned, tensor
from libraries import FP8, record
from peer_files import functions, source
from triton_kernels import vllm_functions


def silu():
    v, peer = vllm_functions(), "vllm 0.26.0, quantization/utils/fp8_utils.py (Triton)"

    def columns(x_type, ue8m0, limit):
        def run():
            x = tensor(inputs.gates(440, 128, 256, x_type), x_type)
            q, s = v.silu_mul_per_token_group_quant_fp8_colmajor(x, use_ue8m0=ue8m0, clamp_limit=limit)
            return record(peer, f"silu_mul_per_token_group_quant_fp8_colmajor(x, use_ue8m0={ue8m0}, clamp_limit={limit})", "fused SwiGLU", x, q, s,
                          block="1x128")
        return run

    def packed(x_type, size, limit):
        def run():
            x = tensor(inputs.gates(441, 48, 1024, x_type), x_type)
            q, s = v.silu_mul_quant_fp8_packed_triton(x, size, clamp_limit=limit)
            return record(peer, f"silu_mul_quant_fp8_packed_triton(x, {size}, clamp_limit={limit})", "fused SwiGLU, MXFP8 packed", x, q, s, block=f"1x{size}")
        return run

    for x_type in ("bf16", "f16"):
        for ue8m0 in (False, True):
            for limit in (None, 7.0):
                yield f"vllm_columns_{x_type}{'_ue8m0' if ue8m0 else ''}{'_clamp' if limit else ''}", columns(x_type, ue8m0, limit)
        for size in (128, 32):
            for limit in (None, 10.0):
                yield f"vllm_packed_{size}_{x_type}{'_clamp' if limit else ''}", packed(x_type, size, limit)

    deep = functions(source("vllm/batched_deep_gemm_moe.py"), ["_silu_mul_fp8_quant_deep_gemm"], {})

    def masked_vllm(ue8m0):
        def run():
            e, t, h = 3, 16, 512
            x = tensor(inputs.gates(442, e * t, h, "bf16"), "bf16").reshape(e, t, 2 * h)
            counts = torch.tensor([16, 0, 7], dtype=torch.int32, device="cuda")
            q, s = poisoned((e, t, h), FP8), torch.as_strided(poisoned((e * t * h // 128,), torch.float32), (e, t, h // 128), (t * h // 128, 1, t))
            deep._silu_mul_fp8_quant_deep_gemm[(e * h // 128,)](x, q, s, counts, h, 128, *x.stride(), *q.stride(), *s.stride(), counts.stride(0), 1e-10,
                                                                -448.0, 448.0, ue8m0, BLOCK=128, NUM_STAGES=4, num_warps=1)
            return record("vllm 0.26.0, batched_deep_gemm_moe.py (Triton)", f"_silu_mul_fp8_quant_deep_gemm, ceil_ue8m0={ue8m0}", "fused SwiGLU", x, q, s,
                          block="1x128", in__masked_m=counts)
        return run

    yield "vllm_masked", masked_vllm(False)
    yield "vllm_masked_ue8m0", masked_vllm(True)

    moe = functions(source("sglang/ep_moe_kernels.py"),
                    ["_silu_and_mul_post_quant_kernel", "silu_and_mul_masked_post_quant_fwd", "_silu_and_mul_post_quant_packed_kernel",
                     "_silu_and_mul_kernel", "silu_and_mul_masked_fwd", "silu_mul_dynamic_scale_triton_kernel_for_cutlass_moe",
                     "silu_mul_dynamic_tensorwise_quant_for_cutlass_moe", "silu_mul_static_tensorwise_quant_triton_kernel_for_cutlass_moe",
                     "silu_mul_static_tensorwise_quant_for_cutlass_moe", "_silu_and_mul_post_per_tensor_quant_kernel",
                     "silu_and_mul_masked_post_per_tensor_quant_fwd"], {"_get_launch_config_1d": lambda device, numel: ((64,), 1024)})
    name = "sglang 0.5.23, kernels/ops/moe/ep_moe_kernels.py (Triton)"

    def masked(x_type, ue8m0, alpha, limit):
        def run():
            e, t, h = 3, 16, 512
            x = tensor(inputs.gates(443, e * t, h, x_type), x_type).reshape(e, t, 2 * h)
            counts = torch.tensor([16, 0, 7], dtype=torch.int32, device="cuda")
            q, s = poisoned((e, t, h), FP8), poisoned((e, t, h // 128), torch.float32)
            moe.silu_and_mul_masked_post_quant_fwd(x, q, s, 128, counts, ue8m0, alpha, limit)
            return record(name, f"silu_and_mul_masked_post_quant_fwd(x, q, s, 128, masked_m, {ue8m0}, {alpha}, {limit})", "fused SwiGLU", x, q, s,
                          block="1x128", in__masked_m=counts)
        return run

    for x_type in ("bf16", "f16", "f32"):
        for ue8m0 in (False, True):
            yield f"sglang_masked_{x_type}{'_ue8m0' if ue8m0 else ''}", masked(x_type, ue8m0, 0.0, 0.0)
        yield f"sglang_masked_{x_type}_alpha", masked(x_type, False, 1.702, 7.0)

    def masked_packed(x_type):
        def run():
            e, t, h = 3, 16, 1024
            x = tensor(inputs.gates(444, e * t, h, x_type), x_type).reshape(e, t, 2 * h)
            counts = torch.tensor([16, 0, 7], dtype=torch.int32, device="cuda")
            q, s = poisoned((e, t, h), FP8), poisoned((e, h // 512, t), torch.int32)
            moe.silu_and_mul_masked_post_quant_fwd(x, q, s, 128, counts, True, num_real_tokens=23, topk=1)
            return record(name, "silu_and_mul_masked_post_quant_fwd(x, q, s int32, 128, masked_m, True)", "fused SwiGLU", x, q, s, block="1x128",
                          in__masked_m=counts)
        return run

    yield "sglang_masked_packed_bf16", masked_packed("bf16")

    def tensorwise(x_type):
        def run():
            t, h = 40, 512
            x = tensor(inputs.gates(445, t, h, x_type), x_type)
            x[0, :16] = 1  # no gate of 1e4: the amax is of ordinary size
            q, s, count = poisoned((t, h), FP8), torch.zeros(1, device="cuda"), torch.tensor([t], dtype=torch.int32, device="cuda")
            moe.silu_mul_dynamic_tensorwise_quant_for_cutlass_moe(x, q, s, count, t, h)
            return record(name, "silu_mul_dynamic_tensorwise_quant_for_cutlass_moe", "fused SwiGLU, per tensor", x, q, s, block="allxall")
        return run

    for x_type in ("bf16", "f32"):
        yield f"sglang_tensorwise_{x_type}", tensorwise(x_type)

    def fbgemm(x_type):
        def run():
            import triton.language as tl
            act = functions(source("fbgemm_gpu/experimental/gen_ai/moe/activation.py"), ["_fbgemm_silu_mul_quant", "silu_mul_quant"],
                            {"get_fp8_constants": lambda: (FP8, tl.float8e4nv, 448.0, 1e-12)})
            x = tensor(inputs.gates(446, 40, 512, x_type), x_type)
            q, s = act.silu_mul_quant(x[:, :512], x[:, 512:])
            return record("FBGEMM GenAI 1.6.0, gen_ai/moe/activation.py (Triton)", "silu_mul_quant(gate, up)", "fused SwiGLU, per row", x, q, s.reshape(-1, 1),
                          block="1xall")
        return run

    for x_type in ("bf16", "f16", "f32"):
        yield f"fbgemm_rows_{x_type}", fbgemm(x_type)

    def parts():
        """The pieces that the fused kernels are made of, on many numbers, as Triton compiles them."""
        path = calls.WORK / "pieces.py"
        path.write_text(PIECES)
        spec = importlib.util.spec_from_file_location("pieces", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules["pieces"] = module
        spec.loader.exec_module(module)
        x = torch.cat([given("f32").reshape(-1), tensor(inputs.random_rows(447, 32, 256, 6, 8)).reshape(-1)])
        y = torch.flip(x, [0]).contiguous()
        outs = {n: poisoned((x.numel(),), torch.float32) for n in module.NAMES}
        module.pieces[((x.numel() + 255) // 256,)](x, y, *outs.values(), x.numel(), 256)
        return {"peer": "Triton of this machine", "call": "tl.exp, tl.sigmoid, x / y, 1 / x, x / (1 + exp(-x)), tl.exp2, tl.log2, x / 448 on float32",
                "preset": ""}, {"in/x": x, "in/y": y, **{f"out/{n}": t for n, t in outs.items()}}

    yield "triton_pieces", parts


PIECES = '''
import triton
import triton.language as tl

NAMES = ("exp", "sigmoid", "quotient", "reciprocal", "silu", "exp2", "log2", "by_448", "silu_by_sigmoid")


@triton.jit
def pieces(x_ptr, y_ptr, e_ptr, s_ptr, q_ptr, r_ptr, silu_ptr, exp2_ptr, log2_ptr, c_ptr, t_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + at, mask=mask, other=1.0)
    y = tl.load(y_ptr + at, mask=mask, other=1.0)
    tl.store(e_ptr + at, tl.exp(x), mask=mask)
    tl.store(s_ptr + at, tl.sigmoid(x), mask=mask)
    tl.store(q_ptr + at, x / y, mask=mask)
    tl.store(r_ptr + at, 1.0 / x, mask=mask)
    tl.store(silu_ptr + at, x / (1.0 + tl.exp(-x)), mask=mask)
    tl.store(exp2_ptr + at, tl.exp2(x), mask=mask)
    tl.store(log2_ptr + at, tl.log2(tl.abs(x)), mask=mask)
    tl.store(c_ptr + at, x / 448.0, mask=mask)
    tl.store(t_ptr + at, x * tl.sigmoid(x), mask=mask)
'''
