#!/usr/bin/env python3
"""Runs many generated cases as one run, as shards and as workers of a journal, kills processes at random, and compares digests.

    conformance/tests/scale/many_shards.py --program build/bin/assay --cases 100000 --shards 64 --record bench/results/many_shards.json

A shard that is killed is started again with --resume, a worker of the journal by another worker. The program exits with 0 if all
three digests are equal, no case is lost and none is in a file twice. With --predict the cases are predicted, not judged, and the
merged files must have the same bytes.
"""
import argparse
import collections
import fractions
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
GENERATOR = HERE.parent.parent / "cases" / "many_cases.py"


class Killer:
    """Keeps `width` processes at work, and kills `kills` of them at random times."""

    def __init__(self, draw, width, kills):
        self.draw, self.width, self.kills, self.killed = draw, width, kills, 0

    def run(self, commands, again, seconds_between):
        """Runs each command to its end. A killed one is replaced by again(command)."""
        waiting, running, codes = list(commands), {}, []
        next_kill = time.monotonic() + seconds_between
        while waiting or running:
            while waiting and len(running) < self.width:
                command = waiting.pop(0)
                running[subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)] = command
            if self.killed < self.kills and running and time.monotonic() >= next_kill:
                victim = self.draw.choice(list(running))
                victim.send_signal(signal.SIGKILL)
                next_kill = time.monotonic() + self.draw.uniform(0, 2 * seconds_between)
            for process in [each for each in running if each.poll() is not None]:
                command = running.pop(process)
                if process.returncode == -signal.SIGKILL:
                    self.killed += 1
                    waiting.insert(0, again(command))
                else:
                    codes.append(process.returncode)
            time.sleep(0.005)
        return codes


def merged(program, parts, output):
    """The digest that merge prints, of parts that have every case once."""
    ran = subprocess.run([program, "merge", *parts, "-o", output, "--show", "3"], capture_output=True, text=True)
    digest = re.search(r"^merged: .* digest ([0-9a-f]{64})$", ran.stdout, flags=re.M)
    if ran.returncode != 0 or digest is None:
        sys.exit(f"merge ended with {ran.returncode}:\n{ran.stdout}{ran.stderr}")
    if "twice:" in ran.stdout:
        sys.exit(f"a case has two verdicts:\n{ran.stdout}")
    return digest[1]


def lines_of(files):
    """How often each case line has a verdict in the files."""
    counted = collections.Counter()
    for file in files:
        with open(file, encoding="utf-8") as records:
            for record in records:
                if record.endswith("\n") and '"record":"case"' in record:
                    counted[json.loads(record)["case"]] += 1
                elif record.endswith("\n") and '"record":"prediction"' in record:
                    counted[json.loads(record)["case"]] += fractions.Fraction(1, json.loads(record).get("of", 1))
    return counted


def check(name, counted, cases):
    twice = [line for line, times in counted.items() if times > 1]
    if len(counted) != cases or twice:
        sys.exit(f"{name}: {len(counted)} of {cases} cases are there, {len(twice)} more than once, as {twice[:1]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--width", type=int, default=8, help="processes at a time")
    parser.add_argument("--kills", type=int, default=40, help="of shards, and as many of workers")
    parser.add_argument("--between", type=float, default=1.0, help="seconds between two kills, on average")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--predict", action="store_true", help="predict the cases, in place of judging them")
    parser.add_argument("--record", help="write figures to this file")
    arguments = parser.parse_args()
    record = os.path.abspath(arguments.record) if arguments.record else ""
    program, draw = os.path.abspath(arguments.program), random.Random(arguments.seed)
    os.environ.pop("GTEST_TOTAL_SHARDS", None)
    predict = arguments.predict
    figures = {"what": f"generated cases {'predicted ' if predict else ''}as one run, as shards and as workers of a journal, processes killed at random",
               "command": f"conformance/tests/scale/many_shards.py --cases {arguments.cases} --shards {arguments.shards} --width "
                          f"{arguments.width} --kills {arguments.kills} --seed {arguments.seed}{' --predict' if predict else ''}",
               "cases": arguments.cases, "shards": arguments.shards, "processes_at_a_time": arguments.width}

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with open("many.txt", "w", encoding="utf-8") as file:
            subprocess.run([sys.executable, str(GENERATOR), str(arguments.cases), "--seed", str(arguments.seed)], stdout=file, check=True)
        run = [program, "run", "--cases", "many.txt", "--backend", "reference", "--quiet"]
        output = "--results"
        if predict:
            run, output = [program, "predict", "--cases", "many.txt", "--quiet"], "--out"

        start = time.monotonic()
        subprocess.run([*run, output, "whole.jsonl"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        figures["one_run"] = {"seconds": round(time.monotonic() - start, 1)}
        digest = merged(program, ["whole.jsonl"], "one.jsonl")
        check("one run", lines_of(["whole.jsonl"]), arguments.cases)

        os.environ["ASSAY_THREADS"] = "1"
        start = time.monotonic()
        killer = Killer(draw, arguments.width, arguments.kills)
        files = [f"part{i}.jsonl" for i in range(arguments.shards)]

        def resumed(command):
            file = command[-1]
            whole_header = os.path.exists(file) and b"\n" in pathlib.Path(file).read_bytes()
            if predict:
                return [*command[:-2], *(["--resume"] if whole_header and "--resume" not in command else []), output, file]
            return [*command[:-2], "--resume" if whole_header else output, file]

        codes = killer.run([[*run, "--shard", f"{i}/{arguments.shards}", output, file] for i, file in enumerate(files)],
                           resumed, arguments.between)
        sharded = merged(program, files, "all.jsonl")
        check("shards", lines_of(files), arguments.cases)
        figures["shards_killed"] = {"seconds": round(time.monotonic() - start, 1), "kills": killer.killed, "exit_codes": sorted(set(codes))}

        start = time.monotonic()
        killer = Killer(draw, arguments.width, arguments.kills)
        worker = [*run, "--journal", "journal", "--blocks", str(4 * arguments.shards)]
        codes = killer.run([worker] * arguments.width, lambda command: command, arguments.between)
        journalled = merged(program, ["journal"], "joined.jsonl")
        leases = sorted(str(path) for path in pathlib.Path("journal").glob("block-*.jsonl"))
        check("journal", lines_of(leases), arguments.cases)
        figures["journal_killed"] = {"seconds": round(time.monotonic() - start, 1), "kills": killer.killed, "blocks": 4 * arguments.shards,
                                     "leases": len(leases), "exit_codes": sorted(set(codes))}

        contents = {pathlib.Path(file).read_bytes() for file in ("one.jsonl", "all.jsonl", "joined.jsonl")}
    figures["digests"] = {"one_run": digest, "shards": sharded, "journal": journalled}
    text = json.dumps(figures, indent=1)
    print(text)
    if record:
        pathlib.Path(record).write_text(text + "\n", encoding="utf-8")
    if not digest == sharded == journalled:
        sys.exit("the digests differ")
    if predict and len(contents) != 1:
        sys.exit("the merged files differ")
    if figures["shards_killed"]["kills"] + figures["journal_killed"]["kills"] == 0:
        sys.exit("no process was killed")


if __name__ == "__main__":
    main()
