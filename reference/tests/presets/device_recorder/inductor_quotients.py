#!/usr/bin/env python3
"""A quotient by a constant in code that Inductor compiles for the GPU of this machine: inductor_quotients.py OUT.json

For the largest value of each format, all finite floats from 0 on: x / c against the product with the rounded reciprocal, and against
the rounded quotient.
"""

import json
import sys

import numpy as np
import torch

STEP = 1 << 26
END = 0x7F800000  # infinity
LARGEST = {"e4m3": 448.0, "e5m2": 57344.0, "e3m2": 28.0, "e2m3": 7.5, "e2m1": 6.0}


def differing(a, b):
    return int((a.view(torch.int32) != b.view(torch.int32)).sum())


def compared(largest):
    quotient = torch.compile(lambda a: a / largest, dynamic=False)
    reciprocal = torch.tensor(np.float32(1) / np.float32(largest), device="cuda")
    divisor = torch.full((1,), largest, device="cuda")
    product = divided = 0
    for first in range(0, END, STEP):
        a = torch.arange(first, min(first + STEP, END), dtype=torch.int32, device="cuda").view(torch.float32)
        a = torch.cat([a, torch.zeros(STEP - a.numel(), device="cuda")])
        got = quotient(a)
        product += differing(got, a * reciprocal)
        divided += differing(got, a / divisor)
    return {"floats": END, "differ from x * RN(1/c)": product, "differ from RN(x / c)": divided}


def main():
    import triton
    out = {"torch": torch.__version__, "triton": triton.__version__, "device": torch.cuda.get_device_name(0),
           "quotients": {name: compared(largest) for name, largest in LARGEST.items()}}
    with open(sys.argv[1], "w") as file:
        json.dump(out, file, indent=1)


if __name__ == "__main__":
    main()
