"""TransformerEngine: NVFP4 with stochastic rounding, whose random bytes come from a state {seed, offset}."""

import torch

from calls import poisoned
from te_library import E2M1, NVFP4, Config, Wrapped, call, noted, round_up, x_of


def te_stochastic():
    def quantize(x_type, rows, columns, state, both, seed):
        def run():
            x = x_of(seed, rows, columns, x_type)
            amax = x.float().abs().max().reshape(1)
            rng = torch.tensor([[s - 2**64 if s >= 2**63 else s for s in state]], dtype=torch.int64, device="cuda")
            q, s = poisoned((rows, columns // 2), torch.uint8), torch.zeros((round_up(rows, 128), round_up(columns // 16, 4)), dtype=torch.uint8, device="cuda")
            arrays = {"in/x": x, "in/amax": amax, "in/rng_state": rng, "out/rowwise_data": ("e2m1", q), "out/rowwise_scale_inv": ("e4m3", s)}
            fields = {"data": (q, E2M1, (rows, columns)), "scale_inv": s.view(torch.float8_e4m3fn), "amax": amax}
            if both:
                qt = poisoned((columns, rows // 2), torch.uint8)
                st = torch.zeros((round_up(columns, 128), round_up(rows // 16, 4)), dtype=torch.uint8, device="cuda")
                fields.update(columnwise_data=(qt, E2M1, (columns, rows)), columnwise_scale_inv=st.view(torch.float8_e4m3fn), columnwise_amax=amax)
                arrays.update({"out/columnwise_data": ("e2m1", qt), "out/columnwise_scale_inv": ("e4m3", st)})
            config = Config(eps=0.0, stochastic_rounding=1, rng_state=Wrapped(data=rng.reshape(2)).handle)
            call("nvte_quantize_v2", Wrapped(data=x), Wrapped(NVFP4, **fields), config.handle, 0)
            return noted("nvte_quantize_v2, stochastic rounding", op="quantize", recipe="nvfp4", otype="e2m1", stochastic=1,
                         draws="te_vector_blockwise", direction="both" if both else "rowwise"), arrays
        return run

    states = {"small": (1234, 5), "wide": (0x123456789ABCDEF0, 0xFFFFFFFE)}
    for x_type, rows, columns in (("f32", 128, 128), ("f32", 160, 272), ("bf16", 48, 80)):
        for name, state in states.items():
            for both in (False, True):
                yield (f"stochastic/{x_type}_{rows}x{columns}_{name}{'' if both else '_rowwise'}",
                       quantize(x_type, rows, columns, state, both, 8100))
