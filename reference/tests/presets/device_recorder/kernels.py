"""Triton kernels and torch code of peers, from the files of their wheels and checkouts."""

from fused_swiglu import silu
from torch_code import torch_deepgemm, torch_torchao
from triton_kernels import triton_deepseek, triton_fbgemm, triton_sglang, triton_torchao, triton_torchao_mx, triton_vllm
from triton_permutation import triton_permutation


def group(name):
    groups = (triton_deepseek, triton_vllm, triton_sglang, triton_fbgemm, triton_torchao, triton_torchao_mx, triton_permutation, torch_deepgemm,
              torch_torchao, silu)
    return {each.__name__: each for each in groups}[name]()
