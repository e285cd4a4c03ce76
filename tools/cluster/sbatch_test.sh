#!/bin/bash
# tools/cluster/pipelab.sbatch: its syntax, its options, and what it starts, with stand-ins for srun and mpirun.
set -euo pipefail
script=$PWD/tools/cluster/pipelab.sbatch
cd "$TEST_TMPDIR"
fail() {
  echo "FAILED: $*"
  exit 1
}

bash -n "$script" || fail "syntax"

# Options: after the first command Slurm reads no more of them.
first=$(grep -nvE '^(#|$)' "$script" | head -1 | cut -d: -f1)
last=$(grep -n '^#SBATCH' "$script" | tail -1 | cut -d: -f1)
((last < first)) || fail "line $last, an option, comes after the first command in line $first"
while read -r option; do
  [[ $option =~ ^--(job-name|nodes|ntasks-per-node|cpus-per-task|time|output|kill-on-bad-exit)=[^[:space:]]+$ ]] ||
    fail "#SBATCH $option"
done < <(sed -n 's/^#SBATCH //p' "$script")

mkdir bin
for launcher in srun mpirun; do
  printf '#!/bin/bash\necho "%s $OMP_NUM_THREADS $*"\n' "$launcher" >"bin/$launcher"
done
printf '#!/bin/bash\n' >program
chmod +x bin/* program
export PATH=$PWD/bin:$PATH PIPELAB=$PWD/program

out=$("$script" run 1f1b --devices=8)
[[ $out == "srun 1 --mpi=pmix --kill-on-bad-exit=1 $PIPELAB run 1f1b --devices=8" ]] || fail "srun: $out"
out=$(PIPELAB_LAUNCH=mpirun "$script" run 1f1b)
[[ $out == "mpirun 1 --bind-to core -x OMP_NUM_THREADS $PIPELAB run 1f1b" ]] || fail "mpirun: $out"

# refused TEXT COMMAND...: exit code 2, and one line that has TEXT.
refused() {
  local text=$1 status=0
  shift
  "$@" >stdout 2>stderr || status=$?
  [[ $status == 2 && $(wc -l <stderr) == 1 && $(<stderr) == *"$text"* ]] || fail "exit $status: $(<stderr)"
}
refused "no command" "$script"
refused "/nowhere/pipelab: no such program" env PIPELAB=/nowhere/pipelab "$script" run 1f1b
echo "ok"
