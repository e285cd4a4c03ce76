#!/usr/bin/env python3
"""Times products with 4-bit weights in pipelab, onnxruntime, llama.cpp and PyTorch, and prints the ratios.

  python3 -m venv venv && venv/bin/pip install numpy onnx onnxruntime torch llama-cpp-python
  tools/bazel build //kernels/cpu:time_int4
  venv/bin/python tools/bench/int4_peers.py

The matrices are a 7B model's. Every program multiplies by copies of one that together are beyond the last cache, one
copy after the other, on the same threads. Activations and results are float32 (in PyTorch bfloat16, its fast way).

  ort     MatMulNBits of onnxruntime, blocks of 32 or 128 rows; int8: accuracy level 4, activations rounded to int8;
          float32: level 1
  ggml    Q4_0 of llama.cpp (blocks of 32), through the shared library inside llama-cpp-python, whose pip install
          compiles it for this processor; repacked into its own interleaved layout where it has one for it
  torch   _weight_int4pack_mm_for_cpu, groups of 32 or 128

A program takes its turn after the others, so that a drift of the machine meets all of them, and waits before it until
the others' threads sleep. What counts is the median of all rounds, by the clock on the wall and of processor time.
Ratios are the peer's time over ours with the same rows a scale: above 1 ours is faster.
"""
from __future__ import annotations

import argparse
import ctypes
import glob
import json
import os
import statistics
import subprocess
import sys
import time

SHAPES = ((4096, 12288), (4096, 4096), (4096, 21504), (10752, 4096))
BYTES = 200e6  # of all copies of a matrix
PEERS = ("ort-int8-32", "ort-int8-128", "ort-float32-32", "ort-float32-128", "ggml-32", "torch-32",
         "torch-128")
OURS = ("int8-32", "int8-128", "float32-128")
IDLE_SECONDS = 0.3  # until OpenMP's and onnxruntime's threads stop to spin


class Onnxruntime:
    """One graph with a node for each copy, so that a run is a pass over all of them."""

    def __init__(self, kind: str, group: int, case: dict):
        import numpy as np
        import onnx
        import onnxruntime
        k, n, blocks = case["k"], case["n"], case["k"] // group
        rng = np.random.default_rng(1)
        nodes, weights, outputs = [], [], []
        for i in range(case["copies"]):
            codes = rng.integers(0, 256, (n, blocks, group // 2), dtype=np.uint8)
            scales = rng.uniform(0.01, 0.02, n * blocks).astype(np.float32)
            weights += [onnx.numpy_helper.from_array(codes, f"b{i}"), onnx.numpy_helper.from_array(scales, f"s{i}")]
            nodes.append(onnx.helper.make_node("MatMulNBits", ["x", f"b{i}", f"s{i}"], [f"y{i}"], domain="com.microsoft",
                                               K=k, N=n, bits=4, block_size=group,
                                               accuracy_level=4 if kind == "int8" else 1))
            outputs.append(onnx.helper.make_tensor_value_info(f"y{i}", onnx.TensorProto.FLOAT, [case["m"], n]))
        x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [case["m"], k])
        graph = onnx.helper.make_graph(nodes, "g", [x], outputs, weights)
        opsets = [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid("com.microsoft", 1)]
        model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = case["threads"]
        options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                                    ["CPUExecutionProvider"])
        self.x = {"x": rng.standard_normal((case["m"], k)).astype(np.float32)}

    def run(self) -> None:
        self.session.run(None, self.x)


