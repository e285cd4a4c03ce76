#!/usr/bin/env python3
"""Makes the table of what Megatron-Bridge's recipes switched on in each release, for the layouts of measured rows.

  bridge_releases.py CLONE ROWS.csv > experiments/modern/releases/megatron_bridge.csv

CLONE is a git clone of NVIDIA-NeMo/Megatron-Bridge (Apache-2.0) with its tags; ROWS.csv has rows of its published
results (modern_training_rows.csv). Releases up to 26.06 keep a configuration a line of scripts/performance
(*workload_base_configs.py), 26.08 a function of src/megatron/bridge/perf_recipes. Both are run here without the
packages that they import: what a recipe sets is recorded, all else does nothing.

Cells of the column kernels are words between semicolons: dispatcher, cuda_graph with its modules, ep_overlap,
fused_router (set in all these recipes of models with experts), fused_experts, fp8_attention, cpu_offloading.
"""
import ast
import csv
import importlib
import importlib.abc
import importlib.util
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import types

TAGS = {"25.11": "v0.2.0", "26.02": "v0.3.0", "26.02.01": "v0.3.1", "26.04": "v0.4.0", "26.04.01": "v0.4.1",
        "26.06": "v0.5.0", "26.06.01": "v0.5.1", "26.08": "v0.6.0"}
MAIN, MAIN_SINCE = "26.08", "2026-07"
MODELS = {"DEEPSEEK_V3": "deepseek-v3", "QWEN3_30B_A3B": "qwen3-30b-a3b", "QWEN3_235B_A22B": "qwen3-235b-a22b",
          "KIMI_K2": "kimi-k2", "GPT_OSS_120B": "gpt-oss-120b", "GPT_OSS_20B": "gpt-oss-20b",
          "LLAMA3_8B": "llama3-8b", "LLAMA3_70B": "llama3-70b", "LLAMA31_405B": "llama3.1-405b"}
PRECISIONS = {"BF16": "BF16", "FP8_CS": "FP8", "FP8_SC": "FP8", "FP8_MX": "MXFP8", "NVFP4": "NVFP4",
              "FP8CS": "FP8", "FP8SC": "FP8", "FP8MX": "MXFP8"}
SIZES = {"tp": "tensor_model_parallel_size", "pp": "pipeline_model_parallel_size", "cp": "context_parallel_size",
         "vp": "virtual_pipeline_model_parallel_size", "ep": "expert_model_parallel_size", "mbs": "micro_batch_size"}
GPU = r"_(GB300|GB200|B300|B200|H100)_(" + "|".join(PRECISIONS) + ")"


def Git(clone, *words, text=True):
    return subprocess.run(["git", "-C", clone, *words], capture_output=True, text=text, check=False).stdout


class Values:
    """A WorkloadBaseConfig, as far as a line sets it."""

    def __init__(self, **values):
        self.__dict__.update(values)


def Replace(values, **others):
    return Values(**{**values.__dict__, **others})


class Record:
    """Any object of a recipe: takes all attributes and calls, and is empty."""

    def __init__(self):
        object.__setattr__(self, "set", {})

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self.set.setdefault(name, Record())

    def __setattr__(self, name, value):
        self.set[name] = value

    def __bool__(self):
        return False

    def __call__(self, *_, **__):
        return Record()

    def __iter__(self):
        return iter(())


