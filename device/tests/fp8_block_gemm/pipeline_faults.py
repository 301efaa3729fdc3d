#!/usr/bin/env python3
"""Plants each fault of pipeline_faults.json in the FP8 block GEMM, and says which case of the suite finds it.

  device/tests/fp8_block_gemm/pipeline_faults.py --build BUILD --out FILE      needs a GPU of SM90 and nvcc

BUILD is a Ninja build of the project with the target `assay`. For each fault the kernels of E4M3 by E4M3 are compiled from a copy of
their folder with that one change, and linked before the device library into a program of its own, which runs the FP8 block products of
the suite on the device. A fault is found as soon as three cases have failed: by other bits, by a fault of the device, or because a
call did not return. The unchanged source is built in the same way first, and has to pass.

FILE (JSON): for each fault `found`, the first failures, and the seconds that it took. Faults that nothing finds are named at the end.

Exit codes: 0 every fault was found, but for those of which pipeline_faults.json says why they cannot be seen; 1 one was not; 2 wrong
usage, or the unchanged source does not pass.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
FOLDER = pathlib.Path("device/fp8_block_gemm")
SOURCE = FOLDER / "kernels_e4m3_e4m3.cu"
CASES = ("grouped_gemm", "kind=fp8_block")
WITH_OPTION = HERE / "pow2_cases.txt"  # the cases of faults that name an option
ENOUGH = 3  # failures
MOST_OF_A_LINE = 600
UNCHANGED = {"name": "unchanged", "file": SOURCE.name, "from": "", "to": ""}


def chosen_cases(files: Sequence[str]) -> list[str]:
    """Words of `assay run`: the cases of these files, or, without any, the FP8 block products of the suite."""
    return ["--cases", *(str(pathlib.Path(each).resolve()) for each in files)] if files else list(CASES)


def run_of(fault: dict[str, str], files: Sequence[str]) -> list[str]:
    """Words of `assay` that judge a fault."""
    options = ",".join(["gemm=assay", *([fault["with"]] if "with" in fault else [])])
    chosen = chosen_cases([str(WITH_OPTION)] if "with" in fault and not files else files)
    return ["run", *chosen, "--backend", "device", "--backend-options", options, "--profile", "full"]


def faults_of(file: pathlib.Path = HERE / "pipeline_faults.json") -> list[dict[str, str]]:
    return json.loads(file.read_text())["faults"]


def changed(fault: dict[str, str], root: pathlib.Path = ROOT) -> str:
    """The text of the fault's file with the fault. Errors: ValueError where `from` does not stand there once."""
    if "text" in fault:  # the whole of it
        return fault["text"]
    text = (root / FOLDER / fault["file"]).read_text()
    if fault["from"] == "":
        return text
    count = text.count(fault["from"])
    if count != 1:
        raise ValueError(f"{fault['name']}: its text stands {count} times in {fault['file']}: expected once")
    return text.replace(fault["from"], fault["to"])


class Build:
    """The commands of a Ninja build that compile the kernels and link the program."""

    def __init__(self, build: pathlib.Path, program: str = "assay") -> None:
        self.folder, self.name = build, program
        commands = subprocess.run(["ninja", "-C", str(build), "-t", "commands", f"bin/{program}"], check=True, capture_output=True, text=True)
        lines = commands.stdout.splitlines()
        self.compile = next(line for line in lines if f"-c {ROOT / SOURCE} " in line)
        self.link = lines[-1]

    def compile_with(self, fault: dict[str, str], room: pathlib.Path, more: Sequence[str] = ()) -> None:
        """Puts the object with the fault into `room`. Errors: CalledProcessError, with what the compiler says."""
        shutil.copytree(ROOT / FOLDER, room / FOLDER)
        (room / FOLDER / fault["file"]).write_text(changed(fault))
        compile_words = shlex.split(self.compile)
        compile_words[compile_words.index("-o") + 1] = str(room / "kernels.o")
        compile_words[compile_words.index("-c") + 1] = str(room / SOURCE)
        if "-MF" in compile_words:
            compile_words[compile_words.index("-MF") + 1] = str(room / "kernels.d")
        first_option = next(i for i, word in enumerate(compile_words) if word.startswith("-"))
        compile_words.insert(first_option, f"-I{room}")
        subprocess.run([*compile_words, *more], check=True, capture_output=True, text=True, cwd=self.folder)

    def link_in(self, room: pathlib.Path) -> pathlib.Path:
        """The program with the object in `room`."""
        made, program = room / "kernels.o", room / self.name
        # The object comes first: the library's own is not taken then, since nothing is missing that it has.
        link = self.link.replace(f"-o bin/{self.name}", f"{shlex.quote(str(made))} -o {shlex.quote(str(program))}", 1)
        subprocess.run(link, shell=True, check=True, capture_output=True, text=True, cwd=self.folder)
        return program

    def program_with(self, fault: dict[str, str], room: pathlib.Path) -> pathlib.Path:
        self.compile_with(fault, room)
        return self.link_in(room)


