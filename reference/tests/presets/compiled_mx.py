"""torchao's MX quantizer in the mode rceil as a compiled program for SM100 computes it, on a CPU.

Three things differ from eager code on a CPU (torchao, prototype/mx_formats/mx_tensor.py: _to_mx_rceil):
- the scale comes from the instruction cvt.rp.satfinite.ue8m0x2.f32. Here the conversion is __nv_cvt_float_to_e8m0 of CUDA's
  cuda_fp8.hpp as a host compiler makes it, which its authors give where the instruction is missing;
- amax / largest, a quotient by a constant, is a product with the reciprocal (torch/_inductor/lowering.py: div_prim);
- the branch is taken for a tensor on such a device only, so the tensors here say that they are one.
All else is torchao's text, run by torch.
"""

import ctypes
import importlib
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import torch

from peer_sources import Record, unpack4

INSTRUCTION = "cvt.rp.satfinite.ue8m0x2.f32 $0, 0.0, $1;"

HOST_CODE = """
#include <cuda_fp8.h>
#include <cstddef>
extern "C" void e8m0_up(const float* x, unsigned char* byte, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) byte[i] = __nv_cvt_float_to_e8m0(x[i], __NV_SATFINITE, cudaRoundPosInf);
}
extern "C" int cuda_version() { return CUDART_VERSION; }
"""


class Conversion:
    """CUDA's host code for the conversion to E8M0."""

    def __init__(self, cuda):
        with tempfile.TemporaryDirectory() as folder:
            source, library = Path(folder) / "e8m0.cc", Path(folder) / "e8m0.so"
            source.write_text("#include <cuda_runtime_api.h>\n" + HOST_CODE)
            subprocess.run([os.environ.get("CXX", "c++"), "-O2", "-shared", "-fPIC", f"-I{cuda}/include", source, "-o", library], check=True)
            self.library = ctypes.CDLL(str(library))
        version = self.library.cuda_version()
        self.source = f"CUDA {version // 1000}.{version % 1000 // 10}, cuda_fp8.hpp: __nv_cvt_float_to_e8m0 on the host"

    def __call__(self, x):
        """Bytes of float32 x, rounded up, infinity as the largest."""
        x = np.ascontiguousarray(x, np.float32)
        byte = np.empty(x.shape, np.uint8)
        self.library.e8m0_up(ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(byte.ctypes.data), ctypes.c_size_t(x.size))
        return byte

    def steps(self):
        """The least bit pattern of a float from 0 to infinity that gives each byte. Every float is asked: the byte never falls from
        one to the next, a negative one gives the byte of its magnitude, and a NaN gives 255."""
        first, last, chunk = np.zeros(255, np.uint32), -1, 1 << 24
        for start in range(0, 1 << 31, chunk):
            patterns = np.arange(start, start + chunk, dtype=np.uint32)
            byte = self(patterns.view(np.float32))
            if not np.array_equal(byte, self((patterns | np.uint32(1 << 31)).view(np.float32))):
                raise SystemExit(f"{self.source}: a negative float does not give the byte of its magnitude")
            number = patterns <= 0x7F800000
            if (byte[~number] != 255).any() or (byte[number] == 255).any():
                raise SystemExit(f"{self.source}: 255 and NaN are not the same")
            byte = byte[number].astype(np.int64)
            if not byte.size:
                continue
            rises = np.flatnonzero(np.diff(byte, prepend=last))
            if (np.diff(byte, prepend=max(last, 0)) < 0).any():
                raise SystemExit(f"{self.source}: the byte falls from one float to the next")
            for at in rises:
                first[last + 1:byte[at] + 1] = patterns[at]
                last = byte[at]
        if last != 254:
            raise SystemExit(f"{self.source}: infinity gives {last}")
        return first


class Compiled(torch.Tensor):
    """A tensor that says it is on a GPU, and whose quotient by a number is what Inductor makes of it."""

    is_cuda = property(lambda self: True)

    def __truediv__(self, other):
        return self * (1.0 / other) if isinstance(other, (int, float)) else super().__truediv__(other)


def records(cite, conversion):
    mx = importlib.import_module("torchao.prototype.mx_formats.mx_tensor")
    constants = importlib.import_module("torchao.prototype.mx_formats.constants")
    calls = []

    def instruction(x, asm_str, constraints, dtype):
        if (asm_str, constraints, dtype) != (INSTRUCTION, "=h,r", torch.uint16):
            raise SystemExit(f"the instruction is {asm_str!r}, expected {INSTRUCTION!r}")
        calls.append(x.numel())
        return torch.from_numpy(conversion(x.as_subclass(torch.Tensor).numpy()).astype(np.int32)).to(dtype)

    mx.is_fake = mx.is_sm_at_least_100 = mx.torch_version_at_least = lambda *_: True
    mx.inline_asm_elementwise = instruction
    formats = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "e3m2": constants.DTYPE_FP6_E3M2,
               "e2m3": constants.DTYPE_FP6_E2M3, "e2m1": torch.float4_e2m1fn_x2}
    source = f"{cite('torchao', 'prototype/mx_formats/mx_tensor.py: to_mx as compiled for SM100')}; the instruction: {conversion.source}"

    def runner(fmt):
        def run(x):
            before = len(calls)
            scale, codes = mx.to_mx(x.as_subclass(Compiled), formats[fmt], 32, mx.ScaleCalculationMode.RCEIL)
            if len(calls) != before + 1:
                raise SystemExit("to_mx did not come to the instruction")
            scale, codes = scale.as_subclass(torch.Tensor), codes.as_subclass(torch.Tensor)
            return (unpack4(codes) if fmt == "e2m1" else codes), scale, None
        return run

    made = []
    for fmt in formats:
        sets = ["bf16", "bf16_plain", "bf16_infinite", "bf16_middle", "bf16_zero", "f32", "f32_middle"]
        sets += ["bf16_special"] if fmt in ("e4m3", "e5m2") else []
        made.append(Record("torchao.mx_rceil.compiled", {"fmt": fmt}, fmt, sets, source, runner(fmt)))
    return made
