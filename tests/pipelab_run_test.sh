#!/bin/bash
# pipelab as other programs call it: training under a schedule or a plan, and errors with their exit codes.
set -euo pipefail
source tests/shell_checks.sh
source tests/tiny_llama.sh
source tests/pipelab_checks.sh

# Devices of a build without CUDA count what their graphs did, and lose nothing by them.
graphs_serve() {
  "$pipelab" run 1f1b --devices=2 --micro_batches=4 --layers=2 --backend=emulated --cuda_graphs=on >stdout 2>stderr || {
    grep -q "in builds without --config=cuda alone" stderr && return
    cat stdout stderr
    return 1
  }
  grep -q "bit" stdout && grep -Eq "^device 1: graphs_replayed [1-9]" stdout || { cat stdout; return 1; }
}

# A run goes on from its file with the losses that it would have had, in the same numbers.
goes_on() {
  local losses='^ *[34]  '
  "$pipelab" run 1f1b --devices=2 --micro_batches=2 --steps=2 --checkpoint=two.safetensors >two || return 1
  "$pipelab" run 1f1b --devices=2 --micro_batches=2 --steps=4 >whole || return 1
  "$pipelab" run gpipe --devices=2 --micro_batches=2 --steps=4 --resume=two.safetensors >rest || return 1
  grep -q 'resumed two.safetensors at step 2' rest || { cat rest; return 1; }
  diff <(grep "$losses" whole) <(grep "$losses" rest) || return 1
  refused 2 "two.safetensors: trained with activations = float32, not bfloat16" run 1f1b --devices=2 \
    --micro_batches=2 --steps=4 --resume=two.safetensors --backend=emulated --dtype=bf16 || return 1
  # Heads change no shape.
  refused 2 " heads=4" run 1f1b --devices=2 --micro_batches=2 \
    --steps=4 --resume=two.safetensors --heads=4
}

# A second run leaves the first one's file alone, and has it when that has ended.
takes_turns() {
  "$pipelab" run 1f1b --devices=2 --micro_batches=2 --steps=100000 --checkpoint=one.safetensors >first 2>&1 &
  local first=$! i
  for ((i = 0; i < 100; ++i)); do
    grep -lx "$first" /tmp/pipelab-"$(id -u)"-*.lock >taken 2>&1 && break
    sleep 0.1
  done
  refused 1 "--checkpoint=one.safetensors: process $first writes it" run 1f1b --devices=2 \
    --micro_batches=2 --steps=2 --checkpoint=one.safetensors
  local status=$?
  kill -KILL $first
  wait $first
  "$pipelab" run 1f1b --devices=2 --micro_batches=2 --steps=2 --checkpoint=one.safetensors >second || return 1
  return $status
}

# Rounding grows with a long training; a fault of the same size is told from it.
trains_long() {
  prints "training amplifies rounding" run 1f1b:P=2,D=2,M=4 --steps=5000
}

# No memory is one line, whether it was foreseen or not.
ends_without_memory() {
  refused 2 "of memory for 2 devices and serial training, and" \
    run 1f1b:P=2,M=4,b=2147483647 || return 1
  (
    ulimit -v 250000
    refused 1 "out of " run 1f1b:P=64,M=64 --layers=40
  )
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
  prints 'losses: bit-equal' run local --devices=2 --micro_batches=8 --update_interval=2 --steps=2 || return 1
  grep -q 'as in serial local learning: each stage has its own loss$' stdout || { cat stdout; return 1; }
  prints 'losses: bit-equal' run vocab_1f1b:P=3,M=4,vocabulary_barriers=1,recompute=blocks --steps=2 || return 1
  grep -q 'bit-equal$' stdout && grep -q 'as predicted to the byte' stdout || { cat stdout; return 1; }
  prints 'as predicted to the byte' run vocab_v_half:P=2,D=2,M=4,sharding=fully,vocabulary_barriers=2 --model=gpt-small --steps=2 || return 1
  grep -q 'losses: within' stdout || { cat stdout; return 1; }
  prints '4 devices in groups of 2' run 1f1b --devices=2 --micro_batches=4 --steps=3 --tensor_parallel=2 || return 1
  grep -q 'losses: within' stdout && grep -q 'sent to group' stdout || return 1
  grep -q 'as predicted to the byte' stdout || { cat stdout; return 1; }
  prints 'as predicted to the byte' run gpipe --devices=2 --micro_batches=2 --steps=2 --tensor_parallel=2 --sequence_parallel || return 1
  prints 'as predicted to the byte' run 1f1b:P=2,C=2,T=2,M=4 --steps=2 || return 1
  grep -q 'losses: within' stdout && grep -q 'sent to group' stdout || { cat stdout; return 1; }
  prints 'as predicted to the byte' run 1f1b:P=2,D=4,M=2,sharding=fully,shards=2 --steps=2 || return 1
  prints 'as predicted to the byte' run interleaved_zb1p:P=2,V=2,D=2,M=4,sharding=fully --steps=2 || return 1
  prints 'as predicted to the byte' run 1f1b:P=2,D=4,M=2,sharding=optimizer,shards=2 --model=resnet-small --steps=2 || return 1
  prints 'as predicted to the byte' run breadth_first --devices=1 --micro_batches=2 --data_parallel=4 --sharding=gradients --shards=2 --steps=2 || return 1
}

