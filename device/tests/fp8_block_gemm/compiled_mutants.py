#!/usr/bin/env python3
"""Compiles mutants of the FP8 block GEMM (device/tests/mutants/mutate.py) one by one, as the optimizing compiler has them, and runs them.

  device/tests/fp8_block_gemm/compiled_mutants.py --build BUILD --names FILE --out FILE      needs a GPU of SM90 and nvcc

Numbered points need kernels without optimization: there products of the tensor core are serialized, so that races hide, and what C++ leaves
open shows what one compiler makes of it. Here a mutant is a change of the source, as pipeline_faults.py compiles them. If the machine
code of all kernels of E4M3 by E4M3 is that of the unchanged source, no call can show it in this build; else the cases are run until one fails,
and then device_fp8_block_independence, which also makes calls that are refused.

BUILD is a Ninja build of the project with the targets `assay` and `device_fp8_block_independence`. --names: a JSON list of names (file: text of the line point k: change).
--cases FILE ...: these case lines in place of the suite's.

--out (JSON): for each name `code`, "same", "other" or "none" (the compiler refuses it); with "other" `failure`, the first one, or null. A
failure counts when the unchanged program passes the same case right after it (else it is a `doubt`), and one of the machine, such as no
memory for a context, never does.

Exit codes: 0; 1 the code of some differs and nothing fails; 2 wrong usage, or the unchanged source does not pass.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "mutants"))
import mutate  # noqa: E402
import pipeline_faults  # noqa: E402
from pipeline_faults import FOLDER, ROOT, UNCHANGED, Build  # noqa: E402


def fault_of(name: str, number: int) -> dict[str, str]:
    """As pipeline_faults.py has it. Errors: ValueError where the source has no such mutant."""
    file, rest = name.split(": ", 1)
    line, change = rest.rsplit(": ", 1)
    if pathlib.Path(file).parent != FOLDER:
        raise ValueError(f"{name}: expected a file of {FOLDER}")
    text = mutate.written((ROOT / file).read_text(), line, change)
    return {"name": f"mutant{number}", "file": pathlib.Path(file).name, "text": text}


def machine_code(cubin: bytes) -> dict[str, bytes]:
    """The code of each kernel of an ELF file of 64 bits: its sections .text.NAME."""
    (first,), (size, count, names) = struct.unpack_from("<Q", cubin, 0x28), struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", cubin, first + size * i) for i in range(count)]  # name, type, flags, address, offset, bytes
    text_of = headers[names][4]
    made = {}
    for name, _, _, _, offset, length in headers:
        begin = text_of + name
        section = cubin[begin:cubin.index(b"\0", begin)].decode()
        if section.startswith(".text."):
            made[section] = cubin[offset:offset + length]
    if not made:
        raise ValueError("the compiler left no code of kernels")
    return made


def code_in(room: pathlib.Path) -> dict[str, bytes]:
    return machine_code(next(room.glob("*.cubin")).read_bytes())


def other_outputs(program: pathlib.Path, device: int) -> str | None:
    """What device_fp8_block_independence finds, which judges refused calls too."""
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": str(device)}
    try:
        ran = subprocess.run([str(program), "--calls", "20"], capture_output=True, text=True, timeout=20, env=environment)
    except subprocess.TimeoutExpired:
        return "device_fp8_block_independence: does not return"
    said = [line for line in ran.stdout.splitlines() if line.startswith("DIFFERENT")] + ran.stderr.splitlines()
    return f"device_fp8_block_independence: {said[0] if said else ran.returncode}" if ran.returncode != 0 else None


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True, help="folder of a Ninja build that has made the target assay")
    parser.add_argument("--names", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--cases", nargs="*", default=[], help="files of case lines; default: the suite's FP8 block products")
    parser.add_argument("--options", nargs="*", default=["gemm=assay", "gemm=assay,lists=on,rows_multiple=16"],
                        help="of the backend, for a run of the cases each (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=8, help="compilers at a time")
    parser.add_argument("--devices", type=int, default=1, help="GPUs; on each a few programs run at a time")
    parser.add_argument("--seconds", type=float, default=60, help="for the cases of one mutant")
    options = parser.parse_args(arguments)
    names = json.loads(options.names.read_text())
    try:
        faults = [fault_of(name, i) for i, name in enumerate(names)]
    except ValueError as error:
        parser.error(str(error))

    build, found, slots = Build(options.build.resolve()), {}, 3 * options.devices
    independence = Build(options.build.resolve(), "device_fp8_block_independence")
    chosen = pipeline_faults.chosen_cases(options.cases)

    def judge_with(program: pathlib.Path, cases: Sequence[str], text: str, seconds: float) -> str | None:
        """The first failure. Errors: RuntimeError where the machine fails three times."""
        run = ["run", *cases, "--profile", "full", "--backend", "device", "--backend-options", text]
        for attempt in (1, 2, 3):
            try:
                failures, _, ended = pipeline_faults.judge(program, seconds, run, 1)
                break
            except RuntimeError:
                if attempt == 3:
                    raise
        if failures:
            return failures[0]
        return None if ended else f"the cases do not end within {seconds} s"

    def judge(program: pathlib.Path, device: int, seconds: float) -> str | None:
        """The first failure of a case that the unchanged program passes, with the same options, on the same device."""
        for text in options.options:
            under = f"{text},device={device}"
            failure = judge_with(program, chosen, under, seconds)
            if failure is None:
                continue
            if failure.startswith("the cases do not end"):
                return failure
            case, without = program.with_name("case.txt"), program.with_name(UNCHANGED["name"])
            case.write_text(failure.split(": ")[1] + "\n")
            without.symlink_to(unchanged)
            if judge_with(without, ["--cases", str(case)], under, seconds) is not None:
                raise RuntimeError(f"fails without the mutant too: {failure}")
            return failure
        return None

    with tempfile.TemporaryDirectory() as rooms, concurrent.futures.ThreadPoolExecutor(options.jobs) as compilers, \
            concurrent.futures.ThreadPoolExecutor(slots) as judges:
        def made(fault: dict[str, str]) -> pathlib.Path:
            room = pathlib.Path(rooms) / fault["name"]
            room.mkdir()
            build.compile_with(fault, room, ("-keep", f"-keep-dir={room}"))
            return room

        original = code_in(made(UNCHANGED))
        unchanged = build.link_in(pathlib.Path(rooms) / UNCHANGED["name"])
        for text in options.options:
            failure = judge_with(unchanged, chosen, text, 4 * options.seconds)
            if failure is not None:
                print(f"the unchanged source does not pass: {failure}", file=sys.stderr)
                return 2

        def verdict(compiled: concurrent.futures.Future[pathlib.Path], number: int) -> dict[str, str | None]:
            try:
                room = compiled.result()
            except subprocess.CalledProcessError as error:
                return {"code": "none", "refused": next((line for line in error.stderr.splitlines() if "error" in line), "")[:160]}
            if code_in(room) == original:
                shutil.rmtree(room)
                return {"code": "same"}
            device = number % options.devices
            try:
                failure = judge(build.link_in(room), device, options.seconds) or other_outputs(independence.link_in(room), device)
            except RuntimeError as error:
                return {"code": "other", "failure": None, "doubt": str(error)}
            shutil.rmtree(room)
            return {"code": "other", "failure": failure}

        compiled = [compilers.submit(made, fault) for fault in faults]
        pending = {judges.submit(verdict, each, i): name for i, (name, each) in enumerate(zip(names, compiled))}
        for each in concurrent.futures.as_completed(pending):
            name = pending[each]
            found[name] = each.result()
            print(f"{name}: {found[name]}", flush=True)
            options.out.write_text(json.dumps({"device": pipeline_faults.device_name(), "commit": pipeline_faults.commit(),
                                               "mutants": dict(sorted(found.items()))}, indent=1) + "\n")
    left = [name for name, each in found.items() if each["code"] == "other" and each["failure"] is None]
    print(f"{len(found)} mutants: {sum(each['code'] == 'same' for each in found.values())} with the same machine code, {len(left)} not shown")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
