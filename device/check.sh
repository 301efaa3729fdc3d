#!/usr/bin/env bash
# Builds for one architecture on this machine and judges the device backend here.
#
#   device/check.sh OUT [--arch 90a-real] [--profile full] [--sanitize] [WORDS ...]
#
# OUT receives the logs and verdicts as JSON. --sanitize adds compute-sanitizer, with a separate allocation for every buffer:
# memcheck, initcheck and synccheck on the smoke profile, and racecheck on the cases of racecheck.txt. WORDS select cases of
# the profiles. Exit code: the worst of all parts.
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${ASSAY_BUILD_DIR:-$root/build-device}
arch=90a-real profile=full sanitize=no words=()
out=${1:?usage: device/check.sh OUT [--arch A] [--profile P] [--sanitize] [WORDS ...]}
shift
while (($#)); do
  case $1 in
    --arch) arch=$2; shift 2 ;;
    --profile) profile=$2; shift 2 ;;
    --sanitize) sanitize=yes; shift ;;
    *) words+=("$1"); shift ;;
  esac
done
mkdir -p "$out"

generator=()
if command -v ninja >/dev/null; then generator=(-G Ninja); fi
make_assay() {  # make_assay FOLDER NAME OPTIONS...
  local folder=$1 name=$2
  shift 2
  cmake -S "$root" -B "$folder" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release -DASSAY_CUDA=ON -DASSAY_CUDA_ARCHITECTURES="$arch" "$@" \
    >"$out/configure$name.log" 2>&1 || { tail -30 "$out/configure$name.log"; exit 9; }
  cmake --build "$folder" --parallel "$(nproc)" --target assay >"$out/build$name.log" 2>&1 || { tail -60 "$out/build$name.log"; exit 9; }
}
make_assay "$build" ""

worst=0
part() {  # part NAME COMMAND...: writes its output to OUT/NAME.log and prints the end of it
  local name=$1 status=0
  shift
  "$@" >"$out/$name.log" 2>&1 || status=$?
  echo "== $name: exit $status"
  tail -n 45 "$out/$name.log"
  if ((status > worst)); then worst=$status; fi
}

assay=$build/bin/assay
part doctor "$assay" doctor --backend device
part run "$assay" run --backend device --profile "$profile" --quiet --json "$out/run.json" "${words[@]}"
# Products whose scales are promised to be powers of two, and those that another path takes by itself, by cuBLASLt.
if ((${#words[@]} == 0)); then
  part promises "$assay" run --backend device --backend-options pow2_scales=on --profile full --quiet --json "$out/promises.json" \
    --cases "$root/device/tests/fp8_block_gemm/pow2_cases.txt"
  part library "$assay" run --backend device --backend-options gemm=cublaslt --profile "$profile" --quiet --json "$out/library.json" fp8_block
fi

if [[ $sanitize == yes ]]; then
  sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
  make_assay "$build-racecheck" "-racecheck" -DASSAY_EVERY_LANE_ARRIVES=ON  # see racecheck.txt
  part racecheck "$root/device/racecheck.sh" "$out/racecheck" "$build-racecheck/bin/assay"
  for tool in memcheck initcheck synccheck; do
    part "$tool" "$sanitizer" --tool "$tool" --error-exitcode 99 \
      "$assay" run --backend device --backend-options pool=off --profile smoke --quiet "${words[@]}"
  done
fi
exit "$worst"
