"""sgl_per_tensor_quant_fp8 of sglang-kernel built for SM100, from its machine code for SM90.

Later wheels lack the operator, and the last one that has it, 0.4.0, is of CUDA 12 and of an older torch. So its two kernels are taken as a
cubin and launched as the operator launches them (per_tensor_quant_fp8.cu: 256 threads, at most 1024 blocks), onto a scale that is 0.
"""

import ctypes as c

import torch

import calls
from calls import given, poisoned
from libraries import CODES, WIDE, record

THREADS, MOST_BLOCKS = 256, 1024
NAMES = {torch.bfloat16: "13__nv_bfloat16", torch.float16: "6__half", torch.float32: "f"}


def checked(code, what):
    if code:
        raise RuntimeError(f"{what}: CUresult {code}")


class Kernels:
    def __init__(self, path):
        self.cuda = c.CDLL("libcuda.so.1")
        self.image = path.read_bytes()
        self.module = c.c_void_p()
        checked(self.cuda.cuModuleLoadData(c.byref(self.module), self.image), "cuModuleLoadData")

    def launch(self, name, blocks, *values):
        function = c.c_void_p()
        checked(self.cuda.cuModuleGetFunction(c.byref(function), self.module, name.encode()), f"cuModuleGetFunction {name}")
        words = [c.c_uint64(v) for v in values]
        pointers = (c.c_void_p * len(words))(*[c.cast(c.pointer(w), c.c_void_p) for w in words])
        checked(self.cuda.cuLaunchKernel(function, blocks, 1, 1, THREADS, 1, 1, 0, c.c_void_p(torch.cuda.current_stream().cuda_stream),
                                         pointers, None), f"cuLaunchKernel {name}")


def sglang_per_tensor():
    kernels = Kernels(calls.PEERS / "sglang_per_tensor.sm_90.cubin")

    def whole_tensor(name):
        def run():
            x = given(name)
            q, s = poisoned(tuple(x.shape), torch.float8_e4m3fn), torch.zeros(1, device="cuda")
            blocks = min((x.numel() + THREADS - 1) // THREADS, MOST_BLOCKS)
            x_type = NAMES[x.dtype]
            kernels.launch(f"_Z24per_tensor_absmax_kernelI{x_type}EvPKT_Pfl", blocks, x.data_ptr(), s.data_ptr(), x.numel())
            kernels.launch(f"_Z27per_tensor_quant_fp8_kernelI{x_type}13__nv_fp8_e4m3EvPKT_PT0_PKfl", blocks, x.data_ptr(), q.data_ptr(),
                           s.data_ptr(), x.numel())
            return record("sglang-kernel 0.4.0, sm100/common_ops.abi3.so, its SM90 code", "sgl_per_tensor_quant_fp8(x, q, s, False)",
                          "sglang.per_tensor.sm100", x, q, s, block="allxall")
        return run

    for name in [*CODES, *WIDE, "f32_middle_row", "bf16_plain", "bf16_square"]:
        yield f"per_tensor/{name}", whole_tensor(name)
