#!/usr/bin/env python3
"""Checks that a name means one thing: one_name.py [HEADER...]

A type (class, struct, enum, union, alias) that two headers define in one namespace is two entities: whoever links
both gets either. A type and a function of one name hide each other. Prints one line for each such name, and exits
with 1 where there is one. Headers: those given, or all that git tracks; the layout is clang-format's, so what stands
at the beginning of a line belongs to a namespace.
"""
import collections
import re
import subprocess
import sys

TYPE = re.compile(r"(?:class|struct|union|enum(?: class)?)\s+(?:ABSL_\w+ )?(\w+)(?: final)?\s*(?::[^:;]*)?(?:\{|$)")
ALIAS = re.compile(r"using\s+(\w+)\s*=")
FUNCTION = re.compile(r"(?!return|using|typedef|template|class|struct|enum|union|namespace|#|//)\w[\w:<>,&*\[\] ]*?[ &*>](\w+)\(")
NAMESPACE = re.compile(r"namespace\s+([\w:]*)\s*\{")


def Entities(text):
    """(namespace, name, "type" | "function") of each definition or declaration at the beginning of a line."""
    open_namespaces = []
    for line in text.split("\n"):
        opened = NAMESPACE.match(line)
        if opened:
            open_namespaces.append(opened.group(1))
        elif line.startswith("}  // namespace") and open_namespaces:
            open_namespaces.pop()
        elif "" not in open_namespaces:  # file-local otherwise
            place = "::".join(open_namespaces)
            for pattern, kind in ((TYPE, "type"), (ALIAS, "type"), (FUNCTION, "function")):
                found = pattern.match(line)
                if found:
                    yield place, found.group(1), kind
                    break


def Faults(headers):
    places = collections.defaultdict(lambda: collections.defaultdict(set))
    for header in headers:
        with open(header, encoding="utf-8") as file:
            for namespace, name, kind in Entities(file.read()):
                places[namespace + "::" + name][kind].add(header)
    for name, kinds in sorted(places.items()):
        types, functions = sorted(kinds["type"]), sorted(kinds["function"])
        if len(types) > 1:
            yield f"{name}: a type in {' and in '.join(types)}; rename one"
        elif types and functions:
            yield f"{name}: a type in {types[0]} and a function in {functions[0]}; rename one"


def main():
    headers = sys.argv[1:] or subprocess.run(["git", "ls-files", "*.h"], check=True, stdout=subprocess.PIPE,
                                             text=True).stdout.split()
    faults = list(Faults(headers))
    for fault in faults:
        print(fault)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
