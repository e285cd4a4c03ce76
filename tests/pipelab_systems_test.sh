#!/bin/bash
# pipelab search --systems: what it finds is what the system runs, whose options have the same price when they are read back.
set -euo pipefail
source tests/shell_checks.sh
source tests/pipelab_checks.sh

# price FILE BLANKS: the time and the memory of a step, whose fields are so deep in JSON.
price() { grep -m 2 -E "^ {$2}\"(step_ms|memory_bytes)\"" "$1" | tr -d ' ,\n'; }

# same_price SYSTEM OPTION MODEL DEVICES BATCH OPTION...: the best of the search, exported and evaluated.
same_price() {
  local system=$1 option=$2 on=(--cluster=dgx-h100) model=$3 devices=$4 batch=$5 config
  "$pipelab" search --systems="$system" --model="$model" "${on[@]}" --devices="$devices" --batch="$batch" --top=1 "${@:6}" \
    --json_out=found.json 2>stderr || { cat stderr; return 1; }
  # A configuration has commas.
  config=$(sed -n 's/^ *"config": "\(.*\)",\?$/\1/p' found.json | head -n 1)
  "$pipelab" schedule "$config" --model="$model" --kernels=megatron "${on[@]}" --format="$system" --out=recipe.txt 2>stderr ||
    { echo "$config:"; cat stderr; return 1; }
  "$pipelab" evaluate "$option=recipe.txt" "${on[@]}" --devices="$devices" --top=0 --json_out=read.json >stdout 2>stderr || { cat stderr; return 1; }
  [[ -n $(price found.json 6) && $(price found.json 6) == "$(price read.json 2)" ]] ||
    { echo "$config: $(price found.json 6), read back $(price read.json 2)"; return 1; }
}

megatron() { same_price megatron --flags llama-3-8b 8 32; }
megatron_experts() { same_price megatron --flags mixtral-8x7b 32 64 --max_context=2; }
megatron_beside() { same_price megatron --flags mixtral-8x7b 32 64 --fixed=exchanges=beside_delayed,E=8; }
megatron_unevenly() { same_price megatron --flags qwen2.5-7b 12 48 --fixed=T=1; }
torchtitan() { same_price torchtitan --toml llama-3-8b 8 32; }
torchtitan_in_parts() { same_price torchtitan --toml llama-3-8b 16 32 --fixed=P=4; }

# The way of a recipe ends at the best that the search finds, which is exported and read back; every step of it is
# faster than the one before, and none can be left out.
path() {
  cat >run.sh <<'RUN'
torchrun --nproc-per-node 8 --nnodes 2 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 \
  --num-attention-heads 32 --group-query-attention --num-query-groups 8 --seq-length 8192 --max-position-embeddings 8192 \
  --position-embedding-type rope --normalization RMSNorm --swiglu --disable-bias-linear \
  --untie-embeddings-and-output-weights --vocab-size 128256 --hidden-dropout 0 --attention-dropout 0 --bf16 \
  --cross-entropy-loss-fusion --tensor-model-parallel-size 2 --pipeline-model-parallel-size 4 --sequence-parallel \
  --use-distributed-optimizer --overlap-grad-reduce --micro-batch-size 1 --global-batch-size 128
RUN
  "$pipelab" evaluate --flags=run.sh --cluster=dgx-h100 --json_out=evaluated.json >stdout 2>stderr || { cat stderr; return 1; }
  "$pipelab" search --model=llama-3-8b --cluster=dgx-h100 --devices=16 --batch=128 --reserve=0 --top=1 --json_out=found.json 2>stderr ||
    { cat stderr; return 1; }
  python3 - <<'CHECK' || return 1
import json
run, best = json.load(open("evaluated.json")), json.load(open("found.json"))["best"][0]
times = [run["step_ms"]] + [step["step_ms"] for step in run["path"]]
assert len(times) >= 3 and times == sorted(times, reverse=True), times
assert best["step_ms"] <= times[-1] <= 1.001 * best["step_ms"], (times, best)
assert times[-1] <= min(n["step_ms"] for n in run["neighbours"]), run["neighbours"]
assert all(step["changes"] for step in run["path"]), run["path"]
CHECK
  grep -q 'one change after another, to the fastest that Megatron-LM runs$' stdout || { cat stdout; return 1; }
  local config on=(--model=llama-3-8b --kernels=megatron --cluster=dgx-h100)
  config=$(python3 -c 'import json; print(json.load(open("evaluated.json"))["path"][-1]["config"])')
  "$pipelab" schedule "$config" "${on[@]}" --format=megatron --out=fastest.sh 2>stderr || { cat stderr; return 1; }
  "$pipelab" evaluate --flags=fastest.sh --cluster=dgx-h100 --devices=16 --json_out=- >again.json || return 1
  python3 -c 'import json; a, b = json.load(open("evaluated.json")), json.load(open("again.json"))
assert b["step_ms"] == a["path"][-1]["step_ms"] and b["path"] == [], (b["step_ms"], a["path"][-1], b["path"])'
}

# Beside it, schedules that no system has.
any() {
  "$pipelab" search --systems=any --model=llama-3-8b --cluster=dgx-h100 --devices=8 --batch=32 --top=2 >stdout 2>stderr || { cat stderr; return 1; }
  awk 'BEGIN { any = 0 } /Whether a system runs it or not/ { any = 1 } /^(Megatron-LM|torchtitan) +[0-9]/ { of[any] = 1 } END { exit !(of[0] && !of[1]) }' stdout || { cat stdout; return 1; }
  awk 'length > 120 { exit 1 }' stdout || { cat stdout; return 1; }
}

wrong() {
  refused 2 "--systems=slurm: 'slurm' must be megatron or torchtitan, all, any or none" search --systems=slurm --model=llama-3-8b --cluster=dgx-h100 --batch=8 || return 1
  refused 2 '--model=vit-b-16: must be a language model' search --systems=all --model=vit-b-16 --cluster=dgx-h100 --devices=8 --batch=8
}

check megatron megatron
check "megatron with experts" megatron_experts
check "megatron, exchanges beside passes" megatron_beside
check "megatron, stages of different lengths" megatron_unevenly
check torchtitan torchtitan
check "torchtitan in a pipeline" torchtitan_in_parts
check "any schedule" any
check "the way to the best" path
check "wrong use" wrong
exit $((failures > 0))
