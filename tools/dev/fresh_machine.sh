#!/bin/bash
# Tries README's two commands on a fresh Debian 12: a debootstrap chroot that holds nothing but the base
# system and a clean clone of this checkout's last commit. Needs root, debootstrap, git and unshare.
#
#   tools/dev/fresh_machine.sh [--root DIR] [STAGE...]      (default: /tmp/pipelab_fresh, every stage)
#
#   prepare  makes DIR anew: debootstrap, the host's way to the network, the clone
#   refuse   as a plain user without sudo: the launcher must say what to install and stop with 1
#   install  tools/bazel installs what is missing; one small target builds; prints what was installed
#   run      tools/bazel run //experiments:quickstart
#   search   tools/bazel run //experiments:pipelab -- search
#   pages    every command of README.md, docs/README.md and both tutorials, its output compared
#   users    README's lines for Python, the page in the browser, and a .deb; a second bare system (DIR.bare) installs a wheel and then the .deb
#   configs  every --config of .bazelrc that Debian's Bazel knows, on a small target, and what cuda says without CUDA
#   test     tools/bazel test //...
#
# Stages but prepare go on from where DIR is; `rm -r DIR` when done. Each runs in its own mount and process
# namespaces: when it ends, its mounts and its Bazel server are gone.
set -euo pipefail

root=/tmp/pipelab_fresh
mirror=http://deb.debian.org/debian
small_target=//tools/base/...

fail() {
  echo "fresh_machine.sh: $*" >&2
  exit 1
}
if [[ ${1:-} == --root ]]; then
  root=${2:?--root needs a folder}
  shift 2
