#!/usr/bin/env python3
"""The package against the command line: package_test.py PIPELAB"""
import ast
import inspect
import json
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy
import pipelab
from pipelab import _core

PIPELAB = sys.argv.pop()
STEP = {"model": "gpt-6.6b", "cluster": "dgx-a100"}
# No bound is reached in minutes.
HARD = "1f1b:P=8,M=24"
HARD_TIMES = {"forward": [1, 2, 1, 3, 1, 2, 1, 1], "backward_input": [1, 2, 1, 3, 1, 1, 2, 1], "p2p_latency": 0.5,
              "memory": 5}


def Cli(*words):
    """What the command line writes with --json_out=-."""
    run = subprocess.run([PIPELAB, *words, "--json_out=-"], stdout=subprocess.PIPE, check=True)
    return json.loads(run.stdout)


class Schedules(unittest.TestCase):

    def test_forms(self):
        schedule = pipelab.Schedule("zbv", devices=4, micro_batches=8)
        self.assertEqual(schedule, pipelab.Schedule("zbv:P=4,M=8"))
        for form in ("text", "csv", "json"):
            printed = subprocess.run([PIPELAB, "schedule", "zbv:P=4,M=8", f"--format={form}"],
                                     stdout=subprocess.PIPE,
                                     check=True).stdout.decode()
            self.assertEqual(getattr(schedule, form)(), printed, form)
            again = getattr(pipelab.Schedule, f"from_{form}")(printed)
            self.assertEqual(again.actions().tolist(), schedule.actions().tolist(), form)
        with tempfile.TemporaryDirectory() as folder:
            for ending in ("txt", "json"):
                path = pathlib.Path(folder, f"s.{ending}")
                schedule.save(path)
                self.assertEqual(pipelab.Schedule.load(path), schedule)
        self.assertEqual(pickle.loads(pickle.dumps(schedule)), schedule)
        self.assertEqual(hash(pickle.loads(pickle.dumps(schedule))), hash(schedule))
        self.assertNotEqual(schedule, pipelab.Schedule("1f1b"))
        self.assertEqual(
            (schedule.devices, schedule.stages, schedule.micro_batches, schedule.slices),
            (4, 8, 8, 1))
        self.assertEqual(schedule.stage_devices, [[[0], [1], [2], [3], [3], [2], [1], [0]]])

    def test_actions(self):
        actions = pipelab.Schedule("1f1b", devices=2, micro_batches=2).actions()
        self.assertEqual(
            ["".join(map(str, a)) for a in actions[["stage", "kind", "micro_batch"]].tolist()],
            ["0F0", "0F1", "0B0", "0B1", "1F0", "1B0", "1F1", "1B1"])
        self.assertEqual(actions["device"].tolist(), [0] * 4 + [1] * 4)
        # Every scheme that makes 8 micro-batches on 4 devices: one forward of each stage and
        # micro-batch.
        made = 0
        for scheme in pipelab.schemes():
            try:
                schedule = pipelab.Schedule(scheme["name"], devices=4, micro_batches=8)
            except pipelab.Error:
                continue
            made += 1
            actions = schedule.actions()
            forwards = actions[actions["kind"] == "F"]
            self.assertEqual(len(numpy.unique(forwards[["stage", "micro_batch", "slice"]])),
                             len(forwards), scheme["name"])
            self.assertIn(f"devices {schedule.devices}\n", schedule.text())
        self.assertGreater(made, 20)


