"""What other people's quantizers compute: one function for each preset of a scale rule, in numpy alone.

Each is written from the sources of its peer, named beside it, and shares no code with reference/. peers_record_test.py holds
them to recorded bytes of the peers' own code. Every step is float32 unless it says otherwise.

A function takes x, float32 [R, K] whose values are exact in x_type (bf16, f16 or f32), and options; it returns
    codes         uint8 [R, K], one code to a byte
    scale         as stored: uint32 bits of float32, or uint8 (E8M0, E4M3); one for each block, [R / r, K / k]
    tensor_scale  float32 array, or None

PRESETS names them, each with the options that the name implies. Formulas are those of a CPU; steps.py says what a GPU changes.
"""

import peers_fp8
import peers_mx
import peers_nvfp4
import steps

PRESETS = {
    "deepseek_v3": (peers_fp8.deepseek_v3, {}),
    "deepseek_v3.ue8m0": (peers_fp8.deepseek_v3, {"ue8m0": True}),
    "deepgemm": (peers_fp8.deepgemm, {}),
    "deepgemm.ue8m0": (peers_fp8.deepgemm, {"ue8m0": True}),
    "deepgemm.fp4": (peers_fp8.deepgemm_fp4, {}),
    "deepgemm.fp4.ue8m0": (peers_fp8.deepgemm_fp4, {"ue8m0": True}),
    "sglang.group_v1": (peers_fp8.sglang_group_v1, {}),
    "sglang.group_v2": (peers_fp8.sglang_group_v2, {}),
    "sglang.group_v2.ue8m0": (peers_fp8.sglang_group_v2, {"ue8m0": True}),
    "sglang.per_token": (peers_fp8.sglang_per_token, {}),
    "sglang.per_tensor": (peers_fp8.sglang_per_tensor, {}),
    "vllm.group": (peers_fp8.vllm_group, {}),
    "vllm.group.ue8m0": (peers_fp8.vllm_group, {"ue8m0": True}),
    "vllm.per_token": (peers_fp8.vllm_per_token, {}),
    "vllm.per_tensor": (peers_fp8.vllm_per_tensor, {}),
    "fbgemm.per_row": (peers_fp8.fbgemm, {}),
    "fbgemm.per_tensor": (peers_fp8.fbgemm, {"block": (None, None)}),
    "fbgemm.row": (peers_fp8.fbgemm_block, {}),
    "fbgemm.group": (peers_fp8.fbgemm_block, {"block": (1, 128)}),
    "fbgemm.block": (peers_fp8.fbgemm_block, {"block": (256, 256)}),
    "torchao.rowwise": (peers_fp8.torchao_rowwise, {}),
    "torchao.rowwise.pow2": (peers_fp8.torchao_rowwise, {"pow2": True}),
    "torchao.block": (peers_fp8.torchao_block, {}),
    "torchao.mx_floor": (peers_mx.torchao_mx, {"mode": "floor"}),
    "torchao.mx_ceil": (peers_mx.torchao_mx, {"mode": "ceil"}),
    "torchao.mx_even": (peers_mx.torchao_mx, {"mode": "even"}),
    "torchao.mx_rceil": (peers_mx.torchao_mx_rceil, {}),
    "torchao.mx_rceil.compiled": (peers_mx.torchao_mx_rceil, {"div": steps.reciprocal_div, "exact": True}),
    "microxcaling": (peers_mx.microxcaling, {}),
    "nvfp4.vllm": (peers_nvfp4.vllm, {}),
    "nvfp4.modelopt": (peers_nvfp4.modelopt, {}),
    "nvfp4.torchao": (peers_nvfp4.torchao, {}),
    "nvfp4.te_row_scaled": (peers_nvfp4.te_row_scaled, {}),
    "fouroversix.static_6": (peers_nvfp4.four_over_six, {"rule": "static_6"}),
    "fouroversix.static_4": (peers_nvfp4.four_over_six, {"rule": "static_4"}),
    "fouroversix.mse": (peers_nvfp4.four_over_six, {"rule": "mse"}),
    "fouroversix.mae": (peers_nvfp4.four_over_six, {"rule": "mae"}),
    "fouroversix.abs_max": (peers_nvfp4.four_over_six, {"rule": "abs_max"}),
}


def quantize(name, x, x_type, **options):
    """The preset `name` on x; options replace those that the name implies."""
    if name not in PRESETS:
        raise KeyError(f"preset is {name!r}, expected one of {', '.join(PRESETS)}")
    function, implied = PRESETS[name]
    return function(x, x_type, **{**implied, **options})
