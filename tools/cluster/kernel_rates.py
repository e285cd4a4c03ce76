#!/usr/bin/env python3
"""Makes the tables of measured kernel rates in pipelines/cluster/rates from rows of kernel times.

  kernel_rates.py FOLDER [GPU=NAME...]            # h100_sxm=h100-sxm

FOLDER holds products.csv.xz, attention_forward.csv.xz and quantize.csv.xz: kernel times of the PyPI package
aiconfigurator-core 0.12.0 (NVIDIA, Apache-2.0; its folder systems/data), in one row each: gpu, framework, the sizes,
ms. Without GPU=NAME all GPUs of the catalogue are made.

* Products in bf16 take the median of the three packages, which all call one library. Those in fp8 are trtllm's, less
  the scale and the cast of the first operand that its rows contain (compute_scale and scale_matrix of quantize): models
  have casts of their own.
* Attention takes vllm's rows, causal, without windows, by batch times heads: FlashAttention-3 on Hopper.
* Rates are made monotone by isotonic regression on their logarithms: along no size do they fall, nor rise faster than
  the size. The places that nobody measured are as fast as the fastest of smaller sizes.

Only the values of a small grid are kept. A table's source says how far all rows beside the grid are from it.
"""
import collections
import csv
import itertools
import json
import lzma
import math
import os
import re
import statistics
import sys

WORKSPACE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
RATES = "pipelines/cluster/rates"
ORIGIN = "aiconfigurator-core 0.12.0 (NVIDIA, Apache-2.0), systems/data"
NAMES = {"h100_sxm": "h100-sxm", "h200_sxm": "h200-sxm", "b200_sxm": "b200-sxm", "b300_sxm": "b300-sxm",
         "gb200": "gb200", "gb300": "gb300", "l40s": "l40s", "rtx_pro_6000_server": "rtx-pro-6000"}
WIDTHS = (256, 512, 1024, 2048, 4096, 8192, 16384, 65536)
PRODUCT_AXES = ((512, 1024, 2048, 4096, 8192, 16384, 32768), WIDTHS, WIDTHS)
ATTENTION_AXES = ((512, 1024, 2048, 4096, 8192, 16384), (1, 4, 16, 64, 256, 1024), (64, 128, 192, 256))
DIGITS = 4
CYCLES = 400


def Rows(folder, name):
    with lzma.open(os.path.join(folder, name + ".csv.xz"), "rt") as file:
        yield from csv.DictReader(file)


def Medians(rows, key, value):
    """key(row) -> the median of value(row)."""
    lists = collections.defaultdict(list)
    for row in rows:
        lists[key(row)].append(value(row))
    return {place: statistics.median(values) for place, values in lists.items()}


def Ascending(values):
    """The nearest sequence in squares that never falls (pool adjacent violators)."""
    pools = []
    for v in values:
        pools.append([v, 1])
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            mean, count = pools.pop()
            pools[-1] = [(pools[-1][0] * pools[-1][1] + mean * count) / (pools[-1][1] + count),
                         pools[-1][1] + count]
    return [mean for mean, count in pools for _ in range(count)]


def Lines(axes):
    """(axis, the places along it) of a grid."""
    for axis in range(3):
        others = [range(len(axes[a])) for a in range(3) if a != axis]
        for pair in itertools.product(*others):
            places = []
            for i in range(len(axes[axis])):
                place = list(pair)
                place.insert(axis, i)
                places.append(tuple(place))
            yield axis, places


def Monotone(logs, axes):
    """Dykstra's projections on the two constraints along every line, in turn."""
    lines = list(Lines(axes))
    value = dict(logs)
    residue = [[(0.0,) * len(places)] * 2 for _, places in lines]
    for _ in range(CYCLES):
        moved = 0.0
        for i, (axis, places) in enumerate(lines):
            for side in range(2):
                tilt = [math.log(size) * side for size in axes[axis]]
                # Side 0: the rate never falls. Side 1: rate / size never rises.
                before = [value[p] + r for p, r in zip(places, residue[i][side])]
                sign = 1 - 2 * side
                after = [sign * v + t for v, t in
                         zip(Ascending([sign * (b - t) for b, t in zip(before, tilt)]), tilt)]
                residue[i][side] = tuple(b - a for b, a in zip(before, after))
                for p, a in zip(places, after):
                    moved = max(moved, abs(value[p] - a))
                    value[p] = a
        if moved < 1e-6:
            break
    return value


