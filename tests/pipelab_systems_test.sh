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
check "wrong use" wrong
exit $((failures > 0))
