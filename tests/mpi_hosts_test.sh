#!/bin/bash
# Two hosts: network namespaces with names and addresses of their own, joined by a pair of virtual devices, TCP
# between them. Everything is made inside namespaces of this test's own; where the machine does not allow them,
# the test is skipped by name.
set -euo pipefail

skipped() {
  echo "skipped: $1"
  if [[ -n ${XML_OUTPUT_FILE:-} ]]; then
    printf '<testsuites><testsuite name="mpi_hosts_test"><testcase name="mpi_hosts_test" status="notrun"><skipped message="%s"/></testcase></testsuite></testsuites>\n' \
      "$1" >"$XML_OUTPUT_FILE"
  fi
  exit 0
}

# Again, inside namespaces: as root, or as a user who is root there.
if [[ -z ${IN_NAMESPACE:-} ]]; then
  command -v ip >/dev/null || skipped "no ip (package iproute2)"
  command -v nsenter >/dev/null || skipped "no nsenter (package util-linux)"
  for how in "--net --uts" "--user --map-root-user --net --uts"; do
    # shellcheck disable=SC2086  # words
    if unshare $how sh -c 'hostname probe && ip link add name veth_a type veth peer name veth_b' 2>/dev/null; then
      IN_NAMESPACE=1 exec unshare $how "$0" "$@"
    fi
  done
  skipped "network namespaces are not allowed here"
fi

source tests/shell_checks.sh
source tools/mpi_options.sh
pipelab=$PWD/$1
# What pipelab becomes: the program beside it that trains.
trainer=$(readlink -f "$pipelab")_train
work=$TEST_TMPDIR/mpi_hosts
mkdir -p "$work"
cd "$work"

# Host a is here, host b where this process is.
hostname host-a
ip link set lo up
unshare --net --uts sleep 600 &
b=$!
trap 'kill "$b" 2>/dev/null; rm -rf "$TMPDIR"' EXIT
# Until it is in its namespace: before, both ends would be here.
for ((tries = 0; tries < 200; ++tries)); do
  [[ $(readlink "/proc/$b/ns/net") == "$(readlink /proc/self/ns/net)" ]] || break
  sleep 0.02
done
ip link add name to_b type veth peer name to_a netns "$b"
ip addr add 10.77.0.1/24 dev to_b
ip link set to_b up
nsenter -t "$b" -n -u sh -c \
  'hostname host-b; ip link set lo up; ip addr add 10.77.0.2/24 dev to_a; ip link set to_a up'
# What mpirun calls in the place of ssh.
cat >"$TMPDIR/enter" <<END
#!/bin/bash
shift
exec nsenter -t $b -n -u bash -c "\$*"
END
chmod +x "$TMPDIR/enter"
options=(--oversubscribe --bind-to none -H '10.77.0.1:2,10.77.0.2:2' -np 4
  --mca plm_rsh_agent "$TMPDIR/enter" --mca pml ob1 --mca btl 'self,tcp' -x OMP_NUM_THREADS)
if [[ $(id -u) -eq 0 ]]; then options+=(--allow-run-as-root); fi
export OMP_NUM_THREADS=1

hosts_differ() {
  mpirun "${options[@]}" bash -c 'hostname; ip -o -4 addr show' >stdout 2>stderr || { cat stderr; return 1; }
  grep -q host-a stdout && grep -q host-b stdout && grep -q '10.77.0.1/' stdout && grep -q '10.77.0.2/' stdout ||
    { cat stdout; return 1; }
}

# What a run in one process prints, but for the number of processes.
same_losses() {
  local run
  for run in "1f1b --devices=4 --micro_batches=8" "chimera --devices=4 --micro_batches=8" \
    "breadth_first --devices=2 --micro_batches=8 --data_parallel=2 --sharding=fully" \
    "1f1b --devices=2 --micro_batches=4 --tensor_parallel=2"; do
    # shellcheck disable=SC2086  # words
    "$pipelab" run $run --steps=3 >alone
    # shellcheck disable=SC2086
    timeout 100 mpirun "${options[@]}" "$pipelab" run $run --steps=3 >stdout 2>stderr || { cat stderr; return 1; }
    diff <(sed '/^step time, /d' alone) <(sed 's/ in 4 processes,/,/; /^step time, /d' stdout) ||
      { echo "differs: $run"; return 1; }
  done
}

# The process ids of rank $1 on whichever host.
rank_pid() {
  local pid
  for pid in $(processes_of "$trainer"); do
    if tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qx "OMPI_COMM_WORLD_RANK=$1"; then echo "$pid"; fi
  done
}

# A process of the other host is killed: all end within 5 s, and say who it was.
killed_after() {
  local job victim='' tries status=0 begin took
  timeout 60 mpirun "${options[@]}" "$pipelab" run 1f1b --devices=4 --micro_batches=400 --steps=1000000 \
    >stdout 2>stderr &
  job=$!
  for ((tries = 0; tries < 300; ++tries)); do
    victim=$(rank_pid 3)
    [[ -z $victim ]] || break
    sleep 0.1
  done
  [[ -n $victim ]] || { echo "rank 3 did not start"; return 1; }
  sleep "$1"  # it has met the others, and trains
  begin=$(date +%s%N)
  kill -KILL "$victim"
  wait "$job" || status=$?
  took=$((($(date +%s%N) - begin) / 1000000))
  [[ $status != 0 && $status != 124 ]] || { echo "exit $status"; return 1; }
  grep -qE '^rank 3 of 4 is gone \(killed or crashed\): device 3 is ' stderr || { cat stderr; return 1; }
  ((took < 5000)) || { echo "$took ms"; return 1; }
  for ((tries = 0; tries < 50; ++tries)); do
    [[ -n $(processes_of "$trainer") ]] || return 0
    sleep 0.1
  done
  echo "still there: $(processes_of "$trainer")"
  return 1
}

# A busy machine may need longer to be in the middle of training.
killed_elsewhere() { killed_after 2 || killed_after 15; }

check hosts_differ hosts_differ
check same_losses same_losses
check killed_elsewhere killed_elsewhere
exit $((failures > 0))
