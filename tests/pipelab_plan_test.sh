#!/bin/bash
# pipelab as other programs call it: plans, made, judged, simulated and trained, and errors with their exit codes.
set -euo pipefail
source tests/shell_checks.sh
source tests/pipelab_checks.sh

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
  local here=(--plan=mmt_plan.json --model=mmt-small --cluster=summit-4gpu --micro_batch_size=2)
  "$pipelab" simulate "${here[@]}" --json_out=- >graph.out
  "$pipelab" simulate "${here[@]}" --sequential --json_out=- >chain.out
  local graph chain
  graph=$(sed -n 's/.*"makespan": \([0-9]*\).*/\1/p' graph.out)
  chain=$(sed -n 's/.*"makespan": \([0-9]*\).*/\1/p' chain.out)
  [[ $graph -lt $chain ]] || { echo "graph $graph, chain $chain"; return 1; }
  grep -q '"peak_activation_bytes"' graph.out || { cat graph.out; return 1; }
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
  prints 'graphpipe: ' plan --planner=graphpipe --model=case-study --cluster=dgx1-v100 --devices=8 --micro_batch_size=2 --micro_batches=16 \
    --sample_sizes=1,2,4 --json_out=plan.json || return 1
  prints 'graph_batch_time' check_plan --plan=plan.json --model=case-study --cluster=dgx1-v100 --devices=8 --micro_batch_size=2 \
    --micro_batches=16 --sample_sizes=1,2,4 || return 1
  prints 'graph_stage_time' plan --planner=graphpipe --objective=graph_stage_time --model=case-study --cluster=dgx1-v100 \
    --devices=8 --micro_batch_size=2 --micro_batches=16 --sample_sizes=1,2,4 || return 1
  prints 'graph_batch_time' plan --planner=graphpipe --objective=graph_batch_time $piper || return 1
  prints 'bapipe: optimal' plan --planner=bapipe $piper --devices=3 --device_speed=1,0.5,1 --json_out=plan.json || return 1
  prints 'plan.json: valid: ' check_plan --plan=plan.json $piper --devices=3 --device_speed=1,0.5,1 || return 1
  local slices=(--model=megatron-3.6b --cluster=dgx-a100 --devices=4 --micro_batches=2 --token_step=256)
  prints 'terapipe: optimal' plan --planner=terapipe "${slices[@]}" --json_out=plan.json || return 1
  prints 'plan.json: valid: ' check_plan --plan=plan.json "${slices[@]}" || return 1
  prints 'infeasible' plan --planner=piper $piper --memory=1KiB --json_out=none.json || return 1
  prints 'without a plan' check_plan --plan=none.json $piper --memory=1KiB || return 1
  # All planners, and the shortest batch: of a model simulated, else as the checker has it.
  prints 'graphpipe ' plan $piper --time_limit=10s --json_out=plan.json || return 1
  prints 'plan.json: valid: ' check_plan --plan=plan.json $piper || return 1
  prints 'a step, simulated' plan --model=case-study --cluster=dgx1-v100 --devices=4 --micro_batch_size=2 --micro_batches=8 || return 1
  prints 'max_load' plan --dnn_partitioning_json="$examples/placement.json" || return 1
  prints 'a batch of 8 ' plan --planner=pipedream --pipedream_profile="$examples/pipedream.graph.txt" --bandwidth=1e9 || return 1
  # Four devices' plan on two; another objective; a layer in two stages.
  "$pipelab" plan --planner=uniform $piper --devices=4 --json_out=four.json >stdout || return 1
  refused 1 'the stages have 4 devices, the machine 2' check_plan --plan=four.json $piper --devices=2 || return 1
  sed 's/"value": .*/"value": 1e-9/' four.json >wrong.json
  refused 1 'the plan says 1e-09 for its stage_time, which is' check_plan --plan=wrong.json $piper || return 1
  echo '{"stages": [{"layers": [1, 3]}, {"layers": [5, 7]}]}' >short.json
  prints 'short.json: valid: ' check_plan --plan=short.json $piper || return 1
  echo '{"stages": [{"layers": [1, 3]}, {"layers": [3, 5, 7]}]}' >twice.json
  refused 1 'layer 3 is in stage 0 and in stage 1' check_plan --plan=twice.json $piper || return 1
  echo '{"stages": [{"layers": [1, 7]}, {"layers": [3, 5]}]}' >convex.json
  refused 1 'stage 0: not convex: its layers reach layer 7 through layer' check_plan --plan=convex.json $piper || return 1
}

