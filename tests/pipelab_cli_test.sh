#!/bin/bash
# pipelab as other programs call it: each command, its errors with their exit codes, and schedules that go from
# one form to another and back.
set -euo pipefail
source tests/shell_checks.sh

pipelab=$PWD/$1
deadlock=$PWD/tests/testdata/deadlock.csv
examples=$PWD/models/files/examples
work=$TEST_TMPDIR/cli
mkdir -p "$work"
cd "$work"

# prints TEXT ARG...: exit 0, nothing on stderr, and TEXT on stdout.
prints() {
  local text=$1
  shift
  "$pipelab" "$@" >stdout 2>stderr || { echo "exit $?: $*"; cat stderr; return 1; }
  [[ ! -s stderr ]] || { echo "on stderr of $*:"; cat stderr; return 1; }
  grep -qF -- "$text" stdout || { echo "no '$text' in the output of $*:"; cat stdout; return 1; }
}

# refused CODE TEXT ARG...: exit CODE, one line on stderr that has TEXT, nothing on stdout.
refused() {
  local code=$1 text=$2
  shift 2
  one_line_error "$code" "$text" "$pipelab" "$@" || return 1
  [[ ! -s stdout ]] || { echo "on stdout of $*:"; cat stdout; return 1; }
}

# Devices of a build without CUDA count what their graphs did, and lose nothing by them.
graphs_serve() {
  "$pipelab" run 1f1b --devices=2 --micro_batches=4 --layers=2 --backend=emulated --cuda_graphs=on >stdout 2>stderr || {
    grep -q "in builds without --config=cuda alone" stderr && return
    cat stdout stderr
    return 1
  }
  grep -q "bit" stdout && grep -Eq "^device 1: graphs_replayed [1-9]" stdout || { cat stdout; return 1; }
}

# Networks of convolutions train in bfloat16, to the serial loop's bits and in the bytes predicted.
images_train() {
  local model
  for model in amoebanet resnet unet vgg; do
    "$pipelab" plan --planner=bapipe --model=$model-small --cluster=summit-4gpu --devices=2 --samples=2 \
      --micro_batches=2 --json_out=$model.json >stdout || { cat stdout; return 1; }
    "$pipelab" run --plan=$model.json --model=$model-small --samples=2 --micro_batches=2 --steps=2 \
      --backend=emulated --precision=bf16 >stdout 2>stderr || {
      grep -q "in builds without --config=cuda alone" stderr && return
      cat stdout stderr
      return 1
    }
    grep -q "losses: bit-equal" stdout && grep -q "as predicted to the byte" stdout || { cat stdout; return 1; }
  done
}

# A run goes on from its file with the losses that it would have had, in the same numbers.
goes_on() {
  local losses='^ *[34]  '
  "$pipelab" run 1f1b --devices=2 --micro_batches=2 --steps=2 --checkpoint=two.safetensors >two || return 1
  "$pipelab" run 1f1b --devices=2 --micro_batches=2 --steps=4 >whole || return 1
  "$pipelab" run gpipe --devices=2 --micro_batches=2 --steps=4 --resume=two.safetensors >rest || return 1
  grep -q 'gone on from step 2' rest || { cat rest; return 1; }
  diff <(grep "$losses" whole) <(grep "$losses" rest) || return 1
  refused 2 "two.safetensors: trained with activations = float32, not bfloat16" run 1f1b --devices=2 \
    --micro_batches=2 --steps=4 --resume=two.safetensors --backend=emulated --precision=bf16
}

# csv -> json -> csv, and json -> json, of every scheme of the catalogue that serves the size.
round_trips() {
  local scheme served=0
  while read -r scheme; do
    "$pipelab" schedule "$scheme" --devices=4 --micro_batches=8 --format=csv >a.csv 2>stderr || continue
    served=$((served + 1))
    "$pipelab" schedule --csv=a.csv --format=json >a.json
    "$pipelab" schedule --json=a.json --format=csv >b.csv
    cmp a.csv b.csv || { echo "csv -> json -> csv changes $scheme"; return 1; }
    "$pipelab" schedule "$scheme" --devices=4 --micro_batches=8 --format=json --out=c.json
    "$pipelab" schedule --json=c.json --format=json >d.json
    cmp c.json d.json || { echo "json -> json changes $scheme"; return 1; }
    "$pipelab" schedule "$scheme" --devices=4 --micro_batches=8 --out=e.txt
    "$pipelab" schedule --text=e.txt --out=f.txt
    cmp e.txt f.txt || { echo "text -> text changes $scheme"; return 1; }
    "$pipelab" check --text=e.txt >stdout || { echo "check --text refuses $scheme"; return 1; }
    "$pipelab" check --csv=a.csv >stdout || { echo "check refuses $scheme"; return 1; }
    # A name, its CSV and its JSON are the same on paper.
    "$pipelab" simulate "$scheme" --devices=4 --micro_batches=8 --hop=0.25 --json_out=- >name.out
    "$pipelab" simulate --csv=a.csv --hop=0.25 --json_out=- >csv.out
    "$pipelab" simulate --json=- --hop=0.25 --json_out=- <c.json >json.out
    "$pipelab" simulate --text=e.txt --hop=0.25 --json_out=- >text.out
    cmp name.out csv.out && cmp name.out json.out && cmp name.out text.out || return 1
  done < <("$pipelab" list --json | sed -n 's/.*"name": "\(.*\)",.*/\1/p')
  [[ $served -ge 5 ]] || { echo "only $served schemes were tried"; return 1; }
}

