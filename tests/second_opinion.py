"""A second implementation of schedules and their figures, written from the documentation (second_opinion_test.py).

An Order is a schedule in pipelab's JSON form: whether it is valid, what it takes in time (play), how many activations
it holds (in_flight) and how many bytes (memory). Costs are the options of `simulate` by name: lists of numbers.
"""
import collections
import fractions
import heapq


Edge = collections.namedtuple("Edge", "source to lag carries")


class Action(collections.namedtuple("Action", "kind stage m replica slice version", defaults=(0, 0, 0))):
    def event(self):
        """Backwards are alike to the stage before: G is an input gradient, W the weights' part."""
        return ({"B": "G", "I": "G"}.get(self.kind, self.kind), self.stage, self.m, self.slice)


class Order:
    """A schedule in pipelab's JSON form (docs/cli.md), and what must come before each of its actions."""

    def __init__(self, data):
        self.data, self.devices, self.count = data, data["devices"], data["micro_batches"]
        self.groups = [[g if isinstance(g, list) else [g] for g in r] for r in data["stage_to_device"]]
        self.stages, self.slices = len(self.groups[0]), data.get("slices", 1)
        self.forward_only = data.get("forward_only", False)
        self.edges = [Edge(s, s + 1, 0, False) for s in range(self.stages - 1)]
        if "edges" in data:
            lags = [[x for x in e[2:] if x != "carries"] for e in data["edges"]]
            self.edges = [Edge(e[0], e[1], (lag or [0])[0], "carries" in e) for e, lag in zip(data["edges"], lags)]
        counts = data.get("stage_micro_batches") or [self.count] * self.stages
        self.size = [self.count // n for n in counts]  # in smallest micro-batches
        self.order = [[Action(*a) for a in row] for row in data["order"]]
        self.replica_of = {a.m: a.replica for row in self.order for a in row if self.size[a.stage] == 1}
        self.recomputes = {a.stage for row in self.order for a in row if a.kind == "R"}

    def group(self, stage, m):
        return self.groups[self.replica_of.get(m * self.size[stage], 0)][stage]

    def rows(self, stage, m, device):
        """The samples, in smallest micro-batches, that a member of the stage's group has."""
        group = self.group(stage, m)
        share = fractions.Fraction(self.size[stage], len(group))
        return [m * self.size[stage] + share * (group.index(device) + k) for k in (0, 1)]

    def shared(self, stage, m, other):
        """The micro-batches of another stage that have samples of this one's."""
        first = m * self.size[stage]
        return range(first // self.size[other], (first + self.size[stage] - 1) // self.size[other] + 1)

    def sources(self, a):
        """(number of an edge, the neighbour's micro-batch) of each tensor from other stages that a pass takes."""
        for n, e in enumerate(self.edges):
            if a.kind == "F" and e.to == a.stage:
                taken = [self.data["carried"][a.m]] if e.carries else self.shared(a.stage, a.m, e.source)
                yield from ((n, m) for m in taken if m >= 0)
            if a.kind in "BI" and e.source == a.stage and e.lag != "none" and not e.carries and not self.forward_only:
                taken = [a.m - e.lag] if e.lag else self.shared(a.stage, a.m, e.to)
                yield from ((n, m) for m in taken if m >= 0)

    def wants(self, a):
        """Events (F: output, G: input gradient, R: rebuilt; stage, micro-batch, slice) that an action waits for."""
        own = (a.stage, a.m, a.slice)
        if a.kind in "ROLBI":
            yield ("R" if a.kind in "BI" and a.stage in self.recomputes else "F", *own)
        for n, m in self.sources(a):
            yield ("F", self.edges[n].source, m, a.slice) if a.kind == "F" else ("G", self.edges[n].to, m, a.slice)
        if a.kind == "F" and a.slice > 0:
            yield ("F", a.stage, a.m, a.slice - 1)
        if a.kind in "BI" and a.slice + 1 < self.slices:
            yield ("G", a.stage, a.m, a.slice + 1)
        if a.kind == "W":
            yield ("G", *own)

    def walk(self):
        """All (device, place) in the global order: devices that can go on take turns, one action a turn.

        A device waits for the first event that it misses. Those that an event lets go on come before the device that
        brought it about, and first the one that has waited least (global_order.h).
        """
        done, place, queue = collections.Counter(), [0] * self.devices, collections.deque()
        waiting = collections.defaultdict(list)

        def advance(d):
            if place[d] == len(self.order[d]):
                return
            wants = self.wants(self.order[d][place[d]])
            missing = next((e for e in wants if done[e] < len(self.group(e[1], e[2]))), None)
            (queue if missing is None else waiting[missing]).append(d)
        for d in range(self.devices):
            advance(d)
        while queue:
            d = queue.popleft()
            yield d, place[d]
            event = self.order[d][place[d]].event()
            done[event] += 1
            place[d] += 1
            if event[0] not in "WSOL" and done[event] == len(self.group(event[1], event[2])):
                for other in reversed(waiting.pop(event, [])):
                    advance(other)
            advance(d)

    def fault(self):
        """Why it is not valid; None if it is."""
        for d, row in enumerate(self.order):
            cells, versions = collections.defaultdict(str), collections.defaultdict(set)
            newest, open_gradients = collections.Counter(), set()
            for a in row:
                if a.kind == "S":
                    newest[a.stage] += 1
                    open_gradients.discard(a.stage)
                    if a.version != newest[a.stage]:
                        return f"{a} does not make the stage's next version"
                    continue
                cells[a.stage, a.m, a.slice] += a.kind
                versions[a.stage, a.m].add(a.version)
                if a.kind in "BW":
                    open_gradients.add(a.stage)
                if a.version > newest[a.stage]:
                    return f"{a} comes before its weights are made"
            if any(len(v) > 1 for v in versions.values()) or any(newest[s] for s in open_gradients):
                return "a micro-batch has two versions, or a gradient is in no step"
            own = {(stage, m, s) for stage in range(self.stages) for m in range(self.count // self.size[stage])
                   for s in range(self.slices) if d in self.group(stage, m)}
            for cell in own | set(cells):
                ways = ["FRB", "FRIW"] if cell[0] in self.recomputes else ["FB", "FIW", "FOLB", "FOLIW"]
                if cells[cell] not in (["F"] if self.forward_only else ways) or cell not in own:
                    return f"device {d}, {cell}: {cells[cell]}"
        return "deadlock" if len(list(self.walk())) < sum(map(len, self.order)) else None


def at(values, index):
    """An option has one value for all stages or one for each."""
    return values[index if len(values) > 1 else 0]


class Wires:
    """Messages under way: those of a pair of devices one after the other, max-min fair on shared links."""

    def __init__(self, costs):
        self.links = {x["name"]: x for x in costs.get("links", {}).get("links", [])}
        self.own = {"latency": costs.get("p2p_latency", [0])[0], "bandwidth": costs.get("bandwidth", [None])[0]}
        self.paths = {(p["from"], p["to"]): p["links"] for p in costs.get("links", {}).get("paths", [])}
        self.starts, self.number, self.now = [], 0, 0
        self.waiting, self.flows, self.rates = collections.defaultdict(collections.deque), {}, {}

    def way(self, pair):
        if pair not in self.paths:
            self.links[pair] = self.own
        names = self.paths.get(pair, [pair])
        return [x for x in names if self.links[x].get("bandwidth")], sum(self.links[x].get("latency", 0) for x in names)

    def send(self, time, pair, key, size):
        self.number += 1
        heapq.heappush(self.starts, (time, self.number, pair, key, size))

    def share(self):
        """Rates rise together until a link is full; its messages keep theirs, and the others rise on."""
        left, self.rates = {}, {}
        while len(self.rates) < len(self.flows):
            users = collections.defaultdict(list)
            for pair in self.flows:
                for link in self.way(pair)[0]:
                    left.setdefault(link, self.links[link]["bandwidth"])
                    if pair not in self.rates:
                        users[link].append(pair)
            full = min(users, key=lambda x: left[x] / len(users[x]))
            rate = left[full] / len(users[full])
            for pair in users[full]:
                self.rates[pair] = rate
                for link in self.way(pair)[0]:
                    left[link] -= rate

    def step(self):
        """Goes on to the next event and returns (message, begin, arrival) of each that has left; None: no event."""
        ends = {p: self.now + flow[2] / self.rates[p] for p, flow in self.flows.items()}
        if not self.starts and not ends:
            return None
        first = min(ends, key=ends.get, default=None)
        is_end = first is not None and (not self.starts or ends[first] <= self.starts[0][0])
        time = ends[first] if is_end else self.starts[0][0]
        for pair, flow in self.flows.items():
            flow[2] -= self.rates[pair] * (time - self.now)
        self.now, left = time, []
        if is_end:
            left.append((*self.flows.pop(first)[:2], time + self.way(first)[1]))
        else:
            _, _, first, key, size = heapq.heappop(self.starts)
            self.waiting[first].append((key, size))
        while first not in self.flows and self.waiting[first]:
            key, size = self.waiting[first].popleft()
            if size and self.way(first)[0]:
                self.flows[first] = [key, time, size]
            else:
                left.append((key, time, time + self.way(first)[1]))
        self.share()
        return left


def messages(o, costs):
    """What each (device, place) waits for and sends: {...: [(message, receiver, bytes)]}."""
    place = {(d, *a.event()): i for d, row in enumerate(o.order) for i, a in enumerate(row)}
    needs, gives = collections.defaultdict(list), collections.defaultdict(list)
    for d, row in enumerate(o.order):
        for i, a in enumerate(row):
            for n, m in o.sources(a):
                e = o.edges[n]
                other, kind = (e.source, "F") if a.kind == "F" else (e.to, "G")
                late = (a.m - m) if e.lag or e.carries else 0
                begin, end = o.rows(a.stage, a.m, d)
                for sender in o.group(other, m):
                    rows = [x + late for x in o.rows(other, m, sender)]
                    share = min(end, rows[1]) - max(begin, rows[0])
                    if share > 0 and sender != d:
                        key = (n, max(begin, rows[0]), kind, a.slice, sender, d)
                        needs[d, i].append(key)
                        gives[sender, place[sender, kind, other, m, a.slice]].append(
                            (key, d, float(at(costs.get("bytes", [0]), n) * share / o.slices)))
    for sent in gives.values():
        sent.sort()
    return needs, gives


def pairs(o):
    """Places of F's that run as one unit with the B behind them; a pair that nothing lets begin falls apart."""
    found = {(d, i) for d, row in enumerate(o.order) for i, (a, b) in enumerate(zip(row, row[1:]))
             if a.kind == "F" and b.kind == "B" and a.m != b.m}
    done, place = collections.Counter(), [0] * o.devices

    def ready(a):
        return all(done[e] == len(o.group(e[1], e[2])) for e in o.wants(a))
    while any(p < len(row) for p, row in zip(place, o.order)):
        moved, stuck = False, []
        for d, row in enumerate(o.order):
            while place[d] < len(row) and ready(row[place[d]]):
                unit = row[place[d]:place[d] + (2 if (d, place[d]) in found else 1)]
                if not all(map(ready, unit)):
                    stuck.append((d, place[d]))
                    break
                for a in unit:
                    done[a.event()] += 1
                place[d], moved = place[d] + len(unit), True
        if not moved:
            found -= set(stuck)
    return found


def play(o, costs):
    """Spans (action, begin, end) of each device, by the rules of simulate.h and docs/cli.md."""
    needs, gives = messages(o, costs)
    together = pairs(o) if costs.get("atomic_pairs") else set()
    overlap, wires = costs.get("overlap", True), Wires(costs)
    arrived, spans, meeting = {}, [[] for _ in o.order], collections.defaultdict(dict)

    def time_of(d, a):
        def cost(name, default):
            return at(costs.get(name, default), a.stage)
        forward, back, weight = cost("forward", [1]), cost("backward_input", [1]), cost("backward_weight", [1])
        whole = {"F": forward, "B": back + weight, "I": back, "W": weight, "S": cost("step", [0]),
                 "R": cost("recompute_time", costs.get("forward", [1]))}.get(a.kind, 0)
        share = 1 if a.kind == "S" else fractions.Fraction(o.size[a.stage], len(o.group(a.stage, a.m)) * o.slices)
        return float(whole * share / fractions.Fraction(at(costs.get("device_speed", [1]), d)))

    def reduced(d, stage, version, now, free=0):
        """When the sum of a stage's gradients over its group is there: a ring, once all members have come."""
        group = next(r[stage] for r in o.groups if d in r[stage])
        meeting[stage, version][d] = now
        while len(meeting[stage, version]) < len(group):
            yield
        if len(group) == 1:
            return now
        steps, size = 2 * (len(group) - 1), at(costs.get("weights", [0]), stage)
        sent = size * steps / len(group) / costs["bandwidth"][0] if "bandwidth" in costs else 0
        latency = steps * max(wires.way(pair)[1] for pair in zip(group, group[1:] + group[:1]))
        return max(free, *meeting[stage, version].values()) + at(costs.get("reduce", [0]), stage) + latency + sent

    def worker(d):
        now = exchange = i = 0
        while i < len(o.order[d]):
            unit = range(i, i + (2 if (d, i) in together else 1))
            for key in (key for j in unit for key in needs[d, j]):
                while key not in arrived:
                    yield
                begin, arrival = arrived[key]
                now = max(now, arrival, 0 if overlap else exchange + arrival - begin)
            for a in (o.order[d][j] for j in unit):
                if a.kind == "F" and "arrivals" in costs and not any(e.to == a.stage for e in o.edges):
                    now = max(now, costs["arrivals"][0] * a.m)
                if a.kind == "S":
                    now = yield from reduced(d, a.stage, a.version, now)
                spans[d].append((a, now, now + time_of(d, a)))
                now = spans[d][-1][2]
            exchange, i = (exchange if o.order[d][i].kind in "OL" else now), unit[-1] + 1
            for key, receiver, size in (x for j in unit for x in gives[d, j]):
                wires.send(now, (d, receiver), key, size)
                while not overlap and key not in arrived:
                    yield
                now = now if overlap else arrived[key][1]
        if o.forward_only or not {"step", "reduce"} & set(costs) or any(a.kind == "S" for a in o.order[d]):
            return
        # Sums one after the other, eager ones as soon as a stage has its last gradient; then all steps.
        last, free = {a.stage: end for a, _, end in spans[d] if a.kind in "BW"}, 0
        for stage in sorted(last, key=last.get if "eager" in costs else None):
            free = yield from reduced(d, stage, 0, last[stage] if "eager" in costs else now, free)
        now = max(now, free)
        for step in (Action("S", stage, 0) for stage in sorted(last)):
            spans[d].append((step, now, now + time_of(d, step)))
            now = spans[d][-1][2]

    workers = [worker(d) for d in range(o.devices)]
    while True:
        before = None
        while before != (before := (len(wires.starts), sum(map(len, spans)), sum(map(len, meeting.values())))):
            workers = [w for w in workers if next(w, "over") != "over"]
        left = wires.step()
        if left is None:
            return spans
        arrived.update({key: (begin, arrival) for key, begin, arrival in left})


def in_flight(o, row):
    """The most forwards of which the backward is not over; what is at the host is not counted."""
    level, most, leaving = 0, 0, 0
    for a in row:
        if a.kind in "OL":
            level, leaving = level - leaving + (a.kind == "L"), int(a.kind == "O")
        level += a.kind == "F"
        most = max(most, level)
        level -= a.kind in "BW" or (a.kind == "F" and o.forward_only)
    return most


def latencies(o, costs):
    """The field `arrivals`: micro-batches come one by one, and the stages that nothing feeds wait for them."""
    period, ways, waited = costs["arrivals"][0], [], 0
    passes = [s for row in play(o, costs) for s in row if s[0].kind == "F"]
    for m in range(o.count):
        waited += min(b for a, b, _ in passes if a.m == m) > period * m
        ways.append(max(e for a, _, e in passes if a.m == m) - period * m)
    ranks = [sorted(ways)[-(-o.count * percent // 100) - 1] for percent in (50, 99, 100)]
    return {"period": period, "waited": waited, "taken": o.count, "dropped": 0, "end": max(e for _, _, e in passes),
            **dict(zip(["median_latency", "p99_latency", "longest_latency"], ranks))}


def figures(o, costs):
    """What `simulate --json_out` must say. Arrivals change nothing but their own field."""
    spans = play(o, {k: v for k, v in costs.items() if k != "arrivals"})
    passes = [s for row in spans for s in row if s[0].kind not in "SOL"]
    makespan = max(e for row in spans for _, _, e in row) - min(b for _, b, _ in passes)
    interval = max(e for _, _, e in passes) - min(b for _, b, _ in passes)
    devices = []
    for row, actions in zip(spans, o.order):
        busy, ends = sum(e - b for _, b, e in row), [x for a, b, e in row if a.kind not in "OL" for x in (b, e)] or [0]
        devices.append({"busy": busy, "idle": makespan - busy, "span": max(ends) - min(ends),
                        "peak_in_flight": in_flight(o, actions)})
    bubble = 1 - sum(e - b for _, b, e in passes) / interval / o.devices if interval else 0
    return {"makespan": makespan, "devices": devices, "bubble": bubble,
            **({"arrivals": latencies(o, costs)} if "arrivals" in costs else {})}


def is_weighable(o, costs):
    """Whether `memory` knows the rules: passes of stages on as many devices each, none paired, no gradient late."""
    if costs.get("atomic_pairs") or {"forward_only", "weights_travel"} & set(o.data) or any(e.lag for e in o.edges):
        return False
    steps = any(a.kind == "S" for row in o.order for a in row)
    return not steps and set(o.size) == {1} and len({len(g) for r in o.groups for g in r}) == 1


def memory(o, costs):
    """Peak of activations and of state of each device, in bytes."""
    def cost(name, index):
        return at(costs.get(name, [0]), index) // o.slices // len(o.groups[0][0])
    needs, gives = messages(o, costs)
    level, peak, leaving = [0] * o.devices, [0] * o.devices, [0] * o.devices
    for d, i in o.walk():
        a = o.order[d][i]
        kept, work = cost("activation_bytes", a.stage), cost("workspace", a.stage)
        ins = sum(cost("bytes", n) for n, e in enumerate(o.edges) if e.to == a.stage)
        outs = sum(cost("bytes", n) for n, e in enumerate(o.edges) if e.source == a.stage)
        gradients = sum(cost("bytes", n) for n, _ in o.sources(a)) if a.kind in "BI" else 0
        if a.kind in "OL":
            # An offload has its room until the device's next copy, a reload from its begin on.
            level[d] += (kept + ins) * (a.kind == "L") - leaving[d]
            leaving[d] = (kept + ins) * (a.kind == "O")
            peak[d] = max(peak[d], level[d])
            continue
        # A local consumer's input, or gradient, is charged from here on; what goes away, until it is sent.
        more = {"F": outs + (0 if a.stage in o.recomputes else kept), "R": kept, "B": ins, "I": ins, "W": 0}[a.kind]
        peak[d] = max(peak[d], level[d] + more + work)
        held = cost("kept_for_weight", a.stage) if "kept_for_weight" in costs else kept + ins
        level[d] += more - {"B": kept + ins + gradients, "I": kept + ins + gradients - held, "W": held}.get(a.kind, 0)
        for _, receiver, size in gives[d, i]:
            level[d] -= int(size)
            level[receiver] += int(size)
            peak[receiver] = max(peak[receiver], level[receiver])
    state = [sum(at(costs.get("weights", [0]), s) * (2 + costs.get("optimizer_tensors", [2])[0])
                 for r in o.groups for s in range(o.stages) if d in r[s]) for d in range(o.devices)]
    return [{"peak_activation_bytes": a, "peak_state_bytes": s} for a, s in zip(peak, state)]