# What is wrong with the input is one line with file, place and reason.
plan_errors() {
  local piper=--piper_json=$examples/piper.json
  refused 2 '--planner=fast: no such planner; there are uniform, ' plan --planner=fast $piper || return 1
  refused 2 'an input is missing: there must be one of --piper_json' plan --planner=piper || return 1
  refused 2 '--stages=5: must be from 1 to 4' plan --planner=uniform --stages=5 $piper || return 1
  refused 2 'there must be one of' plan --planner=piper $piper --model=mmt || return 1
  refused 2 '--device_speed=1,2: 2 speeds for 4 devices' plan --planner=bapipe $piper --device_speed=1,2 || return 1
  refused 2 'it takes all devices to be as fast' plan --planner=piper $piper --devices=2 --device_speed=1,2 || return 1
  refused 2 '--sample_sizes=2,1: must be' plan --planner=graphpipe --model=mmt --cluster=dgx1-v100 --sample_sizes=2,1 || return 1
  refused 2 '--objective=graph_batch_time: is one of graphpipe; --planner=piper has its own, and step' plan --planner=piper --objective=graph_batch_time $piper || return 1
  refused 2 '--objective=time: must be step, graph_batch_time or graph_stage_time' plan --planner=graphpipe --objective=time $piper || return 1
  refused 2 'no times of token slices' plan --planner=terapipe $piper || return 1
  refused 2 '--stage_micro_batch_size=3: must divide' plan --planner=graphpipe $piper --stage_micro_batch_size=3 || return 1
  refused 2 '--memory=8XB: ' plan --planner=piper $piper --memory=8XB || return 1
  refused 2 '--time_limit=soon: must be a time' plan --planner=piper $piper --time_limit=soon || return 1
  refused 2 '--bandwidth: missing' plan --planner=pipedream --pipedream_profile="$examples/pipedream.graph.txt" || return 1
  refused 2 '--machines=3: makes 3 devices, --devices=4' plan --planner=pipedream $piper --machines=3 --devices=4 \
    --bandwidth=1e9 || return 1
  refused 1 'pipedream.graph.txt:1:2: not JSON' plan --planner=piper --piper_json="$examples/pipedream.graph.txt" || return 1
  sed 's/"timePerSample": 0.006,/"timePerSample": -0.006,/' "$examples/piper.json" >negative.json
  refused 1 'negative.json: nodes[0].TMPCs.1[0].timePerSample: -0.006' plan --planner=piper --piper_json=negative.json || return 1
  printf 'node1 -- A -- forward_compute_time=1, backward_compute_time=1, activation_size=1, parameter_size=1\n' >cycle.txt
  printf 'node2 -- B -- forward_compute_time=1, backward_compute_time=1, activation_size=1, parameter_size=1\n' >>cycle.txt
  printf '\tnode1 -- node2\n\tnode2 -- node1\n' >>cycle.txt
  refused 1 'cycle.txt: cyclic nodes: ' plan --planner=pipedream --pipedream_profile=cycle.txt --bandwidth=1e9 || return 1
  sed -i '1s/=1,/=-1,/' cycle.txt
  refused 1 'cycle.txt:1: forward_compute_time=-1: must be a number from 0' plan --planner=pipedream \
    --pipedream_profile=cycle.txt --bandwidth=1e9 || return 1
}