check "training" training
check "deadlock is not run" refused 1 "deadlock: " run --csv="$testdata/deadlock.csv"
check "too many slices" refused 2 "--slices=17: more token slices than a sample's 16 tokens" run terapipe --slices=17
small_model() {
  "$pipelab" run 1f1b:P=2,M=4,V=1,D=2,b=2,sharding=optimizer --model=resnet-small --steps=2 >out || { cat out; return 1; }
  grep -q 'as predicted to the byte' out && grep -q 'replayed' out || { cat out; return 1; }
}
check "a network of the zoo under a configuration" small_model
check "sizes twice" refused 2 "--sharding: the configuration 1f1b:P=2 says its own" run 1f1b:P=2 --sharding=fully
printf 'node%d -- Linear -- forward_compute_time=1, backward_compute_time=2, activation_size=8, parameter_size=16\n' \
  1 2 >costs.graph.txt
printf '\tnode1 -- node2\n' >>costs.graph.txt
check "a model of costs" refused 2 "has no loss: it says what layers cost" run 1f1b:P=2 --model=costs.graph.txt
check "data without a model" refused 2 "--data=x.csv: requires --model" run 1f1b --data=x.csv
check "heads that no group divides" refused 2 '--tensor_parallel=4: must divide the 2 heads of layer "block0/attention"' run 1f1b --tensor_parallel=4
check "no group" refused 2 "--tensor_parallel=0: must be at least 1" run 1f1b --tensor_parallel=0
check "tokens in parts" refused 2 '--context_parallel=3: twice it must divide the 16 tokens of layer "embedding"' run 1f1b --context_parallel=3
check "no experts" refused 2 "has no layer with experts; --expert_parallel must be 1" run 1f1b --expert_parallel=2
check "experts and other sizes" refused 2 "E=3: must divide the 8 experts of layer" \
  run 1f1b:P=2,D=3,E=3 --model=mixtral-small
check "experts and other copies" refused 2 "E=4: must divide the 2 devices of C x D; the nearest that does is 2" \
  run 1f1b:P=2,D=2,E=4 --model=mixtral-small
divided_experts() {
  "$pipelab" run 1f1b:P=2,D=2,E=2,M=4,sharding=optimizer --model=mixtral-small --steps=2 --json_out=e.json >out || { cat out; return 1; }
  grep -q 'losses: within' out && grep -q '^experts: the fullest of a layer has [1-8]\.[0-9]* times' out || { cat out; return 1; }
  grep -q '"largest_expert_load"' e.json && grep -q '"dropped_choices": 0' e.json || { cat e.json; return 1; }
}
check "divided experts" divided_experts
check "no parts" refused 2 "--context_parallel=0: must be at least 1" run 1f1b --context_parallel=0
check "sets of no size" refused 2 "shards=3: must be at least 2 and divide the 4 data-parallel copies" \
  run 1f1b:P=2,D=4,sharding=fully,shards=3
check "no steps" refused 2 "--steps=0" run 1f1b --steps=0
check "no such backend" refused 2 "--backend=tpu: must be cpu, cuda or emulated" run 1f1b --backend=tpu
check "precision of the CPU" refused 2 "--dtype=bf16: with --backend=cuda or emulated" run 1f1b --dtype=bf16
check "TF32 of the CPU" refused 2 "--dtype=tf32: with --backend=cuda alone" run 1f1b --dtype=tf32
check "no such precision" refused 2 "--dtype=fp8: must be fp32, tf32 or bf16" run 1f1b --dtype=fp8
check "graphs of the CPU" refused 2 "--cuda_graphs=on: requires --backend=cuda or emulated" run 1f1b --cuda_graphs=on
check "graphs or not" refused 2 "--cuda_graphs=yes: must be on or off" run 1f1b --cuda_graphs=yes
check "graphs that serve" graphs_serve
check "a run that goes on" goes_on
check "two runs into one checkpoint" takes_turns
check "a long run" trains_long
check "a run without memory" ends_without_memory
check "nothing to split rows in" refused 2 "--sequence_parallel=true: requires --tensor_parallel above 1" run 1f1b --sequence_parallel
check "a folder as checkpoint" refused 2 "--checkpoint=.: is a folder; give a file" run 1f1b --checkpoint=.
check "no checkpoint" refused 1 "--resume=none: cannot be read" run 1f1b --resume=none
# What run says as JSON is what it says in words.
trained_json() {
  "$pipelab" run gpipe --devices=2 --micro_batches=2 --steps=2 --json_out=- >trained.json || return 1
  python3 - trained.json <<'CHECK'
import json, sys
run = json.load(open(sys.argv[1]))
assert run["reproduces_serial"] and run["equality"] == "bit-equal" and run["as_predicted"] == "to the byte", run
assert [l["step"] for l in run["losses"]] == [1, 2] and all(l["serial"] == l["schedule"] for l in run["losses"]), run
assert len(run["ranks"]) == 2 and run["ranks"][0]["sent_bytes"] > 0 and run["micro_batches"] == 2, run
CHECK
}
check "a run as JSON" trained_json

# All words are alike to the model: a loss of log(8192), serially, in stages and in copies.
pretrained() {
  tiny_llama llama
  prints 'losses: bit-equal' run 1f1b:P=2,M=2 --model=llama/config.json@8 --pretrained --steps=2 || return 1
  grep -Eq '^ +1 +9\.0109133472[0-9]+ +9\.0109133472' stdout || { cat stdout; return 1; }
  prints 'losses: ' run gpipe:P=1,D=2,M=1 --model=llama/@8 --pretrained --steps=1 || return 1
  prints 'loss: 9.010913 nats per token, of 4' logits --model=llama/config.json@3 --tokens=1,2,3,4,5 --top=2 || return 1
  grep -q '5 tokens in 2 samples of 3' stdout && grep -Eq '^ +1 +0.000000 +0.000122$' stdout || { cat stdout; return 1; }
  echo '7 8191, 9' >ids.txt
  prints '3 tokens in 1 samples of 3' logits --model=llama/ --tokens=ids.txt || return 1
}
check "published weights" pretrained
exit $((failures > 0))