# 1F1B at P = 4, M = 8: makespan 3 (M + P - 1), bubble (P - 1) / (M + P - 1), min(M, P - d) in flight.
closed_form() {
  "$pipelab" simulate 1f1b --devices=4 --micro_batches=8 --json_out=figures.json >stdout
  tr -d ' \n' <figures.json >flat
  grep -qF '{"bubble":0.2727272727272727,"devices":[' flat || { cat flat; return 1; }
  grep -qF '{"busy":24.0,"idle":9.0,"peak_in_flight":4,"span":33.0}' flat || { cat flat; return 1; }
  grep -qF '{"busy":24.0,"idle":9.0,"peak_in_flight":1,"span":24.0}]' flat || { cat flat; return 1; }
  grep -qF '"makespan":33.0}' flat || { cat flat; return 1; }
}

# A fused backward costs both parts; times are decimals and stay exact; a hop delays each way once.
times() {
  "$pipelab" simulate gpipe --devices=2 --micro_batches=1 --forward=0.1 --backward_input=0.2 \
    --backward_weight=0.3 --hop=0.05 --json_out=- >stdout
  grep -q '"makespan": 1.3,\?$' stdout || { cat stdout; return 1; }
}

# Plans as `plan` writes them: three stages of a GPT, and branches of an MMT beside one another, the first on two
# devices with larger micro-batches.
write_plans() {
  cat >gpt_plan.json <<'JSON'
{"stages": [{"layers": ["embedding", "block0", "block1"]}, {"layers": ["block2", "block3"]},
            {"layers": ["block4", "block5", "head"]}]}
JSON
  local branches='' b
  for b in 0 1 2 3; do
    branches+="{\"layers\": [\"branch$b/embedding\", \"branch$b/block0/attention\", \"branch$b/block0/mlp\", \"branch$b/block1/attention\", \"branch$b/block1/mlp\""
    [[ $b -lt 3 ]] || branches+=', "join/concat", "join/dense", "head"'
    branches+=']'
    [[ $b -gt 0 ]] || branches+=', "data": 2, "micro_batch_samples": 4'
    branches+='},'
  done
  echo "{\"stages\": [${branches%,}]}" >mmt_plan.json
  echo '{"stages": [{"layers": ["branch0", "branch1", "branch2", "branch3", "join", "head"]}]}' >all_plan.json
}

# A graph is less deep than the chain of the same stages, and holds no more.
plan_on_paper() {
  local here=(--plan=mmt_plan.json --model=mmt-small --cluster=summit-4gpu --samples=2)
  "$pipelab" simulate "${here[@]}" --json_out=- >graph.out
  "$pipelab" simulate "${here[@]}" --sequential --json_out=- >chain.out
  local graph chain
  graph=$(sed -n 's/.*"makespan": \([0-9]*\).*/\1/p' graph.out)
  chain=$(sed -n 's/.*"makespan": \([0-9]*\).*/\1/p' chain.out)
  [[ $graph -lt $chain ]] || { echo "graph $graph, chain $chain"; return 1; }
  grep -q '"peak_activation_bytes"' graph.out || { cat graph.out; return 1; }
}

# 1F1B's first device keeps four micro-batches; the parts add up.
memory() {
  "$pipelab" simulate 1f1b --devices=4 --micro_batches=8 --bytes=64MiB --kept=2GiB --weights=1GiB,1GiB,2GiB,3GiB \
    --workspace=100MiB --json_out=figures.json >stdout
  grep -q '^1f1b  *0  *1.00  *1.00  *2.00  *8.00  *0.00  *0.16  *12.16  0F3$' stdout || { cat stdout; return 1; }
  grep -q '^1f1b  *3  *3.00  *3.00  *6.00  *2.06  *0.06  *0.16  *14.29  3B0$' stdout || { cat stdout; return 1; }
  tr -d ' \n' <figures.json >flat
  grep -qF '"peak_memory":{"action":171966464,"all":13056868352,"during":"0F3","gradients":1073741824,' flat || { cat flat; return 1; }
}

# makespan NUMBER ARG...: what simulate says.
makespan() {
  local expected=$1
  shift
  "$pipelab" simulate "$@" --json_out=- >stdout 2>stderr || { echo "exit $?: $*"; cat stderr; return 1; }
  grep -q "\"makespan\": $expected,\?\$" stdout || { echo "not $expected: $*"; cat stdout; return 1; }
}

# Messages of a quarter of a unit, a port of two senders, blocking transfers, a straggler, steps and reductions.
cluster() {
  local sizes="--devices=4 --micro_batches=8"
  makespan 13.5 gpipe --devices=4 --micro_batches=1 --bytes=30MB --bandwidth=120MB || return 1
  makespan 35.0 gpipe $sizes --hop=0.1 --overlap=false || return 1  # 11 (3 + 0.2) - 0.2
  makespan 57.0 gpipe $sizes --device_speed=1,0.5,1,1 || return 1   # 9 + 6 + 7 * 6
  makespan 33.5 1f1b $sizes --step=0.5 || return 1
  # 11 + 6 + 8 (2 + R): all but the last device rebuild while they wait.
  makespan 41.0 gpipe $sizes --recompute || return 1
  makespan 37.0 gpipe $sizes --recompute --recompute_time=0.5 || return 1
  # Stages 0 and 1 send to stage 2, through one port of 1 MB a unit: 1 + 2 + 3, and back 2 + 2.
  cat >join.json <<'JSON'
{"edges": [[0, 2], [1, 2]], "stage_to_device": [[0, 1, 2]],
 "order": [[["F", 0, 0], ["B", 0, 0]], [["F", 1, 0], ["B", 1, 0]], [["F", 2, 0], ["B", 2, 0]]]}
JSON
  cat >port.json <<'JSON'
{"links": [{"name": "in", "bandwidth": "1MB"}, {"name": "out", "bandwidth": 1e6}],
 "paths": [{"from": [0, 1], "to": 2, "links": ["in"]}, {"from": 2, "to": "all", "links": ["out"]}]}
JSON
  makespan 8.0 --json=join.json --bytes=1MB --bandwidth=1MB || return 1
  makespan 10.0 --json=join.json --bytes=1MB --links=port.json
}

