#!/usr/bin/env python3
"""Times the lowering of interleaved 1F1B (P=8, M=1024, V=2) in PyTorch and in pipelab, and prints the ratios.

  python3 -m venv venv && venv/bin/pip install torch
  tools/bazel build //pipelines/sim:simulate_benchmark
  venv/bin/python tools/pytorch/lowering_speed.py

Both sides get the order of compute actions and add messages. PyTorch (torch.distributed.pipelining) is timed twice:
its messages alone (_add_send_recv, and _add_wait_send where there is one), and all that it does to lower a schedule
(_prepare_schedule_with_comms, default options), which places gathers of parameters too. pipelab's Lower also validates
and adds reductions and optimizer steps; without sharding it has no gathers to place. Both sides run in turn, one thread
each; times are of the processor, medians over the rounds.
"""
from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import time
import types

import torch
from torch.distributed.pipelining import schedules

DEVICES, MICRO_BATCHES, STAGES_PER_DEVICE = 8, 1024, 2
BENCHMARK = "bazel-bin/pipelines/sim/simulate_benchmark"


def stage() -> types.SimpleNamespace:
    """What a schedule asks of a stage to make its order. There is no model and no process group."""
    return types.SimpleNamespace(num_stages=DEVICES * STAGES_PER_DEVICE, group_size=DEVICES, group_rank=0, stage_index=0,
                                 group=None, submod=None)


class Timer:
    """Adds up the processor time of the functions that it wraps."""

    def __init__(self, owner: object, names: tuple[str, ...]) -> None:
        self.seconds = 0.0
        for name in names:
            if hasattr(owner, name):
                setattr(owner, name, self._timed(getattr(owner, name)))

    def _timed(self, function):
        def timed(*args, **kwargs):
            begin = time.process_time()
            result = function(*args, **kwargs)
            self.seconds += time.process_time() - begin
            return result
        return timed

    def take(self) -> float:
        seconds, self.seconds = self.seconds, 0.0
        return seconds


def lower_in_pytorch() -> None:
    schedule = schedules.ScheduleInterleaved1F1B([stage() for _ in range(STAGES_PER_DEVICE)],
                                                 MICRO_BATCHES)
    for rank, actions in schedule.pipeline_order_with_comms.items():
        sends = sum(1 for a in actions if a.computation_type.value.startswith("SEND"))
        want = 2 * MICRO_BATCHES * STAGES_PER_DEVICE - (MICRO_BATCHES if rank in (0, DEVICES - 1) else 0)
        if sends != want:
            raise SystemExit(
                f"lowering_speed.py: {sends} sends on rank {rank}; this schedule has {want}")


def pipelab_seconds() -> float:
    out = subprocess.run([BENCHMARK, "--benchmark_filter=^BM_Lower/4", "--benchmark_format=json"],
                         check=True,
                         stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL)
    row = json.loads(out.stdout)["benchmarks"][0]
    return row["cpu_time"] * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}[row["time_unit"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    messages = Timer(schedules, ("_add_send_recv", "_add_wait_send"))
    whole = Timer(schedules._PipelineScheduleRuntime, ("_prepare_schedule_with_comms",))
    times: dict[str, list[float]] = {"messages alone": [], "the whole lowering": []}
    ours = []
    for _ in range(rounds):
        lower_in_pytorch()
        times["messages alone"].append(messages.take())
        times["the whole lowering"].append(whole.take())
        ours.append(pipelab_seconds())
    o = statistics.median(ours)
    print(f"pipelab: {1e3 * o:.2f} ms ({1e3 * min(ours):.2f} to {1e3 * max(ours):.2f})")
    for what, theirs in times.items():
        t = statistics.median(theirs)
        print(f"PyTorch {torch.__version__}, {what}: {t:.3f} s ({min(theirs):.3f} to {max(theirs):.3f}), "
              f"{t / o:.0f} times pipelab's ({min(theirs) / max(ours):.0f} to {max(theirs) / min(ours):.0f})")


if __name__ == "__main__":
    main()
