#!/usr/bin/env python3
"""Each sample, run as far as this machine allows: its parts merge to the digest of one run.

    docs/scale/samples/samples_test.py --program build/bin/assay

Slurm: a controller and four virtual nodes on this machine, where slurmctld, slurmd and munged are installed and the test is root.
Kubernetes: the shell commands of the jobs, with JOB_COMPLETION_INDEX set. CTest: as it is, with two devices. ReFrame: where it is installed.
"""
import argparse
import glob
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = BACKEND = CUDA = None
RUN = ["--profile", "smoke", "--backend", "reference", "swizzle"]
SLURM = """ClusterName=trial
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerParameters=sched_interval=1,batch_sched_delay=0
NodeName=virtual[0-3] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs=1 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def ports(number):
    """The first of so many ports in a row that are free now."""
    for first in range(26000, 60000, 16):
        try:
            for port in range(first, first + number):
                with socket.socket() as trial:
                    trial.bind(("127.0.0.1", port))
            return first
        except OSError:
            continue
    raise RuntimeError("no free ports")


class Samples(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="assay-samples-")
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("GTEST_", "SLURM_", "CTEST_RESOURCE"))}
        self.environment["ASSAY"] = PROGRAM

    def run_command(self, command, code=0, **environment):
        ran = subprocess.run(command, cwd=self.path, env={**self.environment, **environment}, capture_output=True, text=True)
        self.assertEqual(ran.returncode, code, f"{command}\n{ran.stdout}{ran.stderr}")
        return ran.stdout

    def digest(self, files):
        text = self.run_command([PROGRAM, "merge", *files, "--show", "0"])
        return re.search(r"digest ([0-9a-f]{64})", text)[1]

    def whole(self):
        self.run_command([PROGRAM, "run", *RUN, "--quiet", "--results", "whole.jsonl"])
        return self.digest(["whole.jsonl"])

    def test_slurm_array_on_virtual_nodes(self):
        missing = [each for each in ("slurmctld", "slurmd", "munged", "sbatch") if shutil.which(each, path=os.defpath + ":/usr/sbin:/sbin") is None]
        if missing:
            self.skipTest(f"not installed: {', '.join(missing)} (packages slurmctld slurmd slurm-client munge)")
        if os.geteuid() != 0:
            self.skipTest("the daemons of Slurm run as root here, and this test does not")
        self.environment["PATH"] += ":/usr/sbin:/sbin"
        self.start_slurm()
        self.run_command(["sbatch", "--wait", "--array=0-4", str(HERE / "slurm_array.sh"), "reference", "results"],
                         ASSAY_WORDS="--profile smoke swizzle")
        files = sorted(glob.glob(str(self.path / "results" / "part*.jsonl")))
        self.assertEqual(len(files), 5)
        self.assertEqual(self.digest(files), self.whole())
        self.run_command(["sbatch", "--wait", "--array=0-3", str(HERE / "slurm_predict.sh"), "predicting"],
                         ASSAY_PREDICT_WORDS="--profile smoke --blocks 8")
        self.assertEqual(self.joined("predicting"), self.predicted(["--profile", "smoke"]))

    def predicted(self, words):
        """The merged file of one call of predict."""
        self.run_command([PROGRAM, "predict", *words, "--quiet", "--out", "one.jsonl"])
        self.run_command([PROGRAM, "merge", "one.jsonl", "-o", "one_merged.jsonl"])
        return (self.path / "one_merged.jsonl").read_bytes()

    def joined(self, journal):
        self.run_command([PROGRAM, "merge", journal, "-o", "joined.jsonl"])
        return (self.path / "joined.jsonl").read_bytes()

    def test_predicting_array_of_slurm(self):
        workers = [subprocess.Popen([str(HERE / "slurm_predict.sh"), "predicting"], cwd=self.path, stdout=subprocess.DEVNULL,
                                    env={**self.environment, "ASSAY_PREDICT_WORDS": "--profile smoke --blocks 6"}) for _ in range(2)]
        self.assertEqual([each.wait() for each in workers], [0, 0])
        self.assertEqual(self.joined("predicting"), self.predicted(["--profile", "smoke"]))

    def start_slurm(self):
        first = ports(5)
        configuration = self.path / "slurm.conf"
        configuration.write_text(SLURM.format(host=socket.gethostname(), folder=self.path, controller=first, first=first + 1, last=first + 4))
        self.environment["SLURM_CONF"] = str(configuration)
        key = self.path / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        self.path.chmod(0o755)
        (self.path / "state").mkdir()
        self.addCleanup(self.stop_slurm)
        names = {name: str(self.path / name) for name in ("munge.socket", "munged.pid", "munged.log", "munged.seed")}
        self.run_command(["munged", f"--key-file={key}", f"--socket={names['munge.socket']}", f"--pid-file={names['munged.pid']}",
                          f"--log-file={names['munged.log']}", f"--seed-file={names['munged.seed']}", "--force"])
        self.run_command(["slurmctld", "-f", str(configuration)])
        for i in range(4):
            (self.path / "spool" / f"virtual{i}").mkdir(parents=True)
            self.run_command(["slurmd", "-f", str(configuration), "-N", f"virtual{i}"])
        for _ in range(300):
            ready = subprocess.run(["sinfo", "--noheader", "--format=%D %t"], env=self.environment, capture_output=True, text=True).stdout
            if ready.strip() == "4 idle":
                return
            time.sleep(0.1)
        self.fail(f"the nodes of Slurm do not become idle: {ready}")

    def stop_slurm(self):
        for file in sorted(self.path.glob("*.pid"), reverse=True):  # slurmd, slurmctld, munged
            try:
                pid = int(file.read_text())
                os.kill(pid, signal.SIGTERM)
                for _ in range(100):
                    os.kill(pid, 0)
                    time.sleep(0.05)
            except (OSError, ValueError):
                continue

    def kubernetes(self, name="kubernetes_job.yaml"):
        text = (HERE / name).read_text()
        script = text[text.index("            - |\n") + len("            - |\n"):text.index("          volumeMounts")]
        completions = int(re.search(r"completions: (\d+)", text)[1])
        if "JOB_COMPLETION_INDEX" in script:  # a shard each index
            self.assertEqual(completions, int(re.search(r'name: SHARDS, value: "(\d+)"', text)[1]))
        return re.sub(r"^ {14}", "", script, flags=re.M), completions

    def test_kubernetes_job_that_predicts(self):
        script, _ = self.kubernetes("kubernetes_predict_job.yaml")
        command = ["/bin/sh", "-c", script]
        pods = [subprocess.Popen(command, cwd=self.path, stdout=subprocess.DEVNULL,
                                 env={**self.environment, "JOB_COMPLETION_INDEX": str(index), "RESULTS": str(self.path),
                                      "WORDS": "--profile smoke --blocks 6"}) for index in range(3)]
        self.assertEqual([each.wait() for each in pods], [0, 0, 0])
        self.assertEqual((self.path / "predicted.jsonl").read_bytes(), self.predicted(["--profile", "smoke"]))
        # Another selection is refused: the job is not tried again.
        self.run_command(command, code=3, JOB_COMPLETION_INDEX="0", RESULTS=str(self.path), WORDS="--profile standard")

    def test_kubernetes_indexed_job_by_its_contract(self):
        script, completions = self.kubernetes()
        common = {"SHARDS": str(completions), "RESULTS": str(self.path), "WORDS": " ".join(RUN)}
        for index in range(completions):
            self.run_command(["/bin/sh", "-c", script], JOB_COMPLETION_INDEX=str(index), **common)
        files = sorted(glob.glob(str(self.path / "part*.jsonl")))
        self.assertEqual(len(files), completions)
        whole = self.whole()
        self.assertEqual(self.digest(files), whole)
        # A pod that is started again finds its verdicts, and judges nothing twice.
        cut = pathlib.Path(files[0])
        cut.write_text("".join(cut.read_text().splitlines(keepends=True)[:3]))
        self.run_command(["/bin/sh", "-c", script], JOB_COMPLETION_INDEX="0", **common)
        self.assertEqual(self.digest(files), whole)

    def test_kubernetes_exit_codes(self):
        script, completions = self.kubernetes()
        common = {"SHARDS": str(completions), "RESULTS": str(self.path), "JOB_COMPLETION_INDEX": "0"}
        self.run_command(["/bin/sh", "-c", script], WORDS="--profile smoke --backend null swizzle", **common)  # failures are results
        self.run_command(["/bin/sh", "-c", script], code=2, WORDS="--backend reference --profile none", **common)

    def test_ctest_gives_each_shard_a_device(self):
        if shutil.which("ctest") is None or shutil.which("cmake") is None:
            self.skipTest("cmake or ctest is not installed")
        version = re.search(r"version (\d+)\.(\d+)", self.run_command(["ctest", "--version"]))
        if (int(version[1]), int(version[2])) < (3, 16):
            self.skipTest("resource groups need CTest 3.16")
        if BACKEND is None or CUDA is None:
            self.skipTest("--backend and --cuda are not given")
        # A library on the host stands for one that uses CUDA, and a library of this project for CUDA's driver with two devices.
        self.environment.update(LD_LIBRARY_PATH=CUDA, FAKE_CUDA="A;A")
        run = ["--profile", "smoke", "--backend", BACKEND, "--backend-options", "none", "swizzle"]
        self.run_command(["cmake", "-S", str(HERE / "ctest"), "-B", "shards", f"-DASSAY={PROGRAM}", "-DSHARDS=4", f"-DWORDS={';'.join(run)}"])
        text = self.run_command(["ctest", "--test-dir", "shards", "--resource-spec-file", str(HERE / "ctest" / "two_gpus.json"), "-j", "4",
                                 "--verbose"])
        self.assertEqual(set(re.findall(r"^\d+: device (\d+): \d+ cases?$", text, flags=re.M)), {"0", "1"})
        self.run_command([PROGRAM, "run", *run, "--quiet", "--results", "whole.jsonl"])
        self.assertEqual(self.digest(["shards/all.jsonl"]), self.digest(["whole.jsonl"]))
        ran = subprocess.run(["ctest", "--test-dir", "shards", "-R", "shard0"], cwd=self.path, env=self.environment, capture_output=True, text=True)
        self.assertNotEqual(ran.returncode, 0, "without a file of devices no shard may run on a device that it was not given")

    def test_reframe(self):
        reframe = os.environ.get("ASSAY_REFRAME") or shutil.which("reframe")
        if reframe is None:
            self.skipTest("ReFrame is not installed (pip install reframe-hpc; ASSAY_REFRAME names the program)")
        text = self.run_command([reframe, "-c", str(HERE / "assay_reframe.py"), "-S", f"program={PROGRAM}", "-S", "words=" + " ".join(RUN), "-r",
                                 "--keep-stage-files"])
        self.assertRegex(text, r"PASSED.*Ran 8/8 test case\(s\)")
        files = sorted(glob.glob(str(self.path / "output" / "**" / "part.jsonl"), recursive=True))
        self.assertEqual(len(files), 8, text)
        self.assertEqual(self.digest(files), self.whole())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--backend", help="a library to judge, for the test of CTest")
    parser.add_argument("--cuda", help="folder of a libcuda.so.1 that shows the devices of FAKE_CUDA, for the same")
    arguments, rest = parser.parse_known_args()
    PROGRAM, BACKEND, CUDA = os.path.abspath(arguments.program), arguments.backend, arguments.cuda
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
