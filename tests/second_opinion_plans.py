"""The best of all plans of small graphs, by the formulas of docs/planning.md (second_opinion_test.py).

A problem is an input file's content. A plan is a sequence of stages in which every edge goes on, with copies of each.
"""
import itertools
import math

OPTIONS = {"pipedream": "pipedream_profile", "max_load": "dnn_partitioning_json"}  # of the others: piper_json


def sequences(nodes, edges, most):
    """All ways to divide nodes into at most so many stages, each behind those that it needs."""
    if not nodes:
        yield []
    elif most:
        for n in range(1, len(nodes) + 1):
            for stage in itertools.combinations(nodes, n):
                rest = [x for x in nodes if x not in stage]
                if not any(a in rest and b in stage for a, b in edges):
                    for later in sequences(rest, edges, most - 1):
                        yield [stage] + later


def cuts(nodes, most, least=1):
    """The same of nodes in line."""
    for n in range(least, min(most, len(nodes)) + 1):
        for ends in itertools.combinations(range(1, len(nodes)), n - 1):
            yield [tuple(nodes[a:b]) for a, b in zip((0, *ends), (*ends, len(nodes)))]


def copies_of(count, devices, choices):
    """All numbers of copies of so many stages on the devices."""
    if count == 0:
        yield []
        return
    for d in (d for d in choices if d <= devices - count + 1):
        for later in copies_of(count - 1, devices - d, choices):
            yield [d] + later


def stage_time(problem, stage, d, in_flight):
    """Piper: the least time of a stage's variants that fit into memory, and its peak; infinite if none does."""
    variants = [problem["nodes"][i]["TMPCs"]["1"] for i in stage]
    border = sum(e["communicationCost"] for e in problem["edges"] if (e["sourceId"] in stage) != (e["destId"] in stage))
    best = (math.inf, math.inf)
    for chosen in itertools.product(*variants):
        peak = sum(v["memoryUsageB"] + in_flight * v["memoryUsageA"] for v in chosen)
        weights = sum(v["parameterSize"] for v in chosen)
        time = sum(v["timePerSample"] for v in chosen) / d + (
            2 * border / d + 4 * (d - 1) * weights / (d * problem["mbsInBatch"])) / problem["bandwidth"]
        if peak <= problem["maxMemoryPerDevice"]:
            best = min(best, (time, peak))
    return best[0]


def piper(problem, stages, copies):
    return max(stage_time(problem, s, d, math.ceil(sum(copies[i:]) / d))
               for i, (s, d) in enumerate(zip(stages, copies)))


def best_piper(problem):
    divisors = [d for d in range(1, problem["maxDevices"] + 1) if problem["mbsInBatch"] % d == 0]
    edges = [(e["sourceId"], e["destId"]) for e in problem["edges"]]
    most = min(problem["maxDevices"], problem["mbsInBatch"])  # copies of all stages: check_rules.cc
    return min(piper(problem, stages, copies)
               for stages in sequences([n["id"] for n in problem["nodes"]], edges, most)
               for copies in copies_of(len(stages), most, divisors))


def plain(problem):
    """Without recomputing."""
    nodes = [{**n, "TMPCs": {"1": n["TMPCs"]["1"][:1]}} for n in problem["nodes"]]
    return {**problem, "nodes": nodes}


def best_chain(problem):
    nodes = [n["id"] for n in problem["nodes"]]
    return min(piper(plain(problem), stages, [1] * len(stages)) for stages in cuts(nodes, problem["maxDevices"]))


def best_gpipe(problem):
    """The least variance of as many stages as devices. (Which of two equal plans must fit into memory is not said.)"""
    problem["maxMemoryPerDevice"], variances = 1000, []
    nodes, count = [n["id"] for n in problem["nodes"]], min(problem["maxDevices"], len(problem["nodes"]))
    for stages in cuts(nodes, count, count):
        times = [sum(problem["nodes"][i]["TMPCs"]["1"][0]["timePerSample"] for i in s) for s in stages]
        variances.append(sum((x - sum(times) / count) ** 2 for x in times) / count)
    return min(variances)


def best_pipedream(layers, devices, bandwidth):
    """Layers in line, of (time, output, parameters) each, on machines of one network level."""
    def time(stage, m):
        compute, weights = sum(layers[i][0] for i in stage), sum(layers[i][2] for i in stage)
        moved = [layers[i][1] for i in (stage[0] - 1, stage[-1]) if stage[0] > 0 and i + 1 < len(layers)]
        return max((compute + 4 * (m - 1) * weights / (bandwidth * m)) / m, 2 * max(moved, default=0) / (bandwidth * m))
    # The output of the first stage counts as the second one's input alone (pipedream_plan.cc).
    return min(max(map(time, stages, copies)) for stages in cuts(range(len(layers)), devices)
               for copies in copies_of(len(stages), devices, range(1, devices + 1)))


