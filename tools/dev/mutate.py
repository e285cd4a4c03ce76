#!/usr/bin/env python3
"""Changes a folder's sources one place at a time and says which changes its tests notice.

  mutate.py FOLDER... [--count=N] [--seed=S] [--line=FILE:LINE] [--bazel="tools/bazel ..."]

Draws N (40) mutants a folder: an operator turned, min for max, a condition negated, a constant 0 or 1 changed, an
early exit dropped. Each is built and judged by the cc_test targets of its own folder: killed (one failed or ran out of
time), survived, or not compiled, which does not count. The source is restored after each. --line=FILE:LINE, which may
be given several times, tries all mutants of that line instead. Comments, strings, includes and the messages of checks
stay as they are; warnings are no errors. --bazel may have flags: "tools/bazel test --jobs=1". Survivors that
tools/dev/mutants.txt explains are counted apart, untried. Prints a line a mutant, the share that was killed and the
survivors; exits with 1 where that share is below 90 %.
"""
import argparse
import glob
import os
import pathlib
import random
import re
import shlex
import signal
import subprocess
import sys

WORKSPACE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
EQUIVALENT = "tools/dev/mutants.txt"
LEAST_KILLED = 0.9
TEST_SECONDS, TEST_BYTES = 60, 6 << 30  # for loops that never end; the slowest shard takes about 15 s
NO_PRODUCT = re.compile(r"_(test|testing|fuzz|benchmark)\.|/test_")
LITERALS = re.compile(r"""//[^\n]*|/\*.*?\*/|R"\((?:.*?)\)"|"(?:\\.|[^"\\\n])*"|(?<!\w)'(?:\\.|[^'\\\n])'"""
                      r"|^#.*?$|^ *static_assert\b.*?;", re.DOTALL | re.MULTILINE)
MESSAGES = re.compile(r"\b(?:LOG|D?P?CHECK(?:_\w+)?)\(")
# clang-format puts spaces around what is an operator, and none around what is part of a type.
TURNED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&", "+": "-",
          "-": "+", "+=": "-=", "-=": "+=", "++": "--", "--": "++", "std::min": "std::max", "std::max": "std::min",
          "0": "1", "1": "0"}
OPERATORS = re.compile(r"(?<= )(?:[<>]=?|[=!]=|&&|\|\||[+-]=?)(?=[ \n])|\+\+|--|\bstd::(?:min|max)(?=[(<])"
                       r"|(?<![\w.'])[01](?![\w.'])")
CONDITIONS = re.compile(r"\b(?:if|while) \(")
EXITS = re.compile(r"(?<=[ {])(?:continue|return\b[^;]*);(?!\n\}| \})")


def End(text, begin):
    """The place of the bracket that closes the one before `begin`."""
    depth = 1
    for at in range(begin, len(text)):
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if depth == 0:
            return at
    return len(text)


def Code(source):
    """The source with blanks for all that no mutant changes, each character in its place."""
    blank = lambda match: re.sub(r"[^\n]", " ", match.group())
    code = LITERALS.sub(blank, source)
    for match in list(MESSAGES.finditer(code)):
        end = End(code, match.end())
        message = re.compile(r"\s*<<[^;]*").match(code, end + 1)
        if message:
            code = code[:message.start()] + blank(message) + code[message.end():]
    return code


def Mutants(path):
    """(path, line, begin, end, text) of each: the source with `text` for what lies from begin to end."""
    with open(path, encoding="utf-8") as file:
        source = file.read()
    code = Code(source)
    found = [(m.start(), m.end(), TURNED[m.group()]) for m in OPERATORS.finditer(code)
             if not re.search(r"\) (?:const )?= $", code[:m.start()])]  # of a pure virtual function
    found += [(m.start(), m.end(), "{}") for m in EXITS.finditer(code)]
    for match in CONDITIONS.finditer(code):
        end = End(code, match.end())
        begin = match.end() + max((m.end() for m in re.finditer(";", code[match.end():end])), default=0)
        if not re.search(r"[^=!<>]=[^=]", code[begin:end]):  # a declaration cannot be negated
            found.append((begin, end, "!(" + source[begin:end].strip() + ")"))
    return [(path, source.count("\n", 0, begin) + 1, begin, end, text) for begin, end, text in sorted(found)]