def Filled(logs, axes):
    """With what is missing as fast as the fastest of smaller sizes, or as the slowest of larger ones."""
    full = dict(logs)
    places = list(itertools.product(*[range(len(axis)) for axis in axes]))
    for step, order, choose in ((-1, places, max), (1, places[::-1], min)):
        for place in order:
            near = [tuple(p + step * (a == b) for b, p in enumerate(place)) for a in range(3)]
            known = [full[p] for p in near if p in full]
            if place not in full and known:
                full[place] = choose(known)
    return full


def Printed(value, axes):
    """Rates in Tflop/s with four digits, for which the constraints still hold."""
    rates = {}
    for place in sorted(value):
        rate = math.exp(value[place])
        for a in range(3):
            if place[a] == 0:
                continue
            before = rates[tuple(p - (a == b) for b, p in enumerate(place))]
            size = axes[a][place[a]] / axes[a][place[a] - 1]
            rate = min(max(rate, before), before * size)
        rates[place] = float(f"{rate:.{DIGITS}g}")
    return rates


def At(rates, axes, sizes):
    log_rate = 0.0
    ends = []
    for axis, size in zip(axes, sizes):
        if size <= axis[0]:
            log_rate += math.log(size / axis[0])
        clamped = min(max(size, axis[0]), axis[-1])
        i = max(j for j, s in enumerate(axis) if s <= clamped)
        share = 0.0 if i + 1 == len(axis) else math.log(clamped / axis[i]) / math.log(axis[i + 1] / axis[i])
        ends.append(((i, 1 - share), (min(i + 1, len(axis) - 1), share)))
    for corner in itertools.product(*ends):
        weight = corner[0][1] * corner[1][1] * corner[2][1]
        if weight > 0:
            log_rate += weight * math.log(rates[tuple(place for place, _ in corner)])
    return math.exp(log_rate)


def Grid(measured, axes, names, source):
    """The table of what was measured on the grid. measured: sizes -> Tflop/s."""
    # A size of which nothing was measured is no size of the table.
    axes = tuple(tuple(s for s in axis if any(sizes[a] == s for sizes in measured)) for a, axis in enumerate(axes))
    logs = {tuple(axes[a].index(s) for a, s in enumerate(sizes)): math.log(rate)
            for sizes, rate in measured.items() if IsOn(sizes, axes)}
    rates = Printed(Monotone(Filled(logs, axes), axes), axes)
    return {**{names[a]: list(axes[a]) for a in range(3)}, "tflops": [rates[place] for place in sorted(rates)],
            "source": source}


def IsOn(sizes, axes):
    return all(s in axis for s, axis in zip(sizes, axes))


def Table(measured, axes, names, source):
    """Grid, with how far the other sizes are from it in the source."""
    table = Grid({sizes: rate for sizes, rate in measured.items() if IsOn(sizes, axes)}, axes, names, source)
    axes = tuple(tuple(table[name]) for name in names)
    rates = dict(zip(itertools.product(*[range(len(axis)) for axis in axes]), table["tflops"]))
    errors = sorted(abs(At(rates, axes, sizes) / rate - 1) for sizes, rate in measured.items() if not IsOn(sizes, axes))
    table["source"] = (f"measured: {ORIGIN}: {source}; the {len(errors)} rows beside this grid are "
                       f"{100 * statistics.median(errors):.1f} % from it in the median, "
                       f"{100 * errors[len(errors) * 19 // 20]:.0f} % at the 95th percentile")
    return table


def Sizes(row, *keys):
    return tuple(int(row[key]) for key in keys)


