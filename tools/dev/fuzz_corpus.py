#!/usr/bin/env python3
"""Turns the kept inputs of a fuzz entry into libFuzzer's folder of files, and back.

  fuzz_corpus.py unpack NAME_fuzz.txt FOLDER
  fuzz_corpus.py pack FUZZER FOLDER NAME_fuzz.txt

A line of NAME_fuzz.txt is an input, escaped as in C. `pack` lets the FUZZER choose the inputs of FOLDER that each
reach code which smaller ones do not (-merge=1), and keeps the smallest of them, up to 32 KiB of text.
"""
import hashlib
import os
import re
import subprocess
import sys
import tempfile

MOST_TEXT, MOST_INPUT = 32 << 10, 2 << 10


def Escaped(data):
    return "".join(chr(b) if 32 <= b < 127 and b != 92 else f"\\{b:03o}" for b in data)


def Unescaped(line):
    return re.sub(rb"\\([0-7]{3})", lambda match: bytes([int(match[1], 8)]), line.encode("ascii"))


def Unpack(text, folder):
    os.makedirs(folder, exist_ok=True)
    if not os.path.exists(text):
        return
    with open(text, encoding="ascii") as file:
        for line in file.read().splitlines():
            data = Unescaped(line)
            with open(os.path.join(folder, hashlib.sha1(data).hexdigest()), "wb") as one:
                one.write(data)


def Pack(fuzzer, folder, text):
    with tempfile.TemporaryDirectory() as chosen:
        subprocess.run([fuzzer, "-merge=1", f"-max_len={MOST_INPUT}", chosen, folder], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        inputs = []
        for name in os.listdir(chosen):
            with open(os.path.join(chosen, name), "rb") as file:
                inputs.append(Escaped(file.read()))
    kept, size = [], 0
    for line in sorted(inputs, key=lambda line: (len(line), line)):
        size += len(line) + 1
        if size > MOST_TEXT:
            break
        kept.append(line)
    with open(text, "w", encoding="ascii") as file:
        file.write("".join(line + "\n" for line in kept))


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "unpack":
        Unpack(*sys.argv[2:])
    elif len(sys.argv) == 5 and sys.argv[1] == "pack":
        Pack(*sys.argv[2:])
    else:
        sys.exit(__doc__)
