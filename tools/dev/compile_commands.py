#!/usr/bin/env python3
"""Writes compile_commands.json, for clang-tidy and clangd: compile_commands.py [BAZEL_FLAG...]

Every C++ source of //... as `--config=lint` compiles it, for its flags are clang's; those that are compiled in chunks
(tools/build_defs/package.bzl) with the flags of their chunk, each as a file.
"""
import json
import os
import re
import subprocess
import sys

# Flags of the compiler's outputs, which a tool that only reads does not want.
DROPPED = ("-MD",)
DROPPED_WITH_VALUE = ("-MF", "-o")

WORKSPACE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))


def Bazel(*args):
    command = [os.path.join(WORKSPACE, "tools/bazel"), *args]
    return subprocess.run(command, cwd=WORKSPACE, check=True, stdout=subprocess.PIPE,
                          text=True).stdout


def Clean(arguments, base):
    # The links to other repositories are those of the last build; the repositories themselves stay.
    arguments = iter([os.path.join(base, a) if a.startswith("external/") else a for a in arguments])
    for argument in arguments:
        if argument in DROPPED_WITH_VALUE:
            next(arguments)
        elif argument == "-iquote" and (folder := next(arguments)).startswith("bazel-out/"):
            yield from ("-isystem", folder)  # what rules make is not ours to mend
        elif argument == "-iquote":
            yield from (argument, folder)
        elif argument not in DROPPED and not argument.startswith("-frandom-seed"):
            yield argument


def Sources(root, compiled):
    """The sources of the project that a compiled file is made of: itself, or those of a chunk."""
    if not compiled.startswith(("external/", "bazel-out/")):
        return [compiled]
    if not re.search(r"_chunks/\d+\.cc$", compiled):
        return []
    with open(os.path.join(root, compiled), encoding="utf-8") as chunk:
        return re.findall(r'^#include "(.*\.cc)"', chunk.read(), re.MULTILINE)


def main():
    # layering_check reads module maps that only a build makes.
    flags = ["--config=lint", "--features=-layering_check", "--features=-module_maps", *sys.argv[1:]]
    # Headers that a rule makes are read, too, and chunks say which sources they are of.
    Bazel("build", *flags, *Bazel("query", 'kind("genrule|_chunks", //...)').split())
    root = Bazel("info", *flags, "execution_root").strip()
    base = Bazel("info", *flags, "output_base").strip()
    actions = json.loads(Bazel("aquery", *flags, "--output=jsonproto", "--include_artifacts=false",
                               "--include_aspects=false", 'mnemonic("CppCompile", //...)'))
    entries = {}
    for action in actions.get("actions", []):
        arguments = action["arguments"]
        # A header's own syntax check has no -c.
        compiled = arguments[arguments.index("-c") + 1] if "-c" in arguments else None
        for source in Sources(root, compiled) if compiled else ():
            entries.setdefault(source, {
                "directory": root, "file": source,
                "arguments": [source if a == compiled else a for a in Clean(arguments, base)]})
    # Sources are read where they are edited, not through the execution root's links.
    for entry in entries.values():
        entry["arguments"] = [
            os.path.join(WORKSPACE, a) if a == entry["file"] else a for a in entry["arguments"]
        ]
        entry["file"] = os.path.join(WORKSPACE, entry["file"])
    with open(os.path.join(WORKSPACE, "compile_commands.json"), "w") as out:
        json.dump(list(entries.values()), out, indent=1)
    print("compile_commands.json: %d files" % len(entries))


main()
