"""TransformerEngine: dequantization, and scales swizzled and back."""

import ctypes as c

import numpy as np
import torch

import inputs
from calls import TYPES, poisoned, tensor
from te_library import FP8, NVTE, E2M1, TENSOR, MXFP8, BLOCK_1D, BLOCK_2D, NVFP4, Wrapped, call, noted, round_up


def codes_of(seed, shape, otype):
    raw = inputs.some_bytes(seed, int(np.prod(shape)))
    count = min(raw.size, 256)
    raw[:count] = np.arange(count, dtype=np.uint8)
    return torch.from_numpy(raw.reshape(shape)).cuda().view(FP8[otype])


def block_scales(seed, count):
    s = inputs.floats(seed, count, 14)
    edge = np.array([0.0, 1.0, 2.0 ** -126, 2.0 ** -149, 3e38, np.inf, np.nan, -1.5], np.float32)
    s[3:3 + len(edge)] = edge[:max(0, len(s) - 3)]
    return tensor(s)


def te_dequantize():
    def per_tensor(otype, d_type, scale, seed):
        def run():
            x = codes_of(seed, (33, 64), otype)
            s = torch.tensor([scale], dtype=torch.float32, device="cuda")
            y = poisoned((33, 64), TYPES[d_type])
            call("nvte_dequantize", Wrapped(TENSOR, data=x, scale_inv=s), Wrapped(data=y), 0)
            return noted("nvte_dequantize", op="dequantize", recipe="tensor_current", otype=otype, dtype_d=d_type, direction="rowwise",
                         R=33, K=64), {"in/rowwise_data": x, "in/rowwise_scale_inv": s, "out/x": y}
        return run

    for otype in FP8:
        for d_type in TYPES:
            for i, scale in enumerate((1.0, 0.00731, 2.0 ** -140, 3e36, float("inf"), float("nan"), 0.0)):
                yield f"dequantize/tensor_{otype}_{d_type}_{i}", per_tensor(otype, d_type, scale, 3000 + i)

    def nvfp4(rows, columns, d_type, amax, e4m3_max, swizzled, row_scaled, seed):
        def run():
            raw = inputs.some_bytes(seed, rows * columns // 2)
            raw[:256] = np.arange(256, dtype=np.uint8)
            x = torch.from_numpy(raw.reshape(rows, -1)).cuda()
            s = inputs.some_bytes(seed + 1, round_up(rows, 128) * round_up(columns // 16, 4)) & np.uint8(0x7F)
            s = torch.from_numpy(s.reshape(round_up(rows, 128), -1)).cuda().view(torch.float8_e4m3fn)
            a = tensor(inputs.floats(seed + 2, rows, 10)) if row_scaled else torch.tensor([amax], dtype=torch.float32, device="cuda")
            y = poisoned((rows, columns), TYPES[d_type])
            call("nvte_dequantize", Wrapped(NVFP4, data=(x, E2M1, (rows, columns)), scale_inv=s, amax=a, swizzled=swizzled,
                                            row_scaled=row_scaled, e4m3_max=e4m3_max), Wrapped(data=y), 0)
            return noted("nvte_dequantize" + (", one amax a row" if row_scaled else ""), op="dequantize", recipe="nvfp4", otype="e2m1",
                         dtype_d=d_type, direction="rowwise", scale_layout="swizzled" if swizzled else "compact", e4m3_max=e4m3_max,
                         R=rows, K=columns, row_scaled=int(row_scaled)), \
                {"in/rowwise_data": ("e2m1", x), "in/rowwise_scale_inv": s, "in/amax": a, "out/x": y}
        return run

    for d_type in TYPES:
        for i, (amax, e4m3_max, swizzled, row_scaled) in enumerate((
                (3.7, 448, False, False), (1e-30, 448, False, False), (2.9e38, 448, False, False), (0.0, 448, False, False),
                (float("inf"), 448, False, False), (float("nan"), 448, False, False), (11.3, 256, False, False),
                (0.83, 448, True, False), (5.1, 256, True, False), (0, 448, False, True), (0, 256, True, True))):
            yield f"dequantize/nvfp4_{d_type}_{i}", nvfp4(48, 80, d_type, amax, e4m3_max, swizzled, row_scaled, 3100 + i)

    def block(mode, direction, otype, d_type, splits, columns, seed):
        def run():
            rows, g = sum(splits), len(splits)
            x = codes_of(seed, (rows * columns,), otype)
            tiles = columns // 128
            sizes = {(BLOCK_1D, "rowwise"): sum(tiles * round_up(m, 4) for m in splits),
                     (BLOCK_1D, "columnwise"): rows // 128 * round_up(columns, 4),
                     (BLOCK_2D, "rowwise"): rows // 128 * round_up(tiles, 4),
                     (BLOCK_2D, "columnwise"): sum(tiles * round_up(m // 128, 4) for m in splits)}
            s = block_scales(seed + 1, sizes[mode, direction])
            y = poisoned((rows * columns,), TYPES[d_type])
            first = torch.tensor(splits, dtype=torch.int64, device="cuda")
            offsets = torch.tensor([0, *np.cumsum(splits)], dtype=torch.int64, device="cuda") * columns
            shape = {"groups": g, "logical": (rows, columns), "first_dims": first, "offsets": offsets}
            mine = {"data": x, "scale_inv": s} if direction == "rowwise" else {"columnwise_data": x, "columnwise_scale_inv": s}
            call("nvte_group_dequantize", Wrapped(mode, **shape, **mine), Wrapped(TENSOR, **shape, data=y), 0)
            return noted("nvte_group_dequantize", op="dequantize", recipe="block_1x128" if mode == BLOCK_1D else "block_128x128",
                         otype=otype, dtype_d=d_type, direction=direction, R=rows, K=columns), \
                {"in/splits": first, f"in/{direction}_data": x.reshape(rows, columns) if direction == "rowwise" else x,
                 f"in/{direction}_scale_inv": s, "out/x": y.reshape(rows, columns)}
        return run

    for mode in (BLOCK_1D, BLOCK_2D):
        for direction in ("rowwise", "columnwise"):
            for otype in FP8:
                for d_type in TYPES:
                    wide = otype == "e4m3" and d_type == "f32"
                    yield (f"dequantize/block{mode - 1}d_{direction}_{otype}_{d_type}",
                           block(mode, direction, otype, d_type, [128, 256] if wide else [128, 128], 256 if wide else 128, 3200 + 10 * mode))
            yield f"dequantize/block{mode - 1}d_{direction}_empty", block(mode, direction, "e4m3", "f32", [128, 0, 256], 128, 3300)


def te_swizzle():
    def setup(recipe, direction, rows, columns, seed, plain):
        mode, size = (MXFP8, 32) if recipe == "mxfp8" else (NVFP4, 16)
        if direction == "rowwise":
            dims = (round_up(rows, 128), round_up((columns + size - 1) // size, 4))
        elif recipe == "mxfp8":
            dims = (round_up((rows + 31) // 32, 4), round_up(columns, 128))
        else:
            dims = (round_up(columns, 128), round_up((rows + 15) // 16, 4))
        kind = torch.float8_e8m0fnu if recipe == "mxfp8" else torch.float8_e4m3fn
        s = torch.from_numpy(inputs.some_bytes(seed, dims[0] * dims[1]).reshape(dims)).cuda().view(kind)
        t = poisoned(dims, kind)
        shape = (rows, columns) if direction == "rowwise" or recipe == "mxfp8" else (columns, rows)
        data = torch.zeros(rows * columns, dtype=torch.uint8, device="cuda")
        number = NVTE[torch.float8_e4m3fn] if recipe == "mxfp8" else E2M1
        names = ("data", "scale_inv") if direction == "rowwise" else ("columnwise_data", "columnwise_scale_inv")
        a = Wrapped(mode, **{names[0]: (data, number, shape), names[1]: s}, swizzled=not plain)
        b = Wrapped(mode, **{names[0]: (data, number, shape), names[1]: t}, swizzled=plain)
        return s, t, a, b

    def one(recipe, direction, rows, columns, seed, plain=True, several=False):
        def run():
            names = ("compact", "swizzled") if plain else ("swizzled", "compact")
            word = "swizzle" if plain else "unswizzle"
            s, t, a, b = setup(recipe, direction, rows, columns, seed, plain)
            if several:
                others = [setup(recipe, direction, 128, 256, seed + 7, plain), setup(recipe, direction, 256, 128, seed + 8, plain)]
                handles = [(c.c_void_p * 3)(*[x.handle for x in column]) for column in
                           ((others[0][2], a, others[1][2]), (others[0][3], b, others[1][3]))]
                call(f"nvte_multi_tensor_{word}_scaling_factors", *handles, 3, 0)
            else:
                call(f"nvte_{word}_scaling_factors", a, b, 0)
            text = f"nvte_multi_tensor_{word}_scaling_factors, the second of three" if several else f"nvte_{word}_scaling_factors"
            return noted(text, op=word, recipe=recipe, direction=direction, R=rows, K=columns), {f"in/{names[0]}": s, f"out/{names[1]}": t}
        return run

    sizes = ((128, 128), (200, 160), (33, 96), (256, 1024), (384, 2048), (1, 32), (640, 2304))
    for recipe in ("mxfp8", "nvfp4"):
        for direction in ("rowwise", "columnwise"):
            for rows, columns in sizes:
                if direction == "columnwise" or rows % 2:
                    rows = round_up(rows, 32)
                for plain in (True, False):
                    word = "swizzle" if plain else "unswizzle"
                    name = f"{word}/{recipe}_{direction}_{rows}x{columns}"
                    yield name, one(recipe, direction, rows, columns, 4000 + rows, plain)
                    yield f"{name}_multi", one(recipe, direction, rows, columns, 4100 + rows, plain, several=True)

    def grouped(direction, g, rows, columns, seed, plain=True):
        def run():
            word, names = ("swizzle", ("compact", "swizzled")) if plain else ("unswizzle", ("swizzled", "compact"))
            dims = (round_up(rows, 128), round_up(columns // 32, 4)) if direction == "rowwise" else \
                (round_up((rows + 31) // 32, 4), round_up(columns, 128))
            kind = torch.float8_e8m0fnu
            s = torch.from_numpy(inputs.some_bytes(seed, g * dims[0] * dims[1])).cuda().view(kind)
            t = poisoned((g * dims[0] * dims[1],), kind)
            data = torch.zeros(g * rows * columns, dtype=torch.uint8, device="cuda")
            keys = ("data", "scale_inv") if direction == "rowwise" else ("columnwise_data", "columnwise_scale_inv")
            make = lambda scales, swizzled: Wrapped(MXFP8, groups=g, logical=(g * rows, columns), swizzled=swizzled,
                                                    **{keys[0]: (data, 7, (data.numel(),)), keys[1]: scales})
            call(f"nvte_{word}_grouped_scaling_factors", make(s, not plain), make(t, plain), 0)
            splits = torch.full((g,), rows, dtype=torch.int64)
            return noted(f"nvte_{word}_grouped_scaling_factors", op=word, recipe="mxfp8", direction=direction, R=g * rows, K=columns), \
                {"in/splits": splits, f"in/{names[0]}": s, f"out/{names[1]}": t}
        return run

    for direction in ("rowwise", "columnwise"):
        for rows, columns in ((128, 128), (256, 384), (160, 96)):
            for plain in (True, False):
                yield (f"{'swizzle' if plain else 'unswizzle'}/grouped_{direction}_{rows}x{columns}",
                       grouped(direction, 3, rows, columns, 4300, plain))

    def varying(direction, splits, columns, seed):
        def run():
            dims = [(round_up(m, 128), round_up(columns // 32, 4)) if direction == "rowwise" else
                    (round_up((m + 31) // 32, 4), round_up(columns, 128)) for m in splits]
            total = sum(a * b for a, b in dims)
            s = torch.from_numpy(inputs.some_bytes(seed, total)).cuda().view(torch.float8_e8m0fnu)
            t = poisoned((total,), torch.float8_e8m0fnu)
            rows = sum(splits)
            data = torch.zeros(rows * columns, dtype=torch.uint8, device="cuda")
            first = torch.tensor(splits, dtype=torch.int64, device="cuda")
            offsets = torch.tensor([0, *np.cumsum(splits)], dtype=torch.int64, device="cuda") * columns
            keys = ("data", "scale_inv") if direction == "rowwise" else ("columnwise_data", "columnwise_scale_inv")
            make = lambda scales, swizzled: Wrapped(MXFP8, groups=len(splits), logical=(rows, columns), swizzled=swizzled, first_dims=first,
                                                    offsets=offsets, **{keys[0]: (data, 7, (data.numel(),)), keys[1]: scales})
            call("nvte_swizzle_grouped_scaling_factors", make(s, False), make(t, True), 0)
            return noted("nvte_swizzle_grouped_scaling_factors, first dimensions vary", op="swizzle", recipe="mxfp8", direction=direction,
                         R=rows, K=columns), {"in/splits": first, "in/compact": s, "out/swizzled": t}
        return run

    for direction in ("rowwise", "columnwise"):
        yield f"swizzle/varying_{direction}", varying(direction, [128, 384, 256], 256, 4400)
        yield f"swizzle/varying_empty_{direction}", varying(direction, [128, 0, 256], 128, 4401)
