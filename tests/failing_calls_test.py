#!/usr/bin/env python3
"""The nth allocation, write, fsync, rename, folder, open and thread of short commands fails, for each n.

The command then ends with one line and an exit code, or as if nothing were, and its file is whole or not there.

  failing_calls_test.py PIPELAB LIBRARY       PIPELAB_CALLS=1000

Each call fails, but of allocations the first 20 and then some that are a quarter apart; with PIPELAB_CALLS=1000 the
first 1,000 and then some that are 1 % apart. A search makes a million.
"""
import concurrent.futures
import os
import subprocess
import sys
import tempfile

PIPELAB, LIBRARY = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
FIRST = int(os.environ.get("PIPELAB_CALLS", "20"))
SCRIPT = """torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 16 \\
  --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 16 --bf16 \\
  --vocab-size 32000 --pipeline-model-parallel-size 2
"""
CALLS = ["malloc", "write", "fsync", "rename", "mkdir", "open", "pthread_create"]
COMMANDS = {
    "simulate": ["simulate", "1f1b:P=2,M=4", "--json_out=out"],
    "schedule": ["schedule", "zb1p", "--devices=3", "--micro_batches=6", "--out=out"],
    "search": ["search", "--model=gpt-6.6b", "--cluster=dgx-a100", "--devices=8", "--batch=8", "--fixed=P=2,T=2,b=1",
               "--json_out=out"],
    "synthesize": ["synthesize", "1f1b:P=2,M=3", "--json_out=out"],
    "compare": ["compare", "1f1b:P=2,T=4,M=8", "1f1b:P=4,T=2,M=8", "--model=gpt-6.6b", "--cluster=dgx-a100",
                "--json_out=out"],
    "evaluate": ["evaluate", "--flags=script.sh", "--cluster=dgx-a100", "--devices=8", "--json_out=out"],
    "run": ["run", "1f1b", "--devices=2", "--micro_batches=2", "--steps=2", "--checkpoint=out"],
}


def run(words, folder, fail=None):
    environment = dict(os.environ)
    if fail:
        environment.update(LD_PRELOAD=LIBRARY, PIPELAB_FAIL=fail, PIPELAB_FAILED="failed")
    return subprocess.run([PIPELAB] + words, cwd=folder, env=environment, capture_output=True, timeout=120)


def content(path):
    if not os.path.exists(path):
        return None
    with open(path, "rb") as file:
        return file.read()


def fault(words, folder, fail, whole):
    """What is wrong when this call fails; None: nothing, and '' once there are not as many calls."""
    for old in ("out", "failed"):
        if os.path.exists(os.path.join(folder, old)):
            os.remove(os.path.join(folder, old))
    done = run(words, folder, fail)
    if not os.path.exists(os.path.join(folder, "failed")):
        return ""
    lines = done.stderr.decode(errors="replace").splitlines()
    if done.returncode not in (0, 1, 2):
        return f"exit code {done.returncode}: {lines[-3:]}"
    if done.returncode != 0 and len(lines) != 1:
        return f"{len(lines)} lines: {lines[:3]}"
    made = content(os.path.join(folder, "out"))
    if made is not None and len(made) != len(whole):
        return f"left {len(made)} bytes of {len(whole)}"
    if done.returncode == 0 and made is None:
        return "exit code 0 without its file"
    rest = set(os.listdir(folder)) - {"out", "failed", "script.sh"}
    return f"left {sorted(rest)}" if rest and done.returncode == 0 else None


def failures_of(name):
    """Lines to print, and how many calls were tried and were faults."""
    lines, failures, tried = [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "script.sh"), "w", encoding="utf-8") as file:
            file.write(SCRIPT)
        plain = run(COMMANDS[name], folder)
        if plain.returncode != 0:
            return [f"FAILED: {name}: {plain.stderr.decode()}"], 0, 1
        whole = content(os.path.join(folder, "out"))
        for call in CALLS:
            n, count = 1, 0
            while True:
                wrong = fault(COMMANDS[name], folder, f"{call}:{n}", whole)
                if wrong == "":
                    break
                count += 1
                if wrong:
                    failures += 1
                    lines.append(f"FAILED: {name}: {call} {n}: {wrong}")
                n += 1 if call != "malloc" or n < FIRST else max(1, n // max(4, FIRST // 10))
            tried += count
            lines.append(f"{name}: {count} failing calls of {call}")
    return lines, tried, failures


def main():
    with open(PIPELAB, "rb") as file:
        program = file.read()
    if b"__asan_init" in program or b"__tsan_init" in program:
        print("skipped: failing calls, as a sanitizer has its own allocator")
        return 0
    all_tried = all_failures = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for lines, tried, failures in pool.map(failures_of, COMMANDS):
            print("\n".join(lines), flush=True)
            all_tried += tried
            all_failures += failures
    print(f"{all_tried} failing calls, {all_failures} faults")
    return 1 if all_failures else 0


sys.exit(main())