def ProductTables(folder):
    """[gpu][type] -> a table."""
    casts = collections.defaultdict(float)
    for (gpu, _, m, k), ms in Medians(
            (r for r in Rows(folder, "quantize") if r["framework"] == "TRTLLM"),
            lambda r: (r["gpu"], r["op_name"], *Sizes(r, "m", "k")), lambda r: float(r["ms"])).items():
        casts[gpu, m, k] += ms
    rows = list(Rows(folder, "products"))
    flops = lambda sizes: 2 * sizes[0] * sizes[1] * sizes[2]
    times = collections.defaultdict(dict)
    for (gpu, *sizes), ms in Medians((r for r in rows if r["gemm_dtype"] == "bfloat16"),
                                     lambda r: (r["gpu"], *Sizes(r, "m", "n", "k")),
                                     lambda r: float(r["ms"])).items():
        times[gpu, "bf16"][tuple(sizes)] = flops(sizes) / ms / 1e9
    for (gpu, *sizes), ms in Medians(
            (r for r in rows if r["gemm_dtype"] == "fp8" and r["framework"] == "trtllm"),
            lambda r: (r["gpu"], *Sizes(r, "m", "n", "k")), lambda r: float(r["ms"])).items():
        cast = casts.get((gpu, sizes[0], sizes[2]))
        if cast is not None and cast < 0.7 * ms:  # else the product would be a remainder of noise
            times[gpu, "fp8"][tuple(sizes)] = flops(sizes) / (ms - cast) / 1e9
    sources = {"bf16": "bfloat16 products, the median of trtllm, vllm and sglang",
               "fp8": "fp8 products of trtllm, less compute_scale and scale_matrix of their first operand"}
    tables = collections.defaultdict(dict)
    for (gpu, kind), measured in times.items():
        if gpu in NAMES:
            tables[gpu][kind] = Table(measured, PRODUCT_AXES, ("m", "n", "k"), sources[kind])
    return tables


def AttentionTables(folder):
    rows = (r for r in Rows(folder, "attention_forward")
            if r["framework"] == "vllm" and r["attn_dtype"] == "bfloat16" and r["window_size"] == "0")

    def Rate(r):
        batch, heads, tokens, size = Sizes(r, "batch_size", "num_heads", "tokens", "head_dim")
        return 2 * batch * heads * tokens**2 * size / float(r["ms"]) / 1e9

    measured = collections.defaultdict(dict)
    for (gpu, *sizes), rate in Medians(
            rows, lambda r: (r["gpu"], int(r["tokens"]), int(r["batch_size"]) * int(r["num_heads"]),
                             int(r["head_dim"])), Rate).items():
        measured[gpu][tuple(sizes)] = rate
    return {gpu: {"bf16": Table(of_gpu, ATTENTION_AXES, ("tokens", "heads", "head_size"),
                                "causal forward attention of vllm in bfloat16, by batch x heads")}
            for gpu, of_gpu in measured.items() if gpu in NAMES}


def Write(path, rates):
    """One line for each first and second size of a table, and for each shape."""
    text = json.dumps(rates, indent=1)
    for kind in ("matmul", "attention"):
        for table in rates.get(kind, {}).values():
            if "shapes" in table:
                continue
            wide = [len(values) for key, values in table.items() if key not in ("tflops", "source")][-1]
            for key, values in table.items():
                if not isinstance(values, list):
                    continue
                width = wide if key == "tflops" else len(values)
                lines = [", ".join(f"{v:g}" for v in values[i:i + width]) for i in range(0, len(values), width)]
                flat = json.dumps(values, indent=1).replace("\n", "\n   ")
                text = text.replace(f'"{key}": {flat}', f'"{key}": [' + ",\n     ".join(lines) + "]", 1)
    text = re.sub(r"\[\s+(\d[^][]*?)\s+\]", lambda row: "[" + re.sub(r"\s+", " ", row[1]) + "]", text)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text + "\n")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder = sys.argv[1]
    if len(sys.argv) > 2:
        NAMES.clear()
        NAMES.update(word.split("=") for word in sys.argv[2:])
    products, attention = ProductTables(folder), AttentionTables(folder)
    for gpu, name in NAMES.items():
        path = os.path.join(WORKSPACE, RATES, name + ".json")
        kept = {}
        if os.path.exists(path):  # what people wrote
            with open(path, encoding="utf-8") as file:
                kept = {key: value for key, value in json.load(file).items() if key not in ("matmul", "attention")}
        Write(path, {**kept, "matmul": products[gpu], "attention": attention[gpu]})
        print(path)


if __name__ == "__main__":
    main()
