#!/usr/bin/env python3
"""Counts what one `bazel test` did: test cases passed, failed and skipped.

  count_tests.py LOG TESTLOGS    LOG: what `bazel test` printed; TESTLOGS: its bazel-testlogs

Prints "PASSED FAILED SKIPPED" on stdout; the name of each failed and each skipped case on stderr. Bazel's
closing lines say which targets there were and how each ended; the cases are in each target's test.xml.
"""
import glob
import os
import re
import sys
import xml.etree.ElementTree as ET

STATUS = re.compile(r"^(//\S+?:\S+)\s+(?:\(cached\) )?([A-Z][A-Z ]+[A-Z])\b")


def Cases(xml):
    """(name, 'passed' | 'failed' | 'skipped', reason) of every case in a test.xml."""
    try:
        root = ET.parse(xml).getroot()
    except ET.ParseError as error:
        yield os.path.basename(xml), "failed", "unreadable: %s" % error
        return
    for case in root.iter("testcase"):
        name = ".".join(filter(None, [case.get("classname"), case.get("name")]))
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            yield name, "failed", ""
        elif skipped is not None:
            yield name, "skipped", (skipped.get("message") or "").split("\n")[-1]
        elif case.get("result") in ("skipped", "suppressed") or case.get("status") == "notrun":
            yield name, "skipped", "disabled"
        else:
            yield name, "passed", ""


def Target(label, status, testlogs):
    if status == "SKIPPED":
        yield label, "skipped", "needs a --config that is off"
        return
    if status not in ("PASSED", "FLAKY", "FAILED", "TIMEOUT"):
        yield label, "failed", status.lower()
        return
    folder = os.path.join(testlogs, label[2:].replace(":", "/"))
    xmls = [os.path.join(folder, "test.xml")]
    if not os.path.exists(xmls[0]):
        xmls = sorted(glob.glob(os.path.join(glob.escape(folder), "shard_*", "test.xml")))
    cases = [case for xml in xmls for case in Cases(xml)]
    good = status in ("PASSED", "FLAKY")
    if not good and not any(how == "failed" for _, how, _ in cases):
        cases.append(("", "failed", status.lower()))  # it crashed, or ran out of time
    if good and not cases:
        cases.append(("", "passed", ""))
    for name, how, reason in cases:
        yield " ".join(filter(None, [label, name])), how, reason


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: count_tests.py LOG TESTLOGS")
    log, testlogs = sys.argv[1:]
    count = {"passed": 0, "failed": 0, "skipped": 0}
    with open(log, errors="replace") as lines:
        found = dict(m.groups() for m in map(STATUS.match, lines) if m)
    for label, status in sorted(found.items()):
        for name, how, reason in Target(label, status, testlogs):
            count[how] += 1
            if how != "passed":
                print("%s: %s%s" % (how, name, " (%s)" % reason if reason else ""), file=sys.stderr)
    print(count["passed"], count["failed"], count["skipped"])


main()