def best_max_load(problem):
    """The least largest load of accelerators, each with one transfer of an output over its border, and processors."""
    nodes, edges = {n["id"]: n for n in problem["nodes"]}, [(e["sourceId"], e["destId"]) for e in problem["edges"]]
    cost, best = {e["sourceId"]: e["cost"] for e in problem["edges"]}, math.inf

    def accelerator(stage):
        if not all(nodes[i]["supportedOnFpga"] for i in stage) or \
                sum(nodes[i]["size"] for i in stage) > problem["maxSizePerFPGA"]:
            return math.inf
        moved = {a for a, b in edges if (a in stage) != (b in stage)}
        return sum(nodes[i]["fpgaLatency"] for i in stage) + sum(cost[i] for i in moved)
    most = problem["maxFPGAs"] + problem["maxCPUs"]
    for stages in sequences(list(nodes), edges, most):
        fast, slow = [accelerator(s) for s in stages], [sum(nodes[i]["cpuLatency"] for i in s) for s in stages]
        for on in itertools.product((True, False), repeat=len(stages)):
            if sum(on) <= problem["maxFPGAs"] and len(on) - sum(on) <= problem["maxCPUs"]:
                best = min(best, max(f if x else c for x, f, c in zip(on, fast, slow)))
    return best


def draw_plan(rng):
    """A small graph for a planner, in line for those that take no other, and the value of the best plan."""
    planner = rng.choice(["piper", "chain", "gpipe", "pipedream", "max_load"])
    count, devices = rng.randint(1, 5), rng.randint(1, 4)
    edges = [(i, i + 1) for i in range(count - 1)]
    if planner in ("piper", "max_load") and rng.random() < 0.7:
        edges = [(a, b) for b in range(count) for a in range(b) if rng.random() < 0.5]
    if planner == "pipedream":
        layers = [(rng.randint(1, 40) / 1000, rng.randint(0, 50) * 1000, rng.randint(0, 50) * 1000)
                  for _ in range(count)]
        words, content = [f"--devices={devices}", "--bandwidth=1000000"], profile(layers, edges)
        best = best_pipedream(layers, devices, 1e6)
    elif planner == "max_load":
        words, content = [], draw_placement(rng, count, devices, edges)
        best = best_max_load(content)
    else:
        words, content = [], draw_piper(rng, count, devices, edges)
        best = {"piper": best_piper, "chain": best_chain, "gpipe": best_gpipe}[planner](content)
    return {"planner": planner, "words": words, "files": {OPTIONS.get(planner, "piper_json"): content}, "best": best}


def profile(layers, edges):
    """PipeDream's form: milliseconds, a quarter of them the forward's."""
    lines = [f"node{i} -- Layer -- forward_compute_time={time * 250}, backward_compute_time={time * 750}, "
             f"activation_size={out}, parameter_size={weights}" for i, (time, out, weights) in enumerate(layers)]
    return "\n".join(lines + [f"\tnode{a} -- node{b}" for a, b in edges]) + "\n"


def draw_placement(rng, count, devices, edges):
    """In the form of dnn-partitioning."""
    costs = [rng.randint(0, 9) / 4 for _ in range(count)]
    nodes = [{"id": i, "name": f"n{i}", "supportedOnFpga": rng.random() < 0.9, "cpuLatency": rng.randint(0, 60),
              "fpgaLatency": rng.randint(0, 40) / 4, "isBackwardNode": False, "size": rng.randint(0, 6)}
             for i in range(count)]
    return {"maxSizePerFPGA": rng.choice([6, 12, 100]), "maxFPGAs": devices, "maxCPUs": rng.randint(0, 2),
            "nodes": nodes, "edges": [{"sourceId": a, "destId": b, "cost": costs[a]} for a, b in edges]}


def draw_piper(rng, count, devices, edges):
    """In Piper's form, of tensor degree 1, where some layers may recompute."""
    nodes = []
    for i in range(count):
        vanilla = {"id": "vanilla", "timePerSample": rng.randint(1, 40) / 1000, "parameterSize": rng.randint(0, 40),
                   "memoryUsageA": rng.randint(0, 20), "memoryUsageB": rng.randint(0, 30),
                   "syncTimeFw": {str(a): 0 for a, b in edges if b == i},
                   "syncTimeBw": {str(b): 0 for a, b in edges if a == i}}
        again = {**vanilla, "id": "activation recomp", "timePerSample": vanilla["timePerSample"] * 1.25,
                 "memoryUsageA": vanilla["memoryUsageA"] // 4}
        nodes.append({"id": i, "name": f"n{i}", "TMPCs": {"1": [vanilla] + [again] * (rng.random() < 0.5)}})
    return {"maxMemoryPerDevice": rng.choice([60, 120, 1000]), "maxDevices": devices, "bandwidth": 1000,
            "mbsInBatch": rng.choice([1, 2, 4, 6]), "nodes": nodes, "edges": [
                {"sourceId": a, "destId": b, "communicationCost": rng.randint(0, 20)} for a, b in edges]}
