"""Ctrl-C ends an answer and a check; other threads run meanwhile."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import assay
import numpy as np

ORACLE = """
    print("begun", flush=True)
    assay.check(lambda t: None, "grouped_gemm kind=bf16 splits=16384 N=8192 K=8192")
"""
CHECK = """
    import time
    def slow(t):
        print("begun", flush=True)
        time.sleep(100)
    assay.check(slow, "quantize recipe=mxfp8 R=33 K=64")
"""


def interrupted(body):
    script = "import assay\ntry:\n" + textwrap.indent(textwrap.dedent(body).strip(), "    ") + "\nexcept KeyboardInterrupt:\n    print('ended')"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "begun\n", process.stderr.read()
        time.sleep(0.5)
        os.kill(process.pid, signal.SIGINT)
        out, error = process.communicate(timeout=60)
    assert process.returncode == 0 and out == "ended\n", error


def test_ctrl_c_ends_an_answer_that_would_take_minutes():
    interrupted(ORACLE)


def test_ctrl_c_ends_a_function_that_is_judged():
    interrupted(CHECK)


def test_other_threads_run_meanwhile():
    """A thread of Python that waits for nothing counts while the oracle computes: the oracle does not hold the GIL."""
    counted, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0)

    thread = threading.Thread(target=count)
    thread.start()
    before = counted[0]
    assay.quantize(np.ones((4096, 4096), np.float32), recipe="nvfp4")
    seen = counted[0] - before
    stop.set()
    thread.join()
    assert seen > 10
