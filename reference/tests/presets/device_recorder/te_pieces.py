"""TransformerEngine: permutations, pieces of MXFP8 and NVFP4, the Hadamard transform, SwiGLU, and what it refuses on SM90."""

import ctypes as c

import numpy as np
import torch

import inputs
from calls import TYPES, poisoned, tensor
from te_layouts import codes_of
from te_library import FP8, E2M1, TENSOR, MXFP8, NVFP4, Config, KEPT, Wrapped, call, noted, round_up, x_of


def te_permute():
    names = {"permute": "_Z12nvte_permutePvS_S_S_S_S_S_iiiiP11CUstream_st", "unpermute": "_Z14nvte_unpermutePvS_S_S_iiiP11CUstream_st"}

    def round_trip(x_type, tokens, k, columns, experts, seed, dropped=0, probs=True):
        def run():
            w = inputs.words(seed, tokens * experts).reshape(tokens, experts)
            chosen = np.argsort(w, axis=1)[:, :k].astype(np.int32)
            order = np.argsort(chosen.reshape(-1), kind="stable").astype(np.int32)
            x = x_of(seed + 1, tokens, columns, x_type, edges=False, span=4)
            count = tokens * k - dropped
            sorted_rows = torch.from_numpy(order).cuda()
            row_map, y = poisoned((tokens * k,), torch.int32), poisoned((count, columns), TYPES[x_type])
            empty = Wrapped()
            call(names["permute"], Wrapped(data=x), Wrapped(data=y), Wrapped(data=sorted_rows), Wrapped(data=row_map), empty, empty, empty,
                 tokens, k, columns, count, 0)
            torch.cuda.synchronize()
            p = tensor(inputs.floats(seed + 2, tokens * k, 3).reshape(tokens, k)) if probs else None
            z = x_of(seed + 3, count, columns, x_type, edges=False, span=4)
            back = poisoned((tokens, columns), TYPES[x_type])
            call(names["unpermute"], Wrapped(data=z), Wrapped(data=back), Wrapped(data=row_map), Wrapped(data=p) if probs else Wrapped(), tokens, k,
                 columns, 0)
            arrays = {"in/x": x, "in/topk": chosen, "in/sorted_row_id": sorted_rows, "out/permuted": y, "out/row_id_map": row_map, "in/y": z,
                      "out/unpermuted": back}
            if probs:
                arrays["in/probs"] = p
                grad = x_of(seed + 4, tokens, columns, x_type, edges=False, span=4)
                dy, dp = poisoned((count, columns), TYPES[x_type]), poisoned((tokens, k), torch.float32)
                call(names["permute"], Wrapped(data=grad), Wrapped(data=dy), Wrapped(), Wrapped(data=row_map), Wrapped(data=p), Wrapped(data=dp),
                     Wrapped(data=z), tokens, k, columns, 0, 0)
                arrays.update({"in/grad": grad, "out/grad_y": dy, "out/grad_probs": dp})
            return noted("nvte_permute(x), nvte_unpermute(y, probs), nvte_permute(grad, probs, y)", peer_op="permute", top_k=k, dropped=dropped), arrays
        return run

    for x_type in TYPES:
        yield f"permute/{x_type}_k2", round_trip(x_type, 40, 2, 64, 8, 6000)
        yield f"permute/{x_type}_k8", round_trip(x_type, 33, 8, 128, 16, 6010)
        yield f"permute/{x_type}_k3_plain", round_trip(x_type, 20, 3, 32, 5, 6020, probs=False)
        yield f"permute/{x_type}_k6_dropped", round_trip(x_type, 24, 6, 96, 12, 6030, dropped=17)


