#!/usr/bin/env bash
# suite.sh with programs that only pretend: no device, a device where all is right, one where not.
set -u

suite=$PWD/tools/gpu/suite.sh
cd "$TEST_TMPDIR" || exit 1
failures=0

# expect NAME STATUS TEXT ARGUMENTS...: the suite ends with it and says TEXT.
expect() {
  local name=$1 status=$2 text=$3 got=0
  shift 3
  "$suite" "$@" >out 2>&1 || got=$?
  if [ "$got" -eq "$status" ] && grep -qF -- "$text" out; then
    echo "ok: $name"
  else
    echo "FAILED: $name: status $got"
    cat out
    failures=$((failures + 1))
  fi
}

# program FOLDER NAME TEXT STATUS: one that writes TEXT to the file behind --json.
program() {
  cat >"$1/$2" <<EOF
#!/usr/bin/env bash
for a in "\$@"; do case \$a in --json=*) echo '$3' >"\${a#--json=}";; esac; done
echo "$2 ran"
exit $4
EOF
  chmod +x "$1/$2"
}

mkdir none gpu
printf '#!/bin/sh\necho "no CUDA device: the driver knows none" >&2\nexit 3\n' >none/gpu_info
printf '#!/bin/sh\necho "{\\"name\\": \\"NVIDIA T1000/8\\", \\"capability\\": 75}"\n' >gpu/gpu_info
chmod +x none/gpu_info gpu/gpu_info

expect "usage" 2 "tools/gpu/suite.sh BINARIES RESULTS" onlyone
expect "no such folder" 2 "no folder" nowhere results
expect "no device" 3 "no CUDA device: the driver knows none: nothing was run" none results
[ "$(wc -l <out)" -eq 1 ] || { echo "FAILED: not one line"; failures=$((failures + 1)); }
[ -z "$(ls results)" ] || { echo "FAILED: results of nothing"; failures=$((failures + 1)); }

program gpu parity '{"cases": []}' 0
program gpu layer_speed '{"layers": [{"tokens": 1024}]}' 0
expect "all is right" 0 "written: results/gpu-" gpu results
grep -q "schemes: skipped: the folder has no device_schemes" out ||
  { echo "FAILED: a part that is not there is not named"; failures=$((failures + 1)); }
report=$(ls results/gpu-*-NVIDIA-T1000-8.json)
if command -v python3 >/dev/null; then
  python3 - "$report" <<'EOF' || failures=$((failures + 1))
import json, sys
report = json.load(open(sys.argv[1]))
assert report["device"]["name"] == "NVIDIA T1000/8", report
assert report["layers"]["results"]["layers"][0]["tokens"] == 1024, report
assert report["parity"]["outcome"] == "ok", report
EOF
fi

program gpu device_schemes '{"schemes": []}' 1
expect "a part fails" 1 "schemes: failed with status 1" gpu results

exit $((failures > 0))
