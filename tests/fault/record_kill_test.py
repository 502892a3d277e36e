#!/usr/bin/env python3
"""SIGKILL at random moments of a recording: the ledger opens, verifies, replays, takes new runs.

    record_kill_test.py DETRUN MODEL VERIFY_LEDGER

The moments come from a fixed seed and cover the whole life of the process. Standard library only.
"""
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest

DETRUN, MODEL, VERIFY_LEDGER = sys.argv[1:4]
KILLS = 20
SEED = 20261129


def detrun(*arguments, **keywords):
    return subprocess.run([DETRUN, *arguments], capture_output=True, check=False, **keywords)


class RecordKill(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="detrun-kill.")
        self.ledger = os.path.join(self.folder.name, "kill.db")
        # The slow instruction set, so that a kill lands between steps and not beside the run.
        self.slow = dict(os.environ, DETRUN_CPU_ISA="scalar")

    def tearDown(self):
        self.folder.cleanup()

    def command(self):
        return [DETRUN, "record", "-m", MODEL, "-p", "", "-n", "200", "--threads", "1",
                "--ledger", self.ledger, "-q"]

    def seconds_of_a_whole_run(self):
        start = time.monotonic()
        done = subprocess.run(self.command(), env=self.slow, capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return time.monotonic() - start

    def heads(self):
        done = detrun("list", "--json", "--ledger", self.ledger)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def check_ledger(self):
        verified = detrun("verify", "--json", "--ledger", self.ledger)
        self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)
        second = subprocess.run([sys.executable, VERIFY_LEDGER, self.ledger],
                                capture_output=True, check=False)
        self.assertEqual(second.returncode, 0, second.stdout + second.stderr)

    def test_a_killed_recorder_loses_nothing_that_was_committed(self):
        chosen = random.Random(SEED)
        whole = self.seconds_of_a_whole_run()
        for kill in range(KILLS):
            process = subprocess.Popen(self.command(), env=self.slow, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            time.sleep(whole * chosen.uniform(0.02, 0.95))
            process.send_signal(signal.SIGKILL)
            process.wait()
            self.check_ledger()  # as the kill left it, before anybody writes again
        # The next writer seals what the killed ones had committed.
        self.assertEqual(subprocess.run(self.command(), env=self.slow, capture_output=True,
                                        check=False).returncode, 0)
        self.check_ledger()
        heads = self.heads()
        interrupted = [head for head in heads if head["status"] == "interrupted"]
        with_steps = [head for head in interrupted if head["step_count"] > 0]
        print(f"{KILLS} kills over {whole:.2f} s: {len(heads)} runs, {len(interrupted)} "
              f"interrupted, {len(with_steps)} of them with steps", flush=True)
        self.assertGreaterEqual(len(with_steps), 5, "the kills missed the runs")
        self.assertEqual(heads[-1]["status"], "finished")
        replayed = detrun("replay", "--all", "--force", "--json", "--ledger", self.ledger)
        self.assertEqual(replayed.returncode, 0, replayed.stdout + replayed.stderr)
        runs = json.loads(replayed.stdout)["runs"]
        self.assertEqual(len(runs), len(heads))
        for head, run in zip(heads, runs):
            self.assertEqual(run["complete"], head["status"] == "finished")
            self.assertEqual(run["steps_checked"], head["step_count"])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=2)