class Figures(unittest.TestCase):

    def test_simulate_with_times(self):
        for scheme in ("1f1b", "chimera", "zbv"):
            run = pipelab.simulate(scheme, devices=4, micro_batches=8, p2p_latency=0.1, forward=[1, 2, 2, 1]
                                   if scheme == "1f1b" else 1)
            words = ["simulate", scheme, "--devices=4", "--micro_batches=8", "--p2p_latency=0.1"]
            expected = Cli(*words, *(["--forward=1,2,2,1"] if scheme == "1f1b" else []))
            self.assertEqual(run.figures, expected)
            self.assertEqual((run.makespan, run.bubble, run.unit),
                             (expected["makespan"], expected["bubble"], ""))
            self.assertIsNone(run.peak_memory)
            self.assertIsNone(run.mfu)
        # A schedule of one's own is that schedule.
        own = pipelab.simulate(pipelab.Schedule("zbv:P=4,M=8"), p2p_latency=0.1)
        self.assertEqual(own.figures, Cli("simulate", "zbv:P=4,M=8", "--p2p_latency=0.1"))

    def test_simulate_a_step(self):
        config = "zbv:P=4,T=2,D=2,M=8"
        run = pipelab.simulate(config, **STEP)
        expected = Cli("simulate", config, "--model=gpt-6.6b", "--cluster=dgx-a100")
        self.assertEqual(run.figures, expected)
        self.assertEqual(run.unit, "ms")
        self.assertTrue(run.fits)
        self.assertEqual(run.peak_memory, [d["peak_memory"]["all"] for d in expected["devices"]])
        self.assertAlmostEqual(run.mfu, expected["tflops_per_device"] / 312)  # an A100's bf16
        same = pipelab.simulate(pipelab.Schedule("gpipe:P=4,M=8"), keys="T=2,D=2", **STEP)
        self.assertEqual(same.step_ms, pipelab.simulate("gpipe:P=4,T=2,D=2,M=8", **STEP).step_ms)

    def test_a_step_that_does_not_fit(self):
        run = pipelab.simulate("1f1b:P=2,M=8", model="gpt-52b", cluster="dgx-a100")
        self.assertFalse(run.fits)
        self.assertFalse(run.figures["fits"])
        self.assertRegex(run.does_not_fit,
                         r"^1f1b:P=2.* does not fit: the fullest device needs .* GiB of 80")

    def test_timeline(self):
        run = pipelab.simulate("1f1b", devices=4, micro_batches=8)
        spans = run.timeline()
        self.assertEqual(run.makespan, spans["end"].max())
        compute = spans[spans["op"] == "compute"]
        self.assertEqual(len(compute), 4 * 8 * 2)
        idle = 4 * run.makespan - (compute["end"] - compute["begin"]).sum()
        self.assertAlmostEqual(idle / (4 * run.makespan), run.bubble)

    def test_drawings(self):
        run = pipelab.simulate("1f1b", devices=2, micro_batches=4, **STEP, micro_batch_size=1)
        self.assertTrue(run._repr_svg_().startswith("<svg"), run._repr_svg_()[:60])
        self.assertIn("<figcaption>", run._repr_html_())
        self.assertIn("<svg", run.memory_svg())
        self.assertIn('"traceEvents"', run.chrome_trace())
        self.assertIn("<svg", pipelab.Schedule("zbv")._repr_svg_())
        self.assertEqual(run.text().count("\n") > 2, True)

    def test_search(self):
        found = pipelab.search(devices=8, batch=32, top=3, schemes=["1f1b", "gpipe"], **STEP)
        expected = Cli("search", "--model=gpt-6.6b", "--cluster=dgx-a100", "--devices=8",
                       "--batch=32", "--top=3", "--schemes=1f1b,gpipe")
        self.assertEqual(list(found), expected["best"])
        self.assertEqual(found.refused, expected["refused"])
        self.assertFalse(found.stopped)
        self.assertAlmostEqual(
            pipelab.simulate(found.configs[0], **STEP).step_ms, found[0]["step_ms"])
        self.assertIn("<table>", found._repr_html_())

    def test_compare(self):
        configs = ["1f1b:P=4,M=8", "zbv:P=4,M=8"]
        compared = pipelab.compare(*configs, **STEP)
        self.assertEqual(list(compared),
                         Cli("compare", *configs, "--model=gpt-6.6b", "--cluster=dgx-a100"))
        self.assertIn("is fastest", str(compared))

    def test_plan(self):
        options = {"planner": "piper", "model": "mmt-small", "cluster": "summit-4gpu", "devices": 4,
                   "micro_batch_size": 2}
        plan = pipelab.plan(**options)
        expected = Cli("plan", *[f"--{k}={v}" for k, v in options.items()])
        for run in (plan.data, expected):
            run.pop("search_seconds", None)
        self.assertEqual(plan.data.keys(), expected.keys())
        self.assertEqual(plan.data["stages"], expected["stages"])
        run = pipelab.simulate(plan=plan, model="mmt-small", cluster="summit-4gpu", micro_batches=8, micro_batch_size=2)
        self.assertGreater(run.makespan, 0)

    def test_synthesize(self):
        found = pipelab.synthesize("1f1b:P=4,M=8", memory=4, time_limit="2s")
        self.assertGreaterEqual(found.passes, found.lower_bound)
        self.assertEqual(found.schedule.devices, 4)
        self.assertEqual(pipelab.simulate(found.schedule).makespan, found.figures["step"])
        self.assertNotIn(":schedule.txt", str(found))


