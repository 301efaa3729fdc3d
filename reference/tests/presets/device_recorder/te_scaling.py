"""TransformerEngine: delayed scaling and offsets."""

import ctypes as c

import numpy as np
import torch

import inputs
from calls import LABELS, poisoned, tensor
from te_library import FP8, NVTE, KEPT, Vector, Wrapped, call, noted


def histories(seed, length, n):
    """Histories of n tensors: plain, and columns of zeros, NaN, infinities, tiny and large values, in the newest row or not."""
    h = inputs.floats(seed, length * n, 20).reshape(length, n)
    h[:, 1] = 0
    h[0, 2] = 0
    h[0, 3] = np.inf
    h[-1, 4] = np.nan
    h[0, 5] = np.nan
    h[:, 6] = 1e-45
    h[:, 7] = 3.4e38
    h[0, 8] = 1.2e-38
    h[length // 2, 9] = np.inf
    h[:, 10] = 1e-37
    h[:, 11] = 448
    h[:, 12] = 2.0 ** -118
    h[0, 13] = -0.0
    return h


def te_recipe():
    def delayed(algorithm, bulk, otype, margin, length, seed, parts=None, reduced=False, in_place=False):
        def run():
            n = 24
            h, s = tensor(histories(seed, length, n)), inputs.floats(seed + 50, n, 8)
            s[20], s[21] = np.inf, 1.0
            s = tensor(s)
            arrays = {"in/amax_history": h.clone(), "in/scale": s.clone()}
            attributes = noted("", op="delayed_update", algorithm=algorithm, bulk=int(bulk), otype=otype, margin=int(margin))
            number = NVTE[FP8[otype]]
            if not bulk:
                h2, s2 = (h, s) if in_place else (poisoned((length, n), torch.float32), poisoned((n,), torch.float32))
                call("nvte_delayed_scaling_recipe_amax_and_scale_update", Wrapped(data=h), Wrapped(data=s), Wrapped(data=h2),
                     Wrapped(data=s2), algorithm.encode(), number, 0, real=margin)
                attributes["call"] = "nvte_delayed_scaling_recipe_amax_and_scale_update" + (" in place" if in_place else "")
                return attributes, {**arrays, "out/amax_history": h2, "out/scale": s2}
            buffer = None
            if reduced:
                r = inputs.floats(seed + 90, n, 12)
                r[0], r[4], r[15] = 0, np.inf, np.nan
                buffer = tensor(r)
                arrays["in/reduced"] = buffer.clone()
            hs, ss, start = [], [], 0
            for width in parts:
                hs.append(h[:, start:start + width].contiguous())
                ss.append(s[start:start + width].contiguous())
                start += width
            handles = [(c.c_void_p * len(parts))(*[Wrapped(data=t).handle for t in ts]) for ts in (hs, ss)]
            vectors = []
            for array in handles:
                KEPT.append(array)
                first = c.addressof(array)
                vectors.append(Vector(first, first + 8 * len(parts), first + 8 * len(parts)))
            call("nvte_delayed_scaling_recipe_amax_and_scale_update_after_reduction",
                 Wrapped(data=buffer) if reduced else Wrapped(), vectors[0], vectors[1], algorithm.encode(), number, 0, real=margin)
            attributes["call"] = f"nvte_delayed_scaling_recipe_amax_and_scale_update_after_reduction, histories of {parts} columns"
            torch.cuda.synchronize()
            return attributes, {**arrays, "out/amax_history": torch.cat(hs, 1), "out/scale": torch.cat(ss)}
        return run

    singles, mixed = [1] * 24, [1, 2, 5, 16]
    for algorithm in ("max", "most_recent"):
        for otype, margin in (("e4m3", 0), ("e5m2", 2), ("e4m3", -3)):
            for length in (1, 5, 16, 300):
                seed = 1000 + length
                name = f"delayed_update/{algorithm}_{otype}_margin{margin}_{length}"
                yield f"{name}/plain", delayed(algorithm, False, otype, margin, length, seed)
                yield f"{name}/bulk", delayed(algorithm, True, otype, margin, length, seed + 1, singles)
                yield f"{name}/bulk_reduced", delayed(algorithm, True, otype, margin, length, seed + 2, singles, reduced=True)
            name = f"delayed_update/{algorithm}_{otype}_margin{margin}_16"
            yield f"{name}/in_place", delayed(algorithm, False, otype, margin, 16, 1900, in_place=True)
            yield f"{name}/mixed", delayed(algorithm, True, otype, margin, 16, 1901, mixed, reduced=True)

    def offsets(splits, stride):
        def run():
            x = torch.tensor(splits, dtype=torch.int64, device="cuda")
            y = poisoned((len(splits) + 1,), torch.int64)
            call("nvte_splits_to_offsets", x, y, len(splits), stride, 0)
            return noted("nvte_splits_to_offsets", op="splits_to_offsets", stride=stride), {"in/splits": x, "out/offsets": y}
        return run

    def multi(splits, dtype, outputs):
        def run():
            x = torch.tensor(splits, dtype=dtype, device="cuda")
            made = [poisoned((len(splits) + int(lead),), kind) for _, kind, lead in outputs]
            handles = (c.c_void_p * len(made))(*[Wrapped(data=t).handle for t in made])
            strides = (c.c_int64 * len(made))(*[s for s, _, _ in outputs])
            leads = (c.c_int * len(made))(*[int(lead) for _, _, lead in outputs])
            call("nvte_splits_to_offsets_multi", Wrapped(data=x), handles, strides, leads, len(made), 0)
            text = ",".join(f"{s}:{LABELS[kind]}" + ("" if lead else ":inclusive") for s, kind, lead in outputs)
            return noted("nvte_splits_to_offsets_multi", op="splits_to_offsets_multi", outputs=text), \
                {"in/splits": x, **{f"out/offsets_{i}": t for i, t in enumerate(made)}}
        return run

    def two(first, last, dtype, result):
        def run():
            a, b = (torch.tensor(v, dtype=dtype, device="cuda") for v in (first, last))
            y = poisoned((len(first) + 1,), result)
            call("nvte_splits_to_offsets_2d", Wrapped(data=a), Wrapped(data=b), Wrapped(data=y), 0)
            return noted("nvte_splits_to_offsets_2d", op="splits_to_offsets_2d"), {"in/first": a, "in/last": b, "out/offsets": y}
        return run

    i32, i64 = torch.int32, torch.int64
    lists = {n: [int(v) for v in inputs.words(2000 + n, n) % np.uint64(301)] for n in (1, 2, 31, 33, 255, 256, 257, 1024, 1025, 3000)}
    lists[31] = [0 if i % 3 else v for i, v in enumerate(lists[31])]
    outs = [(1, i32, True), (1, i64, False), (128, i64, True), (7168, i32, False)]
    for n, splits in lists.items():
        yield f"offsets/multi_i64_{n}", multi(splits, i64, outs)
        yield f"offsets/multi_i32_{n}", multi(splits, i32, outs)
        other = list(reversed(splits))
        yield f"offsets/two_i64_{n}", two(splits, other, i64, i64)
        yield f"offsets/two_i32_{n}", two(splits, other, i32, i32)
        yield f"offsets/one_{n}", offsets(splits, 7168)
    yield "offsets/multi_large", multi([1 << 33, 5, 1 << 20], i64, [(1, i64, True), (4096, i64, False), (0, i64, True)])
    yield "offsets/multi_overflow", multi([1 << 20] * 40, i64, [(7168, i32, True), (7168, i64, True)])
    yield "offsets/two_mixed", two([3, 0, 70000], [7, 9, 70000], i32, i64)
    yield "offsets/multi_eight", multi([3, 0, 9], i64, [(s, i64, True) for s in range(1, 9)])
