#!/bin/bash
# Does what a page of docs/ says, as a reader would, and compares what comes out with what is printed there.
#
#   doc_commands_test.sh DOC PROGRAM...     PROGRAM: what `tools/bazel run //...:NAME` would run
#   bazel run //tests:tutorial_test -- --update     writes the outputs of today into the page
#   tests/doc_commands_test.sh --checkout DOC       in the checkout itself, with the real tools/bazel; files of the
#                                                   page stay there (tools/dev/fresh_machine.sh)
#
# In the page, ```sh is run, and a ```text right behind it is what it prints, all of it; ```json NAME and
# ```csv NAME are files to write. Everything happens in one shell and one empty folder, in which tools/bazel
# stands in for the real one: nothing is built.
set -euo pipefail

checkout=
if [[ $1 == --checkout ]]; then
  checkout=1
  shift
fi
doc=$1
shift
update=
programs=()
for word in "$@"; do
  if [[ $word == --update ]]; then update=1; else programs+=("$PWD/$word"); fi
done
page=$PWD/$doc
box=$(mktemp -d "${TEST_TMPDIR:-/tmp}/doc.XXXXXX")
trap 'rm -rf "$box"' EXIT
if [[ $checkout ]]; then ln -s "$PWD" "$box/work"; else mkdir -p "$box/work/tools" "$box/programs"; fi
for program in "${programs[@]}"; do ln -s "$program" "$box/programs/"; done
[[ $checkout ]] || cat >"$box/work/tools/bazel" <<STAND_IN
#!/bin/bash
set -euo pipefail
verb=\$1
shift
if [[ \$verb == build ]]; then
  mkdir -p bazel-bin/experiments
  for label in "\$@"; do ln -sf $box/programs/\${label##*:} bazel-bin/experiments/; done
  exit
fi
target=\${1##*:}
shift
if [[ ! -x $box/programs/\$target ]]; then echo "doc_commands_test: no program for \$target" >&2; exit 1; fi
if [[ \${1:-} == -- ]]; then shift; fi
exec $box/programs/\$target "\$@"
STAND_IN
[[ $checkout ]] || chmod +x "$box/work/tools/bazel"
cd -P "$box/work"
unset BUILD_WORKING_DIRECTORY BUILD_WORKSPACE_DIRECTORY

failures=0 ran=0 compared=0 number=0
kind='' name='' after_sh=''
: >"$box/new.md"
# Without rounding errors, which depend on the processor and the compiler's options, and without the lines that
# a slow machine's command prints now and then.
rounded() { sed -E '/^[a-z_]+: [0-9]+ [a-z]+, [0-9.]+ [a-z]+\/s(, .*)?$/d; /^[a-z_]+: [0-9]+ s; Ctrl-C ends it$/d; s/within [0-9.]+e-[0-9]+/within .../' "$1"; }
finish_block() {
  case $kind in
    sh)
      # In this shell, so that later blocks see its functions and PATH; a failing command is a mistake of the page.
      local rc=0
      set +e +o pipefail
      if [[ $checkout ]] && grep -q '^tools/bazel run' "$box/block"; then  # the real Bazel talks on stderr
        source "$box/block" >"$box/out" 2>/dev/null </dev/null
      else
        source "$box/block" >"$box/out" 2>&1 </dev/null
      fi
      rc=$?
      set -e -o pipefail
      ran=$((ran + 1))
      if ((rc != 0)) && ! grep -q '# fails' "$box/block"; then
        echo "FAILED: line $number of $doc: exit code $rc:"
        cat "$box/block" "$box/out"
        failures=$((failures + 1))
      fi
      ;;
    text)
      if [[ $after_sh ]]; then
        compared=$((compared + 1))
        if ! diff -u --label "$doc" --label "printed now" <(rounded "$box/block") <(rounded "$box/out"); then
          echo "FAILED: line $number of $doc: the output differs"
          failures=$((failures + 1))
        fi
      fi
      ;;
    json | csv)
      if [[ $name ]]; then cp "$box/block" "$name"; fi
      ;;
  esac
}

while IFS= read -r line || [[ $line ]]; do
  number=$((number + 1))
  if [[ $kind ]]; then
    if [[ $line == '```' ]]; then
      finish_block
      if [[ $kind == text && $after_sh ]]; then cat "$box/out" >>"$box/new.md"; else cat "$box/block" >>"$box/new.md"; fi
      if [[ $kind == sh ]]; then after_sh=1; else after_sh=; fi
      kind=
    else
      printf '%s\n' "$line" >>"$box/block"
      continue
    fi
  elif [[ $line == '```'?* ]]; then
    read -r kind name <<<"${line#\`\`\`}"
    : >"$box/block"
    if [[ $kind != text ]]; then after_sh=; fi
  elif [[ $line ]]; then
    after_sh=
  fi
  printf '%s\n' "$line" >>"$box/new.md"
done <"$page"

if [[ $update ]]; then
  cp "$box/new.md" "$(readlink -f "$page")"
  echo "wrote $doc"
  exit 0
fi
echo "$ran blocks ran, $compared outputs compared"
if ((ran < 2 || compared < 2)); then
  echo "FAILED: $doc has hardly a command: is it written as this test reads it?"
  failures=$((failures + 1))
fi
exit $((failures > 0))
