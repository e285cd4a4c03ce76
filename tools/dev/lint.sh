#!/bin/bash
# What a reviewer should not have to say: layout, includes without a dependency, clang's warnings, bug patterns.
#
#   tools/dev/lint.sh [--fix] [FILE...]     (--fix rewrites the layout)
#
# Without files: the clang build of everything, then every tracked C++ file. clang-tidy takes some seconds
# a file, so name files to be quick.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."

layout=(--dry-run -Werror)
if [[ ${1:-} == --fix ]]; then
  layout=(-i)
  shift
fi
failed=()
files=("$@")
if ((${#files[@]} == 0)); then
  mapfile -t files < <(git ls-files '*.cc' '*.h' '*.cu' '*.cuh')
  echo "=== clang, with layering_check"
  tools/bazel build --config=lint //... || failed+=(build)
fi
sources=()
for file in "${files[@]}"; do
  [[ -f $file ]] || { echo "lint.sh: $file: no such file" >&2; exit 1; }
  if [[ $file == *.cc ]]; then sources+=("$file"); fi
done

echo "=== clang-format: ${#files[@]} files"
clang-format "${layout[@]}" "${files[@]}" || failed+=(clang-format)
echo "=== clang-tidy: ${#sources[@]} files"
if ((${#sources[@]} == 0)); then
  :
elif tools/dev/compile_commands.py; then
  printf '%s\0' "${sources[@]}" | xargs -0 -n 1 -P "$(nproc)" clang-tidy -p . --quiet || failed+=(clang-tidy)
else
  failed+=(compile_commands.py)
fi
if ((${#failed[@]})); then
  echo "lint.sh: not clean: ${failed[*]}" >&2
  exit 1
fi
echo "lint.sh: clean"
