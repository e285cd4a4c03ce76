#!/bin/bash
# A hundred kinds of wrong use: each ends with the right exit code and one line on stderr that says what is wrong,
# and writes nothing to stdout.
set -euo pipefail
source tests/shell_checks.sh
source tests/pipelab_checks.sh

# A case a line: exit code|text of the message|arguments.
cases() {
  cat <<'CASES'
2|a command is missing|
2|'draw': no such command|draw
2|did you mean simulate?|simulat 1f1b
2|did you mean schedule?|schedul 1f1b
2|did you mean check_plan?|check-plan
2|did you mean search?|serach
2|did you mean list?|lst
2|'x': list takes schemes, models or clusters|list x
2|did you mean models?|list model
2|one at a time|list models clusters
2|did you mean predict?|help predit
2|help takes the name of one command|help run simulate
2|--device: unknown option|simulate 1f1b --device=4
2|did you mean --devices?|simulate 1f1b --device=4
2|did you mean --micro_batches?|simulate 1f1b --micro-batches=8
2|did you mean --micro_batch_size?|simulate 1f1b --micro-batch-size=8
2|did you mean --virtual_stages?|simulate 1f1b --virtualstages=2
2|did you mean --json_out?|simulate 1f1b --jsonout=-
2|did you mean --cluster?|simulate 1f1b --clutser=dgx-a100
2|--zzzz: unknown option|simulate 1f1b --zzzz
2|--devices: its value is missing|simulate 1f1b --devices
2|--devices=four: must be a whole number|simulate 1f1b --devices=four
2|--devices=1.5: must be a whole number|simulate 1f1b --devices=1.5
2|--devices=|simulate 1f1b --devices=
2|--devices=0|simulate 1f1b --devices=0
2|--devices=-1|simulate 1f1b --devices=-1
2|--micro_batches=0|simulate 1f1b --micro_batches=0
2|--recompute=maybe: must be true or false|simulate 1f1b --recompute=maybe
2|two names of one option|simulate interleaved --chunks=2 --virtual_stages=2
2|check does not use it|check --devices=2
2|`pipelab help list` lists what it uses|list --devices=2
2|search does not use it|search --steps=3
2|did you mean 1f1b?|simulate 1F1B
2|did you mean zb_h1?|simulate zb-h1
2|did you mean interleaved?|schedule interleave
2|did you mean gpipe?|show gpip
2|did you mean dualpipe?|simulate DualPipe:P=4,M=8
2|scheme=zig: no such scheme|simulate zig
2|no such scheme|compare 1f1x:P=2,M=2 gpipe:P=2,M=2 --model=gpt-6.6b --cluster=dgx-a100
2|did you mean 1f1b?|compare 1f1x:P=2,M=2 gpipe:P=2,M=2 --model=gpt-6.6b --cluster=dgx-a100
2|--schemes=zvb: no such scheme|search --model=gpt-6.6b --cluster=dgx-a100 --batch=8 --schemes=zvb
2|did you mean zbv?|search --model=gpt-6.6b --cluster=dgx-a100 --batch=8 --schemes=zvb
2|did you mean hanayo?|search --model=gpt-6.6b --cluster=dgx-a100 --explain=hanoya:P=2
2|"Q=2": is unknown; known are P=|simulate 1f1b:Q=2
2|"fast": is unknown|simulate 1f1b:fast
2|"P": is unknown|simulate 1f1b:P
2|"P=x"|simulate 1f1b:P=x
2|"P=0"|simulate 1f1b:P=0
2|"P=-2"|simulate 1f1b:P=-2
2|P=4|simulate 1f1b:P=4,P=4
2|there are none, selective, full|simulate 1f1b:recompute=some
2|sharding=|simulate 1f1b:sharding=zero
2|the configuration 1f1b:P=2 says its sizes|simulate 1f1b:P=2 --devices=2
2|--forward=x|simulate 1f1b --forward=x
2|--forward=-1|simulate 1f1b --forward=-1
2|--bandwidth=0|simulate 1f1b --bandwidth=0
2|--bytes=1|simulate 1f1b --bytes=1XB
2|--concatenation=twice: must be one of|simulate chimera --concatenation=twice
2|--replicas=3|simulate chimera --replicas=3
2|--layout|simulate 1f1b --model=gpt-6.6b --cluster=dgx-a100 --layout=1,x
2|--micro_batch_size=0: must be at least 1|simulate 1f1b --micro_batch_size=0
2|--model=gpt6: is not one of|simulate 1f1b --model=gpt6 --cluster=dgx-a100
2|did you mean gpt-6.6b?|simulate 1f1b --model=gpt-6b --cluster=dgx-a100
2|did you mean bert-48?|simulate 1f1b --model=bert48 --cluster=dgx-a100
2|did you mean vgg-small?|simulate 1f1b --model=vgg_smal --cluster=dgx-a100
1|--model=none.json: |simulate 1f1b --model=none.json --cluster=dgx-a100
2|--cluster=moon: no such cluster|simulate 1f1b --model=gpt-6.6b --cluster=moon
2|did you mean dgx-a100?|simulate 1f1b --model=gpt-6.6b --cluster=dgxa100
2|did you mean dgx-h100?|simulate 1f1b --model=gpt-6.6b --cluster=DGX_H-100
2|did you mean summit?|simulate 1f1b --model=gpt-6.6b --cluster=sumit
1|--cluster=none.json: |simulate 1f1b --model=gpt-6.6b --cluster=none.json
1|empty.json: 3 faults: name: missing; device: missing, such as|simulate 1f1b --model=gpt-6.6b --cluster=empty.json
1|levels: missing, such as [{"size": 8|simulate 1f1b --model=gpt-6.6b --cluster=empty.json
1|6 faults: |simulate 1f1b --model=gpt-6.6b --cluster=wrong.json
1|device.class: "cpu" is unknown; there are gpu, tpu|simulate 1f1b --model=gpt-6.6b --cluster=wrong.json
1|did you mean memory_bandwidth?|simulate 1f1b --model=gpt-6.6b --cluster=wrong.json
1|device.memory: "24": the unit is missing|simulate 1f1b --model=gpt-6.6b --cluster=wrong.json
1|levels[0].sharing: "paired" is unknown|simulate 1f1b --model=gpt-6.6b --cluster=wrong.json
1|levels[0].size: 0: must be a whole number from 1|simulate 1f1b --model=gpt-6.6b --cluster=wrong.json
1|--cluster=broken.json: |simulate 1f1b --model=gpt-6.6b --cluster=broken.json
2|--dtype=fp8: "fp8" is unknown|simulate 1f1b --model=gpt-6.6b --cluster=dgx-a100 --dtype=fp8
2|did you mean bf16?|simulate 1f1b --model=gpt-6.6b --cluster=dgx-a100 --dtype=bf-16
2|--reserve=1: must be at least 0 and below 1|simulate 1f1b --model=gpt-6.6b --cluster=dgx-a100 --reserve=1
2|--batch: missing|search --model=gpt-6.6b --cluster=dgx-a100
2|--batch=0: must be from 1|search --model=gpt-6.6b --cluster=dgx-a100 --batch=0
2|--devices=9999999|search --model=gpt-6.6b --cluster=dgx-a100 --batch=8 --devices=9999999
2|search takes options alone|search 1f1b
2|--model|search --batch=8 --cluster=dgx-a100
2|--model|compare 1f1b:P=2 gpipe:P=2
2|--planner=best: unknown; there are|plan --planner=best --model=mmt-small --cluster=summit-4gpu
2|did you mean graphpipe?|plan --planner=graphpip --model=mmt-small --cluster=summit-4gpu --devices=8 --micro_batch_size=2
1|--csv=none.csv|check --csv=none.csv
1|--json=broken.json|check --json=broken.json
2|only one of them can be stdin|plan --plan=- --csv=-
2|--format=xml|schedule 1f1b --format=xml
2|--out=|schedule 1f1b --format=csv --out=
2|--json_out=|simulate 1f1b --json_out=
2|--backend=tpu: must be cpu, cuda or emulated|run 1f1b --backend=tpu
2|--dtype=fp8: must be fp32, tf32 or bf16|run 1f1b --dtype=fp8
2|--optimizer=lamb: no such optimizer|run 1f1b --optimizer=lamb
2|--steps=0|run 1f1b --steps=0
1|--rows=none.csv|predict --rows=none.csv --cluster=dgx-a100
3|does not fit|simulate 1f1b:P=1,M=1 --model=gpt-52b --cluster=dgx-a100
CASES
}

echo '{}' >empty.json
echo '{"name": ' >broken.json
cat >wrong.json <<'FILE'
{"name": "wrong", "device": {"class": "cpu", "peaks": {"fp32": "82 TFLOPS"}, "memory": "24",
 "memory_bandwith": "1 TB/s"}, "levels": [{"size": 0, "sharing": "paired", "bandwidth": "25 GB/s"}]}
FILE
count=0
while IFS='|' read -r code text arguments; do
  read -r -a words <<<"$arguments"
  count=$((count + 1))
  if [[ $code == 3 ]]; then  # the step is told, and that it does not fit
    check "$code: $arguments" one_line_error "$code" "$text" "$pipelab" "${words[@]}"
  else
    check "$code: $arguments" refused "$code" "$text" "${words[@]}"
  fi
done < <(cases)
check "a hundred cases" test "$count" -ge 100

# A machine of eight 4090s, in the one round that the messages ask for.
cat >cards.json <<'FILE'
{
  "name": "eight 4090s",
  "device": {
    "class": "gpu",
    "peaks": {"fp32": "82.6 TFLOPS", "bf16": "165 TFLOPS"},
    "memory": "24 GB",
    "memory_bandwidth": "1008 GB/s"
  },
  "levels": [{"size": 8, "sharing": "device", "bandwidth": "25 GB/s"}]
}
FILE
check "eight 4090s" prints '"fits": true' \
  simulate 1f1b:P=8,M=8,recompute=full --model=gpt-small --cluster=cards.json --json_out=-
exit $((failures > 0))
