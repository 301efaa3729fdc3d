#!/usr/bin/env python3
"""Judges several versions of cuBLASLt and reports which version fails which case.

  device/gemm_versions.py OUT build/bin/assay 13.4=/opt/lt134/libcublasLt.so.13 13.10=/opt/lt1310/libcublasLt.so.13

A version is NAME=PATH; assay finds it through ASSAY_CUBLASLT. Of each version:

  known     the lines of device/gemm_versions.txt, known faults and their neighbours: a process each
  replay    scenarios whose steps are all products (TN, NN, NT): a process each
  suite     assay run --backend cublaslt grouped_gemm, in shards: a process each

in that order; when the --seconds of a version are over, the rest is reported as not tried. A process that does not end in
time is killed and reported as not finished: it may only be slow. A HANG is reported by assay itself: a call of the library did
not finish within --call seconds. A process that dies affects no other: cases of a shard that have no verdict are run again, a
process each.

Every version is judged by bits, by the plan of cuBLASLt 13.10 (--backend-options), which others are not known to follow.

OUT receives versions.json and, for each version, the JSON and the log of every process. Prints Markdown.

Exit code: 0 where every version was judged, whatever was found; 5 where something was not tried or had no verdict; 2 for
wrong usage.
"""

import argparse
import concurrent.futures
import itertools
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
JUDGED = ("passed", "failed", "not_run")
SETTLED = JUDGED + ("unfinished",)  # assay stops waiting for a call that does not finish; another run would do the same
NOT_FINISHED = "not finished in"
STEPS = {"TN", "NN", "NT"}
MAX_HINT_LENGTH = 300  # of a hint
MAX_SHOWN = 80     # failing cases


def read_known(path):
    """[(name, options, line)] of the lines "NAME [--OPTION VALUE ...]: LINE"."""
    known = []
    with open(path, encoding="utf-8") as file:
        for number, text in enumerate(file, 1):
            text = text.strip()
            if not text or text.startswith("#"):
                continue
            head, colon, line = text.partition(": ")
            name, dashes, options = head.partition(" --")
            if not colon:
                raise SystemExit(f"{path}:{number}: expected NAME: LINE")
            known.append((name, shlex.split("--" + options) if dashes else [], line.strip()))
    return known


def hint_of(text):
    """The most useful line of a failure: its hint if it has one, else the first line with a label ("  call    ...") other than
    the time and place."""
    labelled = [match.groups() for match in re.finditer(r"^  ([a-z]+) +(\S.*)$", text, re.MULTILINE)]
    lines = [f"{label}: {rest}" for labels in (("hint",), None) for label, rest in labelled
             if (label in labels if labels else label not in ("when", "reproduce"))]
    return re.sub(r"\s+", " ", (lines + text.strip().splitlines()[:1] + [""])[0])[:MAX_HINT_LENGTH]


