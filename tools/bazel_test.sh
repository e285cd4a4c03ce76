#!/bin/bash
# Tests tools/bazel with stand-ins for dpkg-query, apt-get, id, sudo and bazel: the only programs on PATH
# beside a few from coreutils.
set -euo pipefail

launcher=$PWD/tools/bazel
box=$(mktemp -d "${TEST_TMPDIR:-/tmp}/launcher.XXXXXX")
mkdir -p "$box/bin" "$box/checkout/tools" "$box/checkout/third_party"
cp -L "$launcher" "$box/checkout/tools/bazel"
for program in awk bash cat env grep mktemp readlink rm sed tee true wc; do
  ln -s "$(type -P "$program")" "$box/bin/$program"
done

fake() {  # fake NAME: the body comes from stdin
  { echo '#!/bin/bash'; cat; } >"$box/bin/$1"
  chmod +x "$box/bin/$1"
}
# shellcheck disable=SC2016  # expanded when the stand-in runs
fake dpkg-query <<<'cat "$BOX/installed"; exit 1'
# shellcheck disable=SC2016
fake id <<<'echo "${FAKE_UID:-0}"'
fake bazel <<<'echo "bazel: $*"; echo "$PIPELAB_PACKAGES" >"$BOX/packages"'
# shellcheck disable=SC2016
fake stat <<<'[[ $* == *dpkg/status ]] && wc -l <"$BOX/installed"'
fake apt-get <<'APT'
while [[ ${1:-} == -o ]]; do shift 2; done
echo "apt-get $*" >>"$BOX/calls"
verb=$1
shift
if [[ $verb == update ]]; then
  if [[ ${APT:-} == offline ]]; then echo 'E: Failed to fetch http://deb/InRelease'; exit 100; fi
  exit 0
fi
for package in "$@"; do
  if [[ $package == -* ]]; then continue; fi
  case ${APT:-} in
    locked) echo 'E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 7 (apt)'; exit 100 ;;
    unknown) echo 'Reading package lists...'; echo "E: Unable to locate package $package"; exit 100 ;;
    half) if [[ $package == beta ]]; then echo 'beta half-configured' >>"$BOX/installed"; echo 'E: Sub-process dpkg'; exit 100; fi ;;
  esac
  echo "$package installed" >>"$BOX/installed"
done
APT
fake sudo <<'SUDO'
echo "sudo $1" >>"$BOX/calls"
if [[ ${SUDO:-} == refuse ]]; then echo 'sudo: a password is required' >&2; exit 1; fi
if [[ $1 == -n ]]; then shift; fi
exec "$@"
SUDO

failures=0
# launch [NAME=VALUE...] -- ARG...: sets out (stdout), err (stderr's last line), calls and rc.
launch() {
  local -a vars=()
  while [[ $1 != -- ]]; do vars+=("$1"); shift; done
  shift
  : >"$box/calls"
  rc=0
  (cd "$box/checkout" && env -i PATH="$box/bin" BOX="$box" "${vars[@]}" tools/bazel "$@") \
    >"$box/out" 2>"$box/err" </dev/null || rc=$?
  out=$(<"$box/out") err=$(tail -n 1 "$box/err") calls=$(<"$box/calls")
}
expect() {  # expect WHAT GOT PATTERN: the whole of GOT matches the glob PATTERN
  # shellcheck disable=SC2053  # a pattern is meant
  if [[ $2 != $3 ]]; then
    echo "FAILED $test: $1 is '$2', expected '$3'"
    failures=$((failures + 1))
  fi
}
reset() {  # reset TEST [PACKAGE...]: these packages are there, alpha and beta are wanted
  test=$1
  shift
  printf '%s\n' '# comment' '' 'bazel-bootstrap # Bazel' 'alpha     # why' 'beta' \
    'gamma mpi # mpirun' 'delta lint,fuzz' \
    >"$box/checkout/third_party/packages.txt"
  : >"$box/installed"
  for package in "$@"; do echo "$package installed" >>"$box/installed"; done
}
install='apt-get install -y --no-install-recommends'

reset all_there bazel-bootstrap alpha beta
launch -- run //x -- --flag
expect rc "$rc" 0
expect stdout "$out" 'bazel: run //x -- --flag'
expect calls "$calls" ''

reset installs_what_is_missing alpha
launch -- build //x
expect rc "$rc" 0
expect calls "$calls" $'apt-get update\n'"$install bazel-bootstrap beta"
expect stdout "$out" 'bazel: build //x'  # apt's own words went to stderr

reset removed_but_configured_is_missing bazel-bootstrap alpha
echo 'beta config-files' >>"$box/installed"
launch -- build //x
expect calls "$calls" $'apt-get update\n'"$install beta"

reset mpi_only_with_its_switch bazel-bootstrap alpha beta
launch -- test --config=mpi //x
expect calls "$calls" $'apt-get update\n'"$install gamma"
reset one_of_several_configs bazel-bootstrap alpha beta
launch -- run --config=fuzz //x
expect calls "$calls" $'apt-get update\n'"$install delta"
reset part_of_a_config_name bazel-bootstrap alpha beta
launch -- run --config=lin //x
expect calls "$calls" ''
reset mpi_as_two_words bazel-bootstrap alpha beta
launch -- test --config mpi //x
expect calls "$calls" $'apt-get update\n'"$install gamma"
reset mpi_for_the_program_not_for_bazel bazel-bootstrap alpha beta
launch -- run //x -- --config=mpi
expect calls "$calls" ''