class Torch:
    def __init__(self, kind: str, group: int, case: dict):
        import torch
        torch.set_num_threads(case["threads"])
        torch.manual_seed(1)
        k, n = case["k"], case["n"]
        self.group = group
        self.product = torch.ops.aten._weight_int4pack_mm_for_cpu
        self.x = torch.randn(case["m"], k).to(torch.bfloat16)
        self.copies = []
        for _ in range(case["copies"]):
            codes = torch.randint(0, 16, (n, k), dtype=torch.int32)
            packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(codes, 1)
            self.copies.append((packed, torch.rand(k // group, n, 2).to(torch.bfloat16)))

    def run(self) -> None:
        for packed, scales in self.copies:
            self.product(self.x, packed, self.group, scales)


class Ggml:
    """One graph with a node for each copy. Structures and names are those of ggml.h."""

    TYPE_F32, TYPE_Q4_0 = 0, 2

    class InitParams(ctypes.Structure):
        _fields_ = [("mem_size", ctypes.c_size_t), ("mem_buffer", ctypes.c_void_p),
                    ("no_alloc", ctypes.c_bool)]

    def __init__(self, kind: str, group: int, case: dict):
        import numpy as np
        self.load()
        self.silence = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p,
                                        ctypes.c_void_p)(lambda *_: None)
        self.call("ggml_log_set", self.silence, None)
        k, n = case["k"], case["n"]
        weights, results = self.contexts = [self.context(), self.context()]
        copies = [self.call("ggml_new_tensor_2d", weights, self.TYPE_Q4_0, ctypes.c_int64(k), ctypes.c_int64(n))
                  for _ in range(case["copies"])]
        self.backend = self.call("ggml_backend_cpu_init")
        self.call("ggml_backend_cpu_set_n_threads", self.backend, case["threads"])
        self.buffers = [self.allocate(weights)]
        rng = np.random.default_rng(1)
        for copy in copies:
            blocks = rng.integers(0, 256, (n * k // 32, 18), dtype=np.uint8)
            blocks[:, :2] = np.frombuffer(np.float16(0.01).tobytes(), np.uint8)
            self.fill(copy, blocks)
        x = self.call("ggml_new_tensor_2d", results, self.TYPE_F32, ctypes.c_int64(k),
                      ctypes.c_int64(case["m"]))
        self.graph = self.call("ggml_new_graph", results)
        for copy in copies:
            self.call("ggml_build_forward_expand", self.graph,
                      self.call("ggml_mul_mat", results, copy, x))
        self.buffers.append(self.call("ggml_backend_alloc_ctx_tensors", results, self.backend))
        self.fill(x, rng.standard_normal((case["m"], k)).astype(np.float32))

    def load(self) -> None:
        import importlib.util
        folder = os.path.join(os.path.dirname(importlib.util.find_spec("llama_cpp").origin), "lib")
        order = ("libggml-base.so", "libggml-cpu.so", "libggml.so")
        found = [path for name in order for path in glob.glob(os.path.join(folder, name + "*"))]
        self.libraries = [ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL) for path in found]

    def call(self, name: str, *arguments):
        function = next(
            getattr(library, name) for library in self.libraries if hasattr(library, name))
        function.restype = ctypes.c_void_p
        return function(
            *(ctypes.c_void_p(a) if isinstance(a, int) and a > 1 << 16 else a for a in arguments))

    def context(self) -> int:
        return self.call("ggml_init", self.InitParams(64 << 20, None, True))

    def fill(self, tensor: int, values) -> None:
        self.call("ggml_backend_tensor_set", tensor, values.ctypes.data_as(ctypes.c_void_p),
                  ctypes.c_size_t(0), ctypes.c_size_t(values.nbytes))

    def __del__(self):
        for buffer in self.buffers:
            self.call("ggml_backend_buffer_free", buffer)
        for context in self.contexts:
            self.call("ggml_free", context)
        self.call("ggml_backend_free", self.backend)

    def allocate(self, weights: int) -> int:
        """In the first of the CPU's extra kinds of buffer (the repacked one), if it has any."""
        device = self.call("ggml_backend_get_device", self.backend)
        registry = self.call("ggml_backend_dev_backend_reg", device)
        address = self.call("ggml_backend_reg_get_proc_address", registry,
                            b"ggml_backend_dev_get_extra_bufts")
        kinds = None
        if address:
            extra = ctypes.CFUNCTYPE(ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p)(address)
            kinds = extra(device)
        if kinds and kinds[0]:
            return self.call("ggml_backend_alloc_ctx_tensors_from_buft", weights, kinds[0])
        return self.call("ggml_backend_alloc_ctx_tensors", weights, self.backend)

    def run(self) -> None:
        self.call("ggml_backend_graph_compute", self.backend, self.graph)


def child(name: str) -> None:
    """For each case, a line of JSON, that it reads: gets ready, says so, and then times a pass for each line "go"."""
    parts = name.split("-")
    maker = {"ort": Onnxruntime, "ggml": Ggml, "torch": Torch}[parts[0]]
    peer, case = None, {}
    for line in sys.stdin:
        if line.strip() == "go":
            begin, used = time.perf_counter(), time.process_time()
            peer.run()
            wall, processor = time.perf_counter() - begin, time.process_time() - used
            print(1e3 * wall / case["copies"], 1e3 * processor / case["copies"], flush=True)
            continue
        peer, case = None, json.loads(line)  # the last one's memory first
        peer = maker(parts[1], int(parts[-1]), case)
        peer.run()
        print("ready", flush=True)


class Program:
    """A process that times a pass when it is told to."""

    def __init__(self, name: str, command: list[str]):
        self.name = name
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.times: list[tuple[float, ...]] = []

    def tell(self, line: str) -> str:
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.answer()

    def answer(self) -> str:
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.name}: ended with {self.process.wait()}")
        return line.strip()

    def median(self, clock: int) -> float:
        return statistics.median(t[clock] for t in self.times)


def our_programs(binary: str, case: dict) -> list[Program]:
    programs = []
    for name in OURS:
        math, group = name.split("-")
        sizes = [case["k"], case["n"], group, math, case["m"], case["threads"], case["copies"]]
        programs.append(Program("ours-" + name, [binary] + [str(s) for s in sizes]))
    for program in programs:
        program.instructions = program.answer()
    return programs


def measure(args: argparse.Namespace, peers: list[Program], case: dict) -> list[Program]:
    """All programs with their times."""
    for peer in peers:
        peer.times = []
        peer.tell(json.dumps(case))
    ours = our_programs(args.binary, case)
    for _ in range(args.rounds):
        for program in ours + peers:
            time.sleep(IDLE_SECONDS)
            program.times.append(tuple(float(t) for t in program.tell("go").split()))
    for program in ours:
        program.process.stdin.close()
        program.process.wait()
    return ours + peers


def report(case: dict, programs: list[Program]) -> list[str]:
    """Prints the case's rows; returns what is slower in ours."""
    ours = {p.name.rsplit("-", 1)[1]: p for p in programs if p.name.startswith("ours-int8")}
    slower = []
    for p in programs:
        mine = ours[p.name.rsplit("-", 1)[1]]
        ratios = [p.median(clock) / mine.median(clock) for clock in (0, 1)]
        size = f"{case['k']} x {case['n']}"
        print(f"| {size} | {case['m']} | {case['threads']} | {p.name} | {p.median(0):.3f} | {p.median(1):.3f} | "
              f"{ratios[0]:.2f} | {ratios[1]:.2f} |", flush=True)
        if not p.name.startswith("ours") and ratios[0] < 1:
            slower.append(
                f"{p.name}, {size}, batch {case['m']}, {case['threads']} threads: {ratios[0]:.2f}")
    return slower


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--binary", default="bazel-bin/kernels/cpu/int4/time_int4")
    parser.add_argument("--rounds", type=int, default=9, help="passes of each program, in turn")
    parser.add_argument("--batches",
                        default="1,8",
                        help="rows of activations, with commas between them")
    parser.add_argument("--threads", default="1,2", help="likewise")
    parser.add_argument("--peers", default=",".join(PEERS), help="which, with commas between them")
    parser.add_argument("--shapes",
                        default=",".join(f"{k}x{n}" for k, n in SHAPES),
                        help="ROWSxCOLUMNS, likewise")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args.child)
        return
    unknown = [p for p in args.peers.split(",") if p not in PEERS]
    if unknown or args.rounds < 1:
        sys.exit(f"--peers={args.peers} --rounds={args.rounds}: peers are {', '.join(PEERS)}, rounds at least 1")
    if not os.path.exists(args.binary):
        sys.exit(f"--binary={args.binary}: no such program; tools/bazel build //kernels/cpu:time_int4")
    peers = [Program(p, [sys.executable, __file__, "--child", p]) for p in args.peers.split(",")]
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores at the start\n")
    print("| matrix | batch | threads | program | ms | processor ms | over ours | processor, over ours |")
    print("|---|---:|---:|---|---:|---:|---:|---:|")
    slower = []
    for shape in args.shapes.split(","):
        k, n = (int(size) for size in shape.split("x"))
        for m in args.batches.split(","):
            for threads in args.threads.split(","):
                case = {"k": k, "n": n, "m": int(m), "threads": int(threads),
                        "copies": max(2, round(BYTES / (k * n / 2)))}
                slower += report(case, measure(args, peers, case))
    print(f"\nload {os.getloadavg()[0]:.1f} at the end")
    print("slower than a peer:" if slower else "no peer is faster")
    for line in slower:
        print("  " + line)


if __name__ == "__main__":
    main()
