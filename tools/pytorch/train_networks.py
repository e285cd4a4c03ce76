#!/usr/bin/env python3
"""Trains pipelab's networks in PyTorch, and writes or checks the table that pipelab's test compares itself with.

  apt-get install -y python3-torch
  tools/bazel run //tests/pytorch:export_networks
  /usr/bin/python3 tools/pytorch/train_networks.py            # writes the table
  /usr/bin/python3 tools/pytorch/train_networks.py --check    # compares with it

The table has, for each network and step, the mean loss and the norm of all gradients in float64, and how far
PyTorch's own float32 comes from them: the largest difference among three float32 runs that round differently
(with oneDNN, without it, and with each micro-batch's samples in the opposite order).
"""
from __future__ import annotations

import argparse
import os
import sys

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from networks import NETWORKS, Training, read_safetensors  # noqa: E402

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
INPUT = os.path.join(ROOT, "results/networks.safetensors")
TABLE = os.path.join(ROOT, "tests/pytorch/losses.csv")
COLUMNS = ["network", "step", "loss", "gradient_norm", "loss_float32_error", "gradient_norm_float32_error"]
# float64 runs on other machines and versions: rounding, grown over 20 steps of Adam.
CHECK_TOLERANCE = 1e-6


def train(file: tuple, name: str, steps: int, dtype: torch.dtype, onednn: bool = True, order: int = 1) -> list:
    """(loss, gradient norm) of each step."""
    with torch.backends.mkldnn.flags(enabled=onednn):
        training = Training(*file, name, dtype)
        rows = []
        for step in range(steps):
            loss = training.gradients(step, order)
            rows.append((loss, training.gradient_norm()))
            training.update()
    return rows


def rows_of(file: tuple, name: str, steps: int) -> list[list[str]]:
    exact = train(file, name, steps, torch.float64)
    single = [train(file, name, steps, torch.float32, **options)
              for options in ({}, {"onednn": False}, {"order": -1})]
    rows = []
    for step, (loss, norm) in enumerate(exact):
        errors = [max(abs(run[step][i] - exact[step][i]) for run in single) for i in (0, 1)]
        rows.append([name, str(step), f"{loss:.12g}", f"{norm:.12g}", f"{errors[0]:.2e}", f"{errors[1]:.2e}"])
    return rows


def check(rows: list[list[str]], path: str) -> int:
    """How many rows are missing in the table or differ from it."""
    with open(path, encoding="ascii") as file:
        lines = [line.strip().split(",") for line in file if not line.startswith("#")]
    table = {tuple(line[:2]): line[2:4] for line in lines[1:]}
    wrong = 0
    for row in rows:
        there = table.get(tuple(row[:2]))
        if there is None:
            print(f"{path}: no row of {row[0]}, step {row[1]}")
            wrong += 1
        for name, mine, theirs in zip(COLUMNS[2:4], row[2:4], there or []):
            if abs(float(mine) - float(theirs)) > CHECK_TOLERANCE * abs(float(theirs)):
                print(f"{row[0]}, step {row[1]}, {name}: {mine}, and {theirs} in the table")
                wrong += 1
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--input", default=INPUT, help="what //tests/pytorch:export_networks wrote")
    parser.add_argument("--table", default=TABLE, help="the table's file")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--check",
                        action="store_true",
                        help="compare with the table, and leave it as it is")
    args = parser.parse_args()
    if not os.path.exists(args.input):
        sys.exit(f"--input={args.input}: not there; tools/bazel run //tests/pytorch:export_networks")
    file = read_safetensors(args.input)
    unknown = set(file[1]) - set(NETWORKS)
    if unknown:
        sys.exit(f"--input={args.input}: networks that networks.py does not have: {', '.join(sorted(unknown))}")
    torch.set_num_threads(1)
    rows = [row for name in NETWORKS if name in file[1] for row in rows_of(file, name, args.steps)]
    if args.check:
        wrong = check(rows, args.table)
        print(f"{len(rows)} rows, {wrong} differences from {args.table}")
        sys.exit(1 if wrong else 0)
    with open(args.table, "w", encoding="ascii") as out:
        out.write("# Losses and gradient norms of training, before each step, in float64 by PyTorch "
                  f"{torch.__version__}; the float32 errors are PyTorch's own.\n"
                  "# Seed 1; weights and batches by //tests/pytorch:export_networks; table by\n"
                  "# tools/pytorch/train_networks.py. How: docs/pytorch.md.\n")
        for row in [COLUMNS] + rows:
            out.write(",".join(row) + "\n")
    print(f"{args.table}: {len(rows)} rows")


if __name__ == "__main__":
    main()
