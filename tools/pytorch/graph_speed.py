#!/usr/bin/env python3
"""Samples and trains GraphSAGE in pipelab, PyTorch Geometric and DGL on one graph, and prints the ratios.

    tools/dev/python_venv.sh venv tools/pytorch/graph_requirements.txt
    tools/bazel build //experiments/graphs:graph_speed
    venv/bin/python tools/pytorch/graph_speed.py --graph=theorems

All read the graph that pipelab writes: the same edges, rows, labels and training vertices, fan-outs, batches and
network (mean aggregation, no bias, dropout, Adam). Random numbers differ, so pipelab's and DGL's edges an epoch agree
within 2 %, which is checked. PyTorch Geometric draws once for a vertex, and not at each hop again, so it has fewer
edges; its layers all go over all of them.

* Sampling: edges a second of one thread, without features.
* An epoch: on `--threads` threads. PyTorch Geometric and DGL have the best of no worker and one worker process,
  with the other threads for the layers; pipelab has a thread that prepares, and `--threads` that train. So a
  comparison on as many cores needs `taskset`, or a machine with no more.

All run in turn in each round, and ratios are of the medians over the rounds.
"""
from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

FANOUTS = {"theorems": [15, 10, 5], "wordnet": [15, 10, 5]}
SYSTEMS = ("pyg", "dgl")


class Graph:
    """What `graph_speed --export` writes: raw arrays and sizes.json."""

    def __init__(self, folder: str):
        import numpy as np
        import torch
        with open(os.path.join(folder, "sizes.json"), encoding="utf-8") as f:
            sizes = json.load(f)
        self.width, self.classes = sizes["width"], sizes["classes"]

        def read(name: str, kind):
            return torch.from_numpy(np.fromfile(os.path.join(folder, name), kind))
        self.offsets = read("offsets.i64", np.int64)
        self.neighbours = read("neighbours.i32", np.int32).long()
        self.rows = read("rows.f32", np.float32).reshape(-1, self.width)
        self.labels = read("labels.i32", np.int32).long()
        self.train = read("train.i32", np.int32).long()


def pyg_loader(graph: Graph, options, workers: int, rows: bool):
    import torch
    from torch_geometric.data import Data
    from torch_geometric.loader import NeighborLoader
    vertices = graph.offsets.numel() - 1
    targets = torch.repeat_interleave(torch.arange(vertices), graph.offsets.diff())
    data = Data(edge_index=torch.stack([graph.neighbours, targets]), num_nodes=vertices)
    if rows:
        data.x, data.y = graph.rows, graph.labels
    return NeighborLoader(data, options.fanouts, input_nodes=graph.train, batch_size=options.batch, shuffle=True,
                          drop_last=True, num_workers=workers, persistent_workers=workers > 0)


def dgl_loader(graph: Graph, options, workers: int, rows: bool):
    import dgl
    # Column v of the matrix has the neighbours that v draws from.
    g = dgl.graph(("csc", (graph.offsets, graph.neighbours, [])))
    if rows:
        g.ndata["x"], g.ndata["y"] = graph.rows, graph.labels
        sampler = dgl.dataloading.NeighborSampler(options.fanouts[::-1], prefetch_node_feats=["x"],
                                                  prefetch_labels=["y"])
    else:
        sampler = dgl.dataloading.NeighborSampler(options.fanouts[::-1])
    return dgl.dataloading.DataLoader(g, graph.train, sampler, batch_size=options.batch, shuffle=True, drop_last=True,
                                      num_workers=workers, persistent_workers=workers > 0)


def edges_of(system: str, batch) -> int:
    if system == "pyg":
        return batch.edge_index.shape[1]
    return sum(block.num_edges() for block in batch[2])


def network_of(system: str, graph: Graph, options):
    import torch
    sizes = [graph.width] + [options.hidden] * (len(options.fanouts) - 1) + [graph.classes]
    if system == "pyg":
        from torch_geometric.nn import SAGEConv
        convs = [SAGEConv(a, b, aggr="mean", bias=False) for a, b in zip(sizes, sizes[1:])]
    else:
        from dgl.nn import SAGEConv
        convs = [SAGEConv(a, b, "mean", bias=False) for a, b in zip(sizes, sizes[1:])]
    return torch.nn.ModuleList(convs)


def loss_of(system: str, convs, batch):
    import torch.nn.functional as functional
    if system == "pyg":
        h, labels = batch.x, batch.y[:batch.batch_size]
    else:
        _, _, blocks = batch
        h, labels = blocks[0].srcdata["x"], blocks[-1].dstdata["y"]
    for i, conv in enumerate(convs):
        h = conv(h, batch.edge_index) if system == "pyg" else conv(blocks[i], h)
        if i + 1 < len(convs):
            h = functional.dropout(functional.relu(h), 0.5)
    if system == "pyg":
        h = h[:batch.batch_size]
    return functional.nll_loss(functional.log_softmax(h, -1), labels)


