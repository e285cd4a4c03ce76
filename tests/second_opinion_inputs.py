"""Random inputs for second_opinion_test.py: schedules, costs, models. The same for a seed on every machine."""
import collections
import copy

from second_opinion import Action, Order, is_weighable

PER_STAGE = ["forward", "backward_input", "backward_weight", "recompute_time"]


def quarters(rng, most=12):
    return rng.choice([1, 1, 2, rng.randint(0, most) / 4])


def draw_costs(rng, o):
    """Options of `simulate` that suit the schedule; none where weights travel and passes wait for them."""
    costs = {}
    if "weights_travel" in o.data:
        return costs
    for name in PER_STAGE:
        if rng.random() < 0.6 and (name != "recompute_time" or o.recomputes):
            costs[name] = [quarters(rng) for _ in range(rng.choice([1, o.stages]))]
    if rng.random() < 0.3:
        costs["device_speed"] = [rng.choice([0.5, 1, 1, 2, 4]) for _ in range(rng.choice([1, o.devices]))]
    if rng.random() < 0.5:
        costs["p2p_latency"] = [quarters(rng, 4)]
    if rng.random() < 0.5 and o.edges:
        costs["bytes"] = [rng.randint(0, 8) * 144 for _ in range(rng.choice([1, len(o.edges)]))]
        costs["bandwidth"] = [rng.choice([48, 96, 192, 384])]
        if o.devices > 1 and rng.random() < 0.4:
            costs["links"] = draw_links(rng, o.devices)
    if rng.random() < 0.3:
        costs["overlap"] = False
    if rng.random() < 0.2:
        costs["atomic_pairs"] = True
    if is_weighable(o, costs) and rng.random() < 0.4:
        for name in ("activation_bytes", "weights", "workspace"):
            costs[name] = [rng.randint(0, 9) * 144 for _ in range(rng.choice([1, o.stages]))]
    apart = all(g == h or not set(g) & set(h) for g in o.groups[0] for h in o.groups[0])
    if rng.random() < 0.2 and len(o.groups) == 1 and apart and "links" not in costs:
        costs["step"] = [quarters(rng) for _ in range(rng.choice([1, o.stages]))]
        costs["reduce"] = [quarters(rng)]
    if rng.random() < 0.1 and set(o.size) == {1} and not any(e.carries for e in o.edges) and "replay" not in o.data:
        costs["arrivals"] = [rng.randint(1, 12) / 4]
    return costs


def draw_links(rng, devices):
    links = [{"name": f"l{i}", **({"latency": quarters(rng, 4)} if rng.random() < 0.5 else {}),
              **({"bandwidth": rng.choice([48, 96, 144])} if rng.random() < 0.8 else {})} for i in range(3)]
    paths = [{"from": a, "to": b, "links": rng.sample(["l0", "l1", "l2"], rng.randint(0, 3))}
             for a in range(devices) for b in range(devices) if a != b and rng.random() < 0.7]
    return {"links": links, "paths": paths or [{"from": 0, "to": 1, "links": ["l0"]}]}


