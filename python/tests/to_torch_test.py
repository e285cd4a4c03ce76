#!/usr/bin/env python3
"""PyTorch trains a GPT under three of our schedules, one of them synthesized, each device a process, and the
losses are those of serial PyTorch and those of the table that our runtime is held to.

to_torch_test.py NETWORKS LOSSES_CSV TOOLS: NETWORKS by //tests/pytorch:export_networks; tests/pytorch/losses_test.cc
compares our own training with LOSSES_CSV.
"""
import os
import sys
import tempfile

import pipelab
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.pipelining import PipelineStage

NETWORKS_FILE, LOSSES, TOOLS = sys.argv[1:]
sys.path.append(TOOLS)
import networks  # noqa: E402

NAME = "gpt"
STEPS = 10
SERIAL_TOLERANCE = 1e-11  # float64, in another order of sums
TABLE_TOLERANCE = 1e-6    # train_networks.py's, of other versions of PyTorch


class Part(nn.Module):
    """Some of the network's parts, one after the other, with their weights."""

    def __init__(self, parts, training):
        super().__init__()
        self.parts, self.settings = parts, training.settings
        self.weights = nn.ParameterDict()
        for name, value in training.weights.items():
            if name.split("/", 1)[0] in {part.split("/", 1)[0] for part in parts} and \
                    any(name.startswith(part + "/") for part in parts):
                self.weights[name] = nn.Parameter(value.detach().clone())

    def forward(self, x):
        w = self.weights
        for part in self.parts:
            if part == "embedding":
                x = networks.embedding(w, part, x)
            elif part.endswith("attention"):
                x = networks.self_attention(w, part, x, self.settings["heads"],
                                            networks.causal(x.shape[1]))
            elif part.endswith("mlp"):
                x = networks.mlp(w, part, x)
            else:
                x = nn.functional.linear(networks.layer_norm(w, "head", x), w["head/table"])
        return x


def Parts(settings):
    blocks = [f"block{i}/{half}" for i in range(settings["layers"]) for half in ("attention", "mlp")]
    return ["embedding", *blocks, "head"]


def NewTraining():
    return networks.Training(*networks.read_safetensors(NETWORKS_FILE), NAME, torch.float64)


def Train(rank, world, text, folder):
    """One device's process: the losses of each step go to a file where the last stage is."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=world)
    schedule = pipelab.Schedule.from_text(text)
    training = NewTraining()
    parts, count = Parts(training.settings), schedule.stages
    device_of = [group[0] for group in schedule.stage_devices[0]]
    stages = []
    for stage in range(count):
        if device_of[stage] == rank:
            own = parts[stage * len(parts) // count:(stage + 1) * len(parts) // count]
            stages.append(PipelineStage(Part(own, training), stage, count, torch.device("cpu")))
    targets = training.data["targets"]
    numbers = targets[0].numel()
    runtime = schedule.to_torch(
        stages,
        scale_grads=False,
        loss_fn=lambda logits, ids: networks.cross_entropy(logits, ids) / numbers)
    weights = {name: p for stage in stages for name, p in stage.submod.weights.items()}
    optimizer = networks.make_optimizer(weights, training.settings, foreach=False)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad(set_to_none=True)
        of_micro_batches = []
        args = (training.data["tokens"][step],) if any(s.is_first for s in stages) else ()
        last = any(s.is_last for s in stages)
        runtime.step(*args,
                     target=targets[step] if last else None,
                     losses=of_micro_batches if last else None)
        if last:
            losses.append(float(sum(of_micro_batches).detach()))
        optimizer.step()
    if losses:
        torch.save(losses, f"{folder}/losses.pt")
    dist.destroy_process_group()


def Serial():
    training, losses = NewTraining(), []
    for step in range(STEPS):
        losses.append(training.gradients(step))
        training.update()
    return losses


def Table():
    with open(LOSSES, encoding="ascii") as file:
        rows = [line.split(",") for line in file if line.startswith(f"{NAME},")]
    return [float(row[2]) for row in rows][:STEPS]


def Largest(losses, expected):
    return max(abs(a - b) / abs(b) for a, b in zip(losses, expected, strict=True))


def main():
    torch.set_num_threads(1)
    rows = NewTraining().data["tokens"].shape[1]
    sizes = f"P=2,M={rows}"
    synthesis = pipelab.synthesize(f"1f1b:{sizes}", forward=1, backward_input=1.5, backward_weight=0.5, p2p_latency=0.2,
                                   memory=3, time_limit="2s", freedoms="split")
    schedules = {
        "1f1b": pipelab.Schedule(f"1f1b:{sizes}"),
        "zbv": pipelab.Schedule(f"zbv:{sizes}"),
        "synthesized": synthesis.schedule,
    }
    own = {tuple(s.actions()[["device", "stage", "kind", "micro_batch"]].tolist()) for s in schedules.values()}
    assert len(own) == len(schedules), "two of the schedules are the same"
    serial, table = Serial(), Table()
    assert serial[-1] < serial[0], serial
    assert Largest(serial, table) < TABLE_TOLERANCE, (serial, table)
    for name, schedule in schedules.items():
        with tempfile.TemporaryDirectory() as folder:
            mp.spawn(Train, args=(2, schedule.text(), folder), nprocs=2)
            losses = torch.load(f"{folder}/losses.pt")
        far, far_of_ours = Largest(losses, serial), Largest(losses, table)
        print(f"{name:12} {schedule.stages} stages, {STEPS} steps, loss {losses[0]:.6f} to {losses[-1]:.6f}; largest "
              f"relative difference {far:.1e} from serial PyTorch, {far_of_ours:.1e} from the table")
        assert far < SERIAL_TOLERANCE, (name, losses, serial)
        assert far_of_ours < TABLE_TOLERANCE, (name, losses, table)


if __name__ == "__main__":
    main()
