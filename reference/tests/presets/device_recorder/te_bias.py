"""TransformerEngine: bias of grouped products."""

import numpy as np
import torch

import inputs
from calls import TYPES, tensor
from te_library import TENSOR, Wrapped, call, noted


def te_bias():
    def bias_add(x_type, d_type, splits, n, k, seed):
        """The product is one of small integers: every order of its sums gives the same bits, and D holds them in any type."""
        def run():
            rows, g = sum(splits), len(splits)
            x = (inputs.words(seed, rows * k) % np.uint64(7)).astype(np.float32).reshape(rows, k) - 3
            w = (inputs.words(seed + 1, g * n * k) % np.uint64(3)).astype(np.float32).reshape(g * n, k) - 1
            owner = np.repeat(np.arange(g), splits)
            d = np.einsum("rk,rnk->rn", x.astype(np.int64), w.reshape(g, n, k).astype(np.int64)[owner])
            assert np.abs(d).max() <= 256  # the integers that BF16 holds
            b = inputs.random_rows(seed + 2, g, n, 6)
            b[:, :6] = [0, -0.0, np.inf, -np.inf, 2.0 ** -20, -1]
            d, b = tensor(d.astype(np.float32), d_type), tensor(b, d_type)
            first = torch.tensor(splits, dtype=torch.int64, device="cuda")
            offsets = torch.tensor([0, *np.cumsum(splits)], dtype=torch.int64, device="cuda") * n
            output = Wrapped(TENSOR, groups=g, logical=(rows, n), data=d.reshape(-1), first_dims=first, offsets=offsets)
            call("nvte_grouped_bias_add", output, Wrapped(TENSOR, groups=g, logical=(g, n), data=b.reshape(-1)), 0)
            return noted("nvte_grouped_bias_add onto sums of integers", op="grouped_gemm", kind=x_type, layout="TN", N=n, K=k, bias=1, dtype_d=d_type), \
                {"in/x": tensor(x, x_type), "in/w": tensor(w, x_type), "in/splits": first, "in/bias": b, "out/d": d}
        return run

    for d_type in TYPES:
        x_type = "f16" if d_type == "f16" else "bf16"
        yield f"bias/{d_type}", bias_add(x_type, d_type, [33, 64, 7], 96, 48, 8000)
        yield f"bias/{d_type}_empty", bias_add(x_type, d_type, [5, 0, 130, 0], 160, 64, 8010)
        yield f"bias/{d_type}_one", bias_add(x_type, d_type, [1], 48, 16, 8020)