def last_words(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = [line.strip() for line in file if line.strip()]
    except OSError:
        return ""
    return lines[-1][:MAX_HINT_LENGTH] if lines else ""


def verdict_word(word):
    """The same text for 'not run' and 'not_run'."""
    return word.replace(" ", "_").replace("-", "_")


class Version:
    def __init__(self, name, path, options):
        self.name, self.path, self.options = name, path, options
        self.out = os.path.join(options.out, name)
        os.makedirs(self.out, exist_ok=True)
        self.deadline = time.monotonic() + options.seconds
        self.cases = {}       # key: (part, name or line) -> {"verdict", "hint", ...}
        self.troubles = []
        self.numbers = itertools.count(1)

    # One process. (JSON or None, how it ended: "" for by itself)
    def process(self, log_name, words, seconds):
        seconds = min(seconds, self.deadline - time.monotonic())
        if seconds <= 1:
            return None, "not tried"
        json_path, log_path = (os.path.join(self.out, log_name + ending) for ending in (".json", ".log"))
        if os.path.exists(json_path):
            os.remove(json_path)
        environment = dict(os.environ, ASSAY_CUBLASLT=self.path, NO_COLOR="1")
        environment.setdefault("ASSAY_THREADS", str(max(1, (os.cpu_count() or 1) // self.options.jobs)))
        with open(log_path, "w", encoding="utf-8") as log:
            log.write(f"ASSAY_CUBLASLT={shlex.quote(self.path)} {shlex.join([self.options.assay] + words)}\n")
            log.flush()
            child = subprocess.Popen([self.options.assay, *words, "--json", json_path], stdout=log, stderr=subprocess.STDOUT,
                                     stdin=subprocess.DEVNULL, env=environment)
            ended = ""
            try:
                child.wait(seconds)
            except subprocess.TimeoutExpired:
                ended = f"{NOT_FINISHED} {seconds:.0f} s"
                for how, patience in ((signal.SIGINT, 5), (signal.SIGKILL, 20)):
                    child.send_signal(how)
                    try:
                        child.wait(patience)
                        break
                    except subprocess.TimeoutExpired:
                        continue
                else:
                    self.troubles.append(f"{log_name}: process {child.pid} does not end")
        if not ended and child.returncode < 0:
            ended = f"ended by {signal.Signals(-child.returncode).name}"
        try:
            with open(json_path, encoding="utf-8") as file:
                return json.load(file), ended
        except (OSError, ValueError):
            return None, ended or f"exit {child.returncode} without a verdict: {last_words(log_path)}"

    def backend_words(self):
        words = ["--backend", self.options.backend]
        return words + (["--backend-options", self.options.backend_options] if self.options.backend_options else [])

    def note(self, part, key, verdict, hint="", **more):
        self.cases[(part, key)] = {"part": part, "verdict": verdict, "hint": hint, **more}

    def note_entry(self, part, key, entry, **more):
        verdict = verdict_word(entry["verdict"])
        hint = "" if verdict == "passed" else entry["text"].splitlines()[0] if verdict == "not_run" else hint_of(entry["text"])
        verdict = "hang" if verdict == "unfinished" else verdict
        self.note(part, key, verdict, hint, case=entry.get("case", entry["name"]), **more)

    def alone(self, part, key, line, options, seconds, **more):
        timeout = [] if "--timeout" in options else ["--timeout", str(self.options.call)]
        found, ended = self.process(f"{part}-{next(self.numbers)}", ["repro", *self.backend_words(), *timeout, *options, line], seconds)
        entries = [entry for entry in (found or {}).get("cases", []) if entry.get("suite") != "self-check"]
        if entries and (not ended or verdict_word(entries[0]["verdict"]) in SETTLED):
            self.note_entry(part, key, entries[0], **more)
        else:
            verdict = "not_finished" if ended.startswith(NOT_FINISHED) else "not_tried" if ended == "not tried" else "no_verdict"
            self.note(part, key, verdict, "" if verdict == "not_tried" else ended or "no case in the JSON", case=line, **more)

    def shard(self, index):
        options = self.options
        words = ["run", *self.backend_words(), "--profile", options.profile, "--shard", f"{index}/{options.shards}", "--quiet", "--show", "0",
                 "--timeout", str(options.call), "grouped_gemm"]
        found, ended = self.process(f"suite-{index}", words, options.shard_seconds)
        if ended and ended != "not tried":
            self.troubles.append(f"shard {index}: {ended}")
        entries = [entry for entry in (found or {}).get("cases", []) if entry.get("suite") != "self-check"]
        for entry in entries:
            self.note_entry("suite", entry["name"], entry)
        return {entry["name"] for entry in entries if verdict_word(entry["verdict"]) in SETTLED}

    def doctor(self):
        found, ended = self.process("doctor", ["doctor", *self.backend_words()], 60)
        lines = [each["text"] for each in found or [] if each["subject"] in ("cublaslt", "backend")]
        if ended:
            self.troubles.append(f"doctor: {ended}")
        version = next((match.group(0) for text in lines for match in [re.match(r"\d+\.\d+\.\d+", text)] if match), "")
        return version, lines

    def listed(self, *words):
        """[(name, line)] of the cases that assay lists, or an error."""
        path = os.path.join(self.out, "list.json")
        done = subprocess.run([self.options.assay, "list", "--profile", self.options.profile, *words, "--json", path],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60, check=False)
        if done.returncode != 0:  # no such case
            return []
        with open(path, encoding="utf-8") as file:
            return [(entry["name"], entry["case"]) for entry in json.load(file)]

    def judge(self):
        started = time.monotonic()
        version, lines = self.doctor()
        options = self.options
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            alone = [pool.submit(self.alone, "known", name, line, more, options.case_seconds, name=name)
                     for name, more, line in options.known]
            for name, line in self.listed("scenario"):
                steps = re.search(r" steps=(\S+)", line)
                if steps and set(re.split("[,/]", steps.group(1))) <= STEPS:
                    alone.append(pool.submit(self.alone, "replay", name, line, [], options.single_seconds))
            shards = [pool.submit(self.shard, index) for index in range(options.shards)]
            judged = set().union(*(shard.result() for shard in shards))
            alone += [pool.submit(self.alone, "suite", name, line, [], options.single_seconds)
                      for name, line in self.listed("grouped_gemm") if name not in judged and not line.startswith("scenario ")]
            for each in alone:
                each.result()
        return self.summary(version, lines, time.monotonic() - started)

    def summary(self, version, lines, seconds):
        by_part = {}
        for case in self.cases.values():
            part = by_part.setdefault(case["part"], {"passed": 0, "failed": 0, "not_run": 0, "other": 0})
            part[case["verdict"] if case["verdict"] in JUDGED else "other"] += 1
        reasons = {}
        for case in self.cases.values():
            if case["verdict"] == "not_run":
                reasons[case["hint"]] = reasons.get(case["hint"], 0) + 1
        keep = ("part", "name", "case", "verdict", "hint")
        return {
            "name": self.name, "library": os.path.basename(self.path), "version": version, "doctor": lines, "seconds": round(seconds, 1),
            "counts": by_part, "not_run": reasons, "troubles": self.troubles,
            "known": {case["name"]: {"verdict": case["verdict"], "hint": case["hint"]} for case in self.cases.values() if case["part"] == "known"},
            "failing": [{key: case[key] for key in keep if key in case}
                        for case in self.cases.values() if case["verdict"] not in ("passed", "not_run", "not_tried")],
        }


def shown(case):
    words = {"passed": "right", "failed": "WRONG", "not_run": "absent", "hang": "HANG", "not_tried": "not tried", "no_verdict": "CRASH",
             "machine_failed": "CRASH", "not_finished": case["hint"]}
    return words.get(case["verdict"], case["verdict"])


def table(header, rows):
    widths = [max(len(str(row[i])) for row in [header] + rows) for i in range(len(header))]
    lines = ["| " + " | ".join(str(cell).ljust(w) for cell, w in zip(row, widths)) + " |" for row in [header] + rows]
    return "\n".join([lines[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|"] + lines[1:])


def markdown(versions):
    parts = ["known", "replay", "suite"]
    counts = []
    for version in versions:
        row = [version["name"], version["version"] or "unknown"]
        for part in parts:
            of = version["counts"].get(part, {})
            row.append(" / ".join(str(of.get(key, 0)) for key in ("passed", "failed", "not_run", "other")))
        counts.append(row + [f"{version['seconds']:.0f}"])
    text = ["Cases passed / failed / not run / without a verdict (hang, crash, not finished, not tried)\n",
            table(["library", "version"] + parts + ["seconds"], counts)]

    names = list(dict.fromkeys(name for version in versions for name in version["known"]))
    rows = [[name] + [shown(version["known"].get(name, {"verdict": "", "hint": ""})) for version in versions] for name in names]
    if rows:
        text += ["\nKnown faults and their neighbours\n", table(["case"] + [version["name"] for version in versions], rows)]

    failing = {}
    for version in versions:
        for case in version["failing"]:
            failing.setdefault(case["case"], []).append((version["name"], case["verdict"], case["hint"]))
    if failing:
        text.append("\nWhat failed, where, and what was reported first\n")
        for case, results in list(failing.items())[:MAX_SHOWN]:
            text.append(f"- `{case}`")
            by_hint = {}
            for name, verdict, hint in results:
                by_hint.setdefault((verdict, hint), []).append(name)
            text += [f"  - {', '.join(names)}: {verdict}{': ' + hint if hint else ''}" for (verdict, hint), names in by_hint.items()]
        if len(failing) > MAX_SHOWN:
            text.append(f"- and {len(failing) - MAX_SHOWN} more cases: versions.json")
    for version in versions:
        for reason, number in sorted(version["not_run"].items()):
            text.append(f"\n{version['name']}: not run, {number} case{'' if number == 1 else 's'}: {reason}")
        text += [f"\n{version['name']}: {trouble}" for trouble in version["troubles"]]
    return "\n".join(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", metavar="OUT")
    parser.add_argument("assay", metavar="ASSAY")
    parser.add_argument("versions", nargs="+", metavar="NAME=PATH")
    parser.add_argument("--backend", default="cublaslt")
    parser.add_argument("--backend-options", default="assume_plan=13.10",
                        help="of every process (assume_plan=13.10: other versions are judged by the bits of that one); empty: none")
    parser.add_argument("--profile", default="smoke", choices=("smoke", "standard", "full"), help="of suite and replay (smoke)")
    parser.add_argument("--known", default=os.path.join(HERE, "gemm_versions.txt"), help="file of known faults; empty: none")
    parser.add_argument("--jobs", type=int, default=8, help="processes at a time (8)")
    parser.add_argument("--shards", type=int, default=4, help="processes of the suite (4)")
    parser.add_argument("--seconds", type=float, default=120, help="of a version (120)")
    parser.add_argument("--shard-seconds", type=float, default=60, help="of a shard (60)")
    parser.add_argument("--case-seconds", type=float, default=60, help="of a known fault (60)")
    parser.add_argument("--single-seconds", type=float, default=40, help="of a scenario, or a case that is asked again (40)")
    parser.add_argument("--call", type=int, default=15, help="seconds of one call (15)")
    options = parser.parse_args()
    if options.jobs < 1 or options.shards < 1:
        parser.error("--jobs and --shards: expected at least 1")
    pairs = [text.partition("=") for text in options.versions]
    for text, (name, equals, path) in zip(options.versions, pairs):
        if not equals or not path or not re.fullmatch(r"[A-Za-z0-9._-]+", name):
            parser.error(f"{text}: expected NAME=PATH, the name of letters, digits, '.', '_' and '-'")
    if len({name for name, _, _ in pairs}) != len(pairs):
        parser.error("two versions have one name")
    options.known = read_known(options.known) if options.known else []

    results = []
    os.makedirs(options.out, exist_ok=True)
    for name, _, path in pairs:
        results.append(Version(name, path, options).judge())
        with open(os.path.join(options.out, "versions.json"), "w", encoding="utf-8") as file:  # kept even if a later one is not reached
            json.dump({"backend": options.backend, "profile": options.profile, "versions": results}, file, indent=1, ensure_ascii=False)
            file.write("\n")
        print(f"{name}: {json.dumps(results[-1]['counts'])}, {results[-1]['seconds']:.0f} s", file=sys.stderr)
    print(markdown(results))
    return 5 if any(part["other"] for result in results for part in result["counts"].values()) else 0


if __name__ == "__main__":
    sys.exit(main())