# What PyTorch's runtime writes: messages and gathers are left out, and said so; pairs are read.
lowered_csv() {
  printf '0UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,0F2,0SEND_F2,0RECV_B0,0B0,0B1,0B2,0REDUCE_GRAD,,\r\n' >lowered.csv
  printf '1F0,1F1,1B0,(1F2;1B1)OVERLAP_F_B,1B2\r\n' >>lowered.csv
  prints 'valid: 2 devices, 2 stages, 3 micro-batches, 1 replicas; 6 cells of messages (4), parameter gathers (1) and gradient reductions (1) left out' \
    check --csv=lowered.csv || return 1
  "$pipelab" schedule --csv=lowered.csv --format=csv >stdout 2>stderr || return 1
  [[ $(cat stdout) == $'0F0,0F1,0F2,0B0,0B1,0B2\n1F0,1F1,1B0,1F2,1B1,1B2' ]] || { cat stdout; return 1; }
  [[ $(wc -l <stderr) == 1 ]] && grep -qF -- '--csv=lowered.csv: 6 cells' stderr || { cat stderr; return 1; }
  "$pipelab" simulate --csv=lowered.csv --json_out=- >stdout 2>stderr && grep -q '"skipped_cells": 6' stdout
}

# A full disk behind stdout is a failure of every command.
full_stdout() {
  local args status
  for args in "simulate 1f1b" "simulate 1f1b --json_out=-" "check --csv=ok.csv" "show 1f1b" "list" "schedule 1f1b" \
      "check --json=good.json" "--help"; do
    status=0
    "$pipelab" $args >/dev/full 2>stderr || status=$?
    [[ $status == 1 && $(wc -l <stderr) == 1 ]] || { echo "exit $status: $args"; cat stderr; return 1; }
    grep -q 'No space left' stderr || { cat stderr; return 1; }
  done
}

# The pair 0F2 0B0 starts when 1B0 is over, at 4.
pairs() {
  printf '0F0,0F1,0F2,0B0,0B1,0B2\n1F0,1F1,1B0,1F2,1B1,1B2\n' >pairs.csv
  "$pipelab" simulate --csv=pairs.csv --json_out=- >apart
  "$pipelab" simulate --csv=pairs.csv --atomic_pairs --json_out=- >together
  ! cmp -s apart together || { echo "--atomic_pairs changes nothing"; cat together; return 1; }
}

json_verdict() {
  "$pipelab" schedule 1f1b --devices=2 --micro_batches=2 --format=json >good.json
  "$pipelab" check --json=good.json >stdout 2>stderr || return 1
  [[ $(cat stdout) == '{"valid":true}' && ! -s stderr ]] || { cat stdout stderr; return 1; }
  sed 's/\["B", 1, 0, 0\], \["F", 1, 1, 0\], \["B", 1, 1, 0\]/["B", 1, 0, 0], ["B", 1, 1, 0], ["F", 1, 1, 0]/' \
    good.json >bad.json
  local status=0
  "$pipelab" check --json=bad.json >stdout 2>stderr || status=$?
  [[ $status == 1 && $(wc -l <stdout) == 1 && ! -s stderr ]] || { echo "exit $status"; cat stdout stderr; return 1; }
  grep -qF '"action":"1B1","device":1,"position":2' stdout || { cat stdout; return 1; }
  grep -qF 'device 1, position 2: 1B1 comes before its forward 1F1 (position 3)' stdout || { cat stdout; return 1; }
}

drawings() {
  prints 'device 0 |abcd......AA' show 1f1b --devices=4 --micro_batches=4 || return 1
  "$pipelab" show chimera --devices=4 --micro_batches=8 --svg_out=a.svg --trace_out=trace.json >stdout
  grep -q '^<svg' a.svg && grep -q '</svg>' a.svg || return 1
  local event
  for event in '"ph":"X"' '"ph":"s"' '"ph":"f"' '"ph":"C"'; do
    grep -qF "$event" trace.json || { echo "no $event in the trace"; return 1; }
  done
  "$pipelab" show 1f1b --bytes=64MiB --trace_out=trace.json >stdout
  grep -qF '"messages":67108864' trace.json || { echo "no memory in the trace"; return 1; }
  "$pipelab" show 1f1b --bytes=64MiB --kept=1GiB --memory_out=memory.svg >stdout
  grep -q '^<svg' memory.svg && grep -qF '>4160.00 MiB at 0F3<' memory.svg || { echo "no memory drawn"; return 1; }
  "$pipelab" show gpipe --svg_out=- >stdout
  [[ $(head -c 4 stdout) == '<svg' ]] || { head -c 100 stdout; return 1; }
}

# Training under a scheme, a bidirectional CSV and a V-shaped, split JSON.
training() {
  prints 'losses: bit-equal' run 1f1b --devices=2 --micro_batches=4 --steps=3 || return 1
  printf '0F0,1F1,,1B1,0B0\n0F1,1F0,,1B0,0B1\n' >both.csv
  prints 'losses: ' run --csv=both.csv --steps=3 || return 1
  cat >v.json <<'JSON'
{"order": [[["F", 0, 0], ["F", 3, 0], ["I", 3, 0], ["W", 3, 0], ["B", 0, 0]],
           [["F", 1, 0], ["F", 2, 0], ["B", 2, 0], ["I", 1, 0], ["W", 1, 0]]]}
JSON
  prints 'losses: bit-equal' run --json=v.json --steps=3 || return 1
  grep -q 'peak activation' stdout && grep -q 'sent a step' stdout || return 1
  prints '4 devices in groups of 2' run 1f1b --devices=2 --micro_batches=4 --steps=3 --tensor_parallel=2 || return 1
  grep -q 'losses: within' stdout && grep -q 'sent to group' stdout || return 1
  grep -q 'as predicted to the byte' stdout || { cat stdout; return 1; }
  prints 'as predicted to the byte' run gpipe --devices=2 --micro_batches=2 --steps=2 --tensor_parallel=2 --sequence_parallel
}

