"""TransformerEngine through the C functions of libtransformer_engine.so."""

import te_library
from te_bias import te_bias
from te_layouts import te_dequantize, te_swizzle
from te_pieces import te_nvfp4, te_permute, te_refused
from te_quantize import te_quantize
from te_scaling import te_recipe
from te_stochastic import te_stochastic


def group(name):
    te_library.load()
    groups = (te_recipe, te_dequantize, te_swizzle, te_quantize, te_permute, te_nvfp4, te_bias, te_stochastic, te_refused)
    return {each.__name__: each for each in groups}[name]()