def failures_of(results: pathlib.Path) -> list[str]:
    """Those of the program. A failure of the machine, such as no memory for a context, says nothing of it."""
    failures = []
    text = results.read_text() if results.exists() else ""
    for line in text[:text.rfind("\n") + 1].splitlines():  # the last one may still be written
        record = json.loads(line)
        if record.get("record") == "case" and record["verdict"] not in ("passed", "not run", "machine failed"):
            why = next((str(each.get("text", each)) for each in record.get("findings", [])), record.get("text", ""))
            failures.append(f"{record['verdict']}: {record.get('case', record['name'])}"[:MOST_OF_A_LINE] + f": {why}"[:MOST_OF_A_LINE])
    return failures


def judge(program: pathlib.Path, seconds: float, run: Sequence[str], enough: int = ENOUGH) -> tuple[list[str], float, bool]:
    """The first failures, the seconds until there were enough, and whether all cases were run.

    Errors: RuntimeError where the program ends with another code than 0 and names no failure: it has judged nothing.
    """
    results = program.with_name("results.jsonl")
    results.unlink(missing_ok=True)
    start = time.monotonic()
    command = [str(program), *run, "--quiet", "--timeout", "5", "--results", str(results)]
    with program.with_name("stderr.txt").open("w+") as said, \
            subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said, cwd=ROOT) as process:
        while process.poll() is None and time.monotonic() - start < seconds and len(failures_of(results)) < enough:
            time.sleep(0.1)
        ended = process.poll() is not None
        if not ended:
            process.terminate()
        elif process.returncode != 0 and not failures_of(results):
            said.seek(0)
            raise RuntimeError(f"{' '.join(command)}: exit code {process.returncode}: {said.read()[-MOST_OF_A_LINE:]}")
    return failures_of(results)[:enough], time.monotonic() - start, ended


def output_of(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout.strip()


def device_name() -> str:
    return output_of("nvidia-smi", "--query-gpu=name", "--format=csv,noheader", "--id=0")


def commit() -> str:
    return output_of("git", "rev-parse", "--short", "HEAD") if (ROOT / ".git").exists() else "unknown"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True, help="folder of a Ninja build that has made the target assay")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--only", nargs="*", default=[], help="names of faults; default: all")
    parser.add_argument("--cases", nargs="*", default=[], help="files of case lines; default: the suite's FP8 block products and fixtures")
    parser.add_argument("--jobs", type=int, default=8, help="compilers at a time")
    parser.add_argument("--seconds", type=float, default=60, help="for the cases of one fault")
    options = parser.parse_args(arguments)
    faults = [fault for fault in faults_of() if not options.only or fault["name"] in options.only]
    unknown = set(options.only) - {fault["name"] for fault in faults}
    if unknown:
        parser.error(f"--only {' '.join(sorted(unknown))}: expected names of pipeline_faults.json")

    build, records = Build(options.build.resolve()), []
    with tempfile.TemporaryDirectory() as rooms, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        made = {}
        for fault in [UNCHANGED, *faults]:
            room = pathlib.Path(rooms) / fault["name"]
            room.mkdir()
            made[fault["name"]] = pool.submit(build.program_with, fault, room)
        for fault in [UNCHANGED, *faults]:
            try:
                program = made[fault["name"]].result()
            except subprocess.CalledProcessError as error:
                print(f"{fault['name']}: {error.stderr}", file=sys.stderr)
                return 2
            try:
                failures, seconds, ended = judge(program, options.seconds, run_of(fault, options.cases))
            except RuntimeError as error:
                print(f"{fault['name']}: {error}", file=sys.stderr)
                return 2
            shutil.rmtree(program.parent)
            print(f"{fault['name']}: {failures[0] if failures else 'nothing failed'} ({seconds:.1f} s)", flush=True)
            if fault is UNCHANGED:
                if failures or not ended:
                    return 2
                continue
            # A call that never returns and kills no case in time is not counted as found.
            records.append({"name": fault["name"], "found": bool(failures), "failures": failures, "seconds": round(seconds, 1)})
            options.out.write_text(json.dumps({"device": device_name(), "commit": commit(), "faults": records}, indent=1) + "\n")
    survivors = [record["name"] for record, fault in zip(records, faults) if not record["found"] and "unseen" not in fault]
    unseen = sum(not record["found"] for record in records) - len(survivors)
    print(f"{len(records) - len(survivors) - unseen} of {len(records)} found, {unseen} unseen; not found: {', '.join(survivors) or 'none'}")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
