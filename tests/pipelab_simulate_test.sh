#!/bin/bash
# pipelab as other programs call it: figures on paper (simulate, search, predict), and errors with their exit codes.
set -euo pipefail
source tests/shell_checks.sh
source tests/pipelab_checks.sh

# 1F1B at P = 4, M = 8: makespan 3 (M + P - 1), bubble (P - 1) / (M + P - 1), min(M, P - d) in flight.
closed_form() {
  "$pipelab" simulate 1f1b --devices=4 --micro_batches=8 --json_out=figures.json >stdout
  tr -d ' \n' <figures.json >flat
  grep -qF '{"bubble":0.2727272727272727,"devices":[' flat || { cat flat; return 1; }
  grep -qF '{"busy":24.0,"idle":9.0,"peak_in_flight":4,"span":33.0}' flat || { cat flat; return 1; }
  grep -qF '{"busy":24.0,"idle":9.0,"peak_in_flight":1,"span":24.0}]' flat || { cat flat; return 1; }
  grep -qF '"makespan":33.0,"schema":1}' flat || { cat flat; return 1; }
}

# A fused backward costs both parts; times are decimals and stay exact; a hop delays each way once.
times() {
  "$pipelab" simulate gpipe --devices=2 --micro_batches=1 --forward=0.1 --backward_input=0.2 \
    --backward_weight=0.3 --p2p_latency=0.05 --json_out=- >stdout
  grep -q '"makespan": 1.3,\?$' stdout || { cat stdout; return 1; }
}

# 1F1B's first device keeps four micro-batches; the parts add up.
memory() {
  "$pipelab" simulate 1f1b --devices=4 --micro_batches=8 --bytes=64MiB --activation_bytes=2GiB --weights=1GiB,1GiB,2GiB,3GiB \
    --workspace=100MiB --json_out=figures.json >stdout
  grep -q '^1f1b  *0  *1.00  *1.00  *2.00  *8.00  *0.00  *0.16  *12.16  0F3$' stdout || { cat stdout; return 1; }
  grep -q '^1f1b  *3  *3.00  *3.00  *6.00  *2.06  *0.06  *0.16  *14.29  3B0$' stdout || { cat stdout; return 1; }
  tr -d ' \n' <figures.json >flat
  grep -qF '"peak_memory":{"action":171966464,"all":13056868352,"during":"0F3","gradients":1073741824,' flat || { cat flat; return 1; }
}

