#!/usr/bin/env python3
"""Checks Markdown pages: long lines, long sentences, phrases not to be used, links to nothing.
In C++ sources it checks that no comment begins without a subject: "Of ...", "Those of ...".

    tools/dev/prose.py [FILE...]      default: every page of the project

One line for each finding, "FILE:LINE: what is wrong", and exit code 1 if there is one. Code blocks
and text between "<!-- ... made by" and "<!-- end -->" are skipped; tables are checked for phrases
alone. Test: tools/dev/prose_test.sh.
"""
import os
import re
import subprocess
import sys

MAX_COLUMNS = 100
MAX_WORDS = 40

# Pages that tests compare with output; nobody writes them by hand.
GENERATED = ("testdata/", "experiments/results/")

# Not checked: entries of the past stay as they were written.
LATER = ("CHANGELOG.md",)

# Pattern -> what to write instead. Matched without regard to case, across line ends.
PHRASES = {
    r"\b(?:a|one) \w+ (?:a|an) (?:device|stage|branch|byte|character|host|line|scheme|layer|rank|step|"
    r"row|file|source|micro-batch|second|token|unit|pass|name|day)\b": "'one ... per ...'",
    r"\bdevices? a its?\b": "'each device has its'",
    r"\bthat (?:it is|they are) of\b": "whose it is: 'its ...'",
    r"\bof which\b": "a new sentence",
    r"(?:^|[.:;] )of (?:an?|the|each|several|what) \S+": "the subject first",
    r"\bholds? the (?:\w+ ){1,3}to\b": "'checks ... against'",
    r"\bheld against\b": "'compared with'",
    r"\bwith the bits of\b": "'bit-identical to'",
    r"\bhas the bits of\b|\bhave the bits of\b": "'is bit-identical to'",
    r"\bin as much memory\b": "'in the same memory'",
    r"\bin the place of\b": "'instead of'",
    r"\bon paper\b": "'in simulation'; 'in print' of a page that is printed",
    r"\b(?:go|goes|gone|going|went) on (?:from|with|at|where|without|to)\b": "'continue', 'resume'",
    r"\bstands? (?:here|there|in for|beside)\b": "'is'",
    r"\b(?:every|no)body\b": "which device, process or person",
    r"\bbeside one another\b": "'in parallel', 'side by side'",
    r"\bclock on the wall\b|\bby the wall\b": "'wall-clock time'",
    r"\bcost nothing on the way\b": "what is free",
    r"\bof (?:its|their|one's) own(?= *(?:$|[.,:;()|]|(?:an?|and|as|at|for|from|in|on|or|per|"
    r"that|to|which|whose|with)\b))": "'its own ...'",
    r"(?:\b(?:the|its|own|first|last)|'s) begin\b|\bbegin (?:and|of|to)\b": "'start'",
    r"\b(?:is|was|are|were) (?:not )?over(?= *(?:$|[.,:;)|]))": "'has (not) finished'",
    r"\bin turns\b": "'alternately'",
    r"\b(?:says?|learn(?:s|ed)?) of\b": "'says about', 'learns from'",
    r"\bmust be the \w+'s(?= *(?:$|[.,:;)|]))": "'must match the ...'",
    r"\bto the better\b": "'better'",
    r"\bgo(?:es)? by (?:the|that|its) name\b": "'has the name'",
    r"\bbehind (?:it|each|the (?:file|join|last|model|name))\b": "'after'",
    r"\b(?:thereof|therein|thereby|whereof|wherein|hitherto|whilst|amongst|shall|upon)\b":
        "a plain word",
    r"\b(?:in order to|utili[sz]e[sd]?|leverages?|please note|it should be noted)\b":
        "a plain word, or nothing",
}

SUBJECTLESS = re.compile(r"(?:^|\s)// (Of|Those of|That of) ")  # comments of C++

COMPILED = [(re.compile(pattern, re.IGNORECASE), advice) for pattern, advice in PHRASES.items()]
ITEM = re.compile(r"\s*(?:[*+-]|\d+\.)\s+")


