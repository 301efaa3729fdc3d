"""SGLang's Triton kernels that sum what the experts return."""

import numpy as np
import torch

import inputs
from calls import TYPES, poisoned, tensor
from peer_files import functions, source


def triton_permutation():
    peer = "sglang 0.5.23, kernels/ops/moe/ep_moe_kernels.py (Triton)"
    moe = functions(source("sglang/ep_moe_kernels.py"),
                    ["deepep_post_reorder_triton_kernel", "post_reorder_deepgemm_triton_kernel"], {})

    def operands(x_type, tokens, topk, columns, seed):
        """(permuted rows, row of each choice, weights): a choice in five is dropped, the last token has none."""
        order = np.argsort(inputs.words(seed, tokens * topk), kind="stable").astype(np.int32).reshape(tokens, topk)
        order[inputs.words(seed + 1, tokens * topk).reshape(tokens, topk) % np.uint64(5) == 0] = -1
        order[-1] = -1
        y = inputs.random_rows(seed + 2, tokens * topk, columns, 4)
        weights = inputs.floats(seed + 3, tokens * topk, 2).reshape(tokens, topk)
        return tensor(y, x_type), torch.from_numpy(order).cuda(), tensor(weights)

    def sum_of(kernel, x_type, tokens, topk, columns, seed):
        def run():
            y, row_map, weights = operands(x_type, tokens, topk, columns, seed)
            x = poisoned((tokens, columns), TYPES[x_type])
            if kernel == "deepep_post_reorder_triton_kernel":
                moe.deepep_post_reorder_triton_kernel[(tokens,)](y, x, row_map, row_map, weights, topk, columns, 1.0, BLOCK_SIZE=512)
                sums = "fma_in_type"
            else:
                moe.post_reorder_deepgemm_triton_kernel[(tokens, (columns + 255) // 256)](
                    y, y, x, row_map, row_map, weights, topk, tokens, columns, 1.0, HAS_LORA_DELTA=False, BLOCK_SIZE=256, NUM_STAGES=3)
                sums = "fma_f32"
            return {"peer": peer, "call": kernel, "op": "unpermute", "sums": sums}, \
                {"in/permuted": y, "in/row_map": row_map, "in/weights": weights, "out/x": x}
        return run

    for kernel in ("deepep_post_reorder_triton_kernel", "post_reorder_deepgemm_triton_kernel"):
        for x_type in TYPES:
            for topk in (2, 6, 8):
                yield f"unpermute/{kernel}/{x_type}_k{topk}", sum_of(kernel, x_type, 40, topk, 272, 9500 + topk)