# A token pipeline: JSON and back, its closed form, and training. The CSV form has no slices.
slices() {
  "$pipelab" schedule terapipe --devices=2 --micro_batches=2 --slices=3 --format=json --out=sliced.json
  grep -qF '"slices": 3' sliced.json && grep -qF '["F", 0, 0, 0, 2]' sliced.json || { cat sliced.json; return 1; }
  "$pipelab" schedule --json=sliced.json --format=json >again.json
  cmp sliced.json again.json || return 1
  # A slice costs a third, exactly: (M S + P - 1) / S times F + B = 3.
  prints 'makespan 7,' simulate --json=sliced.json || return 1
  prints 'makespan 7.1,' simulate terapipe --devices=2 --micro_batches=2 --slices=3 --hop=0.05 || return 1
  prints '0B0.2 0B0.1 0B0 0B1.2' schedule --json=sliced.json --format=text || return 1
  prints '{"valid":true}' check --json=sliced.json || return 1
  prints 'bit-equal by slice' run --json=sliced.json --steps=3
}

# A model of the user's own: four layers of 1 + 2 ms take 3 (M + P - 1) ms, drawn and as JSON; profiles of other
# planners; and published ones on a machine.
models() {
  cat >mine.json <<'JSON'
{"name": "mine", "layers": [
  {"name": "a", "time": "1 ms", "output": "1 MB", "parameters": 1000},
  {"name": "b", "inputs": ["a"], "time": "1 ms", "output": "1 MB", "parameters": 1000},
  {"name": "d", "inputs": ["c"], "time": "1 ms", "parameters": 1000},
  {"name": "c", "inputs": ["b"], "time": "1 ms", "output": "1 MB", "parameters": 1000}]}
JSON
  makespan 33.0 1f1b --devices=4 --micro_batches=8 --model=mine.json || return 1
  grep -qF '"unit": "ms"' stdout && grep -qF '"peak_state_bytes": 16000' stdout || { cat stdout; return 1; }
  prints 'makespan 66 ms' simulate 1f1b --devices=4 --micro_batches=8 --model=./mine.json --samples=2 || return 1
  prints '15.6 KiB' simulate gpipe --model=mine.json || return 1
  makespan 54.0 gpipe --devices=2 --micro_batches=8 --model=mine.json --layout=2,2 || return 1
  prints 'device 3 |' show 1f1b --model=mine.json || return 1
  printf 'node1 -- A -- forward_compute_time=1.0, backward_compute_time=2.0, activation_size=8.0, parameter_size=4.0\n' >p.txt
  printf 'node2 -- B -- forward_compute_time=1.0, backward_compute_time=2.0, activation_size=8.0, parameter_size=4.0\n' >>p.txt
  printf '\tnode1 -- node2\n' >>p.txt
  makespan 27.0 gpipe --devices=2 --micro_batches=8 --model=p.txt || return 1
  prints ' ms, bubble' simulate 1f1b --devices=8 --model=gpt-6.6b --cluster=dgx-a100 --number_type=bf16
}

# Rows of training iterations with their predicted times.
predicts() {
  header='# GPUs,global batch,micro batch,hidden size,attention heads,# layers,sequence length,tensor parallelism,data parallelism,pipeline parallelism,iteration time (ms)'
  printf '%s\n2,16,8,1024,16,24,1024,1,1,2,372.25\n8,4,1,1024,16,16,1024,1,2,4,\n' "$header" >rows.csv
  "$pipelab" predict --rows=rows.csv --cluster=dgx_a100 --csv_out=a.out >stdout || return 1
  [[ ! -s stdout ]] || { cat stdout; return 1; }
  "$pipelab" predict --rows=rows.csv --cluster=dgx-a100 >b.out || return 1
  cmp a.out b.out || return 1
  [[ $(head -1 a.out) == "$header,predicted_ms" ]] || { head -1 a.out; return 1; }
  [[ $(wc -l <a.out) == 3 ]] || { cat a.out; return 1; }
  grep -qE '^2,16,8,1024,16,24,1024,1,1,2,372.25,[0-9]+\.[0-9]{6}$' a.out || { cat a.out; return 1; }
  grep -qE '^8,4,1,1024,16,16,1024,1,2,4,,[0-9]+\.[0-9]{6}$' a.out || { cat a.out; return 1; }
  { echo "parameters,$header"; echo '1.3B,4,8,1,2048,16,24,1024,4,1,1,'; } >more.csv
  prints '1.3B,4,8,1,2048,16,24,1024,4,1,1,,' predict --rows=more.csv --cluster=dgx_a100 || return 1
  printf '%s\n12,16,8,1024,16,24,1024,3,1,4,\n' "$header" >bad.csv
  refused 1 '--rows=bad.csv: line 2: tensor parallelism: 3 does not divide the attention heads, 16' predict --rows=bad.csv --cluster=dgx_a100 || return 1
  printf '%s\n16,16,8,1024,16,24,1024,1,1,16,\n' "$header" >bad.csv
  refused 1 '--rows=bad.csv: line 2: pipeline parallelism: 16 does not divide the layers, 24' predict --rows=bad.csv --cluster=dgx_a100
}