class Calls(unittest.TestCase):

    def test_options_are_of_one_call(self):
        pipelab.simulate("1f1b", devices=7, micro_batches=9)
        self.assertEqual(pipelab.Schedule("1f1b").devices, 4)
        with self.assertRaises(pipelab.UsageError):
            pipelab.Schedule("1f1b", devices=-1)
        self.assertEqual(pipelab.Schedule("1f1b").devices, 4)

    def test_threads(self):
        makespans = {}

        def Run(devices):
            makespans[devices] = pipelab.simulate("gpipe", devices=devices,
                                                  micro_batches=8).makespan

        threads = [threading.Thread(target=Run, args=(p,)) for p in range(1, 9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(makespans, {p: 3 * (8 + p - 1) for p in range(1, 9)})

    def test_the_interpreter_runs_beside_it(self):
        ticks = []
        thread = threading.Thread(target=pipelab.synthesize, args=(HARD,), kwargs={**HARD_TIMES, "time_limit": "1s"})
        thread.start()
        while thread.is_alive():
            ticks.append(time.monotonic())
            time.sleep(0.01)
        self.assertGreater(len(ticks), 10)

    def Interrupted(self, call):
        """The result of a call that gets one Ctrl-C. What Python itself takes came too early or too late."""
        done = threading.Event()
        taken, pipe = os.pipe()
        os.set_blocking(taken, False)
        os.set_blocking(pipe, False)

        def Interrupt():
            while not done.wait(0.5):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.2)
                try:
                    os.read(taken, 100)
                except BlockingIOError:
                    return  # the call has it

        thread = threading.Thread(target=Interrupt)
        before = signal.signal(signal.SIGINT, lambda *unused: None)
        wakeup = signal.set_wakeup_fd(pipe)
        thread.start()
        try:
            return call()
        finally:
            done.set()
            thread.join()
            signal.set_wakeup_fd(wakeup)
            signal.signal(signal.SIGINT, before)
            os.close(taken)
            os.close(pipe)

    def test_interrupted_synthesis_is_the_best_so_far(self):
        found = self.Interrupted(lambda: pipelab.synthesize(
            HARD, **HARD_TIMES, time_limit="300s"))
        self.assertTrue(found.stopped)
        self.assertGreaterEqual(found.passes, found.lower_bound)

    def test_interrupted_search_is_the_best_so_far(self):
        try:
            found = self.Interrupted(lambda: pipelab.search(
                model="gpt-52b", cluster="dgx-a100", devices=512, batch=4096))
        except pipelab.Error as error:
            self.assertEqual(str(error), "search: stopped before it found anything")
        else:
            self.assertTrue(found.stopped)
            self.assertGreater(len(found), 0)


class Stubs(unittest.TestCase):
    """__init__.pyi says what there is, and every option of the commands."""

    def test_names_and_options(self):
        folder = pathlib.Path(pipelab.__file__).parent
        self.assertTrue((folder / "py.typed").exists())
        tree = ast.parse((folder / "__init__.pyi").read_text())
        functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
        classes = {n.name: n for n in tree.body if isinstance(n, ast.ClassDef)}
        self.assertLessEqual(set(pipelab.__all__), set(functions) | set(classes))
        for command in ("simulate", "search", "compare", "plan", "synthesize"):
            stub = {a.arg for a in functions[command].args.kwonlyargs}
            names = {name for name, *_ in _core.options(command)}
            missing = names - stub - set(RETURNED[command])
            self.assertEqual(missing, set(), command)
            self.assertEqual(stub - names - {"keys"}, set(), command)
        for name, stub in classes.items():
            own = {n.name for n in stub.body if isinstance(n, ast.FunctionDef)}
            public = {
                k for k, v in inspect.getmembers(getattr(pipelab, name)) if not k.startswith("_")
            }
            if not issubclass(getattr(pipelab, name), Exception):
                self.assertEqual({k for k in own if not k.startswith("_")},
                                 public - {"count", "index"}, name)


RETURNED = {
    "simulate": ["json_out"],
    "search": ["json", "json_out"],
    "compare": ["json_out"],
    "plan": ["json_out", "parts_out", "graph", "partition", "fanouts"],
    "synthesize": ["json_out", "schedule_out"],
}

if __name__ == "__main__":
    unittest.main()
