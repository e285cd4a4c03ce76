#!/bin/bash
# The quickstart as a user calls it: a small run leaves a whole report; a bad request gives one line that names
# the option and its value, the right exit code, and nothing on the disk.
set -euo pipefail
source tests/shell_checks.sh

quickstart=$PWD/$1
work=$TEST_TMPDIR/quickstart
mkdir -p "$work"
cd "$work"
small=(--synthetic --steps=3 --devices=2 --micro_batches=4 --layers=2 --hidden=32 --heads=2 --tokens=16)

# refused CODE TEXT ARG...: the command ends with CODE, one line on stderr that has TEXT, and no folder.
refused() {
  local code=$1 text=$2
  shift 2
  rm -rf out
  one_line_error "$code" "$text" "$quickstart" "${small[@]}" --out="$work/out" "$@" || return 1
  if [[ -e out ]]; then echo "left behind by $*:"; ls -la out; return 1; fi
  if compgen -G "$work/.out*" >/dev/null; then echo "half-written files are left:"; ls -la "$work"; return 1; fi
}

# predicted_times RECORDS: one for each scheme, none shorter than two devices' shares of the work.
predicted_times() {
  awk -F, '$2 == "times" && $4 == "step_time_predicted" && $7 == "simulated" { time[$3] = $6; ++n }
    END {
      if (n != 6) { print n + 0 " predicted step times instead of 6"; exit 1 }
      serial = time["scheme=serial"]
      for (row in time) {
        if (time[row] >= 0.45 * serial) continue
        print row ": " time[row] " ms; serial: " serial " ms"; exit 1
      }
    }' "$1"
}

whole_report() {
  "$quickstart" "${small[@]}" --out="$work/report" >stdout 2>stderr || { cat stderr; return 1; }
  local file
  for file in run.json records.csv config.json env.json report.md report.html; do
    [[ -s report/$file ]] || { echo "no $file"; ls report; return 1; }
  done
  local scheme
  for scheme in gpipe 1f1b interleaved breadth_first chimera; do
    grep -q "$scheme" stdout || { echo "no row for $scheme"; cat stdout; return 1; }
    compgen -G "report/trace_$scheme*.json" >/dev/null || { echo "no trace of $scheme"; return 1; }
    compgen -G "report/timeline_$scheme*.svg" >/dev/null || { echo "no timeline of $scheme"; return 1; }
    compgen -G "report/schedule_$scheme*.csv" >/dev/null || { echo "no schedule of $scheme"; return 1; }
  done
  predicted_times report/records.csv || return 1
  grep -q synthetic stdout || { echo "the table does not say that the data are synthetic"; return 1; }
  grep -q bit-equal stdout || { cat stdout; return 1; }
}

# Stopped in the middle of training: nothing is visible, and nothing hidden either.
interrupted() {
  rm -rf out
  "$quickstart" "${small[@]}" --steps=1000000 --out="$work/above/out" >stdout 2>stderr &
  local pid=$! tries
  for ((tries = 0; tries < 600; ++tries)); do  # until it trains, which the first progress line says
    [[ ! -s stderr ]] || break
    sleep 0.1
  done
  kill -TERM "$pid"
  wait "$pid" 2>/dev/null || true
  [[ -s stderr ]] || { echo "no progress line in a minute"; return 1; }
  [[ -z $(find "$work" -name '*out*' ! -name stdout) ]] || { find "$work" -name '*out*'; return 1; }
  [[ ! -e above ]] || { echo "a folder above --out is left"; return 1; }
}

# A download with other content than the real package: apt-get is a stand-in that serves it.
corrupt_download() {
  mkdir -p bin cache
  cat >bin/apt-get <<'FAKE'
#!/bin/bash
[[ " $* " == *" download "* ]] && echo broken >r-cran-janeaustenr_1.0.0-1_all.deb
exit 0
FAKE
  chmod +x bin/apt-get
  local status=0
  rm -rf out
  PATH=$work/bin:$PATH PIPELAB_DATA=$work/cache "$quickstart" --steps=1 --out="$work/out" >stdout 2>stderr ||
    status=$?
  [[ $status == 1 ]] || { echo "exit $status instead of 1"; cat stderr; return 1; }
  grep -q janeaustenr stderr || { cat stderr; return 1; }
  [[ $(wc -l <stderr) == 1 ]] || { cat stderr; return 1; }
  [[ -z $(find cache -type f) ]] || { echo "left in the cache:"; find cache -type f; return 1; }
  [[ ! -e out ]] || { ls -la out; return 1; }
}

check "a small run leaves a whole report" whole_report
check "unknown scheme" refused 2 "--schemes=zigzag" --schemes=1f1b,zigzag
check "no devices" refused 2 "--devices=0" --devices=0
check "no micro-batches" refused 2 "--micro_batches=0" --schemes=chimera --micro_batches=0
check "odd devices for two directions" refused 2 "--devices=3" --schemes=chimera --devices=3
check "more stages than layers" refused 2 "16 stages" --schemes=1f1b --devices=16
check "a stage without layers" refused 2 "--layout=6,0" --schemes=1f1b --layout=6,0
check "heads that do not divide" refused 2 "heads" --heads=3
check "not a number" refused 2 "--steps=many" --steps=many
check "a learning rate that is no number" refused 2 "--learning_rate=nan" --learning_rate=nan
check "a dropout that keeps nothing" refused 2 "--dropout=1" --dropout=0.999999999
check "more blocks than can be" refused 2 "--layers=2147483647" --layers=2147483647
check "more than the memory" refused 2 "--micro_batch_size=60000" --hidden=65536 --layers=1024 --micro_batch_size=60000
check "a text that is too short" refused 2 "--tokens=500000" --tokens=500000 --hidden=2
check "a value of two lines" refused 2 'a\nb' --schemes=$'a\nb'
check "no steps" refused 2 "--steps=0" --steps=0
check "unknown option" refused 2 "--device: unknown option" --device=4
check "an output folder that cannot be" refused 2 "--out=/proc/x" --out=/proc/x
check "a corrupt download" corrupt_download
check "stopped in the middle" interrupted
exit $((failures > 0))