# What is wrong with a model: one line, with the file and the place.
# The fastest first, within memory, and what --explain says of it.
searches() {
  "$pipelab" search --model=gpt-6.6b --cluster=dgx1-v100 --gpus=8 --batch=16 --top=3 --json >best.out || return 1
  python3 - best.out <<'CHECK' || return 1
import json, sys
best = json.load(open(sys.argv[1]))["best"]
assert len(best) == 3, best
assert all(a["step_ms"] <= b["step_ms"] for a, b in zip(best, best[1:])), best
for c in best:
    assert c["pipeline"] * c["tensor"] * c["data"] == 8, c
    assert c["micro_batch_samples"] * c["micro_batches"] * c["data"] == 16, c
    assert 0 < c["memory_bytes"] <= 32 << 30, c
CHECK
  prints "configurations were looked at" search --model=gpt-6.6b --cluster=dgx1-v100 --gpus=8 --batch=16 || return 1
}

explains() {
  local config=1f1b:P=4,T=2,D=1,V=0,b=1,M=16
  prints "$config: batch 16 on 8 devices, step " search --model=gpt-6.6b --cluster=dgx1-v100 --explain=$config || return 1
  prints "bubble" search --model=gpt-6.6b --cluster=dgx1-v100 --explain=$config || return 1
}

model_refused() {
  local code=$1 text=$2
  shift 2
  refused "$code" "$text" simulate 1f1b --devices=2 "$@"
}

# A file that exists keeps its content when the command fails, and is never half written.
atomic_output() {
  echo old >figures.out
  "$pipelab" simulate 1f1b --json_out=/proc/none/x >stdout 2>stderr && return 1
  grep -qF -- '--json_out=/proc/none/x' stderr || { cat stderr; return 1; }
  "$pipelab" simulate --csv="$deadlock" --json_out=figures.out >stdout 2>stderr && return 1
  [[ $(cat figures.out) == old ]] || { cat figures.out; return 1; }
}

# A plan is printed, written, judged, and refused where it is another problem's.
plans() {
  local piper=--piper_json=$examples/piper.json
  local planner
  for planner in uniform gpipe chain piper pipedream graphpipe dapple bapipe; do
    prints "$planner: " plan --planner=$planner $piper --devices=3 --json_out=plan.json || return 1
    grep -q '"state": "\(optimal\|feasible\)"' plan.json || { cat plan.json; return 1; }
    prints 'plan.json: valid: ' check_plan --plan=plan.json $piper --devices=3 || return 1
  done
  "$pipelab" plan --planner=piper $piper --json_out=- >from_stdin.json || return 1
  prints '-: valid: ' check_plan --plan=- $piper <from_stdin.json || return 1
  prints 'max_load' plan --planner=max_load --dnn_partitioning_json="$examples/placement.json" || return 1
  prints 'max_load' plan --planner=piper --dnn_partitioning_json="$examples/placement.json" || return 1
  prints 'pipedream: optimal' plan --planner=pipedream --pipedream_profile="$examples/pipedream.graph.txt" \
    --machines=2,2 --bandwidth=1e10,1GB/s || return 1
  prints 'piper: optimal' plan --planner=piper --model=gpt-6.6b --cluster=dgx-a100 --devices=8 || return 1
  prints 'graphpipe: ' plan --planner=graphpipe --model=case-study --cluster=dgx1-v100 --devices=8 --samples=2 --micro_batches=16 \
    --sample_sizes=1,2,4 --json_out=plan.json || return 1
  prints 'graph_batch_time' check_plan --plan=plan.json --model=case-study --cluster=dgx1-v100 --devices=8 --samples=2 \
    --micro_batches=16 --sample_sizes=1,2,4 || return 1
  prints 'graph_stage_time' plan --planner=graphpipe --objective=graph_stage_time --model=case-study --cluster=dgx1-v100 \
    --devices=8 --samples=2 --micro_batches=16 --sample_sizes=1,2,4 || return 1
  prints 'graph_batch_time' plan --planner=graphpipe --objective=graph_batch_time $piper || return 1
  prints 'bapipe: optimal' plan --planner=bapipe $piper --devices=3 --device_speed=1,0.5,1 --json_out=plan.json || return 1
  prints 'plan.json: valid: ' check_plan --plan=plan.json $piper --devices=3 --device_speed=1,0.5,1 || return 1
  local slices=(--model=megatron-3.6b --cluster=dgx-a100 --devices=4 --micro_batches=2 --token_step=256)
  prints 'terapipe: optimal' plan --planner=terapipe "${slices[@]}" --json_out=plan.json || return 1
  prints 'plan.json: valid: ' check_plan --plan=plan.json "${slices[@]}" || return 1
  prints 'infeasible' plan --planner=piper $piper --memory=1KiB || return 1
  # Four devices' plan on two; another objective; a layer in two stages.
  "$pipelab" plan --planner=uniform $piper --devices=4 --json_out=four.json >stdout || return 1
  refused 1 'the stages have 4 devices, the machine 2' check_plan --plan=four.json $piper --devices=2 || return 1
  sed 's/"value": .*/"value": 1e-9/' four.json >wrong.json
  refused 1 'the plan says 1e-09 for its stage_time, which is' check_plan --plan=wrong.json $piper || return 1
  echo '{"stages": [{"layers": [1, 3]}, {"layers": [3, 5, 7]}]}' >twice.json
  refused 1 'layer 3 is in stage 0 and in stage 1' check_plan --plan=twice.json $piper || return 1
  echo '{"stages": [{"layers": [1, 7]}, {"layers": [3, 5]}]}' >convex.json
  refused 1 'stage 0: not convex: its layers reach layer 7 through layer' check_plan --plan=convex.json $piper || return 1
}

