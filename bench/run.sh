# Part of ./assay: bench, which builds the benchmarks and runs them one after another.

bench_usage() {
  cat <<'TEXT'
./assay bench [WORDS ...] [--out FILE] [--repetitions N] [--list] [--cpu | --device]

Builds the benchmarks and runs those whose names hold every word; without words all of them, which takes minutes. Those of the
device run where a device is. Each is measured three times, and the coefficient of variation (cv) is printed.

  --out FILE         keep the figures as Google Benchmark JSON; those of device programs beside it, as FILE-NAME.json.
                     bench/table.py FILE ... prints them as tables
  --repetitions N    measure each N times (default: 3)
  --list             names only
  --cpu, --device    only one half
  --benchmark_...    options of Google Benchmark, as --benchmark_min_time=2

Exit codes: 0; 2 wrong usage; 4 nothing has these words; 9 the set-up or the machine failed.
TEXT
}

device_is_here() {
  if [[ -e $build/.assay-devices ]]; then
    [[ -n $(tail -n 1 "$build/.assay-devices" | tr -d ' ') ]]
  else
    [[ -n $(capabilities) ]]
  fi
}

bench() {
  local half=both out='' arguments=() kind name status ran=no selected=0 file
  if asks_for_help "$@"; then
    bench_usage
    return
  fi
  while (($#)); do
    case $1 in
      --cpu | --device) half=${1#--} ;;
      --out)
        (($# > 1)) || { say "bench: --out needs the name of a file"; exit 2; }
        out=$2
        shift
        ;;
      --out=*) out=${1#--out=} ;;
      *) arguments+=("$1") ;;
    esac
    shift
  done
  set_up benchmarks
  if [[ $half == device ]] && ! device_is_here; then fail "no device is here to measure"; fi
  while read -r kind name; do
    if [[ $half != both && $half != "$kind" ]]; then continue; fi
    if [[ $kind == device ]] && ! device_is_here; then continue; fi
    ran=yes status=0
    "$build/bin/$name" "${arguments[@]}" --list >/dev/null 2>&1 || status=$?
    if ((status == 4)); then continue; fi
    file=$out
    if [[ -n $out && $kind == device ]]; then file=${out%.json}-${name#device_}.json; fi
    "$build/bin/$name" "${arguments[@]}" ${file:+--out "$file"} || exit $?
    selected=1
  done <"$build/bench/programs.txt"
  if [[ $ran == no ]]; then fail "this build has no device benchmarks: there is no CUDA compiler"; fi
  if ((!selected)); then
    say "bench: no benchmark has '${arguments[*]}' in its name (--list shows the names)"
    exit 4
  fi
}
