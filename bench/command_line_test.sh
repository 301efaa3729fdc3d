#!/usr/bin/env bash
# The command line of a benchmark program, and table.py on what it writes. command_line_test.sh PROGRAM WORK [PYTHON TABLE]
set -uo pipefail
program=$1
work=$2
failures=0
rm -rf "$work"
mkdir -p "$work"
cd "$work" || exit 1

call() {
  "$program" "$@" >out 2>err </dev/null
  status=$?
}
expect() {
  local what=$1
  shift
  "$@" && return
  failures=$((failures + 1))
  printf 'FAILED: %s\n  status %s\n  stdout: %s\n  stderr: %s\n' "$what" "$status" "$(head -n 20 out)" "$(head -n 20 err)"
}
exits() { ((status == $1)); }

call --list mxfp8_back rowwise
expect "--list succeeds" exits 0
expect "words choose by name" grep -qx "mxfp8_back/rowwise_f32/real_time" out
expect "every word must be there" test "$(grep -vc 'mxfp8_back.*rowwise' out)" == 0
mv out first
call --list rowwise mxfp8_back
expect "their order does not matter" cmp -s first out
call --list 'mxfp8_back/rowwise.f32'
expect "a word is no pattern" exits 4

call no_such_benchmark
expect "words that nothing has are an error" exits 4
expect "and are named" grep -q "no benchmark has 'no_such_benchmark' in its name" err
echo before >kept.json
call no_such_benchmark --out kept.json
expect "a file is not replaced by nothing" grep -qx before kept.json
expect "nothing is left beside it" test ! -e kept.json.part

call mxfp8_back/rowwise --benchmark_min_time=0.001 --out figures.json
expect "a measurement succeeds" exits 0
expect "three repetitions" test "$(grep -c '"run_type": "iteration"' figures.json)" == 3
expect "the coefficient of variation is printed" grep -q "_cv" out
expect "and kept" grep -q '"aggregate_name": "cv"' figures.json
call mxfp8_back/rowwise --benchmark_min_time=0.001 --repetitions 1 --out once.json
expect "one repetition where one is asked for" test "$(grep -c '"run_type": "iteration"' once.json)" == 1

call mxfp8_back --out no/such/folder/figures.json
expect "a file that cannot be written is wrong usage" exits 2
expect "and is named" grep -q "no/such/folder/figures.json" err
expect "before anything is measured" test ! -s out
for wrong in --nonsense --out --repetitions "--repetitions 0" "--repetitions x" --benchmark_nonsense=1 "a b c d e f"; do
  # shellcheck disable=SC2086  # words
  call $wrong
  expect "'$wrong' is wrong usage" exits 2
done

if (($# > 2)); then
  "$3" "$4" figures.json >out 2>err
  status=$?
  expect "table.py reads it" exits 0
  expect "and shows the time of each" grep -Eq '^\| mxfp8_back/rowwise_f32/real_time +\| +[0-9.]+ [num]?s \| +[0-9.]+ % \| .*GB/s' out
fi

((failures == 0)) || exit 1
echo "command line of benchmarks: all as expected"