# What is wrong with the input is one line with file, place and reason.
plan_errors() {
  local piper=--piper_json=$examples/piper.json
  refused 2 '--planner=best: unknown; there are uniform, ' plan --planner=best $piper || return 1
  refused 2 'an input is missing: there must be one of --piper_json' plan --planner=piper || return 1
  refused 2 '--stages=5: must be from 1 to 4' plan --planner=uniform --stages=5 $piper || return 1
  refused 2 'there must be one of' plan --planner=piper $piper --model=mmt || return 1
  refused 2 '--device_speed=1,2: 2 speeds for 4 devices' plan --planner=bapipe $piper --device_speed=1,2 || return 1
  refused 2 'it takes all devices to be as fast' plan --planner=piper $piper --devices=2 --device_speed=1,2 || return 1
  refused 2 '--sample_sizes=2,1: must be' plan --planner=graphpipe --model=mmt --cluster=dgx1-v100 --sample_sizes=2,1 || return 1
  refused 2 '--objective=graph_batch_time: --planner=piper has one' plan --planner=piper --objective=graph_batch_time $piper || return 1
  refused 2 '--objective=time: must be graph_batch_time or' plan --planner=graphpipe --objective=time $piper || return 1
  refused 2 'no times of token slices' plan --planner=terapipe $piper || return 1
  refused 2 '--micro_batch_samples=3: must divide' plan --planner=graphpipe $piper --micro_batch_samples=3 || return 1
  refused 2 '--memory=8XB: ' plan --planner=piper $piper --memory=8XB || return 1
  refused 2 '--time_limit=soon: must be a time' plan --planner=piper $piper --time_limit=soon || return 1
  refused 2 '--bandwidth: missing' plan --planner=pipedream --pipedream_profile="$examples/pipedream.graph.txt" || return 1
  refused 2 '--machines=3: makes 3 devices, --devices=4' plan --planner=pipedream $piper --machines=3 --devices=4 \
    --bandwidth=1e9 || return 1
  refused 2 'pipedream.graph.txt:1:2: not JSON' plan --planner=piper --piper_json="$examples/pipedream.graph.txt" || return 1
  sed 's/"timePerSample": 0.006,/"timePerSample": -0.006,/' "$examples/piper.json" >negative.json
  refused 2 'negative.json: nodes[0].TMPCs.1[0].timePerSample: -0.006' plan --planner=piper --piper_json=negative.json || return 1
  printf 'node1 -- A -- forward_compute_time=1, backward_compute_time=1, activation_size=1, parameter_size=1\n' >cycle.txt
  printf 'node2 -- B -- forward_compute_time=1, backward_compute_time=1, activation_size=1, parameter_size=1\n' >>cycle.txt
  printf '\tnode1 -- node2\n\tnode2 -- node1\n' >>cycle.txt
  refused 2 'cycle.txt: cyclic nodes: ' plan --planner=pipedream --pipedream_profile=cycle.txt --bandwidth=1e9 || return 1
  sed -i '1s/=1,/=-1,/' cycle.txt
  refused 2 'cycle.txt:1: forward_compute_time=-1: must be a number from 0' plan --planner=pipedream \
    --pipedream_profile=cycle.txt --bandwidth=1e9 || return 1
}

check "round trips" round_trips
check "closed form" closed_form
check "memory" memory
check "times" times
check "pairs" pairs
check "verdict of a JSON file" json_verdict
check "cluster" cluster
check "PyTorch's lowered CSV" lowered_csv
check "drawings" drawings
check "training" training
check "slices" slices
check "models" models
check "atomic output" atomic_output
check "text form" prints 'device 1: 1F0 1B0' schedule 1f1b --devices=2 --micro_batches=2
check "recompute" prints '0R0,0B0' schedule 1f1b --devices=2 --micro_batches=2 --recompute --format=csv
check "list" prints 'Huang et al.' list
check "list as JSON" prints '"name": "1f1b"' list --json
for command in schedule simulate check show run list; do
  check "help of $command" prints "pipelab $command" --help
done
check "valid CSV" eval 'printf "0F0,,0B0\n,1F0,1B0\n" >ok.csv; prints "valid: 2 devices" check --csv=ok.csv'
check "full stdout" full_stdout

check "deadlock" refused 1 \
  "deadlock: device 0 position 1 (0B0) waits for device 1 position 2 (1B0), which comes after device 1 position 1 (1F1), which waits for device 0 position 2 (0F1)" \
  check --csv="$deadlock"
check "deadlock is not run" refused 1 "deadlock: " run --csv="$deadlock"
check "deadlock is not shown" refused 1 "deadlock: " show --csv="$deadlock"
printf '0F0,0B0\n1F0,1B0,1F0\n' >twice.csv
check "an action twice" refused 1 "device 1, position 2: 1F0 comes a second time" check --csv=twice.csv
printf '0F0,0F1,0B0,0B1\n1F0,1B0,1B1\n' >dropped.csv
check "an action missing" refused 1 "--csv=dropped.csv: device 1, position 2: 1F1 is missing; 1B1 here needs it" check --csv=dropped.csv
printf '0F0,0F1,0B0,0B1\n1F0,1B0\n' >shorter.csv
check "a micro-batch missing" refused 1 "--csv=shorter.csv: device 1, position 2: 1F1 is missing; the list ends here" \
  check --csv=shorter.csv
printf '0F0,UNSHARD\n' >word.csv
check "a cell that is none" refused 1 "--csv=word.csv: line 1, column 5: expected a stage" check --csv=word.csv
echo '{"order": [], "ordre": 1}' >key.json
check "an unknown key" refused 1 "--json=key.json: field 'ordre': unknown" check --json=key.json
echo '{' >broken.json
check "no JSON" refused 1 "--json=broken.json:2:1: not JSON" simulate --json=broken.json
echo 'schedule x' >short.txt
check "a text that ends" refused 1 "--text=short.txt: line 2, column 1: expected" check --text=short.txt
check "bad links" refused 1 "--links=key.json: field 'order': unknown" simulate 1f1b --links=key.json
check "bad bytes" refused 2 "--bytes=1.5: must be whole bytes" simulate 1f1b --bytes=1.5
check "memory without sizes" refused 2 "--memory_out=m.svg: needs sizes" show 1f1b --memory_out=m.svg
check "bad weights" refused 2 "--weights=1,2: 2 sizes, but the schedule has 4 stages" simulate 1f1b --weights=1,2
check "bad tensors" refused 2 "--optimizer_tensors=-1: must be 0 to 100" simulate 1f1b --kept=1 --optimizer_tensors=-1
check "too much kept" refused 2 "--bytes, --kept, --weights or --workspace: too large" \
  simulate gpipe --micro_batches=2000 --kept=8000TB
