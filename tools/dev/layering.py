#!/usr/bin/env python3
"""Checks that every #include of the project comes from a direct dependency: layering.py [QUERY_XML]

clang's layering_check without the compiler, so in seconds: it asks Bazel for the C++ targets (or reads
what `bazel query --output=xml` wrote) and reads their sources, a file at a time, also where files are compiled in
chunks. A folder's library stands for the folder's other libraries that it depends on. Both branches of a select()
count as dependencies. Prints one line for each fault, and exits with 1 where there is one.
"""
import collections
import os
import re
import subprocess
import sys
from xml.etree import ElementTree

WORKSPACE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
QUERY = 'kind("(cc_.*|alias) rule", //...)'
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def Targets(xml):
    """name -> {attribute: labels}, for each C++ target; deps say what an alias stands for too."""
    aliases = {
        rule.get("name"): [label.get("name") for label in rule.findall("rule-input")]
        for rule in xml.findall("rule") if rule.get("class") == "alias"
    }
    targets = {
        rule.get("name"): {
            attribute: [label.get("value") for label in rule.findall(f"list[@name='{attribute}']/label")]
            for attribute in ("srcs", "hdrs", "textual_hdrs", "deps")
        }
        for rule in xml.findall("rule") if rule.get("class").startswith("cc_")
    }
    for target in targets.values():
        target["deps"] += [label for name in target["deps"] for label in aliases.get(name, ())]
    return targets


def Path(label):
    return label[2:].replace(":", "/").lstrip("/")  # "//:a.h" is a.h


def Folder(label):
    return label.split(":")[0]


def Faults(targets):
    owners = collections.defaultdict(set)  # of a header: who may be depended on for it
    for name, target in targets.items():
        for label in target["hdrs"] + target["textual_hdrs"]:
            owners[Path(label)].add(name)
    for name, target in sorted(targets.items()):
        own = {Path(label) for label in target["srcs"] + target["hdrs"] + target["textual_hdrs"]}
        dependencies = set(target["deps"])
        for dependency in target["deps"]:
            dependencies |= {further for further in targets.get(dependency, {"deps": ()})["deps"]
                             if Folder(further) == Folder(dependency)}
        for path in sorted(own):
            if not os.path.isfile(path):  # made by a rule
                continue
            with open(path, encoding="utf-8") as file:
                text = file.read()
            for header in INCLUDE.findall(text):
                if header in own or owners[header] & dependencies:
                    continue
                if owners[header]:
                    yield f"{name}: {path} includes {header}; add {' or '.join(sorted(owners[header]))} to deps"
                elif os.path.isfile(header):
                    yield f"{name}: {path} includes {header}, which is in no target's hdrs"


def main():
    if len(sys.argv) > 1:  # sources are below the current folder
        with open(sys.argv[1], encoding="utf-8") as file:
            xml = file.read()
    else:
        os.chdir(WORKSPACE)
        xml = subprocess.run(["tools/bazel", "query", QUERY, "--output=xml"], check=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True).stdout
    faults = list(Faults(Targets(ElementTree.fromstring(xml))))
    for fault in faults:
        print(fault)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
