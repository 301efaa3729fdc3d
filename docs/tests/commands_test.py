#!/usr/bin/env python3
"""The commands that pages show, run as a reader would run them, and their output compared.

    commands_test.py --program BUILD/bin/assay [--faulty FILE] [--page PAGE]... [--show]

FILE is the tests' library with faults, where it does not lie in BUILD; --show prints what each command gave.

A block marked console holds commands behind "$ " and what they print, standard error included:

    ```console
    $ ./assay list --counts
    profile smoke: … cases
    ```

On a machine with a device, what `doctor` and a run of the default backend print is not compared.

"…" stands for anything within a line, and for any number of lines where it stands alone: times, hosts, counts that grow. A
block marked sh holds commands alone, which must end with 0. Neither is run behind a comment "<!-- not run: REASON -->": there
each verb and option must be one that the program knows. A block marked python that writes fixtures runs where h5py is.

Each page is run from its top in a folder of its own that holds links to the tree, the program as ./assay and build/bin/assay,
and the library with faults where a build has it.
"""

import argparse
import ast
import functools
import glob
import importlib.util
import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))
FENCE = re.compile(r"^(?:<!-- not run: (?P<reason>[^>]+) -->\n+)?```(?P<kind>\S*)\n(?P<body>.*?)^```$", re.S | re.M)
FRONT_DOOR = ("build", "test", "bench")  # verbs of the script ./assay alone
FAULTY = "conformance/tests/program/faulty_backend.so"
HAS_DEVICE = bool(glob.glob("/dev/nvidia[0-9]*"))
PROGRAM, LIBRARY, SHOW = None, None, False


class Block:
    def __init__(self, page, match):
        self.page, self.kind, self.reason, self.body = page, match["kind"], match["reason"], match["body"]
        self.line = match.string[: match.start()].count("\n") + 1

    def where(self):
        return f"{self.page}:{self.line}"

    def steps(self):
        """Pairs of a command and the lines that it prints; None if the page shows no output."""
        if self.kind != "console":
            lines = re.sub(r"\\\n\s*", " ", self.body).splitlines()
            return [(line, None) for line in lines if line.strip() and not line.lstrip().startswith("#")]
        steps = []
        for line in re.sub(r"^(\$ .*)\\\n\s*", r"\1 ", self.body, flags=re.M).splitlines():
            if line.startswith("$ "):
                steps.append((line[2:], []))
            else:
                steps[-1][1].append(line)
        return steps


def blocks_of(page, text):
    return [Block(page, match) for match in FENCE.finditer(text)]


def pages():
    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(f for f in folders if not f.startswith((".", "build")))
        found += [os.path.relpath(os.path.join(folder, name), ROOT) for name in sorted(names) if name.endswith(".md")]
    return found


def matches(expected, printed):
    """Whether the lines are those expected; "…" matches anything."""
    pattern = ""
    for line in expected:
        if line.strip() == "…":
            pattern += r"(?:[^\n]*\n)*?"
        else:
            pattern += ".*".join(re.escape(part) for part in line.rstrip().split("…")) + r"[ \t]*\n"
    return re.fullmatch(pattern, "".join(line + "\n" for line in printed)) is not None


