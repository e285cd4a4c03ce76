#!/usr/bin/env python3
"""Wrong uses: one clear line each, the command line's own where it has the option. wrong_use_test.py PIPELAB"""
import subprocess
import sys
import tempfile
import unittest

import pipelab

PIPELAB = sys.argv.pop()
STEP = {"model": "gpt-6.6b", "cluster": "dgx-a100"}

# A call, and the same words of the command line.
SAME = [
    (lambda: pipelab.simulate("1f2b"), ["simulate", "1f2b"]),
    (lambda: pipelab.simulate("1f1b", devices=0), ["simulate", "1f1b", "--devices=0"]),
    (lambda: pipelab.simulate("1f1b", devices="four"), ["simulate", "1f1b", "--devices=four"]),
    (lambda: pipelab.simulate("1f1b", device=4), ["simulate", "1f1b", "--device=4"]),
    (lambda: pipelab.simulate("1f1b", forward=-1), ["simulate", "1f1b", "--forward=-1"]),
    (lambda: pipelab.simulate("1f1b", forward=[1, 2]), ["simulate", "1f1b", "--forward=1,2"]),
    (lambda: pipelab.simulate("1f1b", batch=4), ["simulate", "1f1b", "--batch=4"]),
    (lambda: pipelab.simulate("1f1b:P=4,Q=2"), ["simulate", "1f1b:P=4,Q=2"]),
    (lambda: pipelab.simulate("1f1b:P=4,M=8", model="gpt-6b"), ["simulate", "1f1b:P=4,M=8", "--model=gpt-6b"]),
    (lambda: pipelab.simulate("1f1b:P=4,M=8", model="gpt-6.6b"), ["simulate", "1f1b:P=4,M=8", "--model=gpt-6.6b"]),
    (lambda: pipelab.simulate("1f1b:P=4,M=8", cluster="dgx-a100"), ["simulate", "1f1b:P=4,M=8", "--cluster=dgx-a100"]),
    (lambda: pipelab.simulate("1f1b:P=4,M=8", forward=2, **STEP),
     ["simulate", "1f1b:P=4,M=8", "--forward=2", "--model=gpt-6.6b", "--cluster=dgx-a100"]),
    (lambda: pipelab.simulate("1f1b", when_full="drop_oldest"),
     ["simulate", "1f1b", "--when_full=drop_oldest"]),
    (lambda: pipelab.simulate(), ["simulate"]),
    (lambda: pipelab.simulate(csv="no.csv"), ["simulate", "--csv=no.csv"]),
    (lambda: pipelab.search(**STEP), ["search", "--model=gpt-6.6b", "--cluster=dgx-a100"]),
    (lambda: pipelab.search(batch=0, **STEP),
     ["search", "--batch=0", "--model=gpt-6.6b", "--cluster=dgx-a100"]),
    (lambda: pipelab.search(batch=8, schemes=["x"], **STEP),
     ["search", "--batch=8", "--schemes=x", "--model=gpt-6.6b", "--cluster=dgx-a100"]),
    (lambda: pipelab.search(batch=8, devices=3, top=0, **STEP),
     ["search", "--batch=8", "--devices=3", "--top=0", "--model=gpt-6.6b", "--cluster=dgx-a100"]),
    (lambda: pipelab.search(batch=1, devices=1, model="gpt-52b", cluster="dgx-a100"),
     ["search", "--batch=1", "--devices=1", "--model=gpt-52b", "--cluster=dgx-a100"]),
    (lambda: pipelab.compare("1f1b:P=4,M=8", **STEP),
     ["compare", "1f1b:P=4,M=8", "--model=gpt-6.6b", "--cluster=dgx-a100"]),
    (lambda: pipelab.compare("1f1b:P=4,M=8", "zbw:P=4,M=8", **STEP),
     ["compare", "1f1b:P=4,M=8", "zbw:P=4,M=8", "--model=gpt-6.6b", "--cluster=dgx-a100"]),
    (lambda: pipelab.plan(planner="best"), ["plan", "--planner=best"]),
    (lambda: pipelab.plan(planner="oracle", **STEP),
     ["plan", "--planner=oracle", "--model=gpt-6.6b", "--cluster=dgx-a100"]),
    (lambda: pipelab.plan(time_limit="soon", **STEP),
     ["plan", "--time_limit=soon", "--model=gpt-6.6b", "--cluster=dgx-a100"]),
    (lambda: pipelab.synthesize("1f1b:P=300,M=8"), ["synthesize", "1f1b:P=300,M=8"]),
    (lambda: pipelab.synthesize("1f1b:P=4,M=8", freedoms="order"),
     ["synthesize", "1f1b:P=4,M=8", "--freedoms=order"]),
    (lambda: pipelab.synthesize("1f1b:P=4,M=8", memory="much"),
     ["synthesize", "1f1b:P=4,M=8", "--memory=much"]),
    (lambda: pipelab.synthesize("1f1b:P=4,M=8", slow_device="9:0.5"),
     ["synthesize", "1f1b:P=4,M=8", "--slow_device=9:0.5"]),
    (lambda: pipelab.Schedule("1f1b", micro_batches=0), ["schedule", "1f1b", "--micro_batches=0"]),
    (lambda: pipelab.Schedule("interleaved", devices=4, micro_batches=7, group_size=2),
     ["schedule", "interleaved", "--devices=4", "--micro_batches=7", "--group_size=2"]),
]

