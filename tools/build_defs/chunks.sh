#!/bin/bash
# chunks.sh FOLDER COUNT FILE...: writes FOLDER/1.cc to COUNT.cc, each of which includes as many of the FILEs, in
# their order, as fit into 1,500 lines (tools/build_defs/package.bzl). Lines are counted in fifties, so that a small
# edit seldom moves a file into another chunk.
set -euo pipefail
folder=$1 count=$2
shift 2
mkdir -p "$folder"
awk -v folder="$folder" -v count="$count" '
  function lines_of(file,    line, lines) {
    while ((getline line <file) > 0) ++lines
    close(file)
    return int((lines + 49) / 50) * 50
  }
  # An entry point has the one name that libFuzzer calls; the test beside it calls the entry by it.
  function fuzz_stem(file) {
    if (!sub(/(_test)?\.cc$/, "", file) || file !~ /_fuzz$/) return ""
    gsub(/[^a-z0-9]/, "_", file)
    return file
  }
  BEGIN {
    for (i = 1; i <= count; ++i) printf "" >(folder "/" i ".cc")
    for (i = 1; i < ARGC; ++i) {
      size = lines_of(ARGV[i])
      if (!chunk || lines + size > 1500) {
        ++chunk
        lines = 0
      }
      lines += size
      out = folder "/" chunk ".cc"
      stem = fuzz_stem(ARGV[i])
      if (stem) print "#define LLVMFuzzerTestOneInput " stem >out
      print "#include \"" ARGV[i] "\"" >out
      if (stem) print "#undef LLVMFuzzerTestOneInput" >out
    }
    if (chunk > count) {
      print "chunks.sh: " folder ": " chunk " chunks of 1,500 lines, and " count " are foreseen;" \
            " lower _FILES_OF_CHUNK in tools/build_defs/package.bzl" >"/dev/stderr"
      exit 1
    }
  }' "$@"