def te_nvfp4():
    def scales(seed):
        def run():
            amax = inputs.floats(seed, 600, 30)
            amax[:8] = [0, np.inf, np.nan, 1e-45, 3.4e38, 6, 2688, 1e-38]
            amax = tensor(amax)
            y = poisoned((600,), torch.float32)
            call("nvte_nvfp4_compute_global_scale", Wrapped(data=amax), Wrapped(data=y), 0)
            return noted("nvte_nvfp4_compute_global_scale", peer_op="nvfp4_global_scale"), {"in/amax": amax, "out/scale": y}
        return run

    def block_scale(seed, whole):
        def run():
            amax = np.minimum(inputs.floats(seed, 2000, 12), np.float32(whole if np.isfinite(whole) and whole > 0 else 1e30))
            amax[:6] = [0, 1e-45, whole if whole == whole else 1, 1e-30, 6, 1e-10]
            amax, g = tensor(amax), torch.tensor([whole], dtype=torch.float32, device="cuda")
            y = poisoned((2000,), torch.float32)
            call("nvte_nvfp4_compute_per_block_scale", Wrapped(data=amax), Wrapped(data=y), Wrapped(data=g), 0)
            return noted("nvte_nvfp4_compute_per_block_scale", peer_op="nvfp4_block_scale"), {"in/block_amax": amax, "in/amax": g, "out/scale": y}
        return run

    def expand(seed):
        def run():
            s = inputs.floats(seed, 12 * 20, 10).reshape(12, 20)
            s[0, :8] = [0, 448, 449, 1e-9, 2.0 ** -10, 3 * 2.0 ** -10, np.inf, np.nan]
            s = tensor(s)
            y = poisoned((256, 20), torch.uint8)
            call("nvte_nvfp4_expand_scale_to_fp8", Wrapped(data=s), Wrapped(data=y), 12, 20, 256, 16, 0)
            return noted("nvte_nvfp4_expand_scale_to_fp8", peer_op="nvfp4_expand_scale"), {"in/scale": s, "out/scale": ("e4m3", y)}
        return run

    def tiles(x_type, rows, columns, seed):
        def run():
            x = x_of(seed, rows, columns, x_type)
            h, w = (rows + 15) // 16, (columns + 15) // 16
            y = torch.zeros((h, w), device="cuda")
            call("nvte_nvfp4_2d_compute_partial_amax", Wrapped(data=x), Wrapped(data=y), rows, columns, w, 1, 0, 16, 0)
            return noted("nvte_nvfp4_2d_compute_partial_amax", peer_op="nvfp4_2d_amax"), {"in/x": x, "out/amax": y}
        return run

    yield "nvfp4/global_scale", scales(7000)
    for i, whole in enumerate((13.7, 1e-3, 4e4, 0.0, float("inf"), 1e-40)):
        yield f"nvfp4/block_scale_{i}", block_scale(7100 + i, whole)
    yield "nvfp4/expand_scale", expand(7200)
    for x_type in TYPES:
        yield f"nvfp4/amax_{x_type}", tiles(x_type, 64, 96, 7300)
        yield f"nvfp4/amax_{x_type}_ragged", tiles(x_type, 37, 50 + 14, 7301)

    def e8m0(amax):
        """E8M0 scales of bf16 amaxes, of any shape."""
        s = poisoned(tuple(amax.shape), torch.uint8)
        lists = (c.c_void_p * 2)()
        for i, t in enumerate((amax, s)):
            array = (c.c_void_p * 1)(Wrapped(data=t).handle)
            KEPT.append(array)
            lists[i] = c.addressof(array)
        call("nvte_multi_tensor_compute_scale_inv_e8m0_cuda", 2048 * 32, lists, 2, 1, 0)
        return s

    def scale_of_amax():
        a = inputs.floats(7350, 4096, 100)
        a[:9] = [0, np.inf, np.nan, 1e-45, 3.4e38, 448, 446, 450, 57344]
        h = tensor(a.reshape(64, 64), "bf16")
        return noted("nvte_multi_tensor_compute_scale_inv_e8m0_cuda", peer_op="mxfp8_scale_of_amax"), {"in/amax": h, "out/scale": e8m0(h)}

    yield "mxfp8/scale_of_amax", scale_of_amax

    def every_amax():
        h = torch.arange(0, 0x8000, dtype=torch.int32).to(torch.int16).cuda().view(torch.bfloat16).reshape(128, 256)
        return noted("nvte_multi_tensor_compute_scale_inv_e8m0_cuda, every bf16 that is not negative", peer_op="mxfp8_scale_of_amax"), \
            {"in/amax": h, "out/scale": e8m0(h)}

    yield "mxfp8/scale_of_every_amax", every_amax

    def mx_parts(x_type, rows, columns, seed, special=False):
        def run():
            x = x_of(seed, rows, columns, x_type, span=5 if x_type == "f16" else 12)
            if special:
                x[5, 7], x[40, 33], x[41, 34] = float("nan"), float("inf"), -float("inf")
            flat = x.reshape(-1)
            row = torch.zeros((round_up(rows, 128), round_up(columns // 32, 4)), dtype=TYPES[x_type], device="cuda")
            col = torch.zeros((round_up(rows // 32, 4), round_up(columns, 128)), dtype=TYPES[x_type], device="cuda")
            call("nvte_mxfp8_scaling_compute_partial_amax", Wrapped(data=flat), Wrapped(data=row), Wrapped(data=col), rows, columns, 0, 0)
            s, st = e8m0(row.to(torch.bfloat16)), e8m0(col.to(torch.bfloat16))
            q, qt = poisoned((rows * columns,), torch.uint8), poisoned((rows * columns,), torch.uint8)
            call("nvte_mxfp8_scaling_partial_cast", Wrapped(data=flat), Wrapped(data=q), Wrapped(data=qt), Wrapped(data=s), Wrapped(data=st), rows, columns,
                 0, 0)
            text = "nvte_mxfp8_scaling_compute_partial_amax, nvte_multi_tensor_compute_scale_inv_e8m0_cuda, nvte_mxfp8_scaling_partial_cast"
            named = {"op": "quantize", "recipe": "mxfp8", "otype": "e4m3"} if x_type == "bf16" else {"peer_op": "mxfp8, amax rounded to bf16"}
            return noted(text, **named), \
                {"in/x": x, "out/rowwise_data": ("e4m3", q.reshape(rows, columns)), "out/columnwise_data": ("e4m3", qt.reshape(rows, columns)),
                 "out/rowwise_scale_inv": s, "out/columnwise_scale_inv": st, "notes/rowwise_amax": row, "notes/columnwise_amax": col}
        return run

    for x_type in TYPES:
        for rows, columns in ((128, 128), (64, 96), (160, 352)):
            yield f"mxfp8/quantize_{x_type}_{rows}x{columns}", mx_parts(x_type, rows, columns, 7360 + rows)
        yield f"mxfp8/quantize_{x_type}_special", mx_parts(x_type, 64, 64, 7390, special=True)

    def hadamard(rows, columns, mask, seed):
        def run():
            x = x_of(seed, rows, columns, "bf16", span=3)
            yt = poisoned((columns, rows), torch.bfloat16)
            call("nvte_hadamard_transform", Wrapped(data=x), Wrapped(data=yt), 0, mask, 0)
            return noted("nvte_hadamard_transform(x, y, 0, mask), y is of the transposed", peer_op="hadamard", sign_mask=mask), {"in/x": x, "out/columnwise": yt}
        return run

    for rows, columns in ((128, 128), (256, 64)):
        for mask in (0, 0x2B5D):
            yield f"hadamard/{rows}x{columns}_{mask}", hadamard(rows, columns, mask, 7401)

    def swiglu(x_type, columns=256):
        def run():
            x = tensor(inputs.gates(430, 48, columns, x_type), x_type)
            y = poisoned((48, columns), TYPES[x_type])
            call("nvte_swiglu", Wrapped(data=x), Wrapped(data=y), 0)
            return noted("nvte_swiglu", peer_op="swiglu"), {"in/x": x, "out/y": y}
        return run

    def swiglu_fp8(x_type):
        def run():
            x = tensor(inputs.gates(430, 48, 256, x_type), x_type)
            q = poisoned((48, 256), FP8["e4m3"])
            s, inv, amax = torch.tensor([3.7], device="cuda"), poisoned((1,), torch.float32), torch.zeros(1, device="cuda")
            call("nvte_swiglu", Wrapped(data=x), Wrapped(TENSOR, data=q, scale=s, scale_inv=inv, amax=amax), 0)
            return noted("nvte_swiglu, output E4M3", peer_op="swiglu_fp8"), {"in/x": x, "in/scale": s, "out/codes": q, "out/scale_inv": inv, "out/amax": amax}
        return run

    for x_type in TYPES:
        yield f"swiglu/{x_type}", swiglu(x_type)
        yield f"swiglu_fp8/{x_type}", swiglu_fp8(x_type)


def te_refused():
    def mx_dequantize():
        x = codes_of(8000, (64, 64), "e4m3")
        s = torch.full((128, 4), 127, dtype=torch.uint8, device="cuda").view(torch.float8_e8m0fnu)
        y = poisoned((64, 64), torch.float32)
        call("nvte_dequantize", Wrapped(MXFP8, data=x, scale_inv=s), Wrapped(data=y), 0)
        return noted("nvte_dequantize", recipe="mxfp8"), {"in/data": x, "out/x": y}

    yield "refused/mxfp8_dequantize", mx_dequantize

    def mx_quantize():
        x = x_of(8001, 128, 128, "bf16")
        q, s = poisoned((128, 128), FP8["e4m3"]), poisoned((128, 4), torch.float8_e8m0fnu)
        call("nvte_quantize_v2", Wrapped(data=x), Wrapped(MXFP8, data=q, scale_inv=s), Config(eps=0.0).handle, 0)
        return noted("nvte_quantize_v2", recipe="mxfp8"), {"in/x": x, "out/rowwise_data": q, "out/rowwise_scale_inv": s}

    yield "refused/mxfp8_quantize", mx_quantize

    def cast_2d():
        x = x_of(8002, 32, 32, "bf16")
        q = torch.zeros((32, 16), dtype=torch.uint8, device="cuda")
        s, g = tensor(np.full((2, 2), 2.0, np.float32)), torch.tensor([1.0], device="cuda")
        call("nvte_nvfp4_2d_partial_cast", Wrapped(data=x), Wrapped(data=q), Wrapped(data=s), Wrapped(data=g), 32, 32, 2, 1, 0, 16, 0)
        return noted("nvte_nvfp4_2d_partial_cast", recipe="nvfp4"), {"in/x": x, "in/scale": s, "in/global_scale": g, "out/data": ("e2m1", q)}

    yield "refused/nvfp4_2d_partial_cast", cast_2d

    def nv_quantize(x_type):
        def run():
            x = x_of(8003, 64, 64, x_type)
            q, s = poisoned((64, 32), torch.uint8), poisoned((128, 4), torch.float8_e4m3fn)
            amax = x.float().abs().max().reshape(1)
            call("nvte_quantize_v2", Wrapped(data=x), Wrapped(NVFP4, data=(q, E2M1, (64, 64)), scale_inv=s, amax=amax), Config(eps=0.0).handle, 0)
            return noted("nvte_quantize_v2", recipe="nvfp4"), {"in/x": x, "in/amax": amax, "out/rowwise_data": ("e2m1", q), "out/rowwise_scale_inv": s}
        return run

    yield "refused/nvfp4_f32", nv_quantize("f32")
    yield "refused/nvfp4_bf16", nv_quantize("bf16")
