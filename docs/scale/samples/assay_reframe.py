"""A ReFrame test: Assay on each shard, and what it measures as performance figures.

    reframe -c docs/scale/samples/assay_reframe.py -S program=/path/to/assay -S words='--backend ./libvendor.so' -r
"""
import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class AssayShard(rfm.RunOnlyRegressionTest):
    shard = parameter(range(8))
    shards = variable(int, value=8)
    program = variable(str, value="assay")
    words = variable(str, value="--backend device")
    valid_systems = ["*"]
    valid_prog_environs = ["*"]

    @run_before("run")
    def command(self):
        self.executable = self.program
        self.executable_opts = ["run", self.words, "--quiet", f"--shard {self.shard}/{self.shards}", "--results part.jsonl"]
        self.keep_files = ["part.jsonl"]

    @sanity_function
    def passed(self):
        return sn.assert_found(r"^PASS run ", self.stdout)

    @performance_function("cases")
    def judged(self):
        return sn.extractsingle(r": (\d+) passed, ", self.stdout, 1, int)
