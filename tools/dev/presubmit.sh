#!/bin/bash
# What a reviewer should not have to say: layout, shell mistakes, includes without a dependency, names with two
# meanings, clang's warnings, bug patterns, prose.
#
#   tools/dev/presubmit.sh [--fix] [--since COMMIT | --all | FILE...]     (--fix rewrites the layout)
#
# Everything is looked at whole, but for clang's warnings and clang-tidy, which take some seconds a file: they
# read the C++ sources that differ from COMMIT (default: the commit before the last), with --all every one, and
# then clang checks layers too. With FILEs, only these are looked at, without the layers. A tool that is not
# installed is skipped by name.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."

fail() {
  echo "presubmit.sh: $*" >&2
  exit 2
}

fix='' since=HEAD~1 whole=1
while (($#)); do
  case $1 in
    --fix) fix=1 ;;
    --all) since='' ;;
    --since)
      since=${2:?--since needs a commit}
      git rev-parse --quiet --verify "$since^{commit}" >/dev/null || fail "--since $since: no such commit"
      shift
      ;;
    -*) fail "unknown option $1; one of --fix, --since COMMIT, --all" ;;
    *) break ;;
  esac
  shift
done
if (($#)); then
  whole=''
  for file in "$@"; do [[ -f $file ]] || fail "$file: no such file"; done
fi

# files PATTERN...: the tracked ones, or those of the command line.
named=("$@")
files() {
  local file pattern
  if [[ $whole ]]; then
    git ls-files -- "$@"
    return
  fi
  for file in "${named[@]}"; do
    for pattern in "$@"; do
      # shellcheck disable=SC2053  # a pattern
      if [[ $file == $pattern ]]; then echo "$file"; fi
    done
  done
}

# The C++ sources for clang-tidy; where history does not go back to $since, none.
tidy_files() {
  if [[ ! $whole || -z $since ]]; then
    files '*.cc'
  elif git rev-parse --quiet --verify "$since^{commit}" >/dev/null; then
    git diff --name-only --diff-filter=d "$since" -- '*.cc'
  fi
}

failed=() skipped=()
# look NAME TOOL COMMAND...: runs it where there is something to read on stdin and the tool is installed.
look() {
  local name=$1 tool=$2 list
  shift 2
  mapfile -t list
  if ((${#list[@]} == 0)); then return; fi
  if ! command -v "$tool" >/dev/null; then
    echo "=== $name: skipped, no $tool"
    skipped+=("$name")
    return
  fi
  echo "=== $name: ${#list[@]} files"
  "$@" < <(printf '%s\0' "${list[@]}") || failed+=("$name")
}

# Installs the tools. Where that fails, the line above says why, and what is there serves.
tools/bazel info --config=lint release >/dev/null </dev/null || export PIPELAB_SKIP_INSTALL=1

# The compiler by its path in the checkout: its configuration is made anew only when that changes.
clang_reads() {
  tools/bazel build --config=lint --repo_env=CC="$PWD/tools/dev/clang_reads.sh" --spawn_strategy=local \
    --output_groups=compilation_outputs //... </dev/null
}
if [[ $whole ]]; then
  look layering python3 tools/dev/layering.py < <(files '*.cc')
  look "one name for one thing" python3 tools/dev/one_name.py < <(files '*.h')
  look budget python3 tools/dev/budget.py < <(files tools/dev/budget.txt)
  if [[ -z $since ]]; then look "clang, with layering_check" clang clang_reads < <(files '*.cc'); fi
fi

layout=(--dry-run -Werror) layout_bazel=(-mode=check)
if [[ $fix ]]; then layout=(-i) layout_bazel=(-mode=fix); fi
look clang-format clang-format xargs -0 clang-format "${layout[@]}" < <(files '*.cc' '*.h' '*.cu' '*.cuh')
# What Bazel 4.2 has natively, newer ones load: that is no fault here.
look buildifier buildifier xargs -0 buildifier "${layout_bazel[@]}" -lint=warn \
  -warnings=-native-cc-info,-native-sh-binary,-native-sh-test,-function-docstring-args,-provider-params,-unnamed-macro \
  < <(files '*.bazel' '*.bzl' WORKSPACE)
# An input from elsewhere that is named directly is an error in a checkout without it: shared_data() is not.
# shellcheck disable=SC2016  # the inner shell expands it
look "shared data" grep xargs -0 bash -c '! grep -n "\"@shared_data//:[a-z-]*\"" "$@"' grep < <(files '*.bazel')
look shellcheck shellcheck xargs -0 shellcheck --severity=warning --external-sources \
  < <(files '*.sh' .ci/run .ci/long tools/bazel)
look prose python3 xargs -0 tools/dev/prose.py < <(files '*.md' '*.h' '*.cc' '*.cu' '*.cuh')
mapfile -t sources < <(tidy_files)
if ((${#sources[@]})) && command -v clang-tidy >/dev/null; then
  tools/dev/compile_commands.py || failed+=(compile_commands.py)
fi
look clang-tidy clang-tidy xargs -0 -n 1 -P "$(nproc)" clang-tidy -p . --quiet < <(printf '%s\n' "${sources[@]}" | grep .)

closing="presubmit.sh: clean"
if ((${#failed[@]})); then closing="presubmit.sh: not clean: ${failed[*]}"; fi
if ((${#skipped[@]})); then closing+="; skipped: ${skipped[*]}"; fi
echo "$closing"
((${#failed[@]} == 0))
