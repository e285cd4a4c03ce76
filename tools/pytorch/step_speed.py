#!/usr/bin/env python3
"""Times one training step in pipelab and in PyTorch, one thread each, and prints the ratios.

  apt-get install -y python3-torch libopenblas0-pthread
  tools/bazel build //tests/pytorch:export_networks //tests/pytorch:time_steps
  /usr/bin/python3 tools/pytorch/step_speed.py --networks=gpt,resnet

Both sides train the same network in float32 from the same weights on the same batches, in the same micro-batches
with accumulated gradients and one step of Adam; their first losses must agree. The sizes are those of
tests/pytorch/networks.cc.

PyTorch gets its best setting, found by trying all of them first: OpenBLAS as it detects the processor, or told
to use the kernels for AVX-512 (OPENBLAS_CORETYPE=SkylakeX; an OpenBLAS older than the processor picks slow ones);
oneDNN on or off; images with channels last or first; Adam over lists of tensors (foreach) or one by one. Debian's
PyTorch uses whatever libblas.so.3 is: with the reference BLAS this script stops, because that is no fair comparison.

Then both run in turn, and ratios are of the medians of all rounds, because a busy machine drifts: by the clock on the
wall, and of processor time, which other work on the machine disturbs less. The first step of each process warms up
and does not count.
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

HERE = os.path.dirname(os.path.abspath(__file__))
DEFAULT_NETWORKS = "gpt,transformer,amoebanet_d,resnet,mmt,mmt_modalities,dlrm,candle_uno"
IMAGES = ("amoebanet_d", "resnet", "unet", "vgg16")
CORES = ("", "SkylakeX")
BATCHES = 2


def settings_of(network: str) -> list[dict]:
    """What is tried inside of one process; OPENBLAS_CORETYPE is a process's."""
    settings = []
    for foreach in (True, False):
        settings.append({"onednn": True, "channels_last": False, "foreach": foreach})
        if network in IMAGES:
            settings.append({"onednn": True, "channels_last": True, "foreach": foreach})
    settings.append({"onednn": False, "channels_last": False, "foreach": True})
    return settings


def child(path: str, network: str, steps: int, settings: list[dict]) -> None:
    """Prints milliseconds and losses of each setting's steps."""
    import torch
    sys.path.insert(0, HERE)
    from networks import Training, read_safetensors
    torch.set_num_threads(1)
    file = read_safetensors(path)
    results = []
    for s in settings:
        with torch.backends.mkldnn.flags(enabled=s["onednn"]):
            training = Training(*file, network, torch.float32, s["channels_last"], s["foreach"])
            result = {"milliseconds": [], "cpu_milliseconds": [], "losses": []}
            for step in range(steps):
                begin, cpu_begin = time.perf_counter(), time.process_time()
                result["losses"].append(training.gradients(step % BATCHES))
                training.update()
                result["milliseconds"].append(1e3 * (time.perf_counter() - begin))
                result["cpu_milliseconds"].append(1e3 * (time.process_time() - cpu_begin))
        results.append(result)
    print(json.dumps(results))


def environment(core: str = "") -> dict[str, str]:
    env = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    if core:
        env["OPENBLAS_CORETYPE"] = core
    return env


def run(command: list[str], core: str = "") -> str:
    done = subprocess.run(command, env=environment(core), stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: failed")
    return done.stdout.decode()


def run_pytorch(path: str, network: str, steps: int, settings: list[dict], core: str) -> list[dict]:
    command = [sys.executable, __file__, "--child", path, "--networks", network, "--steps", str(steps),
               "--settings", json.dumps(settings)]
    return json.loads(run(command, core))


def best_setting(path: str, network: str, steps: int) -> tuple[dict, str]:
    """The setting of the smallest median step in processor time, and its OPENBLAS_CORETYPE."""
    found = []
    for core in CORES:
        settings = settings_of(network)
        for s, result in zip(settings, run_pytorch(path, network, steps, settings, core)):
            found.append((statistics.median(result["cpu_milliseconds"][1:]), len(found), s, core))
    _, _, setting, core = min(found)
    return setting, core


def text_of(setting: dict, core: str) -> str:
    parts = [f"OpenBLAS {core}" if core else "OpenBLAS as detected", "oneDNN" if setting["onednn"] else "no oneDNN"]
    parts += ["channels last"] * setting["channels_last"] + ["foreach"] * setting["foreach"]
    return ", ".join(parts)


def compare(args: argparse.Namespace, network: str, path: str) -> list[str]:
    """A row of the table."""
    run([os.path.join(args.bin, "export_networks"), "--sizes=speed", f"--network={network}",
         f"--steps={BATCHES}", f"--output={path}"])
    setting, core = best_setting(path, network, args.steps)
    ours, theirs = [], []  # (wall, CPU) of each step
    for _ in range(args.rounds):
        mine = json.loads(run([os.path.join(args.bin, "time_steps"), f"--network={network}",
                               f"--steps={args.steps}", f"--batches={BATCHES}"]))
        other = run_pytorch(path, network, args.steps, [setting], core)[0]
        if abs(mine["losses"][0] - other["losses"][0]) > 1e-4 * abs(other["losses"][0]):
            sys.exit(f"{network}: the networks differ: first losses {mine['losses'][0]} and {other['losses'][0]}")
        for times, result in ((ours, mine), (theirs, other)):
            times += list(zip(result["milliseconds"], result["cpu_milliseconds"]))[1:]
    row = [network, f"{mine['parameters']:,}"]
    for clock in (0, 1):
        a, b = (statistics.median(times[clock] for times in side) for side in (ours, theirs))
        row += [f"{a:.1f}", f"{b:.1f}", f"{b / a:.2f}"]
    return row + [text_of(setting, core)]


def check_blas() -> str:
    """Where libblas.so.3 leads; PyTorch must not run on the reference BLAS."""
    library = os.path.realpath("/usr/lib/x86_64-linux-gnu/libblas.so.3")
    if "openblas" not in library and "mkl" not in library and "blis" not in library:
        sys.exit(f"{library}: PyTorch would run on the reference BLAS; apt-get install libopenblas0-pthread")
    return library


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--networks", default=DEFAULT_NETWORKS, help="names, with commas between them")
    parser.add_argument("--bin", default="bazel-bin/tests/pytorch", help="folder of the built programs")
    parser.add_argument("--rounds", type=int, default=5, help="of both sides in turn")
    parser.add_argument("--steps", type=int, default=8, help="of each process; the first does not count")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--settings", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args.child, args.networks, args.steps, json.loads(args.settings))
        return
    if args.rounds < 1 or args.steps < 2:
        sys.exit(f"--rounds={args.rounds} --steps={args.steps}: must be at least 1 and 2")
    if not os.path.exists(os.path.join(args.bin, "time_steps")):
        sys.exit(f"--bin={args.bin}: no time_steps there; tools/bazel build //tests/pytorch:all")
    print(f"PyTorch's BLAS: {check_blas()}; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print("| network | parameters | pipelab ms | PyTorch ms | ratio | pipelab CPU ms | PyTorch CPU ms | ratio "
          "| PyTorch's best setting |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---|")
    with tempfile.TemporaryDirectory() as folder:
        for network in args.networks.split(","):
            row = compare(args, network, os.path.join(folder, f"{network}.safetensors"))
            print("| " + " | ".join(row) + " |", flush=True)
    print(f"load at the end: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
