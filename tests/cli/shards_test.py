#!/usr/bin/env python3
"""60 prompts recorded from one file, replayed in 4 shards: every run once, JUnit files readable.

    shards_test.py DETRUN MODEL

The JUnit files are read by junitparser where that is installed; in any case they are parsed by
xml.etree and held against the rules of the format, written down here.
"""
import json
import os
import re
import stat
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

try:
    import junitparser
except ImportError:
    junitparser = None

DETRUN, MODEL = sys.argv[1:3]
PROMPTS, SHARDS = 60, 4


def detrun(*words, code=0):
    done = subprocess.run([DETRUN, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != code:
        raise AssertionError(f"{words}: exit {done.returncode}\n{done.stderr.decode()}")
    return done.stdout.decode()


class Shards(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        print("JUnit reader:", "junitparser and xml.etree" if junitparser else "xml.etree only")
        cls.folder = tempfile.TemporaryDirectory(prefix="detrun-shards.")
        cls.ledger = os.path.join(cls.folder.name, "l.db")
        cls.prompts = os.path.join(cls.folder.name, "prompts.jsonl")
        with open(cls.prompts, "w", encoding="utf-8") as file:
            for i in range(PROMPTS):
                line = {"prompt": f"Claim {i}: water damage.", "n": 4 + i % 5,
                        "tags": {"case": str(i), "<odd>": 'a "quoted" & <tagged> value'}}
                file.write(json.dumps(line) + "\n")
        detrun("record", "-m", MODEL, "--prompts", cls.prompts, "--ledger", cls.ledger)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def replay(self, ledger, *words, code=0):
        report = os.path.join(self.folder.name, "report.xml")
        out = detrun("replay", "--ledger", ledger, "--json", "--junit", report, *words, code=code)
        self.assertEqual(stat.S_IMODE(os.stat(report).st_mode), 0o600)
        return json.loads(out), self.check_junit(report)

    def check_junit(self, path):
        """The rules of the format; returns the names of the test cases by outcome."""
        root = ElementTree.parse(path).getroot()
        self.assertEqual(root.tag, "testsuites")
        suites = list(root)
        self.assertEqual([suite.tag for suite in suites], ["testsuite"])
        outcomes = {"passed": [], "failure": [], "error": [], "skipped": []}
        for case in suites[0]:
            self.assertEqual(case.tag, "testcase")
            self.assertTrue(case.attrib["name"] and case.attrib["classname"])
            self.assertRegex(case.attrib["time"], r"^\d+\.\d{3}$")
            self.assertLessEqual(len(case), 1)
            outcome = case[0].tag if len(case) else "passed"
            self.assertIn(outcome, outcomes)
            if outcome in ("failure", "error"):
                self.assertTrue(case[0].attrib["message"] and case[0].attrib["type"])
            outcomes[outcome].append(case.attrib["name"])
        for element in (root, suites[0]):
            self.assertEqual(int(element.attrib["tests"]), len(suites[0]))
            self.assertEqual(int(element.attrib["failures"]), len(outcomes["failure"]))
            self.assertEqual(int(element.attrib["errors"]), len(outcomes["error"]))
            self.assertEqual(int(element.attrib["skipped"]), len(outcomes["skipped"]))
            self.assertRegex(element.attrib["time"], r"^\d+\.\d{3}$")
        self.assertRegex(suites[0].attrib["timestamp"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$")
        if junitparser:
            self.check_by_junitparser(path, outcomes)
        return outcomes

    def check_by_junitparser(self, path, outcomes):
        kinds = {junitparser.Failure: "failure", junitparser.Error: "error",
                 junitparser.Skipped: "skipped"}
        found = {name: [] for name in outcomes}
        for suite in junitparser.JUnitXml.fromfile(path):
            for case in suite:
                kind = kinds[type(case.result[0])] if case.result else "passed"
                found[kind].append(case.name)
        self.assertEqual(found, outcomes)

    def test_every_run_is_in_exactly_one_shard(self):
        seen = []
        for shard in range(1, SHARDS + 1):
            words = ["--all", "--shard", f"{shard}/{SHARDS}", "--jobs", str(1 + shard % 2)]
            document, outcomes = self.replay(self.ledger, *words)
            self.assertEqual(document["verdict"], "REPRODUCED")
            numbers = [run["number"] for run in document["runs"]]
            self.assertEqual(numbers, sorted(numbers))
            self.assertEqual([int(re.match(r"run (\d+) ", name)[1]) for name in outcomes["passed"]],
                             numbers)
            self.assertTrue(all(run["verdict"] == "REPRODUCED" for run in document["runs"]))
            seen += numbers
        self.assertEqual(sorted(seen), list(range(1, PROMPTS + 1)))

    def test_every_line_is_a_run_of_its_own(self):
        runs = [json.loads(line) for line in
                detrun("list", "--json", "--ledger", self.ledger).splitlines()]
        self.assertEqual([run["prompts"]["line"] for run in runs], list(range(1, PROMPTS + 1)))
        self.assertEqual({run["model"]["sha256"] for run in runs}, {runs[0]["model"]["sha256"]})
        self.assertEqual([run["step_count"] <= 4 + i % 5 for i, run in enumerate(runs)],
                         [True] * PROMPTS)
        detrun("verify", "--ledger", self.ledger)

    def test_samples_are_stable_when_runs_are_added(self):
        ledger = os.path.join(self.folder.name, "grown.db")
        with open(self.prompts, encoding="utf-8") as file:
            lines = file.readlines()
        half = os.path.join(self.folder.name, "half.jsonl")
        with open(half, "w", encoding="utf-8") as file:
            file.writelines(lines[:30])
        words = ["--sample", "33.3%", "--seed", "5"]
        detrun("record", "-m", MODEL, "--prompts", half, "--ledger", ledger)
        before, _ = self.replay(ledger, *words)
        detrun("record", "-m", MODEL, "--prompts", self.prompts, "--ledger", ledger)
        after, _ = self.replay(ledger, *words)
        chosen = [run["id"] for run in before["runs"]]
        self.assertEqual([run["id"] for run in after["runs"] if run["number"] <= 30], chosen)

    def test_a_run_that_is_not_there_is_an_error_of_the_report(self):
        document, outcomes = self.replay(self.ledger, "1", "999", code=3)
        self.assertEqual(document["verdict"], "INCONCLUSIVE")
        self.assertEqual((len(outcomes["passed"]), len(outcomes["error"])), (1, 1))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
