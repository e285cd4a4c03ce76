#!/usr/bin/env python3
"""Measures this machine's GPU with PyTorch, and writes the rates of its products and attention for a cluster's file.

    pip install torch
    tools/pytorch/measure_rates.py --out=rates.json                 # some minutes on a GPU
    tools/pytorch/measure_rates.py --by_pass --out=rates.json       # three passes of each product, as exact shapes
    tools/pytorch/measure_rates.py --device=cpu --quick --out=rates.json

The file is what `device.rates` of a cluster's file takes (docs/clusters.md, measured rates): products in bf16, and in
fp8 where torch._scaled_mm has it, by m, n and k; causal attention forward by tokens, heads and the size of a head, and
the rate of its backward pass as a share of that. Each time is the median of --runs after as many to warm up, one after
the other for half a second at least, so that clocks are those of steady work: nothing is left to be sustained. Rates
are made monotone as those of the catalogue are (tools/cluster/kernel_rates.py). With --by_pass they stay as measured:
a product in bf16 as forward, input gradient and weight gradient, which is added to sums in 4 bytes, and attention
forward and backward.
"""
import argparse
import itertools
import json
import os
import statistics
import sys
import time

import torch

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "cluster"))
import kernel_rates  # noqa: E402  # its folder is no package

WARM_SECONDS = 0.5
QUICK = {"products": ((256, 512), (256,), (256,)), "attention": ((256, 512), (4,), (64,))}


class Timer:
    def __init__(self, device, runs):
        self.device, self.runs = torch.device(device), runs

    def Wait(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def Seconds(self, work):
        until = time.perf_counter() + WARM_SECONDS if self.device.type == "cuda" else 0
        for i in itertools.count():
            work()
            self.Wait()
            if i + 1 >= self.runs and time.perf_counter() >= until:
                break
        times = []
        for _ in range(self.runs):
            begin = time.perf_counter()
            work()
            self.Wait()
            times.append(time.perf_counter() - begin)
        return statistics.median(times)


def Fp8(m, n, k, device):
    """A product in fp8 with one scale a tensor; None where PyTorch or the GPU has none."""
    try:
        a = torch.zeros(m, k, device=device, dtype=torch.bfloat16).to(torch.float8_e4m3fn)
        b = torch.zeros(n, k, device=device, dtype=torch.bfloat16).to(torch.float8_e4m3fn).t()
        one = torch.ones((), device=device)
        work = lambda: torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
        work()
        return work
    except (AttributeError, RuntimeError, ValueError):
        return None


def Products(timer, axes, kind):
    rates = {}
    for m, n, k in itertools.product(*axes):
        if kind == "fp8":
            work = Fp8(m, n, k, timer.device)
            if work is None:
                return {}
        else:
            a = torch.randn(m, k, device=timer.device, dtype=torch.bfloat16)
            b = torch.randn(n, k, device=timer.device, dtype=torch.bfloat16)
            work = lambda a=a, b=b: a @ b.t()
        rates[m, n, k] = 2 * m * n * k / timer.Seconds(work) / 1e12
        print(f"{kind} {m} x {n} x {k}: {rates[m, n, k]:.4g} Tflop/s", file=sys.stderr)
    return rates


def ProductShapes(timer, axes, source):
    """Rows of the sizes of the forward product and Tflop/s, by pass."""
    shapes = {"forward": [], "input_gradient": [], "weight_gradient": []}
    for m, n, k in itertools.product(*axes):
        x, w, dy = (torch.randn(*size, device=timer.device, dtype=torch.bfloat16) for size in ((m, k), (n, k), (m, n)))
        sums = torch.zeros(n, k, device=timer.device)
        for name, work in (("forward", lambda: x @ w.t()), ("input_gradient", lambda: dy @ w),
                           ("weight_gradient", lambda: sums.add_(dy.t() @ x))):
            shapes[name].append([m, n, k, float(f"{2 * m * n * k / timer.Seconds(work) / 1e12:.4g}")])
            print(f"{name} {m} x {n} x {k}: {shapes[name][-1][3]:.4g} Tflop/s", file=sys.stderr)
    return {"shapes": shapes, "source": source}


def Attention(timer, axes):
    """Forward rates by sizes, and those of the backward pass as shares of them."""
    rates, shares = {}, {}
    attend = torch.nn.functional.scaled_dot_product_attention
    for tokens, heads, size in itertools.product(*axes):
        if tokens * heads > axes[0][-1] * 64:
            continue  # as fast as with fewer heads
        q, k, v = (torch.randn(1, heads, tokens, size, device=timer.device, dtype=torch.bfloat16, requires_grad=True)
                   for _ in range(3))
        flops = 2 * heads * tokens**2 * size
        with torch.no_grad():
            forward = timer.Seconds(lambda: attend(q, k, v, is_causal=True))
        out = attend(q, k, v, is_causal=True)
        given = torch.ones_like(out)
        backward = timer.Seconds(lambda: torch.autograd.grad(out, (q, k, v), given, retain_graph=True))
        rates[tokens, heads, size] = flops / forward / 1e12
        shares[tokens, heads, size] = 2.5 * forward / backward
        print(f"attention {tokens} tokens, {heads} heads of {size}: {rates[tokens, heads, size]:.4g} Tflop/s",
              file=sys.stderr)
    return rates, shares


def AttentionShapes(rates, shares, source):
    backward = {sizes: rate * shares[sizes] for sizes, rate in rates.items()}
    rows = lambda of: [[*sizes, float(f"{rate:.4g}")] for sizes, rate in of.items()]
    return {"shapes": {"forward": rows(rates), "input_gradient": rows(backward)}, "source": source}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, help="the JSON file to write")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--largest", type=int, default=16384, help="largest size of a product and number of tokens")
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--by_pass", action="store_true", help="exact shapes of all passes, in three times as long")
    parser.add_argument("--quick", action="store_true", help="a few small sizes, to try it")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("--device=cuda: PyTorch finds no GPU; --device=cpu tries the program")
    timer = Timer(options.device, options.runs)
    upto = lambda axis: tuple(size for size in axis if size <= options.largest)
    name = torch.cuda.get_device_name() if options.device == "cuda" else options.device
    source = f"measured: tools/pytorch/measure_rates.py on {name}, PyTorch {torch.__version__}"
    rates = {"matmul": {}}
    axes = QUICK["products"] if options.quick else tuple(upto(axis) for axis in kernel_rates.PRODUCT_AXES)
    if options.by_pass:
        rates["matmul"]["bf16"] = ProductShapes(timer, axes, source)
    for kind in ("fp8",) if options.by_pass else ("bf16", "fp8"):
        measured = Products(timer, axes, kind)
        if measured:
            rates["matmul"][kind] = kernel_rates.Grid(measured, axes, ("m", "n", "k"), source)
    axes = (upto(kernel_rates.ATTENTION_AXES[0]), *kernel_rates.ATTENTION_AXES[1:])
    axes = QUICK["attention"] if options.quick else axes
    measured, shares = Attention(timer, axes)
    if options.by_pass:
        rates["attention"] = {"bf16": AttentionShapes(measured, shares, source)}
    else:
        share = min(1.0, statistics.median(shares.values()))
        rates["attention_backward"] = {"value": round(share, 3), "source": source}
        rates["attention"] = {"bf16": kernel_rates.Grid(measured, axes, ("tokens", "heads", "head_size"), source)}
    kernel_rates.Write(options.out, rates)
    print(f"{options.out}: give it as device.rates of a cluster's file (docs/clusters.md)")


if __name__ == "__main__":
    main()
