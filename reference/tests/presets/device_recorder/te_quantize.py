"""TransformerEngine: delayed and grouped current scaling, bias gradients."""

import numpy as np
import torch

from calls import TYPES, poisoned
from te_library import FP8, TENSOR, BLOCK_1D, BLOCK_2D, Config, Wrapped, call, kept, noted, nvte, round_up, x_of


def te_quantize():
    def delayed_dbias(x_type, otype, rows, columns, seed):
        def run():
            x = x_of(seed, rows, columns, x_type)
            s = torch.tensor([0.037 if otype == "e4m3" else 17.3], device="cuda")
            q, qt = poisoned((rows, columns), FP8[otype]), poisoned((columns, rows), FP8[otype])
            inv, amax, db = poisoned((1,), torch.float32), torch.zeros(1, device="cuda"), poisoned((columns,), TYPES[x_type])
            out = Wrapped(TENSOR, data=q, columnwise_data=qt, scale=s, amax=amax, scale_inv=inv, columnwise_scale_inv=inv)
            bias, source = Wrapped(data=db), Wrapped(data=x)
            work = Wrapped()
            call("nvte_quantize_dbias", source, out, bias, work, 0)
            call("nvte_quantize_dbias", source, out, bias, workspace_of(work), 0)
            return noted("nvte_quantize_dbias", op="quantize", recipe="tensor_delayed", otype=otype, dbias=1), \
                {"in/x": x, "in/scale": s, "out/rowwise_data": q, "out/columnwise_data": qt, "out/rowwise_scale_inv": inv, "out/amax": amax,
                 "out/dbias": db.reshape(1, columns)}
        return run

    def workspace_of(work):
        return kept(nvte.workspace(work.wanted(), torch.device("cuda")))[0]

    for x_type in TYPES:
        for otype in FP8:
            for rows, columns in ((64, 128), (256, 128), (96, 80), (40, 272), (1000, 64)):
                yield f"quantize/delayed_dbias_{x_type}_{otype}_{rows}x{columns}", delayed_dbias(x_type, otype, rows, columns, 5000 + rows)

    def grouped_current(x_type, otype, splits, columns, seed, pow2=0, eps=0.0, both=True, same=False):
        def run():
            rows, g = sum(splits), len(splits)
            x = x_of(seed, rows, columns, x_type)
            first = torch.tensor(splits, dtype=torch.int64, device="cuda")
            offsets = torch.tensor([0, *np.cumsum(splits)], dtype=torch.int64, device="cuda") * columns
            shape = {"groups": g, "logical": (rows, columns)}
            if not same:
                shape.update(first_dims=first, offsets=offsets)
            q, qt = poisoned((rows * columns,), FP8[otype]), poisoned((rows * columns,), FP8[otype])
            amax, scale, inv = (poisoned((g,), torch.float32) for _ in range(3))
            amax.zero_()
            fields = {"data": q, "scale": scale, "amax": amax, "scale_inv": inv}
            if both:
                fields.update(columnwise_data=qt, columnwise_scale_inv=inv)
            source, out = Wrapped(TENSOR, **shape, data=x.reshape(-1)), Wrapped(TENSOR, **shape, **fields)
            config = Config(pow2=pow2, eps=eps)
            call("nvte_group_compute_amax_with_config", source, out, config.handle, 0)
            call("nvte_group_compute_scale_from_amax", out, config.handle, 0)
            call("nvte_group_quantize", source, out, config.handle, 0)
            arrays = {"in/x": x, "in/splits": first, "out/rowwise_data": q.reshape(rows, columns), "out/rowwise_scale_inv": inv, "out/amax": amax,
                      "out/scale": scale}
            if both:
                arrays["out/columnwise_data"] = qt
            return noted("nvte_group_compute_amax_with_config, nvte_group_compute_scale_from_amax, nvte_group_quantize", op="quantize",
                         recipe="tensor_current", otype=otype, pow2=pow2, eps=eps), arrays
        return run

    groups = {"aligned": ([128, 256, 128], 128), "empty": ([128, 0, 256, 128], 128), "small": ([32, 64, 96], 64), "ragged": ([33, 0, 1, 95, 127], 144),
              "tail": ([16, 48], 80)}
    for x_type in TYPES:
        for otype in FP8:
            for name, (splits, columns) in groups.items():
                for both in (True, False):
                    yield (f"quantize/grouped_current_{x_type}_{otype}_{name}{'' if both else '_rowwise'}",
                           grouped_current(x_type, otype, splits, columns, 5200, both=both))
        yield f"quantize/grouped_current_{x_type}_pow2", grouped_current(x_type, "e4m3", [128, 256, 128], 128, 5200, pow2=1)
        yield f"quantize/grouped_current_{x_type}_eps", grouped_current(x_type, "e4m3", [128, 256, 128], 128, 5200, eps=200.0)
        yield f"quantize/grouped_current_{x_type}_same", grouped_current(x_type, "e4m3", [128, 128, 128], 128, 5200, same=True)

    def block_dbias(mode, x_type, otype, splits, columns, seed):
        def run():
            rows, g = sum(splits), len(splits)
            x = x_of(seed, rows, columns, x_type)
            first = torch.tensor(splits, dtype=torch.int64, device="cuda")
            offsets = torch.tensor([0, *np.cumsum(splits)], dtype=torch.int64, device="cuda") * columns
            shape = {"groups": g, "logical": (rows, columns), "first_dims": first, "offsets": offsets}
            tiles = columns // 128
            if mode == BLOCK_1D:
                n, nt = sum(tiles * round_up(m, 4) for m in splits), rows // 128 * round_up(columns, 4)
            else:
                n, nt = rows // 128 * round_up(tiles, 4), sum(tiles * round_up(m // 128, 4) for m in splits)
            q, qt = poisoned((rows * columns,), FP8[otype]), poisoned((rows * columns,), FP8[otype])
            s, st = poisoned((n,), torch.float32), poisoned((nt,), torch.float32)
            db = poisoned((g * columns,), TYPES[x_type])
            source = Wrapped(TENSOR, **shape, data=x.reshape(-1))
            out = Wrapped(mode, **shape, data=q, columnwise_data=qt, scale_inv=s, columnwise_scale_inv=st)
            bias = Wrapped(TENSOR, groups=g, logical=(g, columns), data=db)
            work, config = Wrapped(), Config(pow2=0, eps=0.0)
            call("nvte_group_quantize_dbias", source, out, bias, work, config.handle, 0)
            call("nvte_group_quantize_dbias", source, out, bias, workspace_of(work), config.handle, 0)
            return noted("nvte_group_quantize_dbias", op="quantize", recipe="block_1x128" if mode == BLOCK_1D else "block_128x128", otype=otype,
                         pow2=0, dbias=1), \
                {"in/x": x, "in/splits": first, "out/rowwise_data": q.reshape(rows, columns), "out/columnwise_data": qt, "out/rowwise_scale_inv": s,
                 "out/columnwise_scale_inv": st, "out/dbias": db.reshape(g, columns)}
        return run

    for mode in (BLOCK_1D, BLOCK_2D):
        for x_type in TYPES:
            yield f"quantize/block{mode - 1}d_dbias_{x_type}", block_dbias(mode, x_type, "e4m3", [256, 128], 256, 5400)
            yield f"quantize/block{mode - 1}d_dbias_{x_type}_empty", block_dbias(mode, x_type, "e5m2", [128, 0, 256], 128, 5401)
