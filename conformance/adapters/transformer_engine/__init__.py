"""TransformerEngine, through the C functions of its library, as the wheel transformer-engine-cu13 2.20.2 has them on SM90.

Each operator is one function of the library, or those that it is used with. README.md of the folder above has what they gave.

    scaling.py     quantize, group_quantize, quantize_dbias, group_quantize_dbias: FP8 per tensor and by blocks
    narrow.py      mxfp8_parts, nvfp4_stochastic: what runs of MXFP8 and NVFP4 on SM90
    products.py    multi_tensor_gemm, gemm: BF16, FP16, FP8 per tensor and by blocks
    grouped_products.py    grouped_gemm: the same kinds, rows of groups in device memory
    values.py      dequantize, group_dequantize
    scales.py      swizzle, group_swizzle (unswizzle too), delayed_update
    tokens.py      splits_to_offsets (and the two like it), permute, permute_backward, unpermute

On SM90 the library has no whole quantization to MXFP8 or NVFP4, and no grouped_gemm before cuBLASLt 13.4.
"""

from .grouped_products import grouped_gemm
from .narrow import mxfp8_parts, nvfp4_stochastic
from .products import gemm, multi_tensor_gemm
from .scales import delayed_update, group_swizzle, swizzle
from .scaling import group_quantize, group_quantize_dbias, quantize, quantize_dbias
from .tokens import permute, permute_backward, splits_to_offsets, unpermute
from .values import dequantize, group_dequantize

__all__ = ["delayed_update", "dequantize", "gemm", "group_dequantize", "group_quantize", "group_quantize_dbias", "group_swizzle", "grouped_gemm",
           "multi_tensor_gemm", "mxfp8_parts", "nvfp4_stochastic", "permute", "permute_backward", "quantize", "quantize_dbias",
           "splits_to_offsets", "swizzle", "unpermute"]