check "bad speed" refused 2 "--device_speed=1,2: 2 numbers, but the schedule has 4 devices" \
  simulate 1f1b --device_speed=1,2
check "no file" refused 1 "--csv=none.csv" check --csv=none.csv
check "no command" refused 2 "a command is missing"
check "unknown command" refused 2 "'draw': no such command" draw
check "unknown scheme" refused 2 "scheme=zigzag" schedule zigzag
check "no scheme" refused 2 "needs a scheme's name" simulate
check "scheme and file" refused 2 "not both" show gpipe --csv=ok.csv
check "two files" refused 2 "give one of them" check --csv=ok.csv --json=good.json
check "bad size" refused 2 "--devices=0" schedule 1f1b --devices=0
check "another scheme's option" refused 2 "--scheme=1f1b --replicas=4: only for chimera" schedule 1f1b --replicas=4
check "slices of another scheme" refused 2 "--scheme=gpipe --slices=2: only for terapipe" schedule gpipe --slices=2
check "too many slices" refused 2 "--slices=17: more token slices than a sample's 16 tokens" run terapipe --slices=17
check "no slices in CSV" refused 2 "--format=csv: the CSV form cannot say token slices" schedule terapipe --format=csv
check "bad group" refused 2 "--group_size=3: a group is back" schedule interleaved --devices=4 --group_size=3
check "bad concatenation" refused 2 "--concatenation=half: must be one of direct" schedule chimera --concatenation=half
check "groups" prints "0F0,0F1,0F2,2F0,2F1,2F2" \
  schedule interleaved --devices=2 --micro_batches=6 --group_size=3 --format=csv
check "halves" prints "0F0,0F1,1F2,1F3,1B2,0B0,1B3,0B1" \
  schedule chimera --devices=2 --micro_batches=2 --concatenation=backward_halving --format=csv
check "a graph" prints "0F0,0F1,0B0,0F2,0B1,0B2" schedule graph --devices=2 --micro_batches=3 --format=csv
check "a join of two branches" prints "device 2: 2F0 2B0 2F1 2B1" \
  schedule graph --devices=3 --micro_batches=2 --edges=0-2,1-2 --format=text
check "larger micro-batches" prints '"stage_micro_batches": [4, 4, 2]' \
  schedule graph --devices=3 --micro_batches=4 --edges=0-2,1-2 --stage_micro_batches=4,4,2 --format=json
check "devices of a stage" prints "replica 0: 0 1+2" \
  schedule graph --devices=3 --stage_devices=1,2 --format=text
check "a graph is timed" prints "makespan" \
  simulate graph --devices=3 --edges=0-2,1-2 --stage_micro_batches=8,8,4
check "a graph has no CSV" refused 2 "the CSV form cannot say a stage graph that is not a chain" \
  schedule graph --devices=3 --edges=0-2,1-2 --format=csv
check "edges of another scheme" refused 2 "--scheme=1f1b --edges: only for graph" \
  schedule 1f1b --devices=3 --edges=0-2,1-2
check "no edge" refused 2 "--edges=0-1,2: '2' is not an edge" schedule graph --devices=3 --edges=0-1,2
check "an edge too far" refused 2 "--edges=0-3: stage 3 does not exist; there are 3" \
  schedule graph --devices=3 --edges=0-3
check "a ring" refused 2 "--edges: the stage graph has a cycle" schedule graph --devices=2 --edges=0-1,1-0
check "no number" refused 2 "--stage_micro_batches=8,x: 'x' is not a number from 1" \
  schedule graph --devices=2 --stage_micro_batches=8,x
check "too many devices" refused 2 "--stage_devices=1,2: has 3 devices, and --devices=4" \
  schedule graph --stage_devices=1,2