fi
stages=("$@")
if ((${#stages[@]} == 0)); then stages=(prepare refuse install run search pages users configs test); fi
[[ $(id -u) == 0 ]] || fail "needs root: chroot and mount"
for program in debootstrap git unshare; do
  command -v "$program" >/dev/null || fail "$program is missing: apt-get install -y debootstrap git util-linux"
done
checkout=$(git -C "$(dirname "$(readlink -f "$0")")" rev-parse --show-toplevel)

# bare_system DIR: Debian and nothing else, made anew.
bare_system() {
  local root=$1
  if [[ -e $root ]]; then
    [[ -e $root/etc/debian_version ]] || fail "--root $root exists and is no Debian; name another folder"
    rm -rf --one-file-system "$root"
  fi
  debootstrap --variant=minbase bookworm "$root" "$mirror"
  # The host's way to the packages: name servers, sources, proxies.
  cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
  local file
  for file in sources.list sources.list.d/debian.sources; do
    if [[ -e /etc/apt/$file ]]; then
      rm -f "$root/etc/apt/sources.list"
      cp "/etc/apt/$file" "$root/etc/apt/$file"
    fi
  done
  apt-config dump | grep -E '^Acquire::(https?|Check|Proxy)' >"$root/etc/apt/apt.conf.d/90host" || true
}

prepare() {
  bare_system "$root"
  git clone --quiet --no-hardlinks "$checkout" "$root/src/pipelab"
}

# inside COMMAND [ROOT]: runs it in the chroot, in the clone if it has one, with an environment like a login's.
inside() {
  # shellcheck disable=SC2016  # the inner shell expands these
  unshare --mount --pid --fork --propagation private -- bash -euc '
    root=$1
    mount -t proc proc "$root/proc"
    mount -t sysfs sysfs "$root/sys"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs tmpfs "$root/run"
    exec chroot "$root" /usr/bin/env -i HOME=/root TERM=dumb LANG=C.UTF-8 \
      PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
      ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
      bash -euo pipefail -c "if [[ -e /src/pipelab ]]; then cd /src/pipelab; fi; $2"
  ' inside "${2:-$root}" "$1"
}

packages() { dpkg-query --admindir="$root/var/lib/dpkg" -W -f '${Package} ${Installed-Size}\n' | sort; }

refuse() {
  local out rc=0
  out=$(inside 'exec setpriv --reuid=65534 --regid=65534 --clear-groups tools/bazel info release' 2>&1) || rc=$?
  echo "$out"
  [[ $rc == 1 && $out == 'tools/bazel: '*'as root: apt-get'* && $out != *$'\n'* ]] ||
    fail "refuse: exit code $rc and the lines above; expected 1 and one line that says what to install"
}

install() {
  local before
  before=$(packages)
  inside 'time tools/bazel info release; dpkg --audit'
  comm -13 <(echo "$before") <(packages) | awk '
    { kib += $2; names = names " " $1 }
    END { printf "installed %d packages, %.0f MiB:%s\n", NR, kib / 1024, names }'
  inside "time tools/bazel build $small_target"
}

run() { inside 'time tools/bazel run //experiments:quickstart'; }
search() { inside 'time tools/bazel run //experiments:pipelab -- search --model=gpt-52b --cluster=dgx-a100 --devices=64 --batch=64 --top=4'; }
pages() { inside 'for page in README.md docs/README.md docs/tutorial.md docs/llama3_70b.md; do tests/doc_commands_test.sh --checkout $page; done'; }
# A page's first answer, over the loopback of this machine; Debian's Python asks.
# shellcheck disable=SC2016  # the shell inside expands it
served='
  "$pipelab" serve --port=8765 & server=$!
  python3 - <<END
import time, urllib.request
for _ in range(100):
    try:
        page = urllib.request.urlopen("http://127.0.0.1:8765/", timeout=10).read()
        break
    except OSError:
        time.sleep(0.1)
assert b"<title>pipelab" in page, page[:200]
print("the page answers,", len(page), "bytes")
END
  kill "$server"; wait "$server" || true'
used='python3 -c "import pipelab; print(pipelab.simulate(\"zbv\", devices=4, micro_batches=8).makespan)"'
users() {
  inside "time tools/bazel run //python:install -- --venv=/tmp/venv; PATH=/tmp/venv/bin:\$PATH $used"
  inside "time tools/bazel build //experiments:pipelab_plan; pipelab=bazel-bin/experiments/pipelab_plan; $served"
  inside 'time tools/bazel run //:deb -- --out=/tmp/dist; tools/bazel run //python:wheel -- --out=/tmp/dist'
  bare_system "$root.bare"
  cp "$root"/tmp/dist/* "$root.bare/tmp/"
  inside "{ apt-get update -q; apt-get install -qy python3-venv; } >/tmp/apt.log; python3 -m venv /tmp/venv
    time /tmp/venv/bin/pip install --no-index /tmp/*.whl; PATH=/tmp/venv/bin:\$PATH $used" "$root.bare"
  inside "time apt-get install -qy /tmp/*.deb >/tmp/apt.log
    time pipelab simulate zbv:P=8,M=32 --model=gpt-6.6b --cluster=dgx-a100; pipelab=pipelab; $used; $served" "$root.bare"
}
# One server for all: the packages that a flag brings are installed between two builds.
configs() {
  inside "for config in asan ubsan tsan; do tools/bazel test --config=\$config $small_target; done
    tools/bazel build --config=lint $small_target
    tools/bazel run --config=fuzz //kernels/comm:wire_head_fuzzer -- -runs=10000
    tools/bazel test --config=mpi //kernels/comm:mpi_test
    tools/bazel test --config=browser //experiments/report:report_test
    if out=\$(tools/bazel build --config=cuda //kernels/cuda/... 2>&1); then exit 1; fi
    grep -F -e '--config=cuda needs the CUDA toolkit' <<<\"\$out\""
}
test() { inside 'time tools/bazel test //...'; }

for stage in "${stages[@]}"; do
  case $stage in
    prepare | refuse | install | run | search | pages | users | configs | test) ;;
    *) fail "unknown stage '$stage'; one of prepare, refuse, install, run, search, pages, users, configs, test" ;;
  esac
done
for stage in "${stages[@]}"; do
  echo "=== $stage"
  [[ $stage == prepare || -e $root/src/pipelab ]] || fail "no clone in $root: run the stage prepare first"
  "$stage"
done