# Networks of convolutions train in bfloat16, to the serial loop's bits and in the bytes predicted.
images_train() {
  local model
  for model in amoebanet resnet unet vgg; do
    "$pipelab" plan --planner=bapipe --model=$model-small --cluster=summit-4gpu --devices=2 --micro_batch_size=2 \
      --micro_batches=2 --json_out=$model.json >stdout || { cat stdout; return 1; }
    "$pipelab" run --plan=$model.json --model=$model-small --micro_batch_size=2 --micro_batches=2 --steps=2 \
      --backend=emulated --dtype=bf16 >stdout 2>stderr || {
      grep -q "in builds without --config=cuda alone" stderr && return
      cat stdout stderr
      return 1
    }
    grep -q "losses: bit-equal" stdout && grep -q "as predicted to the byte" stdout || { cat stdout; return 1; }
  done
}

write_plans
check "a plan on paper" plan_on_paper
check "a plan is drawn" prints "device 4 |" show --plan=mmt_plan.json --model=mmt-small --cluster=summit-4gpu --micro_batch_size=2
check "a plan trains" prints "losses: within" run --plan=mmt_plan.json --model=mmt-small --micro_batch_size=2 --micro_batches=4 --steps=2
check "a sequential plan trains" prints "losses: within" \
  run --plan=mmt_plan.json --model=mmt-small --micro_batch_size=2 --micro_batches=4 --steps=2 --sequential
check "a chain trains" prints "losses: bit-equal" run --plan=gpt_plan.json --model=gpt-small --micro_batches=4 --steps=2
check "Megatron-LM's layout" prints "Et*2|t*2|t*2L" schedule --plan=gpt_plan.json --model=gpt-small --format=megatron
check "PyTorch's CSV of a plan" prints "0F0,0F1,0F2,0B0,0F3,0B1,0B2,0B3" \
  schedule --plan=gpt_plan.json --model=gpt-small --format=csv --micro_batches=4
check "no CSV of a graph" refused 2 "--format=csv: PyTorch's schedule CSV: stage 1 has 1 copies, and stage 0 2" \
  schedule --plan=mmt_plan.json --model=mmt-small --micro_batch_size=2 --format=csv
check "a plan without a model" refused 2 "--plan=mmt_plan.json: requires --model" simulate --plan=mmt_plan.json
check "a plan and a scheme" refused 2 "'1f1b': --plan=mmt_plan.json gives the schedule" \
  simulate 1f1b --plan=mmt_plan.json --model=mmt-small
check "a plan and devices" refused 2 "--devices=8: --plan=mmt_plan.json gives it" \
  simulate --plan=mmt_plan.json --model=mmt-small --devices=8
check "a plan of another model" refused 1 'stages[0].layers: "branch0/embedding": the input has no such layer' \
  simulate --plan=mmt_plan.json --model=gpt-small --cluster=summit-4gpu
check "a plan that leaves out layers" refused 1 "--plan=mmt_plan.json: plan: layer branch0/block2/attention is in no stage" \
  simulate --plan=mmt_plan.json --model=mmt --cluster=summit-4gpu
check "a plan of too large a model" refused 2 "--model: 572165120 parameters" run --plan=all_plan.json --model=mmt
check "no plan" refused 1 "--plan=none.json: " simulate --plan=none.json --model=mmt-small
check "images in bfloat16" images_train
check "plans" plans
check "errors of plans" plan_errors
on_piper() {
  local code=$1 text=$2
  shift 2
  refused "$code" "$text" plan --piper_json="$examples/piper.json" "$@"
}
check "too many devices" on_piper 2 "--devices=2147483647: must be from 1 to 1048576" --planner=piper --devices=2147483647
check "a planner that chooses" on_piper 2 "--stages=2: --planner=piper chooses their number itself" --planner=piper --stages=2
check "graphpipe's alone" on_piper 2 "--stage_micro_batch_size=2: for --planner=graphpipe alone" \
  --planner=piper --stage_micro_batch_size=2
