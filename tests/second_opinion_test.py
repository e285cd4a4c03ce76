#!/usr/bin/env python3
"""Random valid inputs at the command line, judged by a second implementation (second_opinion.py).

Schedules of every scheme, and random orders of its own, go through `schedule`, `check` and `simulate`; models through
`simulate`; small graphs through `plan`, against all plans that there are. A mismatch prints the command and both
values, of an input made as small as possible, and the exit code is then 1.

  second_opinion_test.py PIPELAB       PIPELAB_CASES=5000 PIPELAB_SEED=7: more cases, other ones
"""
import collections
import json
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
import second_opinion_inputs as inputs
import second_opinion_plans as plans
from second_opinion import Order, figures, is_weighable, memory

PIPELAB = os.path.abspath(sys.argv[1])
CASES, SEED = int(os.environ.get("PIPELAB_CASES", "150")), int(os.environ.get("PIPELAB_SEED", "1"))
FOLDER = tempfile.TemporaryDirectory()
BYTES = ["bytes", "bandwidth", "activation_bytes", "weights", "workspace"]


class Refused(Exception):
    """The command says in a line that it does not take this input."""


def run(words, expected=(0,)):
    done = subprocess.run([PIPELAB] + words, cwd=FOLDER.name, capture_output=True, text=True, timeout=100, check=False)
    if done.returncode in (1, 2) and len(done.stderr.splitlines()) == 1:
        raise Refused(done.stderr.strip())
    if done.returncode not in expected:
        raise AssertionError(f"exit code {done.returncode}: {done.stderr[-300:]}")
    return done.stdout


def write(name, content):
    with open(os.path.join(FOLDER.name, name), "w", encoding="utf-8") as file:
        file.write(content if isinstance(content, str) else json.dumps(content))
    return name


def read(name):
    with open(os.path.join(FOLDER.name, name), encoding="utf-8") as file:
        return file.read()


def flags(costs):
    """Costs as options of `simulate`."""
    words = []
    for name, value in costs.items():
        if name == "links":
            links = [{k: (f"{v}B" if k == "bandwidth" else v) for k, v in x.items()} for x in value["links"]]
            value = [write("links.json", {"links": links, "paths": value["paths"]})]
        unit = "B" if name in BYTES else ""
        words.append(f"--{name}=" + (",".join(f"{x}{unit}" for x in value) if isinstance(value, list) else
                                     str(value).lower()))
    return words


def differences(ours, theirs, near, path=""):
    if isinstance(ours, dict):
        theirs = theirs if isinstance(theirs, dict) else {}
        return [x for k in ours for x in differences(ours[k], theirs.get(k), near, f"{path}.{k}" if path else k)]
    if isinstance(ours, list):
        if not isinstance(theirs, list) or len(ours) != len(theirs):
            return [f"{path}: {theirs}, here {ours}"]
        return [x for i, (a, b) in enumerate(zip(ours, theirs)) for x in differences(a, b, near, f"{path}[{i}]")]
    if ours == theirs:
        return []
    numbers = isinstance(ours, (int, float)) and isinstance(theirs, (int, float))
    if numbers and abs(ours - theirs) <= near * max(1, abs(ours)):
        return []
    return [f"{path}: {theirs}, here {ours}"]


def compared(words, ours, theirs, near):
    """What a command's JSON says otherwise, behind the command; None if nothing."""
    wrong = differences(ours, theirs, near)
    return f"pipelab {' '.join(words)}\n    " + "\n    ".join(wrong[:4]) if wrong else None


def simulated(words, o, costs):
    ours, words = figures(o, costs), ["simulate"] + words + flags(costs)
    if is_weighable(o, costs) and set(costs) & {"activation_bytes", "weights", "workspace"}:
        ours["devices"] = [{**a, **b} for a, b in zip(ours["devices"], memory(o, costs))]
    rounded = set(costs) & {"bytes", "links", "device_speed"}  # A unit has a million parts at least.
    wrong = compared(words, ours, json.loads(run(words + ["--json_out=-"])), 1e-4 if rounded else 1e-9)
    if wrong and rounded and is_on_edge(o, costs):
        EDGES.append(words)
        return None
    return wrong


