#!/usr/bin/env python3
"""Gives the problems of `pipelab synthesize` to CP-SAT and HiGHS too, and compares orders, bounds and times.

    tools/dev/python_venv.sh venv tools/solvers/requirements.txt
    tools/bazel build //experiments:pipelab
    venv/bin/python tools/solvers/synthesis_solvers.py --time_limit=20

A problem is a chain of P stages, one a device, with M alike micro-batches, backwards in two parts, and room for some
activations on each device. Both solvers get the same model: passes of a device do not overlap, a pass begins behind
what it waits for, each stage runs micro-batches in order, and a stage's activation is held from the begin of F to the
end of W. Times are of the wall, one thread each, one after the other. No build and no test needs this script.
"""
from __future__ import annotations

import argparse
import dataclasses
import json
import random
import statistics
import subprocess
import time

KINDS = ("F", "I", "W")


@dataclasses.dataclass
class Problem:
    devices: int
    micro_batches: int
    room: int
    hop: int
    lengths: list[tuple[int, int, int]]  # [device] F, I, W
    times: str

    @property
    def name(self) -> str:
        return f"P={self.devices} M={self.micro_batches} room={self.room} {self.times}"

    def passes(self):
        return [(d, k, m) for d in range(self.devices) for k in range(3) for m in range(self.micro_batches)]

    def precedences(self):
        """(pass, pass behind it, time between the end of one and the begin of the other)"""
        last = self.devices - 1
        for m in range(self.micro_batches):
            for d in range(self.devices):
                if d < last:
                    yield (d, 0, m), (d + 1, 0, m), self.hop
                    yield (d + 1, 1, m), (d, 1, m), self.hop
                yield (d, 0, m), (d, 1, m), 0
                yield (d, 1, m), (d, 2, m), 0
                if m + 1 < self.micro_batches:
                    for k in range(3):
                        yield (d, k, m), (d, k, m + 1), 0
                if m + self.room < self.micro_batches:  # in order, so room comes back in order
                    yield (d, 2, m), (d, 0, m + self.room), 0

    def longest(self) -> int:
        return sum(sum(lengths) + 2 * self.hop for lengths in self.lengths) * self.micro_batches


@dataclasses.dataclass
class Answer:
    makespan: float | None
    bound: float
    optimal: bool
    seconds: float


def pipelab(binary: str, p: Problem, limit: float) -> Answer:
    command = [binary, "synthesize", f"1f1b:P={p.devices},M={p.micro_batches}", f"--memory={p.room}",
               "--freedoms=split", f"--p2p_latency={p.hop}", f"--time_limit={limit}s", "--json_out=-"]
    for flag, k in (("forward", 0), ("backward_input", 1), ("backward_weight", 2)):
        command.append(f"--{flag}=" + ",".join(str(lengths[k]) for lengths in p.lengths))
    begin = time.monotonic()
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - begin
    if run.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{run.stderr}")
    found = json.loads(run.stdout)
    return Answer(found["passes"], found["lower_bound"], found["optimal"], seconds)


def cp_sat(p: Problem, limit: float) -> Answer:
    from ortools.sat.python import cp_model
    model = cp_model.CpModel()
    longest = p.longest()
    begin = {x: model.new_int_var(0, longest, "") for x in p.passes()}
    for d in range(p.devices):
        model.add_no_overlap(model.new_fixed_size_interval_var(begin[x], p.lengths[d][x[1]], "")
                             for x in p.passes() if x[0] == d)
    for a, b, between in p.precedences():
        model.add(begin[b] >= begin[a] + p.lengths[a[0]][a[1]] + between)
    makespan = model.new_int_var(0, longest, "")
    for x in p.passes():
        model.add(makespan >= begin[x] + p.lengths[x[0]][x[1]])
    model.minimize(makespan)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = limit
    solver.parameters.num_workers = 1
    start = time.monotonic()
    status = solver.solve(model)
    seconds = time.monotonic() - start
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    return Answer(solver.objective_value if found else None, solver.best_objective_bound,
                  status == cp_model.OPTIMAL, seconds)