check "no time" on_piper 2 "--time_limit=nan: must be a time above 0" --planner=piper --time_limit=nan
check "samples of a file" on_piper 2 "--micro_batch_size: for --model alone; other inputs have times" --planner=piper --micro_batch_size=2
check "a folder for a plan" on_piper 1 "--json_out=.: " --planner=piper --json_out=.
check "stdin twice" refused 2 "--piper_json=- and --plan=-: only one of them can be stdin" \
  check_plan --plan=- --piper_json=- <"$examples/piper.json"
check "tokens left over" refused 2 "--token_step=100: must divide the 1024 tokens" \
  plan --planner=terapipe --model=gpt-6.6b --cluster=dgx-a100 --devices=4 --token_step=100
check "parts of samples" prints "stage 0: 8 copies cannot share 1 sample evenly" \
  plan --planner=dapple --model=gpt-small --cluster=dgx-a100 --devices=8 --micro_batches=4
check "blocks stay together" prints "block8 .. block15" plan --planner=chain --model=gpt-6.6b --cluster=dgx-a100 --devices=4 --blocks
check "too many samples of a plan" refused 2 "b=9223372036854775807: must be at most " \
  plan --planner=chain --model=gpt-6.6b --cluster=dgx-a100 --micro_batch_size=9223372036854775807
judged_json() {
  local piper=--piper_json=$examples/piper.json
  "$pipelab" plan --planner=piper "$piper" --json_out=plan.json >stdout || return 1
  prints '"valid": true' check_plan --plan=plan.json "$piper" --json_out=- || return 1
  "$pipelab" check_plan --plan=plan.json "$piper" --memory=1 --json_out=- >stdout 2>stderr && return 1
  [[ ! -s stderr ]] && grep -q '"valid": false' stdout && grep -q '"reason": ' stdout || { cat stdout stderr; return 1; }
}
check "a verdict as JSON" judged_json
# A sequence of stages is a graph of stages: by the step's own price graphpipe is never behind.
step_of() {
  "$pipelab" plan --objective=step --planner="$1" --model="$2" --cluster=summit-4gpu --devices="$3" \
    --micro_batch_size=4 --micro_batches=32 --time_limit=10s >stdout 2>stderr || return 1
  awk -v planner="$1" '$1 == planner { print $(NF - 1) }' stdout
}
never_behind() {
  local net devices graph piper
  for net in mmt dlrm candle-uno case-study; do
    for devices in 4 8; do
      graph=$(step_of graphpipe "$net" "$devices") && piper=$(step_of piper "$net" "$devices") || { cat stderr; return 1; }
      awk -v a="$graph" -v b="$piper" 'BEGIN { exit !(a > 0 && a <= b) }' ||
        { echo "$net on $devices: graphpipe $graph s, piper $piper s"; return 1; }
    done
  done
}
check "graphpipe is never behind piper by the step" never_behind
check "a step without a model" on_piper 2 "--objective=step: requires --model, whose step is simulated" \
  --planner=piper --objective=step
# Two triangles and an edge between them, over two devices.
echo 'x 1' >triangles.bad
printf '# triangles\n0 1\n1 2\n2 0\n3 4\n4 5\n5 3\n2 3\n' >triangles.txt
triangles() {
  "$pipelab" plan --graph=triangles.txt --devices=2 --parts_out=parts.txt >stdout 2>stderr || return 1
  grep -qF '14.29 % of the edges between devices' stdout || { cat stdout; return 1; }
  [[ $(head -3 parts.txt | sort -u | wc -l) == 1 && $(tail -3 parts.txt | sort -u | wc -l) == 1 ]]
}
check "a graph over devices" triangles
check "a graph that is none" refused 1 '--graph=triangles.bad: line 1: "x": must be a vertex' \
  plan --graph=triangles.bad
check "a partition that is none" refused 2 '--partition="edge" is unknown' \
  plan --graph=triangles.txt --partition=edge
exit $((failures > 0))
