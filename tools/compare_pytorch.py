#!/usr/bin/env python3
"""Times one GPT training step in PyTorch and in pipelab, on one thread each, and prints the ratio.

  apt-get install -y python3-torch
  tools/bazel build //experiments:gpt_step_benchmark
  /usr/bin/python3 tools/compare_pytorch.py

Both sides run the same network (pre-norm GPT, learned positions, tanh GELU, untied output table), the same
micro-batches with gradient accumulation, and one Adam step, in float32. The sizes come from the benchmark's
own counters. PyTorch runs with OpenBLAS as it detects the processor, and again with the kernel set that is
best on AVX-512 machines (OPENBLAS_CORETYPE=SkylakeX): an OpenBLAS older than the processor picks slow ones.
The runs alternate, and the ratio is of the medians, because a busy machine drifts.

Not part of the tests: it needs PyTorch, which pipelab does not.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

BENCHMARK = "bazel-bin/experiments/gpt_step_benchmark"


def build_model(torch, shape):
    nn, functional = torch.nn, torch.nn.functional
    hidden, heads = shape["hidden"], shape["heads"]

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
            self.qkv, self.projection = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
            self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)
            mask = torch.ones(shape["tokens"], shape["tokens"]).tril() == 0
            self.register_buffer("mask", mask)

        def attention(self, x):
            samples, tokens, _ = x.shape
            q, k, v = (t.view(samples, tokens, heads, hidden // heads).transpose(1, 2)
                       for t in self.qkv(x).split(hidden, dim=2))
            scores = (q @ k.transpose(-2, -1)) * (hidden // heads) ** -0.5
            weights = scores.masked_fill(self.mask, float("-inf")).softmax(-1)
            return self.projection((weights @ v).transpose(1, 2).reshape(samples, tokens, hidden))

        def forward(self, x):
            x = x + self.attention(self.norm1(x))
            return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(shape["vocabulary"], hidden)
            self.positions = nn.Parameter(torch.zeros(shape["tokens"], hidden))
            self.blocks = nn.Sequential(*[Block() for _ in range(shape["layers"])])
            self.norm = nn.LayerNorm(hidden)
            self.head = nn.Linear(hidden, shape["vocabulary"], bias=False)

        def forward(self, tokens, targets):
            x = self.norm(self.blocks(self.table(tokens) + self.positions))
            logits = self.head(x)
            return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())

    torch.manual_seed(0)
    return Gpt()


def time_pytorch(shape, steps):
    """Milliseconds of each step; runs in a process of its own, so that OpenBLAS sees its setting."""
    import torch
    torch.set_num_threads(1)
    model = build_model(torch, shape)
    parameters = sum(p.numel() for p in model.parameters())
    if parameters != shape["parameters"]:
        sys.exit(f"the networks differ: {parameters} parameters in PyTorch, {shape['parameters']} in pipelab")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    size = (shape["micro_batches"], shape["samples"], shape["tokens"])
    tokens = torch.randint(shape["vocabulary"], size)
    targets = torch.randint(shape["vocabulary"], size)
    times = []
    for _ in range(steps + 1):
        begin = time.perf_counter()
        optimizer.zero_grad()
        for m in range(shape["micro_batches"]):
            (model(tokens[m], targets[m]) / shape["micro_batches"]).backward()
        optimizer.step()
        times.append(1e3 * (time.perf_counter() - begin))
    return times[1:]  # the first one warms up


def run_pytorch(shape, steps, core_type):
    env = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    if core_type:
        env["OPENBLAS_CORETYPE"] = core_type
    command = [sys.executable, __file__, "--child", json.dumps(shape), "--steps", str(steps)]
    return json.loads(subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE).stdout)


def run_pipelab(benchmark):
    """[(milliseconds of a step, sizes)] for each configuration of the benchmark."""
    out = subprocess.run([benchmark, "--benchmark_format=json"], check=True, stdout=subprocess.PIPE,
                         env=dict(os.environ, OMP_NUM_THREADS="1")).stdout
    keys = ["layers", "hidden", "heads", "tokens", "vocabulary", "samples", "micro_batches", "parameters"]
    return [(b["name"], b["real_time"], {k: int(b[k]) for k in keys})
            for b in json.loads(out)["benchmarks"] if b.get("run_type") == "iteration"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--benchmark", default=BENCHMARK)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=8, help="timed PyTorch steps a round")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        print(json.dumps(time_pytorch(json.loads(args.child), args.steps)))
        return
    if not os.path.exists(args.benchmark):
        sys.exit(f"--benchmark={args.benchmark}: not there; tools/bazel build //experiments:gpt_step_benchmark")
    ours, theirs, shapes = {}, {}, {}
    for _ in range(args.rounds):
        for name, milliseconds, shape in run_pipelab(args.benchmark):
            shapes[name] = shape
            ours.setdefault(name, []).append(milliseconds)
        for name, shape in shapes.items():
            for core_type in (None, "SkylakeX"):
                theirs.setdefault((name, core_type), []).extend(run_pytorch(shape, args.steps, core_type))
    for name, shape in shapes.items():
        mine = statistics.median(ours[name])
        print(f"{name}: {shape}\n  pipelab {mine:.1f} ms a step [measured, one thread]")
        for core_type in (None, "SkylakeX"):
            other = statistics.median(theirs[name, core_type])
            setting = f"OPENBLAS_CORETYPE={core_type}" if core_type else "OpenBLAS as detected"
            print(f"  PyTorch {other:.1f} ms a step [measured, one thread, {setting}]: "
                  f"{other / mine:.2f} times pipelab's")


if __name__ == "__main__":
    main()
