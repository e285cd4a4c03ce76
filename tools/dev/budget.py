#!/usr/bin/env python3
"""Holds the tree to tools/dev/budget.txt: budget.py [--update] [PROFILE...]

Counts, by top folder, lines of sources, words of Markdown pages and Bazel targets, prints them beside their budgets
and exits with 1 where one is exceeded. PROFILE is what `bazel test --profile=FILE` wrote: the seconds that its
actions and tests took are printed beside the recorded ones, and decide nothing, since machines differ. --update
writes the counts of today as the budget, lines and words up to the next hundred, and with PROFILEs their seconds: in a
commit of its own that says what for.
"""
import collections
import gzip
import json
import os
import re
import subprocess
import sys

WORKSPACE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
BUDGET = "tools/dev/budget.txt"
COUNTED = ("lines", "words", "targets")  # held; the others are told
TIMED = ("build_s", "test_s")
SOURCES = re.compile(r"\.(cc|h|cu|cuh|py|pyi|sh|bzl|bazel|proto|js|css|html)$|(^|/)(WORKSPACE|tools/bazel|\.ci/\w+)$")


def Top(path):
    return path.split("/")[0] if "/" in path else "."


def Tracked():
    listed = subprocess.run(["git", "ls-files"], check=True, stdout=subprocess.PIPE, text=True).stdout.split("\n")
    return [path for path in listed if path and os.path.isfile(path)]


def Counts():
    """folder -> {"lines", "words", "targets"}."""
    counts = collections.defaultdict(collections.Counter)
    for path in Tracked():
        if SOURCES.search(path):
            with open(path, encoding="utf-8") as file:
                counts[Top(path)]["lines"] += sum(1 for _ in file)
        elif path.endswith(".md"):
            with open(path, encoding="utf-8") as file:
                counts[Top(path)]["words"] += len(file.read().split())
    labels = subprocess.run(["tools/bazel", "query", "kind(rule, //...)"], check=True, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.split()
    for label in labels:
        counts[Top(label[2:].replace(":", "/").lstrip("/"))]["targets"] += 1
    return counts


def Seconds(profiles):
    """folder -> {"build_s", "test_s"}, of the actions in Bazel's profiles."""
    seconds = collections.defaultdict(collections.Counter)
    for profile in profiles:
        opened = gzip.open(profile, "rt") if profile.endswith(".gz") else open(profile, encoding="utf-8")
        with opened as file:
            events = json.load(file)["traceEvents"]
        for event in events:
            if event.get("cat") != "action processing":
                continue
            place = re.search(r" //(\w+)[/:]| (?:\S*/bin/)?(\w+)/", event["name"])
            folder = next((group for group in place.groups() if group), ".") if place else "."
            kind = "test_s" if event["name"].startswith("Testing ") else "build_s"
            seconds[folder][kind] += event.get("dur", 0) / 1e6
    return seconds


def Read():
    """The comment lines of the budget, and folder -> {what: number}."""
    comments, budget = [], {}
    with open(BUDGET, encoding="utf-8") as file:
        for line in file:
            if line.startswith("#"):
                comments.append(line)
                continue
            words = line.split()
            if words and words[0] != "folder":
                budget[words[0]] = dict(zip(COUNTED + TIMED, map(int, words[1:])))
    return comments, budget


def Write(comments, rows):
    with open(BUDGET, "w", encoding="utf-8") as file:
        file.writelines(comments)
        file.write("%-12s %8s %7s %8s %8s %8s\n" % (("folder",) + COUNTED + TIMED))
        for folder in sorted(rows):
            file.write("%-12s %8d %7d %8d %8d %8d\n" % ((folder,) + tuple(
                round(rows[folder].get(what, 0)) for what in COUNTED + TIMED)))


def main():
    profiles = [os.path.abspath(word) for word in sys.argv[1:] if word != "--update"]
    os.chdir(WORKSPACE)
    counts, seconds = Counts(), Seconds(profiles)
    comments, budget = Read()
    if "--update" in sys.argv:
        for count in counts.values():
            for what in ("lines", "words"):
                count[what] = (count[what] + 99) // 100 * 100
        rows = {folder: {**{what: budget.get(folder, {}).get(what, 0) for what in TIMED}, **counts[folder],
                         **(seconds[folder] if profiles else {})} for folder in set(counts) | set(budget)}
        Write(comments, {folder: row for folder, row in rows.items() if any(row.values())})
        return
    over = []
    for folder in sorted(set(counts) | set(budget)):
        allowed = budget.get(folder, {})
        told = ["%s %d of %d" % (what, counts[folder][what], allowed.get(what, 0)) for what in COUNTED]
        if profiles:
            told += ["%s %d (recorded %d)" % (what, seconds[folder][what], allowed.get(what, 0)) for what in TIMED]
        print("%-12s %s" % (folder, ", ".join(told)))
        over += ["%s: %s %d exceed their budget of %d" % (folder, what, counts[folder][what], allowed.get(what, 0))
                 for what in COUNTED if counts[folder][what] > allowed.get(what, 0)]
    for line in over:
        print(line)
    if over:
        print("shorten, or raise tools/dev/budget.txt in a commit of its own that says what for")
    sys.exit(1 if over else 0)


main()