reset some_packages_only_for_some_targets bazel-bootstrap alpha beta
printf '%s\n' 'kappa kernels' 'rho rest' >>"$box/checkout/third_party/packages.txt"
launch -- run //experiments:pipelab -- search //x
expect calls "$calls" ''
launch -- run //experiments:quickstart
expect calls "$calls" $'apt-get update\n'"$install kappa"
launch -- build //experiments:pipelab //experiments:quickstart
expect calls "$calls" ''
launch -- build //experiments:pipelab //x
expect calls "$calls" $'apt-get update\n'"$install rho"
reset all_packages_for_other_commands bazel-bootstrap alpha beta
printf '%s\n' 'kappa kernels' 'rho rest' >>"$box/checkout/third_party/packages.txt"
launch -- query //experiments:pipelab
expect calls "$calls" $'apt-get update\n'"$install kappa rho"

reset bazel_hears_of_packages_installed_meanwhile bazel-bootstrap alpha beta
launch -- build //x
expect packages "$(<"$box/packages")" 3
echo 'libother-dev installed' >>"$box/installed"
launch PIPELAB_SKIP_INSTALL=1 -- build //x
expect packages "$(<"$box/packages")" 4

reset own_bazel_needs_no_debian_one alpha beta
launch BAZEL_REAL="$box/bin/bazel" -- info
expect calls "$calls" ''
expect stdout "$out" 'bazel: info'

reset skip
launch PIPELAB_SKIP_INSTALL=1 -- info
expect rc "$rc" 0
expect calls "$calls" ''

reset sudo_without_terminal bazel-bootstrap alpha
launch FAKE_UID=1000 -- info
expect rc "$rc" 0
expect calls "$calls" $'sudo -n\nsudo -n\napt-get update\nsudo -n\n'"$install beta"

reset sudo_refused bazel-bootstrap alpha
launch FAKE_UID=1000 SUDO=refuse -- info
expect rc "$rc" 1
expect stderr "$(<"$box/err")" "tools/bazel: packages are missing and sudo said 'sudo: a password is required'; as root: apt-get update && $install beta"
expect stdout "$out" ''

reset neither_root_nor_sudo bazel-bootstrap alpha
mv "$box/bin/sudo" "$box/sudo"
launch FAKE_UID=1000 -- info
mv "$box/sudo" "$box/bin/sudo"
expect rc "$rc" 1
expect calls "$calls" ''
expect stderr "$(<"$box/err")" "tools/bazel: packages are missing and this is neither root nor has sudo; as root: apt-get update && $install beta"

reset no_apt bazel-bootstrap alpha
mv "$box/bin/apt-get" "$box/apt-get"
launch -- info
expect rc "$rc" 1
expect stderr "$(<"$box/err")" 'tools/bazel: no apt-get here; install what these Debian packages hold, then set PIPELAB_SKIP_INSTALL=1: beta'
mv "$box/bin/dpkg-query" "$box/dpkg-query"
launch -- info
mv "$box/dpkg-query" "$box/bin/dpkg-query"
mv "$box/apt-get" "$box/bin/apt-get"
expect rc "$rc" 1
expect stderr "$(<"$box/err")" 'tools/bazel: no apt-get here; *: bazel-bootstrap alpha beta'

reset locked bazel-bootstrap
launch APT=locked -- info
expect rc "$rc" 1
expect stderr "$err" 'tools/bazel: not installed: alpha beta (apt-get install: Could not get lock /var/lib/dpkg/lock-frontend.*); mend that, *'
expect stdout "$out" ''

reset unknown_package bazel-bootstrap alpha
launch APT=unknown -- info
expect rc "$rc" 1
expect stderr "$err" 'tools/bazel: not installed: beta (apt-get install: Unable to locate package beta); *'

reset failed_update_with_packages_at_hand bazel-bootstrap alpha
launch APT=offline -- info
expect rc "$rc" 0

reset half_installed bazel-bootstrap
launch APT=half -- info
expect rc "$rc" 1
expect stderr "$err" 'tools/bazel: not installed: beta (apt-get install: Sub-process dpkg); *'
launch -- info
expect rc "$rc" 0
expect calls "$calls" $'apt-get update\n'"$install beta"

reset no_list
: >"$box/checkout/third_party/packages.txt"
launch -- info
expect rc "$rc" 1
expect stderr "$err" 'tools/bazel: */third_party/packages.txt names no package; restore it'

reset bazel_real_is_no_program bazel-bootstrap alpha beta
launch BAZEL_REAL=/nowhere/bazel -- info
expect rc "$rc" 1
expect stderr "$err" 'tools/bazel: BAZEL_REAL=/nowhere/bazel is no program; *'

rm -r "$box"
((failures == 0)) && echo 'all passed'
