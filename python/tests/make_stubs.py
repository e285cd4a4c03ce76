#!/usr/bin/env python3
"""Writes python/pipelab/__init__.pyi from the options of the commands:

  tools/bazel run //python:install -- --venv=venv
  venv/bin/python python/tests/make_stubs.py python/tests/stubs_head.txt >python/pipelab/__init__.pyi

package_test.py holds the file to the options that there are.
"""
import sys

from pipelab import _core

RETURNED = {"json_out", "parts_out", "schedule_out"}
OWN = {
    "simulate": ("schedule: str | os.PathLike[str] | Schedule | None = ...", "Simulation", set()),
    "search": ("", "SearchResult", {"json"}),
    "compare": ("*configs: str | Schedule", "Comparison", set()),
    "plan": ("", "Plan", {"graph", "partition", "fanouts"}),
    "synthesize": ("config: str", "Synthesis", set()),
}
OBJECTS = {"model": "Model | str | os.PathLike[str] | None", "plan": "Plan | str | os.PathLike[str] | None"}
TYPES = {"bool": "bool | None", "int": "int | None", "float": "float | None", "str": "Value"}


def Function(command):
    first, result, left_out = OWN[command]
    lines = [first] if first else []
    if not first.startswith("*"):
        lines.append("*")
    if command == "simulate":
        lines.append("keys: str = ...")
    for name, kind, _, _ in _core.options(command):
        if name not in RETURNED | left_out:
            lines.append(f"{name}: {OBJECTS.get(name, TYPES[kind])} = ...")
    return f"def {command}(\n" + "".join(
        f"    {line},\n" for line in lines) + f") -> {result}: ...\n"


def main():
    with open(sys.argv[1], encoding="utf-8") as head:
        print(head.read() + "\n" + "\n".join(Function(command) for command in OWN), end="")


if __name__ == "__main__":
    main()