def draw_stages(rng, shape):
    """Stages on random devices, without an order."""
    devices, stages, count = rng.randint(1, 4), rng.randint(1, 5), rng.randint(1, 5)
    data = {"micro_batches": 4 if shape == "sizes" else count}
    groups = [[[rng.randrange(devices)] for _ in range(stages)] for _ in range(2 if shape == "replicas" else 1)]
    if shape == "groups":
        groups = [[sorted(rng.sample(range(devices), rng.choice([1, (devices + 1) // 2, devices])))
                   for _ in range(stages)]]
    used = sorted({d for r in groups for g in r for d in g})
    data["devices"] = len(used)
    data["stage_to_device"] = [[[used.index(d) for d in g] for g in r] for r in groups]
    if shape == "graph" or shape == "sizes" and rng.random() < 0.5:
        data["edges"] = sorted({(e, s) for s in range(1, stages)
                                for e in rng.sample(range(s), rng.randint(1, min(s, 2)))})
    if shape == "sizes":
        data["stage_micro_batches"] = [4] + [rng.choice([1, 2, 4]) for _ in range(stages - 1)]
    if shape == "slices":
        data["slices"] = rng.randint(2, 4)
    if shape == "late":
        lags = [[], ["none"], [1]] + ([[2]] if count > 1 else [])
        data["edges"] = [[s, s + 1] + rng.choice(lags) for s in range(stages - 1)]
    return data


def graph_flags(data, rng):
    """Such stages as options of the scheme `graph`, which has no device in two groups."""
    stages = len(data["stage_to_device"][0])
    groups = [rng.choice([1, 1, 2]) for _ in range(stages)]
    edges = ",".join(f"{a}-{b}" for a, b in data.get("edges", [(s, s + 1) for s in range(stages - 1)]))
    counts = ",".join(map(str, data.get("stage_micro_batches", [data["micro_batches"]] * stages)))
    return {"devices": sum(groups), "micro_batches": data["micro_batches"], "stage_micro_batches": counts,
            "stage_devices": ",".join(map(str, groups)), **({"edges": edges} if edges else {})}


def draw_order(rng, shapes=("plain", "plain", "replicas", "graph", "groups", "sizes", "slices", "late")):
    """A random order of passes on random devices, in which each comes behind what it needs."""
    data = draw_stages(rng, rng.choice(shapes))
    o = Order({**data, "order": [[] for _ in range(data["devices"])]})
    o.replica_of = {m: rng.randrange(len(o.groups)) for m in range(o.count)}
    o.recomputes = {s for s in range(o.stages) if rng.random() < 0.15}
    offloads = {s for s in range(o.stages) if rng.random() < 0.1} - o.recomputes
    waiting, done, eager = [], collections.Counter(), rng.choice([0, 0.5, 0.9])
    backwards = rng.choice([["B"], ["IW"], ["B", "IW"]])
    for s in range(o.stages):
        for m in range(o.count // o.size[s]):
            kinds = "FR" if s in o.recomputes else "FOL" if s in offloads else "F"
            kinds += rng.choice(backwards)
            waiting += [(d, [Action(k, s, m, o.replica_of[m * o.size[s]], part) for k in kinds])
                        for d in o.group(s, m) for part in range(o.slices)]
    while waiting:
        ready = [w for w in waiting if all(done[e] == len(o.group(e[1], e[2])) for e in o.wants(w[1][0]))]
        late = [w for w in ready if w[1][0].kind != "F"]
        device, cell = rng.choice(late if late and rng.random() < eager else ready)
        done[cell[0].event()] += 1
        o.order[device].append(cell.pop(0))
        waiting = [w for w in waiting if w[1]]
    return {**data, "order": [[list(a)[:5] for a in row] for row in o.order]}


def is_simple(data):
    """Whether cells of PyTorch's CSV form can say it."""
    kinds = {a[0] for row in data["order"] for a in row}
    return not ({"edges", "stage_micro_batches", "slices"} & set(data) or kinds & set("OLS")) and all(
        len(g) == 1 for r in data["stage_to_device"] for g in r)


def as_csv(data):
    return "".join(",".join(f"{a[1]}{a[0]}{a[2]}" for a in row) + "\n" for row in data["order"])


def break_order(rng, data):
    data = copy.deepcopy(data)
    row = rng.choice([row for row in data["order"] if row])
    i, j = rng.randrange(len(row)), rng.randrange(len(row))
    change = rng.choice(["swap", "swap", "move", "drop", "double", "kind"])
    if change == "swap":
        row[i], row[j] = row[j], row[i]
    elif change == "move":
        row.insert(j, row.pop(i))
    elif change == "drop":
        row.pop(i)
    elif change == "double":
        row.insert(j, row[i])
    else:
        row[i][0] = rng.choice("FBIWR")
    return data


def draw_model(rng):
    """A chain of layers, cut into stages of a random order, on a small cluster: us, kB and thousands of parameters."""
    data = {"order": [[["R"]]]}
    while {"R", "O"} & {a[0] for row in data["order"] for a in row}:
        data = draw_order(rng, ["plain"])
    last = len(data["stage_to_device"][0]) - 1
    for row in data["order"]:  # The head's weight part need not be part of W.
        row[:] = [["B", *a[1:]] if a[:2] == ["I", last] else a for a in row if a[:2] != ["W", last]]
    cut = [rng.choice([1, 1, 2]) for _ in range(last + 1)]
    layers = [{"fixed": rng.randint(0, 40), "forward": rng.randint(0, 40), "backward_input": rng.randint(0, 40),
               "backward_weight": rng.randint(0, 40), "output": rng.randint(1, 9), "kept": rng.randint(0, 9),
               "parameters": rng.randint(0, 4)} for _ in range(sum(cut))]
    layers[-1].update(output=0, parameters=rng.randint(1, 4))
    copies = rng.choice([1, 2, 3, 4])
    return {"data": data, "cut": cut, "layers": layers, "copies": copies, "samples": rng.randint(1, 3),
            "sharing": "pair" if copies > 1 else rng.choice(["pair", "device"]), "latency": rng.randint(0, 9),
            "bandwidth": rng.choice([50, 100, 200])}


def model_files(case):
    """The files of layers and of the cluster."""
    layers = []
    for i, x in enumerate(case["layers"]):
        time = {"forward": {"fixed": f"{x['fixed']} us", "per_sample": f"{x['forward']} us"},
                "backward_input": f"{x['backward_input']} us", "backward_weight": f"{x['backward_weight']} us"}
        layers.append({"name": f"l{i}", "time": time, "kept": f"{x['kept']} kB", "parameters": 1000 * x["parameters"],
                       **({"inputs": [f"l{i - 1}"]} if i else {}),
                       **({"output": f"{x['output']} kB"} if x["output"] else {})})
    curve = {"points": [["1 Mflop", 1.0]], "source": "made up"}
    device = {"peaks": {"fp32": "1 Tflop/s"}, "memory": "8 GB", "memory_bandwidth": "1 GB/s", "launch_overhead": "0 s",
              "arithmetic": {x: curve for x in ("matmul", "convolution", "attention")},
              "memory_efficiency": {"points": [["1 kB", 1.0]], "source": "made up"}}
    level = {"size": 64, "sharing": case["sharing"], "latency": f"{case['latency']} us",
             "bandwidth": f"{case['bandwidth']} MB/s"}
    return {"name": "m", "layers": layers}, {"name": "c", "device": device, "levels": [level]}