# Messages of a quarter of a unit, a port of two senders, blocking transfers, a straggler, steps and reductions.
cluster() {
  local sizes="--devices=4 --micro_batches=8"
  makespan 13.5 gpipe --devices=4 --micro_batches=1 --bytes=30MB --bandwidth=120MB || return 1
  makespan 35.0 gpipe $sizes --p2p_latency=0.1 --overlap=false || return 1  # 11 (3 + 0.2) - 0.2
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

# The pair 0F2 0B0 starts when 1B0 is over, at 4.
pairs() {
  printf '0F0,0F1,0F2,0B0,0B1,0B2\n1F0,1F1,1B0,1F2,1B1,1B2\n' >pairs.csv
  "$pipelab" simulate --csv=pairs.csv --json_out=- >apart
  "$pipelab" simulate --csv=pairs.csv --atomic_pairs --json_out=- >together
  ! cmp -s apart together || { echo "--atomic_pairs changes nothing"; cat together; return 1; }
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
  prints 'makespan 66 ms' simulate 1f1b --devices=4 --micro_batches=8 --model=./mine.json --micro_batch_size=2 || return 1
  prints '15.6 KiB' simulate gpipe --model=mine.json || return 1
  makespan 54.0 gpipe --devices=2 --micro_batches=8 --model=mine.json --layout=2,2 || return 1
  prints 'device 3 |' show 1f1b --model=mine.json || return 1
  printf 'node1 -- A -- forward_compute_time=1.0, backward_compute_time=2.0, activation_size=8.0, parameter_size=4.0\n' >p.txt
  printf 'node2 -- B -- forward_compute_time=1.0, backward_compute_time=2.0, activation_size=8.0, parameter_size=4.0\n' >>p.txt
  printf '\tnode1 -- node2\n' >>p.txt
  makespan 27.0 gpipe --devices=2 --micro_batches=8 --model=p.txt || return 1
  prints ' ms, bubble' simulate 1f1b --devices=8 --model=gpt-6.6b --cluster=dgx-a100 --dtype=bf16
}

# Rows of training iterations with their predicted times.
predicts() {
  header='# GPUs,global batch,micro batch,hidden size,attention heads,# layers,sequence length,tensor parallelism,data parallelism,pipeline parallelism,iteration time (ms)'
  printf '%s\n2,16,8,1024,16,24,1024,1,1,2,372.25\n8,4,1,1024,16,16,1024,1,2,4,\n' "$header" >rows.csv
  "$pipelab" predict --rows=rows.csv --cluster=dgx_a100 --csv_out=a.out >stdout || return 1
  [[ ! -s stdout ]] || { cat stdout; return 1; }
  "$pipelab" predict --rows=rows.csv --cluster=dgx-a100 >b.out || return 1
  cmp a.out b.out || return 1
  [[ $(head -1 a.out) == "$header,predicted_ms,memory_gib,fits,tflops_all_attention,tflops_causal_attention" ]] || { head -1 a.out; return 1; }
  [[ $(wc -l <a.out) == 3 ]] || { cat a.out; return 1; }
  grep -qE '^2,16,8,1024,16,24,1024,1,1,2,372.25,[0-9]+\.[0-9]{6},[0-9.]+,(yes|no),[0-9.]+,[0-9.]+$' a.out || { cat a.out; return 1; }
  grep -qE '^8,4,1,1024,16,16,1024,1,2,4,,[0-9]+\.[0-9]{6},[0-9.]+,yes,[0-9.]+,[0-9.]+$' a.out || { cat a.out; return 1; }
  printf '%s,recompute,scheme\n8,8,1,16384,16,24,2048,4,1,2,,none,gpipe\n' "$header" >large.csv
  prints ',no,' predict --rows=large.csv --cluster=dgx-a100 || return 1
  "$pipelab" predict --rows=rows.csv --cluster=dgx-h100 >stdout 2>stderr || return 1
  grep -q ',best_ms,worst_ms$' stdout || { cat stdout; return 1; }
  grep -q 'dgx-h100: rates of products and attention are measured (h100-sxm)' stderr || { cat stderr; return 1; }
  { echo "parameters,$header"; echo '1.3B,4,8,1,2048,16,24,1024,4,1,1,'; } >more.csv
  prints '1.3B,4,8,1,2048,16,24,1024,4,1,1,,' predict --rows=more.csv --cluster=dgx_a100 || return 1
  printf '%s\n12,16,8,1024,16,24,1024,3,1,4,\n' "$header" >bad.csv
  refused 1 '--rows=bad.csv: line 2: tensor parallelism: 3 does not divide the attention heads, 16' predict --rows=bad.csv --cluster=dgx_a100 || return 1
  printf '%s\n16,16,8,1024,16,24,1024,1,1,16,\n' "$header" >bad.csv
  refused 1 '--rows=bad.csv: line 2: pipeline parallelism: 16 does not divide the layers, 24' predict --rows=bad.csv --cluster=dgx_a100
}

# The fastest first, within memory, and what --explain says of it.
searches() {
  "$pipelab" search --model=gpt-6.6b --cluster=dgx1-v100 --devices=8 --batch=16 --top=3 --json >best.out || return 1
  python3 - best.out <<'CHECK' || return 1
import json, sys
best = json.load(open(sys.argv[1]))["best"]
assert len(best) == 3, best
assert all(a["step_ms"] <= b["step_ms"] for a, b in zip(best, best[1:])), best
for c in best:
    assert c["pipeline"] * c["tensor"] * c["context"] * c["data"] == 8, c
    assert c["micro_batch_samples"] * c["micro_batches"] * c["data"] == 16, c
    assert 0 < c["memory_bytes"] <= 32 << 30, c
CHECK
  prints "configurations were looked at" search --model=gpt-6.6b --cluster=dgx1-v100 --devices=8 --batch=16 || return 1
}

config=1f1b:P=4,T=2,D=1,V=0,b=1,M=16
explains() {
  prints "$config: batch 16 on 8 devices, step " search --model=gpt-6.6b --cluster=dgx1-v100 --explain=$config || return 1
  prints "bubble" search --model=gpt-6.6b --cluster=dgx1-v100 --explain=$config || return 1
}

explain_refused() {
  local text=$1 what=$2
  shift 2
  refused 2 "$text" search --model=gpt-6.6b --cluster=dgx1-v100 --explain="$what" "$@"
}

prints_rows() {
  prints '372.25,' predict --rows=- --cluster=dgx_a100 <rows.csv
}

# What is wrong with a model: one line, with the file and the place.
model_refused() {
  local code=$1 text=$2
  shift 2
  refused "$code" "$text" simulate 1f1b --devices=2 "$@"
}

# renamed OLD NEW VALUE ARG...: the former name does what the new one does, and warns; both together are refused.
renamed() {
  local old=$1 new=$2 value=$3
  shift 3
  prints "" "$@" "--$new=$value" || return 1
  sed 's/, in [0-9.]* s$//' stdout >expected
  "$pipelab" "$@" "--$old=$value" >stdout 2>stderr || { cat stderr; return 1; }
  sed 's/, in [0-9.]* s$//' stdout | diff expected - || return 1
  echo "warning: --$old is now --$new; the old name goes away in 0.7" | diff - stderr || return 1
  refused 2 "--$new and --$old: two names of one option; give --$new alone" "$@" "--$new=$value" "--$old=$value"
}

former_names() {
  local on="--model=gpt-6.6b --cluster=dgx1-v100" plan="plan --planner=graphpipe --model=mmt-small --cluster=summit-4gpu"
  renamed chunks virtual_stages 3 simulate interleaved || return 1
  renamed hop p2p_latency 0.25 simulate 1f1b || return 1
  renamed kept activation_bytes 1GiB simulate 1f1b || return 1
  renamed update_every update_interval 8 simulate pipedream_2bw || return 1
  renamed number_type dtype fp32 simulate 1f1b --devices=8 $on || return 1
  renamed samples micro_batch_size 2 simulate 1f1b --devices=8 --reserve=0 $on || return 1
  renamed micro_batch_samples stage_micro_batch_size 1 $plan --devices=2 --micro_batches=2 || return 1
  renamed gpus devices 8 search $on --batch=8 --top=1 --schemes=1f1b || return 1
  renamed precision dtype bf16 search --model=gpt-6.6b --cluster=dgx-a100 --devices=8 --batch=8 --top=1 --schemes=1f1b
}

# A file that exists keeps its content when the command fails, and is never half written.
atomic_output() {
  echo old >figures.out
  "$pipelab" simulate 1f1b --json_out=/proc/none/x >stdout 2>stderr && return 1
  grep -qF -- '--json_out=/proc/none/x' stderr || { cat stderr; return 1; }
  "$pipelab" simulate --csv="$testdata/deadlock.csv" --json_out=figures.out >stdout 2>stderr && return 1
  [[ $(cat figures.out) == old ]] || { cat figures.out; return 1; }
}

echo '{"order": [], "ordre": 1}' >key.json
check "closed form" closed_form
check "memory" memory
check "times" times
check "pairs" pairs
check "cluster" cluster
check "models" models
check "atomic output" atomic_output
check "former names of options" former_names
check "bad links" refused 1 "--links=key.json: field 'order': unknown" simulate 1f1b --links=key.json
check "bad bytes" refused 2 "--bytes=1.5: must be whole bytes" simulate 1f1b --bytes=1.5
check "bad weights" refused 2 "--weights=1,2: 2 sizes, but the schedule has 4 stages" simulate 1f1b --weights=1,2
check "bad tensors" refused 2 "--optimizer_tensors=-1: must be 0 to 100" simulate 1f1b --weights=1 --optimizer_tensors=-1
check "too much kept" refused 2 "--bytes, --activation_bytes, --weights or --workspace: too large" \
  simulate gpipe --micro_batches=2000 --activation_bytes=8000TB
check "bad speed" refused 2 "--device_speed=1,2: 2 numbers, but the schedule has 4 devices" \
  simulate 1f1b --device_speed=1,2
check "a graph is timed" prints "makespan" \
  simulate graph --devices=3 --edges=0-2,1-2 --stage_micro_batches=8,8,4
check "predicted rows" predicts
check "no rows" refused 2 "--rows: missing" predict --cluster=dgx_a100
check "no file of rows" refused 1 "--rows=none.csv: " predict --rows=none.csv --cluster=dgx_a100
check "no cluster of rows" refused 2 "--cluster: missing" predict --rows=rows.csv
check "no such cluster of rows" refused 2 "--cluster=moon: no such cluster" predict --rows=rows.csv --cluster=moon
check "no words" refused 2 "--vocabulary=0: must be from 1 to 1048576" predict --rows=rows.csv --cluster=dgx_a100 --vocabulary=0
check "no such model" model_refused 2 "--model=gpt: no such model" --model=gpt
check "no such model file" model_refused 1 "--model=none.json: " --model=none.json
echo '{"name": "m", "layers": [{"name": "a", "time": "3"}]}' >unit.json
check "a time without a unit" model_refused 1 '--model=unit.json: layers[0].time: "3": the unit is missing' --model=unit.json
echo '{"name": "m", "layers": [{"name": "a", "output": "3 B"}]}' >free.json
check "a layer without a cost" model_refused 1 'layer "a" has no cost' --model=free.json
echo '{"name": "m", "layers": [{"name": "a", "time": "3 s", "inputs": ["b"]}, {"name": "b", "time": "3 s", "inputs": ["a"]}]}' >ring.json
check "cyclic layers" model_refused 1 '--model=ring.json: cyclic layers: "a" -> "b" -> "a"' --model=ring.json
check "flops without a machine" model_refused 2 "--cluster: missing, and layer" --model=gpt-6.6b
check "no such cluster" model_refused 2 "--cluster=moon: no such cluster" --model=gpt-6.6b --cluster=moon
check "no such number type" model_refused 2 '--dtype=fp9: "fp9" is unknown' --model=gpt-6.6b --cluster=dgx-a100 --dtype=fp9
check "more devices than there are" model_refused 2 "cluster p100-pcie has 8" --model=gpt-6.6b --cluster=p100-pcie --devices=9
check "two sources of times" model_refused 2 "--p2p_latency=1: times are the model's" --model=mine.json --p2p_latency=1
check "a machine without a model" model_refused 2 "--cluster=dgx-a100: requires --model" --cluster=dgx-a100
check "bad unit of a model" model_refused 2 "--model_time_unit=min: must be s or ms" --model=mine.json --model_time_unit=min
check "no samples" model_refused 2 "--micro_batch_size=0: must be at least 1" --model=mine.json --micro_batch_size=0
"$pipelab" schedule 1f1b --devices=2 --micro_batches=4 --out=mine.txt
check "searches" searches
check "explains" explains
check "no batch" refused 2 "--batch: missing" search --model=gpt-6.6b --cluster=dgx1-v100 --devices=8
check "no model to search for" refused 2 "--model: missing" search --cluster=dgx1-v100 --batch=8
check "no cluster to search on" refused 2 "--cluster: missing" search --model=gpt-6.6b --batch=8
check "more GPUs than there are" refused 2 "--devices=9999: must be from 1 to 8" search --model=gpt-6.6b --cluster=p100-pcie --devices=9999 --batch=8
{
  echo '{"name":"deep","layers":[{"name":"a0","time":"1 us","output":"1 B"}'
  for i in {1..4999}; do echo ",{\"name\":\"a$i\",\"time\":\"1 us\",\"output\":\"1 B\",\"inputs\":[\"a$((i - 1))\"]}"; done
  echo ']}'
} >deep.json
check "too many blocks to search" refused 1 "--model=deep.json: search cuts a model between blocks, at most 4096" \
  search --model=deep.json --cluster=dgx-a100 --devices=8 --batch=8
check "nothing fits" refused 1 "not enough memory; the nearest, " search --model=gpt-52b --cluster=p3.16xlarge --devices=8 --batch=8
check "no such configuration" refused 2 '"Q=2": is unknown; known are P=' search --model=gpt-6.6b --cluster=dgx1-v100 --explain=1f1b:Q=2
check "bad time" refused 2 "--p2p_latency=soon: must be a decimal number" simulate 1f1b --p2p_latency=soon
check "thirds are exact" makespan 11.0 1f1b --devices=4 --micro_batches=8 --data_parallel=3
check "thirds are drawn" prints "(a unit of time is drawn as 3 ms)" show 1f1b --data_parallel=3
check "nothing is recomputed" refused 2 "--recompute_time=3: the schedule recomputes nothing" simulate 1f1b --recompute_time=3
check "no messages" refused 2 "--bandwidth=1GB: requires --bytes, the size of a message" simulate 1f1b --bandwidth=1GB
check "no weights" refused 2 "--optimizer_tensors=3: requires --weights" simulate 1f1b --activation_bytes=1 --optimizer_tensors=3
check "a speed of nothing" refused 2 "--device_speed=0: must be from 0.000001 to 1000000" simulate 1f1b --device_speed=0
check "too many samples" model_refused 2 "b=99999999999999: must be at most " --model=mine.json --micro_batch_size=99999999999999
echo '{"name": "m", "layers": [], "name": "n"}' >keys.json
check "a key twice" model_refused 1 '--model=keys.json: "name" comes twice in one object' --model=keys.json
check "a bad cluster file" refused 1 "--cluster=key.json: 4 faults: order: unknown" search --model=gpt-6.6b --cluster=key.json --batch=8
check "rows from stdin" prints_rows
check "parts of a vocabulary" prints "vocabulary_barriers=1" \
  search --model=gpt-6.6b --systems=none --cluster=dgx-a100 --devices=8 --batch=16 --fixed=vocabulary_barriers=1 --top=1
check "parts of a vocabulary of another model" refused 1 'vocabulary of model "bert": layer "embedding" has' \
  search --model=bert-large --cluster=dgx-a100 --devices=8 --batch=16 --schemes=vocab_1f1b
check "a scheme of graphs" refused 2 "--schemes=graph: search compares synchronous training in a chain" \
  search --model=gpt-6.6b --cluster=dgx-a100 --devices=8 --batch=16 --schemes=graph
check "a scheme twice" refused 2 "--schemes=1f1b: named twice" \
  search --model=gpt-6.6b --cluster=dgx-a100 --devices=8 --batch=16 --schemes=1f1b,zbv,1f1b
check "parts of tokens that are not looked at" refused 2 "--fixed=C=3: twice it must divide the 1024 tokens" \
  search --model=gpt-6.6b --cluster=dgx-a100 --devices=8 --batch=8 --fixed=C=3
check "parts of tokens" prints "C=2" \
  search --model=gpt-6.6b --cluster=dgx-a100 --devices=8 --batch=4 --schemes=1f1b --fixed=C=2
check "experts of a dense model" refused 2 "has no layer with experts; E must be 1" \
  simulate 1f1b:P=2,D=2,E=2,M=4 --model=gpt-6.6b --cluster=dgx-a100
check "experts in parts" prints "1f1b:P=2,T=1,D=4,V=1,b=1,M=8,E=4" \
  compare 1f1b:P=2,D=4,V=1,M=8 1f1b:P=2,D=4,V=1,M=8,E=4 --model=mixtral-small --cluster=dgx-a100 \
  --kernels=megatron
check "experts looked at" prints "E=2" \
  search --model=mixtral-small --cluster=dgx-a100 --devices=4 --batch=8 --schemes=1f1b --fixed=E=2
check "experts that are not looked at" refused 2 "--fixed=E=3: must divide the 8 experts" \
  search --model=mixtral-small --cluster=dgx-a100 --devices=8 --batch=8 --fixed=E=3
check "a step of parts of tokens" prints "1f1b:P=2,T=2,D=1,V=1,b=1,M=4,C=2" \
  compare 1f1b:P=2,T=2,C=2,V=1,M=4 1f1b:P=2,T=2,D=2,V=1,M=2 --model=gpt-6.6b --cluster=dgx-a100
check "too large a batch" refused 2 "--batch=16777217: must be from 1 to 16777216" search --model=gpt-6.6b --cluster=dgx1-v100 --batch=16777217
check "no number type to search with" refused 2 '--dtype=fp9: "fp9" is unknown' \
  search --model=gpt-6.6b --cluster=dgx1-v100 --batch=8 --dtype=fp9
check "explained on other GPUs" explain_refused "--devices=4: --explain=$config has 8 devices" $config --devices=4
check "explained for another batch" explain_refused "--batch=8: --explain=$config has a batch of 16" $config --batch=8
check "a number twice" explain_refused '"M=17": M is given twice' $config,M=17
check "no scheme to explain" explain_refused "--explain=zig: no such scheme" zig:P=4,T=2,D=1,V=0,b=1,M=16
check "words that no group divides" explain_refused "T=7: must divide" 1f1b:P=1,T=7,D=1,V=0,b=1,M=16
# The winner of a search goes through every other command as it is printed.
composes() {
  local on="--model=gpt-6.6b --cluster=dgx-a100" config field
  "$pipelab" search $on --devices=8 --batch=16 --top=1 --schemes=zbv --fixed=sharding=optimizer --max_tensor=2 --json_out=- >found || return 1
  config=$(sed -n 's/.*"config": "\(.*\)",/\1/p' found)
  grep -q 'sharding=optimizer' <<<"$config" || { echo "$config"; return 1; }
  "$pipelab" simulate "$config" $on --json_out=- >one && "$pipelab" search $on --explain="$config" --json_out=- >two &&
    "$pipelab" compare "$config" "$config" $on --json_out=- >three || return 1
  for field in step_ms memory_bytes bubble tflops_per_device fits; do
    [[ $(grep "^  \"$field\"" one | tr -d ,) == $(grep "^  \"$field\"" two | tr -d ,) ]] || { echo "$field"; return 1; }
    [[ $(grep -c "\"$field\"" three) -ge 2 ]] || { echo "$field"; return 1; }
  done
  "$pipelab" show "$config" $on >out && "$pipelab" schedule "$config" --format=text --out=winner.txt || return 1
  # One's own schedule goes where a scheme's name goes.
  "$pipelab" simulate winner.txt:b=2 $on --json_out=own >out && "$pipelab" compare winner.txt "$config" $on >out
}
check "commands compose" composes
check "own schedules are searched" prints "mine.txt:P=2" search --model=gpt-6.6b --cluster=dgx-a100 --devices=4 --batch=8 \
  --schemes=mine.txt
# Of 60 samples at 1.5 times the rate of a tick a third is lost, but for the last ones; at the rate itself, none.
drops() {
  local stream="over_time --devices=2 --micro_batches=60"
  prints "61 (longest); of 60, 59 waited at their source and 0 were dropped" simulate $stream --arrivals=2 || return 1
  prints "4 (longest); of 60, 0 waited at their source and 19 were dropped" simulate $stream --arrivals=2 \
    --when_full=drop_oldest || return 1
  prints "2 (longest); of 60, 0 waited at their source and 0 were dropped" simulate $stream --arrivals=3 --when_full=drop_oldest
}
check "samples of a stream are dropped" drops
# does_not_fit TEXT ARG...: exit 3 after all figures, and one line that has TEXT.
does_not_fit() {
  local text=$1 status=0
  shift
  "$pipelab" "$@" >stdout 2>stderr || status=$?
  [[ $status == 3 && -s stdout ]] && grep -qF -- "$text" stderr || { echo "exit $status"; cat stderr; return 1; }
}
check "more than the memory" does_not_fit "does not fit: the fullest device needs " simulate 1f1b:P=2,M=4 --model=gpt-52b --cluster=dgx-a100
check "a reserve" does_not_fit "less --reserve=0.9" simulate 1f1b:P=8,M=8 --model=gpt-6.6b --cluster=dgx-a100 --reserve=0.9
check "no such reserve" refused 2 "--reserve=1: must be at least 0 and below 1" search --model=gpt-6.6b --cluster=dgx-a100 --batch=8 --reserve=1
check "a layer list without splits" refused 2 'layer "a" does not say how it splits' simulate 1f1b:P=2,T=2,M=4 --model=mine.json
check "nothing to compare" refused 2 "at least two configurations" compare 1f1b:P=2 --model=gpt-6.6b --cluster=dgx-a100
check "sizes twice" refused 2 "--devices: the configuration 1f1b:P=2 says its sizes" simulate 1f1b:P=2 --devices=4
check "P of a file" refused 2 "P=3: the schedule in mine.txt has 2; leave P out" simulate mine.txt:P=3 --model=gpt-6.6b --cluster=dgx-a100
exit $((failures > 0))
