#!/usr/bin/env bash
# A folder with all that tools/gpu/suite.sh runs, for a machine with a GPU and nothing else of the project:
#
#   tools/gpu/bundle.sh FOLDER [BAZEL OPTIONS...]
#
# Builds with --config=cuda, copies the programs and the shared libraries that they need beside
# CUDA's and the C++ runtime's (to FOLDER/lib), and says how large it is: at most 60 MiB.
set -eu

[ $# -ge 1 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
folder=$1
shift
here=$(cd "$(dirname "$0")/../.." && pwd)
cd "$here"
targets=(//kernels/cuda:gpu_info //kernels/cuda:parity //kernels/cuda:layer_speed //kernels/cuda:int4_speed
  //kernels/cuda:operation_speed //tests:device_schemes //experiments/gpu:one_gpu_speed)
bazel "$@" build --config=cuda "${targets[@]}"
bin=$(bazel "$@" info --config=cuda bazel-bin)
mkdir -p "$folder/lib"
for target in "${targets[@]}"; do
  path=${target#//}
  cp -f "$bin/${path/://}" "$folder/"
  program=$folder/${target##*:}
  chmod u+w "$program"
  strip "$program"
  ldd "$program" | awk '$3 ~ /^\// {print $3}'
done | sort -u | while read -r library; do
  case $(basename "$library") in
    libcud* | libcublas* | libnccl* | libnv*) ;; # CUDA's own are on the machine
    libstdc++* | libgcc_s* | libc.so* | libm.so* | libpthread* | libdl.so* | librt.so* | ld-linux*) ;;
    *)
      cp -fL "$library" "$folder/lib/"
      chmod u+w "$folder/lib/$(basename "$library")"
      strip --strip-unneeded "$folder/lib/$(basename "$library")" 2>/dev/null || true
      ;;
  esac
done
cp tools/gpu/suite.sh tools/gpu/torch_layers.py "$folder/"
size=$(du -sm "$folder" | cut -f 1)
echo "$folder: $size MiB"
if [ "$size" -gt 60 ]; then
  echo "bundle.sh: more than 60 MiB" >&2
  exit 1
fi