check "predicted rows" predicts
check "no rows" refused 2 "--rows: missing" predict --cluster=dgx_a100
check "no file of rows" refused 1 "--rows=none.csv: " predict --rows=none.csv --cluster=dgx_a100
check "no cluster of rows" refused 2 "--cluster: missing" predict --rows=rows.csv
check "no such cluster of rows" refused 2 "--cluster=moon: no such cluster" predict --rows=rows.csv --cluster=moon
check "no words" refused 2 "--vocabulary=0: must be at least 1" predict --rows=rows.csv --cluster=dgx_a100 --vocabulary=0
check "no such model" model_refused 2 "--model=gpt: is not one of" --model=gpt
check "no such model file" model_refused 1 "--model=none.json: " --model=none.json
echo '{"name": "m", "layers": [{"name": "a", "time": "3"}]}' >unit.json
check "a time without a unit" model_refused 1 '--model=unit.json: layers[0].time: "3": the unit is missing' --model=unit.json
echo '{"name": "m", "layers": [{"name": "a", "output": "3 B"}]}' >free.json
check "a layer without a cost" model_refused 1 'layer "a" has no cost' --model=free.json
echo '{"name": "m", "layers": [{"name": "a", "time": "3 s", "inputs": ["b"]}, {"name": "b", "time": "3 s", "inputs": ["a"]}]}' >ring.json
check "cyclic layers" model_refused 1 '--model=ring.json: cyclic layers: "a" -> "b" -> "a"' --model=ring.json
check "flops without a machine" model_refused 2 "--cluster: missing, and layer" --model=gpt-6.6b
check "no such cluster" model_refused 2 "--cluster=moon: no such cluster" --model=gpt-6.6b --cluster=moon
check "no such number type" model_refused 2 '--number_type=fp8: "fp8" is unknown' --model=gpt-6.6b --cluster=dgx-a100 --number_type=fp8
check "more devices than there are" model_refused 2 "--cluster=p100-pcie: " --model=gpt-6.6b --cluster=p100-pcie --devices=9
check "two sources of times" model_refused 2 "--hop=1: times are the model's" --model=mine.json --hop=1
check "a machine without a model" model_refused 2 "--cluster=dgx-a100: says more of --model" --cluster=dgx-a100
check "bad unit of a model" model_refused 2 "--model_time_unit=min: must be s or ms" --model=mine.json --model_time_unit=min
check "no samples" model_refused 2 "--samples=0: must be at least 1" --model=mine.json --samples=0
check "searches" searches
check "explains" explains
check "no batch" refused 2 "--batch=0: must be at least 1" search --model=gpt-6.6b --cluster=dgx1-v100 --gpus=8
check "no model to search for" refused 2 "--model: missing" search --cluster=dgx1-v100 --batch=8
check "no cluster to search on" refused 2 "--cluster: missing" search --model=gpt-6.6b --batch=8
check "more GPUs than there are" refused 2 "--gpus=9999: must be from 1 to 1024" search --model=gpt-6.6b --cluster=dgx1-v100 --gpus=9999 --batch=8
check "nothing fits" refused 1 "memory binds; the nearest, " search --model=gpt-52b --cluster=p3.16xlarge --gpus=8 --batch=8
check "no such configuration" refused 2 '"Q=2": must be P=' search --model=gpt-6.6b --cluster=dgx1-v100 --explain=1f1b:Q=2
write_plans
check "a plan on paper" plan_on_paper
check "a plan is drawn" prints "device 4 |" show --plan=mmt_plan.json --model=mmt-small --cluster=summit-4gpu --samples=2
check "a plan trains" prints "losses: within" run --plan=mmt_plan.json --model=mmt-small --samples=2 --micro_batches=4 --steps=2
check "a sequential plan trains" prints "losses: within" \
  run --plan=mmt_plan.json --model=mmt-small --samples=2 --micro_batches=4 --steps=2 --sequential
check "a chain trains" prints "losses: bit-equal" run --plan=gpt_plan.json --model=gpt-small --micro_batches=4 --steps=2
check "Megatron-LM's layout" prints "Et*2|t*2|t*2L" schedule --plan=gpt_plan.json --model=gpt-small --format=megatron
check "PyTorch's CSV of a plan" prints "0F0,0F1,0F2,0B0,0F3,0B1,0B2,0B3" \
  schedule --plan=gpt_plan.json --model=gpt-small --format=csv --micro_batches=4
check "no CSV of a graph" refused 2 "--format=csv: PyTorch's schedule CSV: stage 1 has 1 copies, and stage 0 2" \
  schedule --plan=mmt_plan.json --model=mmt-small --samples=2 --format=csv
check "a plan without a model" refused 2 "--plan=mmt_plan.json: needs the --model" simulate --plan=mmt_plan.json
check "a plan and a scheme" refused 2 "'1f1b': --plan=mmt_plan.json says the schedule" \
  simulate 1f1b --plan=mmt_plan.json --model=mmt-small
check "a plan and devices" refused 2 "--devices=8: --plan=mmt_plan.json says it itself" \
  simulate --plan=mmt_plan.json --model=mmt-small --devices=8
check "a plan of another model" refused 1 'stages[0].layers: "branch0/embedding": the input has no such layer' \
  simulate --plan=mmt_plan.json --model=gpt-small --cluster=summit-4gpu
check "a plan that leaves out layers" refused 1 "--plan=mmt_plan.json: plan: layer branch0/block2/attention is in no stage" \
  simulate --plan=mmt_plan.json --model=mmt --cluster=summit-4gpu
check "a plan of too large a model" refused 2 "--model: 572165120 parameters" run --plan=all_plan.json --model=mmt
check "no plan" refused 1 "--plan=none.json: " simulate --plan=none.json --model=mmt-small
check "a model without a plan" refused 2 "--model=mmt-small: says more of --plan" run 1f1b --model=mmt-small
check "bad format" refused 2 "--format=xml: must be csv, text or json" schedule 1f1b --format=xml
check "bad time" refused 2 "--hop=soon: must be a decimal number" simulate 1f1b --hop=soon
check "unused option" refused 2 "--hop=1: check does not use it" check --csv=ok.csv --hop=1
check "unknown option" refused 2 "--device: unknown option" schedule 1f1b --device=4
check "heads that no group divides" refused 2 '--tensor_parallel=4: must divide the 2 heads of layer "block0/attention"' run 1f1b --tensor_parallel=4
check "no group" refused 2 "--tensor_parallel=0: must be at least 1" run 1f1b --tensor_parallel=0
check "no steps" refused 2 "--steps=0" run 1f1b --steps=0
check "no such backend" refused 2 "--backend=tpu: must be cpu, cuda or emulated" run 1f1b --backend=tpu
check "precision of the CPU" refused 2 "--precision=bf16: with --backend=cuda or emulated" run 1f1b --precision=bf16
check "TF32 of the CPU" refused 2 "--precision=tf32: with --backend=cuda alone" run 1f1b --precision=tf32
check "no such precision" refused 2 "--precision=fp8: must be fp32, tf32 or bf16" run 1f1b --precision=fp8
check "graphs of the CPU" refused 2 "--cuda_graphs=on: with --backend=cuda or emulated alone" run 1f1b --cuda_graphs=on
check "graphs or not" refused 2 "--cuda_graphs=yes: must be on or off" run 1f1b --cuda_graphs=yes
check "graphs that serve" graphs_serve
check "a run that goes on" goes_on
check "images in bfloat16" images_train
check "plans" plans
check "errors of plans" plan_errors
exit $((failures > 0))