EDGES = []  # cases that rounding decides


def is_on_edge(o, costs):
    """Whether latencies that differ by a part of a million change our own figures as much: messages that begin in
    another order share links in another way."""
    ours = figures(o, costs)
    for part in (-1e-6, 1e-6):
        other = {**costs, "p2p_latency": [x * (1 + part) for x in costs.get("p2p_latency", [])]}
        if other["p2p_latency"] and differences(ours, figures(o, other), 1e-5):
            return True
    return False


# Checks: of a case, None or what is wrong.


KEYS = {"devices": "P", "micro_batches": "M", "virtual_stages": "V", "group_size": "group", "update_interval": "update"}


def scheme_words(case):
    return [case["scheme"]] + [f"--{k}={v}" for k, v in case["sizes"].items()]


def check_scheme(case):
    words = scheme_words(case)
    o = Order(json.loads(run(["schedule"] + words + ["--format=json"])))
    fault = o.fault()
    if fault:
        return f"pipelab schedule {' '.join(words)} --format=json\n    not valid: {fault}"
    if case["word"]:  # a configuration instead of flags
        sizes = {KEYS.get(k, k): "full" if k == "recompute" else v for k, v in case["sizes"].items()}
        words = [case["scheme"] + ":" + ",".join(f"{k}={v}" for k, v in sizes.items())]
    return simulated(words, o, case["costs"])


def check_order(case):
    name = write("own.csv", inputs.as_csv(case["data"])) if case["csv"] else write("own.json", case["data"])
    return simulated([name], Order(case["data"]), case["costs"])


def check_broken(case):
    ours, words = Order(case["data"]).fault(), ["check", "--json=" + write("own.json", case["data"])]
    theirs = json.loads(run(words, (0, 1)))
    same = (ours is None) == theirs["valid"]
    return None if same else f"pipelab {' '.join(words)}\n    {theirs}, here {ours or 'valid'}"


def check_round_trip(case):
    """The forms of a schedule, one made of the other, are the same schedule."""
    form, name, told = "json", write("own.json", case["data"]), set()
    for to in ["json", "text"] + (["csv"] if inputs.is_simple(case["data"]) else []) + ["text", "json"]:
        words = ["schedule", f"--{form}={name}", f"--format={to}", f"--out=made.{to}"]
        run(words)
        form, name = to, f"made.{to}"
        told.add(run(["simulate", f"--{form}={name}", "--p2p_latency=0.5", "--json_out=-"]))
    ours, theirs = Order(case["data"]).order, Order(json.loads(read("made.json"))).order
    cells = [[[(a.event(), a.kind) for a in row] for row in order] for order in (ours, theirs)]
    same = len(told) == 1 and cells[0] == cells[1]
    return None if same else f"pipelab {' '.join(words)}\n    not the schedule of own.json any more"


def spread(data, copies):
    """Each device becomes so many that share its rows."""
    groups = [[g[0] * copies + i for i in range(copies)] for g in data["stage_to_device"][0]]
    return Order({**data, "devices": data["devices"] * copies, "stage_to_device": [groups],
                  "order": [row for row in data["order"] for _ in range(copies)]})