def highs(p: Problem, limit: float) -> Answer:
    """Order of each two passes of a device as a binary variable, where their precedences leave it open."""
    import highspy
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("time_limit", limit)
    solver.setOptionValue("threads", 1)
    longest = p.longest()
    begin = {x: solver.addVariable(lb=0, ub=longest) for x in p.passes()}
    makespan = solver.addVariable(lb=0, ub=longest)
    length = {x: p.lengths[x[0]][x[1]] for x in p.passes()}
    for a, b, between in p.precedences():
        solver.addConstr(begin[b] >= begin[a] + length[a] + between)
    for x in p.passes():
        solver.addConstr(makespan >= begin[x] + length[x])
    behind = {}
    for a, b, _ in p.precedences():
        behind.setdefault(a, set()).add(b)

    def follows(a):
        seen, todo = set(), [a]
        while todo:
            for b in behind.get(todo.pop(), ()):
                if b not in seen:
                    seen.add(b)
                    todo.append(b)
        return seen
    after = {x: follows(x) for x in p.passes()}
    for d in range(p.devices):
        own = [x for x in p.passes() if x[0] == d]
        for i, a in enumerate(own):
            for b in own[:i]:
                if a in after[b] or b in after[a]:
                    continue
                first = solver.addBinary()
                solver.addConstr(begin[b] >= begin[a] + length[a] - longest * (1 - first))
                solver.addConstr(begin[a] >= begin[b] + length[b] - longest * first)
    start = time.monotonic()
    solver.minimize(makespan)
    seconds = time.monotonic() - start
    info = solver.getInfo()
    optimal = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    found = info.primal_solution_status == 2
    made = info.objective_function_value if found else None
    # Without a binary variable it is a linear program, whose bound is its optimum.
    return Answer(made, made if optimal else info.mip_dual_bound, optimal, seconds)


def problems(sizes: list[str]) -> list[Problem]:
    all_of_them = []
    for size in sizes:
        devices, micro_batches = (int(n) for n in size.split("x"))
        for seed in (0, 1, 2):
            draw = random.Random(f"{size} {seed}")
            lengths = [tuple(draw.randint(50, 150) if seed else 1 for _ in KINDS) for _ in range(devices)]
            for room in sorted({max(1, devices // 2), devices}):
                all_of_them.append(Problem(devices, micro_batches, room, 5 if seed else 0, lengths,
                                           f"unequal {seed}" if seed else "equal"))
    return all_of_them


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="bazel-bin/experiments/pipelab")
    parser.add_argument("--sizes", default="2x4,3x6,4x8,8x16,8x32", help="devices x micro-batches, separated by commas")
    parser.add_argument("--time_limit", type=float, default=20, help="seconds for each solver and problem")
    parser.add_argument("--highs_passes", type=int, default=60, help="HiGHS gets problems of at most so many passes")
    options = parser.parse_args()

    systems = {"pipelab": lambda p: pipelab(options.binary, p, options.time_limit),
               "CP-SAT": lambda p: cp_sat(p, options.time_limit),
               "HiGHS": lambda p: highs(p, options.time_limit)}
    print(f"time limit {options.time_limit:g} s; time units: 1 for equal times, else 50 to 150 a pass")
    print(f"{'problem':32}" + "".join(f"{name + ': order, bound, s':>34}" for name in systems))
    gaps: dict[str, list[float]] = {name: [] for name in systems}
    ratios = []
    for p in problems(options.sizes.split(",")):
        answers, line = {}, f"{p.name:32}"
        for name, solve in systems.items():
            if name == "HiGHS" and len(p.passes()) > options.highs_passes:
                line += f"{'too large':>34}"
                continue
            a = answers[name] = solve(p)
            made = "none" if a.makespan is None else f"{a.makespan:.0f}"
            line += f"{made + ', ' + format(a.bound, '.0f') + ', ' + format(a.seconds, '.2f'):>34}"
            gaps[name].append(100.0 if a.makespan is None else 100 * (1 - a.bound / a.makespan))
        print(line, flush=True)
        # Whoever proves an order optimal must agree with everybody else's order and bound.
        best = min(a.makespan for a in answers.values() if a.makespan is not None)
        most = max(a.bound for a in answers.values())
        if most > best + 0.5:
            raise SystemExit(
                f"{p.name}: a bound of {most:g} is above an order of {best:g}: somebody is wrong")
        both = [answers[n] for n in ("pipelab", "CP-SAT")]
        if all(a.optimal for a in both):
            ratios.append(both[1].seconds / both[0].seconds)
    for name in systems:
        if gaps[name]:
            print(f"{name}: {len(gaps[name])} problems, gap to its own bound {statistics.median(gaps[name]):.2f} % in the "
                  f"median, {max(gaps[name]):.2f} % at most, proven optimal {sum(g < 1e-6 for g in gaps[name])}")
    if ratios:
        print(f"where both prove it: CP-SAT takes {statistics.median(ratios):.1f} times pipelab's time in the median "
              f"of {len(ratios)}")


if __name__ == "__main__":
    main()
