#!/usr/bin/env bash
# Runs each case of device/racecheck.txt under compute-sanitizer's racecheck, many at a time.
#
#   device/racecheck.sh OUT ASSAY [--seconds 140] [--each 100] [--jobs N]
#
# OUT receives a log per case and summary.txt; ASSAY is the program. Every case is a process of its own with one CPU thread, so
# that a tool that is slow or fails affects no other case. A process ends after --each seconds, the whole after
# --seconds. Prints a line per case, and the kernels with shared memory that racecheck.txt does not name.
#
# Exit code: 1 for a hazard, a case that fails or a kernel without a case; else 5 where a case did not finish; else 0.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
usage="usage: device/racecheck.sh OUT ASSAY [--seconds S] [--each S] [--jobs N]"
out=${1:?$usage} assay=${2:?$usage}
shift 2
seconds=140 each=100 jobs=$(nproc)
while (($#)); do
  case $1 in
    --seconds) seconds=$2 ;;
    --each) each=$2 ;;
    --jobs) jobs=$2 ;;
    *) echo "$usage" >&2; exit 2 ;;
  esac
  shift 2
done
sanitizer=${ASSAY_SANITIZER:-$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)}
mkdir -p "$out"
rm -f "$out"/case-*
deadline=$((SECONDS + seconds))

# Kernels whose body declares shared memory.
with_shared() {
  awk '
    FNR == 1 { kernel = ""; header = 0 }
    /__global__/ { kernel = ""; header = 1; sub(/.*__global__/, "") }
    header {  # the name is the word before the first parenthesis that is not of __launch_bounds__
      while (match($0, /__launch_bounds__ *\(/)) {
        rest = substr($0, RSTART + RLENGTH); depth = 1
        for (i = 1; i <= length(rest) && depth > 0; ++i) { c = substr(rest, i, 1); depth += (c == "(") - (c == ")") }
        $0 = substr($0, 1, RSTART - 1) substr(rest, i)
      }
      if (match($0, /[A-Za-z_][A-Za-z_0-9]* *\(/)) { kernel = substr($0, RSTART, RLENGTH); sub(/ *\($/, "", kernel); header = 0 }
    }
    /__shared__/ && !/^ *\/\// && kernel != "" { print kernel }
    /^}/ { kernel = "" }
  ' "$(printf '%s' "$1")" | sort -u
}
with_shared_anywhere() {
  find "$here" -name '*.cu' -o -name '*.cuh' | sort | while read -r file; do with_shared "$file"; done | sort -u
}

run_case() {  # run_case NUMBER LINE OPTIONS: OUT/case-NUMBER.log and .verdict
  local number=$1 line=$2 options=$3 log=$out/case-$1.log left verdict attempt status
  for attempt in 1 2; do
    left=$((deadline - SECONDS))
    if ((left < 5)); then verdict=${verdict:-"not run: no time left"}; break; fi
    if ((left > each)); then left=$each; fi
    status=0
    # One port each: otherwise the tools of several processes search for a free one at the same moment. shellcheck disable=SC2086
    # # the words of the line
    ASSAY_THREADS=1 timeout -k 5 "$left" "$sanitizer" --tool racecheck --error-exitcode 99 --kernel-name kns=assay \
      --racecheck-num-workers 1 --port $((49152 + 8 * number)) \
      "$assay" repro --backend device --backend-options "pool=off$options" $line >"$log" 2>&1 || status=$?
    if grep -q 'Internal Sanitizer Error' "$log"; then verdict="tool failed: $(grep -m1 -o 'Internal Sanitizer Error.*' "$log")"; continue; fi
    case $status in
      0)
        verdict=clean
        grep -q 'RACECHECK SUMMARY: 0 hazards' "$log" || verdict="no summary of the tool"
        grep -q ' 0 not run' "$log" || verdict="not run: the backend declined" ;;
      99) verdict="HAZARDS: $(grep -m1 -o 'RACECHECK SUMMARY:.*' "$log")" ;;
      124 | 137) verdict="not finished in $left s" ;;
      *) verdict="exit $status: $(grep -v '^=====' "$log" | tail -n 1)" ;;
    esac
    break
  done
  printf '%s\n' "$verdict" >"$out/case-$number.verdict"
}

names=() lines=() options=()
while IFS= read -r text; do
  if [[ $text =~ ^([a-z_0-9=\ ]+):\ (.+)$ ]]; then
    names+=("${BASH_REMATCH[1]}") lines+=("${BASH_REMATCH[2]}") own=
    for word in ${BASH_REMATCH[1]}; do
      if [[ $word == *=* ]]; then own+=,$word; fi
    done
    options+=("$own")
  fi
done <"$here/racecheck.txt"

for i in "${!lines[@]}"; do
  while (($(jobs -rp | wc -l) >= jobs)); do wait -n; done
  run_case "$i" "${lines[i]}" "${options[i]}" &
done
wait

worst=0
{
  for i in "${!lines[@]}"; do
    verdict=$(<"$out/case-$i.verdict")
    printf '%-60s %s (%s)\n' "$verdict" "${lines[i]}" "${names[i]}"
  done | sort
  for kernel in $(with_shared_anywhere); do
    case " ${names[*]} " in *" $kernel "*) ;; *) echo "NO CASE: kernel $kernel" ;; esac
  done
} >"$out/summary.txt"
cat "$out/summary.txt"
if grep -qE '^(not |tool failed|no summary)' "$out/summary.txt"; then worst=5; fi
if grep -qE '^(HAZARDS|exit |NO CASE)' "$out/summary.txt"; then worst=1; fi
echo "$(grep -c '^clean' "$out/summary.txt") of ${#lines[@]} cases clean, in $SECONDS s"
exit "$worst"