def Lines(source, mutant):
    """The first line that the mutant changes, before and after."""
    _, line, begin, end, text = mutant
    return source.split("\n")[line - 1].strip(), (source[:begin] + text + source[end:]).split("\n")[line - 1].strip()


def Equivalent():  # (path, line before, line after) of each
    with open(os.path.join(WORKSPACE, EQUIVALENT), encoding="utf-8") as file:
        return set(re.findall(r"^(\S+\.(?:cc|h))\n- (.*)\n\+ (.*)\n", file.read(), re.MULTILINE))


def Judge(bazel, folder):
    """"killed", "survived" or "not compiled". Flags change for the folder alone, not for what it needs."""
    relaxed = "--per_file_copt=^(.*/)?%s[/:]@-Wno-error,-Werror=return-type" % re.escape(folder)
    command = [*bazel, *["test"][:"test" not in bazel], relaxed, "--test_timeout=%d" % TEST_SECONDS,
               "--test_env=GTEST_FAIL_FAST=1", "--build_tests_only", "//%s:all" % folder,
               "--run_under=prlimit --as=%d" % TEST_BYTES, "--notest_keep_going", "--test_lang_filters=cc"]
    code = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode
    if code in (0, 1, 3):
        return {0: "survived", 1: "not compiled", 3: "killed"}[code]
    return sys.exit("mutate.py: '%s' exits with %d" % (shlex.join(command), code))


def Try(bazel, folder, source, mutant):
    path, _, begin, end, text = mutant
    try:
        pathlib.Path(path).write_text(source[:begin] + text + source[end:], encoding="utf-8")
        return Judge(bazel, folder)
    finally:
        pathlib.Path(path).write_text(source, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"))
    parser.add_argument("folders", nargs="+")
    for option, convert, default in (("count", int, 40), ("seed", int, 1), ("bazel", shlex.split, ["tools/bazel"])):
        parser.add_argument("--" + option, type=convert, default=default)
    parser.add_argument("--line", action="append", default=[])
    options = parser.parse_args()
    os.chdir(WORKSPACE)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # sources are restored
    results, survivors, equivalent = [], [], Equivalent()
    for folder in (folder.strip("/") for folder in options.folders):
        if Judge(options.bazel, folder) != "survived":
            sys.exit("mutate.py: %s: its tests fail without a mutant" % folder)
        paths = sorted(p for p in glob.glob(folder + "/*.cc") + glob.glob(folder + "/*.h") if not NO_PRODUCT.search(p))
        mutants = [mutant for path in paths for mutant in Mutants(path)]
        if options.line:
            mutants = [m for m in mutants if "%s:%d" % m[:2] in options.line]
        else:
            mutants = random.Random(options.seed).sample(mutants, min(options.count, len(mutants)))
        for mutant in mutants:
            with open(mutant[0], encoding="utf-8") as file:
                source = file.read()
            before, after = Lines(source, mutant)
            known = (mutant[0], before, after) in equivalent
            results.append("equivalent" if known else Try(options.bazel, folder, source, mutant))
            told = "%s:%d: %s  =>  %s" % (*mutant[:2], before, after)
            print("%-12s  %s" % (results[-1], told), flush=True)
            survivors += [told] * (results[-1] == "survived")
    killed, judged = results.count("killed"), results.count("killed") + len(survivors)
    print("\n%d of %d mutants killed, %.0f %%; %d equivalent, %d not compiled" % (
        killed, judged, 100 * killed / max(judged, 1), results.count("equivalent"), results.count("not compiled")))
    print("".join("survived: %s\n" % told for told in survivors), end="")
    return int(killed < LEAST_KILLED * judged)


if __name__ == "__main__":
    sys.exit(main())