class Folder:
    """The folder in which the commands of one page run."""

    def __init__(self, path):
        self.path, self.status = path, 0
        for name in os.listdir(ROOT):
            if name != "assay" and not name.startswith((".", "build")):
                os.symlink(os.path.join(ROOT, name), os.path.join(path, name))
        for name, file in {"assay": PROGRAM, "build/bin/assay": PROGRAM, "build/" + FAULTY: LIBRARY}.items():
            os.makedirs(os.path.dirname(os.path.join(path, name)), exist_ok=True)
            os.symlink(file, os.path.join(path, name))

    def run(self, command):
        """The lines that a command prints."""
        environment = {**os.environ, "ASSAY_COMMAND": "./assay", "LC_ALL": "C.UTF-8", "NO_COLOR": "1",
                       "PATH": self.path + os.pathsep + os.environ["PATH"]}
        ran = subprocess.run(["bash", "-c", f"(exit {self.status}); {command}"], cwd=self.path, env=environment, text=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
        self.status = ran.returncode
        if SHOW:
            print(f"$ {command}\n{ran.stdout}", end="", flush=True)
        return ran.stdout.splitlines()


@functools.lru_cache(maxsize=None)
def help_of(*words):
    return subprocess.run([PROGRAM, *words, "--help"], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False).stdout


@functools.lru_cache(maxsize=None)
def verbs():
    return re.findall(r"^  ([a-z-]+) {2,}", help_of().split("Subcommands:")[1].split("Exit codes:")[0], flags=re.M)


@functools.lru_cache(maxsize=None)
def front_door_text():
    files = [os.path.join(ROOT, "cmake", "door", "help.sh"), os.path.join(ROOT, "bench", "run.sh")]
    texts = []
    for file in files:
        with open(file, encoding="utf-8") as text:
            texts.append(text.read())
    return "".join(texts)


def faults_of_call(words):
    """The verb or option of a call that the program does not know."""
    verb = words[0] if words else ""
    if verb in FRONT_DOOR:
        options = [] if verb == "test" else [word for word in words[1:] if word.startswith("--")]
        return [f"./assay {verb} has no {o}" for o in options if o.split("=")[0] not in front_door_text()]
    if verb.startswith("-"):
        return [f"assay has no {word}" for word in words if word.startswith("-") and word not in help_of()]
    if verb not in verbs():
        return [f"'{verb}' is no verb"]
    known = set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", help_of(verb)))
    return [f"assay {verb} has no option {word}" for word in words[1:] if word.startswith("-") and word.split("=")[0] not in known]


def faults_of_parsing(command):
    """Checks a command that is not run: calls of the program, and scripts of the tree."""
    faults = []
    for part in re.split(r"&&|\|\||;|\|", command):
        words = shlex.split(part, comments=True)
        while words and re.match(r"[A-Z_]+=", words[0]):
            del words[0]
        if words and os.path.basename(words[0]) == "assay":
            faults += faults_of_call(words[1:])
        elif words and "/" in words[0] and not words[0].startswith(("/", "build")) and not os.path.exists(os.path.join(ROOT, words[0])):
            faults.append(f"{words[0]} is not there")
    return faults


def run_python(block, folder):
    tree = ast.parse(block.body)
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules = {name.split(".")[0] for name in modules}
    if block.reason or "assay" in modules:
        return []  # python/tests/test_guide.py runs those of the Python package
    if not modules or any(importlib.util.find_spec(name) is None for name in modules):
        return []  # a fragment, or modules that are not installed: only parsed
    ran = subprocess.run([sys.executable, "-c", block.body], cwd=folder.path, text=True, capture_output=True, check=False)
    return [f"{block.where()}: {ran.stderr}"] if ran.returncode else []


def shows_the_machine(command):
    """Whether a machine with a device gives other output than the pages, which were written without one."""
    words = shlex.split(command, comments=True)
    names = any(word.split("=")[0] in ("--backend", "--help", "-h") for word in words)
    return "doctor" in words or ("./assay" in words and "run" in words and not names)


def faults_of_block(block, folder):
    faults = []
    if block.kind == "python":
        return run_python(block, folder)
    for command, expected in block.steps():
        if block.reason:
            faults += [f"{block.where()}: {fault}" for fault in faults_of_parsing(command)]
            continue
        printed = folder.run(command)
        if HAS_DEVICE and shows_the_machine(command):
            continue
        if expected is None and folder.status != 0:
            faults.append(f"{block.where()}: {command}\nends with {folder.status}:\n" + "\n".join(printed))
        elif expected is not None and not matches(expected, printed):
            faults.append(f"{block.where()}: {command}\nprints\n" + "\n".join(printed) + "\nbut the page says\n" + "\n".join(expected))
    return faults


def faults_of_page(page, text):
    faults = []
    with tempfile.TemporaryDirectory(prefix="assay_page_") as path:
        folder = Folder(path)
        for block in blocks_of(page, text):
            if block.kind in ("console", "sh", "python"):
                faults += faults_of_block(block, folder)
            elif re.search(r"^(?:\./)?assay [a-z-]", block.body, flags=re.M):
                faults.append(f"{block.where()}: commands in a block that is marked neither console nor sh")
    return faults


class Commands(unittest.TestCase):
    maxDiff = None
    PAGES = []

    def test_print_what_the_pages_say(self):
        blocks, faults = 0, []
        for page in self.PAGES or pages():
            with open(os.path.join(ROOT, page), encoding="utf-8") as file:
                text = file.read()
            blocks += sum(block.kind in ("console", "sh") for block in blocks_of(page, text))
            faults += faults_of_page(page, text)
        self.assertEqual(faults, [], "\n" + "\n".join(faults))
        self.assertGreater(blocks, 0 if self.PAGES else 15)

    def faults(self, text):
        return faults_of_page("PAGE", text)

    def test_another_output_is_a_fault(self):
        self.assertEqual(self.faults("```console\n$ echo one; echo two 2>&1\none\ntwo\n```\n"), [])
        self.assertIn("prints\none\nbut the page says\ntwo", self.faults("```console\n$ echo one\ntwo\n```\n")[0])
        self.assertIn("but the page says", self.faults("```console\n$ printf 'one\\ntwo\\n'\none\n```\n")[0])

    def test_marks_of_what_changes(self):
        self.assertTrue(matches(["in … s", "…", "end"], ["in 0.3 s", "a", "b", "end"]))
        self.assertTrue(matches(["…", "end"], ["end"]))
        self.assertFalse(matches(["in … s", "end"], ["in 0.3 s", "a", "end"]))
        self.assertFalse(matches(["a.c"], ["abc"]))

    def test_a_command_that_fails_is_a_fault(self):
        self.assertIn("ends with 2", self.faults("```sh\n./assay list --no-such\n```\n")[0])
        self.assertEqual(self.faults("```console\n$ ./assay list --levels > levels; false\n$ echo $?\n1\n```\n"), [])

    def test_what_is_not_run_is_parsed(self):
        text = "<!-- not run: needs a GPU -->\n```sh\n{}\n```\n"
        self.assertEqual(self.faults(text.format("./assay run --backend device --profile full && ./assay test -R documents")), [])
        self.assertEqual(self.faults(text.format("./assay run --bakend device")), ["PAGE:1: assay run has no option --bakend"])
        self.assertEqual(self.faults(text.format("assay rum")), ["PAGE:1: 'rum' is no verb"])
        self.assertEqual(self.faults(text.format("device/no.sh out")), ["PAGE:1: device/no.sh is not there"])
        self.assertEqual(self.faults(text.format("./assay bench --no-such")), ["PAGE:1: ./assay bench has no --no-such"])

    def test_a_command_in_a_block_without_a_mark_is_a_fault(self):
        self.assertIn("neither console nor sh", self.faults("```\n./assay run\n```\n")[0])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--faulty")
    parser.add_argument("--page", action="append", default=[])
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    PROGRAM, SHOW, Commands.PAGES = os.path.realpath(options.program), options.show, options.page
    LIBRARY = os.path.realpath(options.faulty or os.path.join(os.path.dirname(PROGRAM), "..", FAULTY))
    unittest.main(argv=[sys.argv[0]])
