#!/usr/bin/env python3
"""Records what other people's kernels give on the GPU of this machine, as HDF5 files in the folder of --out.

    record.py --peers FOLDER --out FOLDER [--only GROUP,...] [--deadline SECONDS]

README.md says what lies in the folder of --peers.

Each group of calls runs in a process of its own. A call that fails is named in FOLDER/log.txt, and the rest goes on; a call that
breaks the CUDA context ends its process, which starts again without it.
"""

import argparse
import concurrent.futures
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
VERSIONS = json.loads((HERE / "versions.json").read_text())
GROUPS = ("te_recipe", "te_dequantize", "te_swizzle", "te_quantize", "te_permute", "te_nvfp4", "te_bias", "te_stochastic", "te_refused", "sglang", "vllm",
          "fbgemm", "sglang_sm100", "sglang_per_tensor", "vllm_0_31", "triton_deepseek", "triton_vllm", "triton_sglang", "triton_fbgemm", "triton_torchao", "triton_torchao_mx", "triton_permutation", "torch_deepgemm",
          "torch_torchao", "silu")
FILES = {"te.h5": lambda g: g.startswith("te_"), "libraries.h5": lambda g: g in ("sglang", "vllm", "fbgemm"),
         "builds.h5": lambda g: g in ("sglang_sm100", "sglang_per_tensor", "vllm_0_31"),
         "triton.h5": lambda g: g.startswith("triton_") or g == "silu", "torch.h5": lambda g: g.startswith("torch_")}


# --- The child: runs the calls of a group ------------------------------------------------------------------------------------


def child(group, peers, work, skip):
    sys.path.insert(0, str(HERE))
    log = open(work / f"{group}.log", "a")
    sink = open(work / f"{group}.records", "ab")
    import calls
    calls.prepare(peers, work)
    import torch
    for name, run in calls.group(group):
        if name in skip:
            continue
        log.write(f"START {name}\n")
        log.flush()
        record = None
        try:
            record = run()
            torch.cuda.synchronize()
        except Exception:  # noqa: BLE001: any failure of a peer is a line of the log
            log.write(f"FAILED {name}: {traceback.format_exc(limit=-2)}\n")
            log.flush()
            try:
                torch.cuda.synchronize()
            except Exception as broken:  # noqa: BLE001
                log.write(f"BROKEN {name}: {broken}\n")
                log.flush()
                os._exit(17)
            continue
        try:
            pickle.dump((group, name, calls.finish(record)), sink)
        except Exception:  # noqa: BLE001
            log.write(f"FAILED {name}: {traceback.format_exc(limit=-2)}\n")
            continue
        sink.flush()
        log.write(f"DONE {name}\n")
        log.flush()


# --- The parent --------------------------------------------------------------------------------------------------------------


def seen(log):
    lines = log.read_text().splitlines() if log.exists() else []
    return {line[6:] for line in lines if line.startswith("START ")}


def library_path():
    """Where torch's libraries and those of NVIDIA's wheels lie."""
    import importlib.util
    torch = Path(importlib.util.find_spec("torch").origin).parent
    folders = [torch / "lib", *sorted((torch.parent / "nvidia").glob("*/lib")), Path("/usr/local/cuda/lib64")]
    return ":".join([*map(str, folders), os.environ.get("LD_LIBRARY_PATH", "")])


def run_group(group, peers, work, deadline):
    log, said = work / f"{group}.log", []
    environment = {**os.environ, "LD_LIBRARY_PATH": library_path(), "PYTHONDONTWRITEBYTECODE": "1"}
    for _ in range(12):
        left = deadline - time.time()
        if left < 5:
            said.append(f"{group}: no time left")
            break
        skip = work / f"{group}.skip"
        skip.write_text(json.dumps(sorted(seen(log))))
        try:
            done = subprocess.run([sys.executable, __file__, "--child", group, "--peers", str(peers), "--work", str(work)],
                                  timeout=left,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
        except subprocess.TimeoutExpired:
            said.append(f"{group}: time limit")
            break
        if done.returncode == 0:
            break
        said.append(f"{group}: exit {done.returncode}: {done.stdout[-1500:]}")
        if not seen(log) - set(json.loads(skip.read_text())):
            break  # nothing ran: the process cannot start
    return said


def read_records(work):
    for group in GROUPS:
        path = work / f"{group}.records"
        if not path.exists():
            continue
        with open(path, "rb") as file:
            while True:
                try:
                    yield pickle.load(file)
                except (EOFError, pickle.UnpicklingError):
                    break


def write_files(out, records, device):
    import h5py
    import numpy as np
    for name, belongs in FILES.items():
        mine = [r for r in records if belongs(r[0])]
        if not mine:
            continue
        with h5py.File(out / name, "w") as file:
            file.attrs["assay_schema"] = np.int64(2)
            file.attrs["provenance"] = json.dumps({**VERSIONS["provenance"][name], **device})
            known = {}
            for group, case, (attributes, arrays) in mine:
                if f"{group}/{case}" in file:
                    continue
                node = file.require_group(f"{group}/{case}")
                for key, value in attributes.items():
                    node.attrs[key] = np.int64(value) if isinstance(value, (bool, int)) else value
                for path, (label, array) in arrays.items():
                    content = (label, array.dtype.str, array.shape, array.tobytes())
                    if content in known:
                        node[path] = known[content]
                        continue
                    pressed = {"compression": 9, "shuffle": True} if array.size > 64 else {}
                    data = node.create_dataset(path, data=array, **pressed)
                    data.attrs["dtype"] = label
                    known[content] = data


def answer(*command):
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout.strip()
    except OSError:
        return ""


def parent(arguments):
    started = time.time()
    deadline = started + arguments.deadline
    out = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="peers."))
    said = []
    groups = arguments.only.split(",") if arguments.only else GROUPS
    query = answer("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").splitlines()
    device = dict(zip(("device", "driver"), (query[0].split(", ") if query else ["unknown", "unknown"])))
    device["torch"] = answer(sys.executable, "-c", "import torch, triton; print(torch.__version__, 'triton', triton.__version__)")
    with concurrent.futures.ThreadPoolExecutor(max_workers=7) as pool:
        for lines in pool.map(lambda g: run_group(g, arguments.peers, work, deadline), groups):
            said += lines
    records = list(read_records(work))
    write_files(out, records, device)
    counts = {}
    for group, _, _ in records:
        counts[group] = counts.get(group, 0) + 1
    for group in groups:
        log = work / f"{group}.log"
        text = log.read_text() if log.exists() else ""
        failed = [line for line in text.splitlines() if not line.startswith(("START ", "DONE "))]
        said += [f"== {group}: {counts.get(group, 0)} records of {len(seen(log))} calls", *failed]
    said.append(f"{time.time() - started:.1f} s")
    (out / "log.txt").write_text("\n".join(said)[:2_000_000] + "\n")
    print("\n".join(line[:300] for line in said if line.startswith("==") or "exit" in line or line.endswith(" s")))
    for path in sorted(out.iterdir()):
        print(path.name, path.stat().st_size)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--deadline", type=float, default=210)
    parser.add_argument("--child")
    parser.add_argument("--work", type=Path)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child, arguments.peers.resolve(), arguments.work, set(json.loads((arguments.work / f"{arguments.child}.skip").read_text())))
        return 0
    if arguments.out is None:
        parser.error("--out FOLDER is required")
    return parent(arguments)


if __name__ == "__main__":
    sys.exit(main())