class Block:
    """A paragraph, list item or table row: its lines, joined, and where each began."""

    def __init__(self, is_table):
        self.is_table = is_table
        self.text = ""
        self.starts = []  # (offset in text, line number)

    def add(self, number, line):
        if self.text:
            self.text += " "
        self.starts.append((len(self.text), number))
        item = ITEM.match(line)
        self.text += line[item.end() if item else 0:].strip()

    def line_of(self, offset):
        return [number for start, number in self.starts if start <= offset][-1]


def prose_lines(text):
    """(number, line) of what is not code and not generated; None where a block ends."""
    fence = generated = False
    indented = previous_blank = True
    in_list = False
    for number, line in enumerate(text.split("\n"), 1):
        if generated or re.match(r"<!-- .*made by", line):
            generated = not line.startswith("<!-- end")
            yield number, None
            continue
        if line.lstrip().startswith("```"):
            fence = not fence
            yield number, None
            continue
        blank = not line.strip()
        in_list = bool(ITEM.match(line)) or (in_list and (blank or line.startswith(" ")))
        indented = line.startswith("    ") and not in_list and (previous_blank or indented)
        previous_blank = blank
        if fence or indented or blank or line.startswith(("#", "![", "<!--")):
            yield number, None
        else:
            yield number, line


def blocks(text):
    block = None
    for number, line in prose_lines(text):
        table = line is not None and line.lstrip().startswith("|")
        starts_anew = line is None or table or ITEM.match(line) or (block and block.is_table)
        if block and starts_anew:
            yield block
            block = None
        if line is None:
            continue
        block = block or Block(table)
        block.add(number, line)
    if block:
        yield block


def plain(text):
    """Without markup: code and link targets become single words of the same length."""
    def word(match):
        return "x" * len(match.group(0))
    text = re.sub(r"`[^`]*`", word, text)
    return re.sub(r"\]\([^)]*\)", lambda m: "]" + "x" * (len(m.group(0)) - 1), text)


def findings(text):
    for number, line in prose_lines(text):
        if line is None or line.lstrip().startswith("|") or len(line) <= MAX_COLUMNS:
            continue
        if " " in line.strip():  # a single long word, such as an address, has no other place
            yield number, f"{len(line)} columns, at most {MAX_COLUMNS}"
    for block in blocks(text):
        text_of = plain(block.text)
        for pattern, advice in COMPILED:
            for match in pattern.finditer(text_of):
                yield block.line_of(match.start()), f"'{match.group(0)}': write {advice}"
        if block.is_table:
            continue
        begin = 0
        for end in [m.end() for m in re.finditer(r"[.!?][\"')*_]*(?=\s|$)", text_of)] + [len(text_of)]:
            words = len(text_of[begin:end].split())
            if words > MAX_WORDS:
                yield (block.line_of(begin + 1),
                       f"a sentence of {words} words, at most {MAX_WORDS}")
            begin = end


def anchors(path):
    """The headings of a page as links name them."""
    with open(path, encoding="utf-8") as file:
        headings = re.findall(r"^#+ (.*)$", file.read(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def dead_links(page, text):
    for number, line in prose_lines(text):
        for link in re.findall(r"\]\(([^)\s]+)\)", line or ""):
            path, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:", path):
                continue
            path = os.path.join(os.path.dirname(page), path) if path else page
            if not os.path.exists(path):
                yield number, f"link to {link}: no such file"
            elif anchor and path.endswith(".md") and anchor not in anchors(path):
                yield number, f"link to {link}: no such heading"


def subjectless(text):
    before = ""
    for number, line in enumerate(text.split("\n"), 1):
        continues = re.match(r"\s*//", line) and re.match(r"\s*// \S", before)
        match = SUBJECTLESS.search(line)
        if match and not continues:
            yield number, f"a comment begins '{match.group(1)} ...': write what it describes"
        before = line


def all_pages():
    listed = subprocess.run(["git", "ls-files", "*.md"], check=True, capture_output=True, text=True)
    return listed.stdout.split()


def main(arguments):
    wrong = 0
    for page in arguments or all_pages():
        if page in LATER or any(folder in page for folder in GENERATED):
            continue
        with open(page, encoding="utf-8") as file:
            text = file.read()
        is_page = page.endswith(".md")
        problems = [*findings(text), *dead_links(page, text)] if is_page else subjectless(text)
        for number, problem in sorted(problems):
            print(f"{page}:{number}: {problem}")
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