class Imports(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Recipes from `root`; every other module of megatron and torch has functions that return records."""

    def __init__(self, root):
        self.root = root

    def find_spec(self, name, _path, _target=None):
        if name.split(".")[0] not in ("megatron", "torch", "transformers"):
            return None
        path = os.path.join(self.root, *name.split(".")) + ".py"
        if os.path.exists(path):
            return importlib.util.spec_from_file_location(name, path)
        return importlib.util.spec_from_loader(name, self, is_package=True)

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__path__ = []
        module.__getattr__ = lambda name: Record()
        return module

    def exec_module(self, module):
        pass


def Entry(release, name, values):
    """A recipe by its name, or None: of a model and GPU that no row has, or of fine-tuning."""
    name = name.upper().replace("LLAMA3_1", "LLAMA31")
    found = re.search(GPU, name)
    models = [model for prefix, model in MODELS.items() if name.startswith(prefix)]
    if not found or not models or "SFT" in name or "LORA" in name:
        return None
    return {"release": release, "model": models[0], "gpu": found.group(1),
            "precision": PRECISIONS[found.group(2)], "values": values}


def OfLines(clone, release, tag):
    for file in Git(clone, "ls-tree", "-r", "--name-only", tag, "scripts/performance").split():
        if not file.endswith("workload_base_configs.py"):
            continue
        tree = ast.parse(Git(clone, "show", f"{tag}:{file}"))
        tree.body = [line for line in tree.body if not isinstance(line, (ast.Import, ast.ImportFrom))]
        names = {"WorkloadBaseConfig": Values, "replace": Replace}
        exec(compile(tree, file, "exec"), names)  # pylint: disable=exec-used
        for name, values in names.items():
            if isinstance(values, Values):
                yield Entry(release, name, values.__dict__)


def OfFunctions(clone, release, tag):
    with tempfile.TemporaryDirectory() as folder:
        archive = os.path.join(folder, "recipes.tar")
        with open(archive, "wb") as file:
            file.write(Git(clone, "archive", tag, "src/megatron/bridge/perf_recipes",
                           "src/megatron/bridge/utils/cuda_graph.py", text=False))
        with tarfile.open(archive) as tar:
            tar.extractall(folder)
        root = os.path.join(folder, "src")
        sys.meta_path.insert(0, Imports(root))
        for path, _, files in sorted(os.walk(os.path.join(root, "megatron", "bridge", "perf_recipes"))):
            for file in sorted(files):
                if file == "__init__.py":
                    continue
                module = os.path.relpath(os.path.join(path, file), root)[:-3].replace(os.sep, ".")
                for name, recipe in list(vars(importlib.import_module(module)).items()):
                    entry = Entry(release, name, {}) if "_pretrain_" in name and callable(recipe) else None
                    if entry is None:
                        continue
                    entry["values"] = Flat(recipe(), int(re.search(r"(\d+)gpu", name).group(1)))
                    yield entry


def Flat(config, gpus):
    """What a function set, under the names of lines."""
    def Get(part, name):
        value = getattr(config, part).set.get(name)
        return None if isinstance(value, Record) else value
    values = {name: Get("model", name) for name in (*SIZES.values(), "cuda_graph_impl", "cuda_graph_scope",
                                                    "moe_flex_dispatcher_backend", "recompute_modules",
                                                    "cpu_offloading_num_layers")}
    values.update({name: Get("train", name) for name in ("global_batch_size", "micro_batch_size")})
    values["num_gpus"] = gpus
    values["moe_a2a_overlap"] = Get("comm_overlap", "overlap_moe_expert_parallel_comm")
    values["cutedsl_fused_grouped_mlp"] = Get("model", "use_transformer_engine_op_fuser")
    values["fp8_dot_product_attention"] = Get("mixed_precision", "fp8_dot_product_attention")
    return values


def Words(values, experts):
    graph = values.get("cuda_graph_impl") or "none"
    if graph in ("transformer_engine", "local") and values.get("cuda_graph_scope"):
        scope = values["cuda_graph_scope"]
        graph += "(" + ",".join([scope] if isinstance(scope, str) else scope) + ")"
    words = ["dispatcher=" + (values.get("moe_flex_dispatcher_backend") or "alltoall")] if experts else []
    words.append("cuda_graph=" + graph)
    words += ["ep_overlap=on-delay-wgrad"] if values.get("moe_a2a_overlap") else []
    words += ["fused_router"] if experts else []
    words += ["fused_experts"] if values.get("cutedsl_fused_grouped_mlp") else []
    offloaded = values.get("cpu_offloading_num_layers")
    words += [f"cpu_offloading={offloaded}"] if offloaded else []
    words += ["fp8_attention"] if values.get("fp8_dot_product_attention") else []
    modules = values.get("recompute_modules")
    return ";".join(words), "selective:" + "+".join(modules) if modules else ""


def ReleaseOf(row):
    container = re.search(r"container (\S+)", row["system"])
    day = re.search(r"@.*(20\d\d-\d\d-\d\d)", row["system"])
    return container.group(1) if container else MAIN if day and day.group(1) >= MAIN_SINCE else None


def RecipesOf(row, entries):
    """Of the row's layout, and of its GPUs and batch where some are."""
    wanted = tuple(int(row[size] or 1) for size in SIZES)
    found = [e for e in entries
             if all(e[key] == row[key] for key in ("model", "gpu", "precision")) and
             tuple(e["values"].get(name) or 1 for name in SIZES.values()) == wanted]
    for key, name in (("gpus", "num_gpus"), ("gbs", "global_batch_size")):
        found = [e for e in found if e["values"].get(name) == int(row[key])] or found
    return {Words(e["values"], wanted[4] > 1) for e in found}


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    clone, rows = sys.argv[1:]
    entries = {release: [e for e in (OfFunctions if release == MAIN else OfLines)(clone, release, tag) if e]
               for release, tag in TAGS.items()}
    table = {}
    with open(rows, encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if not re.match(r"mbridge-.*(-pretrain-|card-)", row["id"]):
                continue
            release = ReleaseOf(row)
            found = RecipesOf(row, entries.get(release, []))
            key = (release, row["model"], row["gpu"], row["precision"], *(int(row[size] or 1) for size in SIZES))
            if len(found) == 1:
                table[key] = found.pop()
            elif found:
                print(f"{row['id']}: {len(found)} recipes of its layout", file=sys.stderr)
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["release", "model", "gpu", "precision", *SIZES, "kernels", "recompute"])
    for key in sorted(table):
        out.writerow([*key, *table[key]])


if __name__ == "__main__":
    main()
