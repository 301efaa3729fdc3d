"""Assay: is every bit of a grouped low-precision GEMM right, and if not, which bit, and why?

    assay.check(fn, LINE, bind=...)       a function judged by the conformance suite
    assay.expect(LINE, x=x)               the expected arrays for own inputs
    assay.quantize, dequantize, grouped_gemm    the same as functions
    assay.cases, presets, units, plans    what there is

Arrays are those of NumPy, PyTorch, JAX or CuPy, and nothing but NumPy is needed to import the package.
"""

from . import ffi, memory
from ._assay import __version__
from .checking import CheckFailed, Result, Verdict, check
from .kernel import Kernel
from .listing import Plan, Preset, Unit, plans, presets, units
from .oracle import Arrays, Quantized, dequantize, expect, grouped_gemm, quantize
from .selection import Cases, cases
from .tensors import Tensors

__all__ = ["Arrays", "Cases", "CheckFailed", "Kernel", "Plan", "Preset", "Quantized", "Result", "Tensors", "Unit", "Verdict", "__version__",
           "cases", "check", "dequantize", "expect", "ffi", "grouped_gemm", "memory", "plans", "presets", "quantize", "units"]