# What the command line has no words for.
OWN = [
    (lambda: pipelab.simulate("1f1b", json_out="x"), "json_out=x: pipelab.simulate returns it"),
    (lambda: pipelab.synthesize("1f1b", schedule_out="x.csv"),
     "schedule_out=x.csv: pipelab.synthesize returns it"),
    (lambda: pipelab.Schedule("1f1b", format="csv"), "format=csv: pipelab.Schedule returns it"),
    (lambda: pipelab.Schedule.load("no.csv"), "no.csv: No such file or directory"),
    (lambda: pipelab.Schedule.load("mine.xls"), "mine.xls: must end with .txt, .csv or .json"),
    (lambda: pipelab.Schedule("1f1b").save("mine"), "mine: must end with .txt, .csv or .json"),
    (lambda: pipelab.Schedule.from_csv("0F0,0B0\n1F0\n"), "csv: "),
    (lambda: pipelab.Schedule.from_csv("0B0,0F0\n"), "csv: "),
    (lambda: pipelab.Schedule.from_text("schedule x\n"), "text: "),
    (lambda: pipelab.Schedule.from_json("{"), "json:1:2: not JSON"),
    (lambda: pipelab.Schedule("terapipe", devices=2, micro_batches=2, slices=2).csv(), ""),
    (lambda: pipelab.simulate("1f1b").memory_svg(),
     "memory_svg: needs sizes: bytes, activation_bytes, weights, workspace, or model"),
    (lambda: pipelab.Model.load("no.json"), "no.json: No such file or directory"),
    (lambda: pipelab.simulate("1f1b:P=1,M=2", model=pipelab.Model({"name": "x", "layers": []}), cluster="dgx-a100"),
     "--model=model.json: "),
    (lambda: pipelab.Schedule("chimera").to_torch([]), "to_torch: "),
]


class WrongUses(unittest.TestCase):

    def Line(self, call):
        with self.assertRaises(pipelab.Error) as raised:
            call()
        line = str(raised.exception)
        self.assertNotIn("\n", line)
        self.assertTrue(line)
        return raised.exception, line

    def test_lines_of_the_command_line(self):
        for call, words in SAME:
            with self.subTest(" ".join(words)):
                error, line = self.Line(call)
                with tempfile.TemporaryDirectory() as folder:
                    run = subprocess.run([PIPELAB, *words], capture_output=True, cwd=folder, text=True, check=False)
                self.assertEqual(line, run.stderr.strip().splitlines()[-1])
                self.assertEqual(isinstance(error, ValueError), run.returncode == 2)

    def test_own_lines(self):
        for number, (call, begin) in enumerate(OWN):
            with self.subTest(number):
                _, line = self.Line(call)
                self.assertTrue(line.startswith(begin), line)


if __name__ == "__main__":
    unittest.main()