def model_costs(case, copies):
    """Of `copies` devices that share each stage, in ms and bytes: options of `simulate`, as it were."""
    cut, samples = case["cut"], case["samples"]
    parts = [case["layers"][sum(cut[:s]):sum(cut[:s + 1])] for s in range(len(cut))]

    def times(name):
        fixed = "fixed" if name == "forward" else "none"
        return [copies * sum(x.get(fixed, 0) + samples * x[name] for x in part) / 1000 for part in parts]

    def size(name, unit):
        return [unit * sum(x[name] for x in part) for part in parts]
    sent, kept = [1000 * samples * part[-1]["output"] for part in parts], size("kept", 1000 * samples)
    # A layer's weight part needs its inputs, what it keeps and its output's gradient (layer_list.h).
    later = [(a + b + c) * (n > 0) for a, b, c, n in zip([0] + sent, kept, sent, size("parameters", 1))]
    costs = {**{x: times(x) for x in ("forward", "backward_input", "backward_weight")},
             "bytes": [copies * x for x in sent[:-1]] or [0], "activation_bytes": [copies * x for x in kept],
             "kept_for_weight": [copies * x for x in later], "weights": size("parameters", 4000),
             "step": size("parameters", 0.028), "eager": True,  # Adam reads and writes 28 bytes a parameter
             "p2p_latency": [case["latency"] / 1000], "bandwidth": [case["bandwidth"] * 1000]}
    if case["sharing"] == "device":  # a port out and a port in
        ports = [{"name": f"{way}{d}", "bandwidth": costs["bandwidth"][0],
                  "latency": costs["p2p_latency"][0] if way == "out" else 0}
                 for way in ("out", "in") for d in range(case["data"]["devices"])]
        paths = [{"from": a, "to": b, "links": [f"out{a}", f"in{b}"]}
                 for a in range(len(ports) // 2) for b in range(len(ports) // 2) if a != b]
        costs["links"] = {"links": ports, "paths": paths}
    return costs


def check_model(case):
    copies, data = case["copies"], case["data"]
    ours = figures(spread(data, copies), model_costs(case, copies))
    ours["devices"] = ours["devices"][::copies]
    ours["step_ms"] = ours["makespan"]
    ours["samples_per_second"] = 1000 * case["samples"] * data["micro_batches"] * copies / ours["makespan"]
    members = copies if copies % 2 else 2  # that represent all
    held = memory(spread(data, members), model_costs(case, members))[::members]
    stages = list(zip(data["stage_to_device"][0], model_costs(case, copies)["weights"]))
    for d, device in enumerate(ours["devices"]):
        device["collective_bytes"] = sum(2 * (copies - 1) * weights // copies for g, weights in stages if g == [d])
        device["peak_state_bytes"] = held[d]["peak_state_bytes"]
        if max(case["cut"]) == 1:  # else a backward's peak is within it
            device["peak_activation_bytes"] = held[d]["peak_activation_bytes"]
    model, cluster = inputs.model_files(case)
    sizes = f"D={copies},b={case['samples']},layout={'+'.join(map(str, case['cut']))}"
    words = ["simulate", write("own.json", data) + ":" + sizes, "--model=" + write("model.json", model),
             "--cluster=" + write("cluster.json", cluster)]
    return compared(words, ours, json.loads(run(words + ["--json_out=-"])), 1e-5)


def check_plan(case):
    option, content = next(iter(case["files"].items()))
    words = ["plan", f"--planner={case['planner']}", f"--{option}={write('graph.json', content)}", *case["words"]]
    told = json.loads(run(words + ["--json_out=-"], (0, 1)))
    if case["best"] == float("inf"):
        return compared(words, {"state": "infeasible", "objective": {"value": None}}, told, 0)
    wrong = compared(words, {"state": "optimal", "objective": {"value": case["best"]}}, told, 1e-9)
    if wrong:
        return wrong
    judge = ["check_plan", "--plan=" + write("plan.json", told), *words[2:]]
    ours = {"valid": True, "value": case["best"]}
    return compared(judge, ours, json.loads(run(judge + ["--json_out=-"], (0, 1))), 1e-9)


def draw_scheme(rng):
    """None if the scheme does not take the sizes."""
    sizes = {"devices": rng.randint(1, 6), "micro_batches": rng.randint(1, 10)}
    for name, values, chance in [
            ("virtual_stages", (1, 2, 3), 0.3), ("recompute", ("true",), 0.1), ("group_size", (1, 2, 3, 4, 5), 0.1),
            ("replicas", (2, 4), 0.1), ("slices", (1, 2, 3), 0.1), ("update_interval", (1, 2, 4), 0.1),
            ("concatenation", ("forward_doubling", "backward_halving"), 0.05), ("data_parallel", (2, 4), 0.15)]:
        if rng.random() < chance:
            sizes[name] = rng.choice(values)
    scheme = rng.choice(SCHEMES)
    if scheme == "graph":
        shape = rng.choice(["graph", "sizes", "groups"])
        sizes.update(inputs.graph_flags(inputs.draw_stages(rng, shape), rng))
    word = "data_parallel" not in sizes and scheme != "graph" and rng.random() < 0.3
    case = {"check": check_scheme, "scheme": scheme, "sizes": sizes, "costs": {}, "word": word}
    try:
        o = Order(json.loads(run(["schedule"] + scheme_words(case) + ["--format=json"])))
    except Refused:
        return None
    return {**case, "costs": inputs.draw_costs(rng, o)}


def draw_case(rng):
    kind = rng.choice(["scheme", "scheme", "order", "order", "order", "broken", "trip", "model", "plan"])
    if kind == "scheme":
        return draw_scheme(rng)
    if kind == "plan":
        return {"check": check_plan, **plans.draw_plan(rng)}
    if kind == "model":
        return {"check": check_model, **inputs.draw_model(rng)}
    data = inputs.draw_order(rng)
    if kind == "trip":
        return {"check": check_round_trip, "data": data}
    if kind == "broken":
        return {"check": check_broken, "data": inputs.break_order(rng, data)}
    costs = inputs.draw_costs(rng, Order(data))
    csv = inputs.is_simple(data) and (len(data["stage_to_device"]) == 1 or "weights" not in costs)
    return {"check": check_order, "data": data, "costs": costs, "csv": csv and rng.random() < 0.5}


def smaller(case):
    """The case with less in it, in several ways."""
    for name in list(case.get("costs", {})):
        yield {**case, "costs": {k: v for k, v in case["costs"].items() if k != name}}
        if isinstance(case["costs"][name], list) and len(case["costs"][name]) > 1:
            yield {**case, "costs": {**case["costs"], name: case["costs"][name][:1]}}
    for name, value in case.get("sizes", {}).items():
        if isinstance(value, int) and value > 1:
            yield {**case, "sizes": {**case["sizes"], name: value - 1}}
        if name not in ("devices", "micro_batches"):
            yield {**case, "sizes": {k: v for k, v in case["sizes"].items() if k != name}}
    data = case.get("data", {})
    if data.get("micro_batches", 1) > 1 and "stage_micro_batches" not in data:
        for m in range(data["micro_batches"]):
            order = [[[*a[:2], a[2] - (a[2] > m), *a[3:]] for a in row if a[2] != m] for row in data["order"]]
            yield {**case, "data": {**data, "order": order, "micro_batches": data["micro_batches"] - 1}}


def judge(case):
    try:
        return case["check"](case)
    except Refused as refused:
        return f"refused: {refused}"
    except (AssertionError, IndexError, KeyError) as fault:
        return repr(fault)


def minimised(case, wrong):
    """The smallest case like it that is still wrong in the same way, and what is wrong there."""
    for less in smaller(case):
        if "data" in less and less["check"] != check_broken and Order(less["data"]).fault():
            continue
        try:
            still = less["check"](less)
        except (Refused, AssertionError, IndexError):
            continue
        if still:
            return minimised(less, still)
    return case, wrong


def main():
    rng, drawn, failures = random.Random(SEED), collections.Counter(), 0
    while sum(drawn.values()) - drawn["refused"] < CASES:
        case = draw_case(rng)
        drawn[case["check"].__name__ if case else "refused"] += 1
        wrong = case and judge(case)
        if wrong:
            failures += 1
            case, wrong = minimised(case, wrong)
            rest = {k: v for k, v in case.items() if k != "check"}
            print(f"FAILED: {wrong}\n    {json.dumps(rest)}", flush=True)
    print(", ".join(f"{n} {name}" for name, n in sorted(drawn.items())) + f", {failures} mismatches, "
          f"{len(EDGES)} cases that rounding decides")
    return 1 if failures or len(EDGES) > 1 + CASES // 1000 else 0


SCHEMES = [line.split()[0] for line in run(["list", "schemes"]).splitlines()[2:] if line.strip()]
sys.exit(main())