def child(system: str, what: str, workers: int, options) -> None:
    """Prints seconds, edges and the last loss of an epoch; the first epoch warms up and does not count."""
    import torch
    threads = 1 if what == "sample" else max(1, options.threads - workers)
    torch.set_num_threads(threads)
    graph = Graph(options.folder)
    loader = (pyg_loader if system == "pyg" else dgl_loader)(graph, options, workers,
                                                             what == "train")
    convs = network_of(system, graph, options)
    adam = torch.optim.Adam(convs.parameters(), lr=0.003)
    for epoch in range(2):
        begin, edges, loss = time.perf_counter(), 0, None
        for batch in loader:
            edges += edges_of(system, batch)
            if what == "sample":
                continue
            adam.zero_grad()
            loss = loss_of(system, convs, batch)
            loss.backward()
            adam.step()
        seconds = time.perf_counter() - begin
    print(json.dumps({"seconds": seconds, "edges": edges, "loss": None if loss is None else loss.item()}))


def run(command: list[str], threads: int) -> dict:
    env = dict(os.environ, OMP_NUM_THREADS=str(threads), PYTHONWARNINGS="ignore")
    out = subprocess.run(command, stdout=subprocess.PIPE, env=env, check=True, text=True).stdout
    return json.loads(out.strip().splitlines()[-1])


def ours(options, what: str) -> dict:
    return run([options.program, f"--graph={options.graph}", f"--measure={what}", f"--batch={options.batch}",
                f"--hidden={options.hidden}", "--fanouts=" + ",".join(map(str, options.fanouts)),
                f"--threads={options.threads}"],
               1 if what == "sample" else options.threads)


def theirs(options, system: str, what: str, workers: int) -> dict:
    command = [sys.executable, os.path.abspath(__file__), f"--child={system}:{what}:{workers}",
               f"--graph={options.graph}", f"--folder={options.folder}", f"--batch={options.batch}",
               f"--hidden={options.hidden}", f"--threads={options.threads}"]
    return run(command, 1 if what == "sample" else max(1, options.threads - workers))


def compare(options) -> None:
    print(f"{options.graph}, fan-outs {options.fanouts}, batch {options.batch}, hidden {options.hidden}")
    systems = options.systems.split(",")
    for what in options.measure.split(","):
        threads = 1 if what == "sample" else options.threads
        found = {system: [] for system in ["pipelab"] + systems}
        best = {}
        for system in systems if what == "train" else ():
            seconds = {w: theirs(options, system, what, w)["seconds"] for w in (0, 1)}
            best[system] = min(seconds, key=seconds.get)
        for _ in range(options.rounds):
            found["pipelab"].append(ours(options, what))
            for system in systems:
                found[system].append(theirs(options, system, what, best.get(system, 0)))
        for system, runs in found.items():
            seconds = statistics.median(r["seconds"] for r in runs)
            rate = statistics.median(r["edges"] / r["seconds"] for r in runs)
            ratios = [r["seconds"] / r["edges"] * o["edges"] / o["seconds"] if what == "sample"
                      else r["seconds"] / o["seconds"] for r, o in zip(runs, found["pipelab"])]
            workers = f", {best[system]} workers" if system in best else ""
            loss = "" if runs[-1]["loss"] is None else f", loss {runs[-1]['loss']:.3f}"
            print(f"  {what:6} {system:8} {seconds:8.3f} s  {rate / 1e6:7.2f} M edges/s  "
                  f"{statistics.median(ratios):6.2f} x pipelab's time  ({threads} threads{workers}, "
                  f"{runs[-1]['edges']} edges{loss})", flush=True)
        edges = [found[system][0]["edges"] for system in ("pipelab", "dgl") if system in found]
        if max(edges) > 1.02 * min(edges):
            sys.exit(f"{what}: pipelab and DGL do not do the same: {edges[0]} and {edges[1]} edges an epoch")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", default="theorems", choices=sorted(FANOUTS))
    parser.add_argument("--program", default="bazel-bin/experiments/graphs/graph_speed")
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--measure", default="sample,train")
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.fanouts = FANOUTS[options.graph]
    if options.child:
        system, what, workers = options.child.split(":")
        child(system, what, int(workers), options)
        return
    with tempfile.TemporaryDirectory() as options.folder:
        subprocess.run([options.program, f"--graph={options.graph}", f"--export={options.folder}"],
                       check=True)
        compare(options)


if __name__ == "__main__":
    main()
