#!/usr/bin/env bash
# The script ./assay in a copied checkout, with cmake, ctest, apt-get, id, sudo and nvidia-smi replaced by stand-ins that record
# their calls. front_door_build_test.sh tests the decisions of a real build system. front_door_test.sh SOURCE WORK [PROGRAM]
# shellcheck disable=SC2016  # stand-ins expand their text when they run
set -uo pipefail
source=$1
work="$2/a path with spaces"
export work CALLS=$work/calls MADE=$work/made
unset ASSAY_BUILD_DIR ASSAY_CMAKE_ARGS ASSAY_PACKAGES ASSAY_COMMAND CAPABILITIES CMAKE_GENERATOR CMAKE_BUILD_TYPE
failures=0

# A fresh checkout: the script, the list of packages, the watched folders.
checkout() {
  rm -rf "$work"
  mkdir -p "$work/tools" "$work/repo/cmake" "$work/repo"/{reference,golden,conformance} "$work/elsewhere"
  cp "$source/assay" "$work/repo/"
  cp -r "$source/cmake/door" "$work/repo/cmake/"
  mkdir -p "$work/repo/conformance/program" "$work/repo/bench"
  cp "$source"/conformance/program/*.cc "$source"/conformance/program/backend_options.h "$work/repo/conformance/program/"
  cp "$source/bench/run.sh" "$work/repo/bench/"
  echo "needed-package command bash" >"$work/repo/cmake/packages.txt"
  touch "$work/repo/CMakeLists.txt"
  : >"$CALLS"
  cat >"$MADE" <<'TOOL'
#!/usr/bin/env bash
echo "program in $PWD:$(printf ' <%s>' "$@")"
[[ ${1:-} != name ]] || echo "called as $ASSAY_COMMAND"
[[ ${1:-} != fail ]] || exit 7
TOOL
  # Configuring records the checkout in the cache; building makes the program.
  tool cmake 'if [[ "$*" == *"--preset "* ]]; then
      words=$*; preset=${words#*--preset }; preset=${preset%% *}
      mkdir -p "build-$preset/bin"; cp "$MADE" "build-$preset/bin/assay"; chmod +x "build-$preset/bin/assay"; exit; fi
    folder=; root=; [[ $1 != --build ]] || folder=$2
    while (($#)); do case $1 in -S) root=$2 ;; -B) folder=$2 ;; esac; shift; done
    if [[ -n $root ]]; then [[ -z ${FAIL_CONFIGURE:-} ]] || { echo broken configure; exit 1; }
      { echo "CMAKE_HOME_DIRECTORY:INTERNAL=$root"; echo "CMAKE_CACHEFILE_DIR:INTERNAL=$folder"; } >"$folder/CMakeCache.txt"
    else [[ -z ${FAIL_BUILD:-} ]] || { echo broken source; exit 1; }
      if [[ -n ${BUILD_SECONDS:-} ]]; then echo "[3/9] Building something"; sleep "$BUILD_SECONDS"; fi
      mkdir -p "$folder/bin"; cp "$MADE" "$folder/bin/assay"; chmod +x "$folder/bin/assay"
      mkdir -p "$folder/bench"; printf "%s\n" "cpu reference_bench" "device device_a_bench" >"$folder/bench/programs.txt"
      cp "$work/tools/bench" "$folder/bin/reference_bench"; cp "$work/tools/bench" "$folder/bin/device_a_bench"; fi'
  tool ctest 'echo "all tests passed"; exit ${CTEST_STATUS:-0}'
  tool apt-get 'exit ${APT_STATUS:-0}'
  tool sudo '[[ ${SUDO:-no} == yes ]] || exit 1; [[ $1 != -n ]] || shift; "$@"'
  tool id 'echo "${USER_ID:-1000}"'
  tool nvidia-smi '[[ -z ${CAPABILITIES:-} ]] || printf "%s\n" $CAPABILITIES'
  tool nvcc 'exit 1'
  tool bench '[[ " $* " != *" nothing "* ]] || exit 4; [[ " $* " != *" fails "* || " $* " == *" --list "* ]] || exit 9
    echo "measured by ${0##*/}: $*"'
  cd "$work/elsewhere" || exit 1
}

# tool NAME BODY: a stand-in that records its call, then runs BODY.
tool() {
  printf '#!/usr/bin/env bash\necho "%s $*" >>"$CALLS"\n%s\n' "$1" "$2" >"$work/tools/$1"
  chmod +x "$work/tools/$1"
}

# call ARGUMENT...: runs the front door; its streams and exit status are kept.
call() {
  PATH="$work/tools:$PATH" "${door:-$work/repo/assay}" "$@" >"$work/out" 2>"$work/err" </dev/null
  status=$?
}

expect() {  # expect WHAT CONDITION...
  local what=$1
  shift
  "$@" && return
  failures=$((failures + 1))
  printf 'FAILED: %s\n  status %s\n  stdout: %s\n  stderr: %s\n  calls: %s\n' "$what" "$status" "$(<"$work/out")" "$(<"$work/err")" "$(<"$CALLS")"
}
exits() { ((status == $1)); }
prints() { grep -qF -- "$1" "$work/out"; }
prints_only() { [[ $(<"$work/out") == "$1" ]]; }
says() { grep -qF -- "$1" "$work/err"; }
called() { grep -q -- "$1" "$CALLS"; }
never_called() { ! grep -q -- "$1" "$CALLS"; }
idle() { [[ ! -s $CALLS ]]; }
only_builds() { called "^cmake --build" && never_called "^cmake -S" && never_called "^nvidia-smi"; }

# Help and wrong usage build nothing.
checkout
call --help
expect "--help succeeds" exits 0
expect "--help names the set-up verbs" prints "./assay test"
expect "--help builds nothing" idle
call
expect "no verb is wrong usage" exits 2
expect "no verb shows the usage" says "./assay VERB"
call run --help
expect "help of a verb succeeds before anything is built" exits 0
expect "help of a verb says what it does" prints "./assay run: Judge a backend on the conformance suite"
expect "help of a verb lists options" prints "--profile"
expect "help of a verb builds nothing" idle
call scale-map -h
expect "a verb with a hyphen has help too" prints "--operand"
call rnu
expect "an unknown verb is wrong usage" exits 2
expect "an unknown verb is named" says "'rnu' is no verb: expected build test bench run "
expect "an unknown verb builds nothing" idle
call golden chek
expect "an unknown verb of golden is wrong usage" exits 2
expect "an unknown verb of golden is named" says "'chek' is no verb of golden: expected build check"
call test --help
expect "help of the tests succeeds" exits 0
expect "help of the tests says what they are" prints "build everything and run every test"
call test -R exhaustive -h
expect "help of the tests is found behind other words" exits 0
expect "all of this builds nothing" idle
if (($# > 2)); then  # the verbs that the script knows are those of the program
  "$3" --help | sed -n '/^Subcommands/,$p' | sed -n 's/^  \([a-z-]*\) .*/\1/p' >"$work/verbs"
  expect "the program lists its verbs" test "$(wc -l <"$work/verbs")" -ge 8
  call --help
  while read -r verb; do expect "--help names $verb" grep -q "^  $verb  *[A-Z]" "$work/out"; done <"$work/verbs"
  # And every option of every verb, however its source is formatted.
  for verb in run verify compute list repro scale-map matrix doctor; do
    "$3" "$verb" --help | grep -oE '^  (-[a-z],)?--[a-z-]+' | sed 's/.*--/--/' | grep -vE '^--(help|expect-by)$' >"$work/options"
    call "$verb" --help
    expect "help of $verb has options" test -s "$work/options"
    while read -r option; do expect "help of $verb has $option" grep -qE -e "^  (-[a-z],)?$option " "$work/out"; done <"$work/options"
  done
fi

# The first call sets up, the second does nothing, a newer source builds again.
checkout
call run --out "two words" ''
expect "the first run" exits 0
expect "arguments and folder reach the program" prints_only "program in $work/elsewhere: <run> <--out> <two words> <>"
expect "the first run configures" called "^cmake -S $work/repo -B $work/repo/build -DCMAKE_BUILD_TYPE=Release -DASSAY_UNITY=ON"
expect "the first run builds the program alone" called "^cmake --build .* --target assay$"
expect "nothing is installed" never_called "^apt-get"
: >"$CALLS"
call run
expect "the second run" prints "program in"
expect "the second run lets the build system decide" only_builds
expect "the second run says nothing" test ! -s "$work/err"
call name
expect "the program learns how it was called" prints "called as $work/repo/assay"
: >"$CALLS"
touch "$work/repo/reference/new.cc"
call run
expect "a newer source is built" called "^cmake --build"
expect "a newer source needs no configuring" never_called "^cmake -S"
: >"$CALLS"
call fail
expect "the program's exit code is passed on" exits 7
call --help
expect "--help shows the program's help" prints "<--help>"
: >"$CALLS"
call run --help
expect "help of a verb is the program's" prints "<run> <--help>"
expect "help of a verb does not wait for a build" idle

# Other arguments to cmake, another build folder, a moved checkout.
ASSAY_CMAKE_ARGS="-DA=1 -DB=2" call run
expect "new cmake arguments configure again" called "^cmake -S .* -DA=1 -DB=2$"
: >"$CALLS"
ASSAY_CMAKE_ARGS="-DA=1 -DB=2" call run
expect "the same cmake arguments do not" only_builds
ASSAY_BUILD_DIR="$work/other build" call run
expect "the build folder can be chosen" test -x "$work/other build/bin/assay"
cp -a "$work/repo" "$work/copied"
: >"$CALLS"
door=$work/copied/assay call run
expect "a copied checkout configures afresh, in its own folder" called "^cmake -S $work/copied -B $work/copied/build --fresh"
(cd "$work/repo" && ASSAY_BUILD_DIR=relative "$work/repo/assay" --help >/dev/null)
: >"$CALLS"
ASSAY_BUILD_DIR=relative call run
expect "a relative build folder is that of the caller" test -x "$work/elsewhere/relative/bin/assay"
mv "$work/repo" "$work/moved"
touch "$work/moved/reference/newer.cc"
: >"$CALLS"
door=$work/moved/assay call run
expect "a moved checkout runs" exits 0
expect "a moved checkout configures afresh" called "^cmake -S $work/moved .*--fresh"

# Other compilers and flags.
checkout
call run
printf '#!/bin/sh\n' >"$work/tools/other-c++"
chmod +x "$work/tools/other-c++"
: >"$CALLS"
CXX=other-c++ call run
expect "another CXX configures afresh" called "^cmake -S .*--fresh"
: >"$CALLS"
CXX=other-c++ call run
expect "the same CXX does not" only_builds
printf '#!/bin/sh\n# newer\n' >"$work/tools/other-c++"
CXX=other-c++ call run
expect "a compiler that was replaced does" called "^cmake -S .*--fresh"
: >"$CALLS"
CXX=other-c++ CXXFLAGS=-O1 call run
expect "other CXXFLAGS do" called "^cmake -S .*--fresh"

# Device code: only where there is a device, and for that device.
checkout
call run
expect "no device: no device code" called "^cmake -S .* -DASSAY_CUDA=OFF$"
: >"$CALLS"
call test
expect "test: device code for one architecture, which nothing runs" called "^cmake -S .* -DASSAY_CUDA_ARCHITECTURES=90a-real -DASSAY_QUICK_DEVICE_CODE=ON$"
: >"$CALLS"
call run
expect "what was built once stays" only_builds
rm "$work/repo/build/.assay-devices"
CAPABILITIES=9.0 call run
expect "a device runs code with all optimization" called "^cmake -S .*--fresh.* -DASSAY_CUDA_ARCHITECTURES=90a-real$"
checkout
CAPABILITIES="9.0 8.9 9.0" call run
expect "device code for the devices here" called "^cmake -S .* -DASSAY_CUDA_ARCHITECTURES=89-real;90a-real$"
: >"$CALLS"
CAPABILITIES="9.0 8.9 9.0" call run
expect "the driver is not asked again" only_builds
checkout
CAPABILITIES=7.5 call run
expect "a device that is too old is named" says "compute capability 7.5"
expect "a device that is too old has no code" called "^cmake -S .* -DASSAY_CUDA=OFF$"
checkout
CAPABILITIES=9.0 ASSAY_CMAKE_ARGS=-DASSAY_CUDA_ARCHITECTURES=80-real call run
expect "architectures given are kept" called "^cmake -S .*Release.* -DASSAY_CUDA_ARCHITECTURES=80-real$"
expect "and no other is named" never_called "90a"
checkout
call build --all-architectures
expect "all architectures: the project's own list" never_called "^cmake -S .*ASSAY_CUDA"
expect "all architectures: everything is built" called "^cmake --build .* --target all$"
call build --nonsense
expect "an unknown option of build is wrong usage" exits 2

# Benchmarks.
checkout
call bench --help
expect "help of bench builds nothing" idle
expect "help of bench" prints "./assay bench [WORDS ...]"
call bench mxfp8 --out "$work/x.json" --repetitions 5
expect "bench builds the benchmarks" called "^cmake --build .* --target benchmarks$"
expect "bench runs those of the CPU" prints_only "measured by reference_bench: mxfp8 --repetitions 5 --out $work/x.json"
call bench --device
expect "no device to measure ends with 9" exits 9
call bench nothing
expect "words that nothing has end with 4" exits 4
expect "words that nothing has are named" says "no benchmark has 'nothing' in its name"
call bench fails
expect "a failure is passed on" exits 9
call bench --out
expect "--out without a file is wrong usage" exits 2
CAPABILITIES=9.0
export CAPABILITIES
checkout
call bench --out "$work/x.json"
expect "bench runs both halves where a device is" prints "measured by reference_bench: --out $work/x.json"
expect "a device program has a file of its own" prints "measured by device_a_bench: --out $work/x-a_bench.json"
call bench --device a
expect "bench of the device alone" prints_only "measured by device_a_bench: a"
unset CAPABILITIES

# A build folder that cannot be written to.
checkout
touch "$work/a file"
ASSAY_BUILD_DIR="$work/a file/build" call run
expect "a build folder that cannot be made ends with 9" exits 9
expect "a build folder that cannot be made is named" says "$work/a file/build cannot be written to"
expect "and the variable that names another" says "ASSAY_BUILD_DIR"

# Progress where there is no terminal.
checkout
BUILD_SECONDS=11 call run
expect "progress names the step" says "assay: building [3/9], 10 s"
expect "the time of a build is reported" says "assay: built in 1"

# Another ./assay that builds in the same folder.
if command -v flock >/dev/null; then
  checkout
  mkdir -p "$work/repo/build"
  (
    echo $BASHPID >"$work/repo/build/.assay-lock"
    exec 8>>"$work/repo/build/.assay-lock"
    flock 8
    touch "$work/locked"
    sleep 2
  ) &
  until [[ -e $work/locked ]]; do sleep 0.05; done
  call run
  expect "the lock of another is waited for" exits 0
  expect "the wait says for whom" says "waiting for another ./assay that builds in $work/repo/build (process $!)"
  wait
fi

# Through a symbolic link.
checkout
ln -s ../repo/assay "$work/elsewhere/door"
door=$work/elsewhere/door call list
expect "a link finds the checkout" called "^cmake -S $work/repo "

# Failures of the set-up end with 9 and show the log.
checkout
FAIL_CONFIGURE=1 call run
expect "a failed configuring ends with 9" exits 9
expect "a failed configuring is shown" says "broken configure"
call run
expect "and is tried again" exits 0
touch "$work/repo/reference/new.cc"
FAIL_BUILD=1 call run
expect "a failed build ends with 9" exits 9
expect "a failed build is shown" says "broken source"
expect "a failed build runs nothing" prints_only ""
call run
expect "a mended build runs" exits 0

# Packages.
packages() {
  checkout
  printf '%s\n' "# comment" "" "first-package command no-such-command" "second-package header no/such/header.h" \
    "present-package command bash" "wished-package header no/such/wish.h optional" >"$work/repo/cmake/packages.txt"
}
packages
call run
expect "without root or sudo: exit 9" exits 9
expect "without root or sudo: the line to run" says \
  "sudo apt-get install -y --no-install-recommends first-package second-package"
expect "without root or sudo: nothing is tried" never_called "^apt-get"
ASSAY_PACKAGES=any call run
expect "the list can be passed over" exits 0
packages
USER_ID=0 call run
expect "as root: installs" called "^apt-get .*install -y --no-install-recommends first-package second-package$"
expect "as root: updates the lists first" called "^apt-get .*update$"
expect "as root: wished packages by themselves" called "^apt-get .*install .*--no-install-recommends wished-package$"
expect "as root: without sudo" never_called "^sudo"
expect "as root: runs" prints "program in"
packages
SUDO=yes call run
expect "with sudo: installs" called "^sudo env DEBIAN_FRONTEND=noninteractive apt-get .*first-package"
packages
USER_ID=0 APT_STATUS=100 call run
expect "a failed installation ends with 9" exits 9
expect "a failed installation says what to run" says "please run: sudo apt-get install"
packages
sed -i '/^first\|^second/d' "$work/repo/cmake/packages.txt"
USER_ID=0 call run
expect "a wished package alone is not installed" never_called "^apt-get"

# Tests.
checkout
call test -R layout
expect "test builds everything" called "^cmake --build .* --parallel [0-9]* --target all$"
expect "test hands its arguments to ctest" called "^ctest --test-dir .* -R layout$"
expect "test ends with ctest's words" prints_only "all tests passed"
CTEST_STATUS=8 call test
expect "test passes ctest's exit code on" exits 8
FAIL_BUILD=1 call test
expect "test fails when the build does" exits 9
mkdir -p "$work/repo/.ci"
cp "$source/.ci/run" "$work/repo/.ci/"
CTEST_STATUS=8 door=$work/repo/.ci/run call
expect ".ci/run keeps the exit code" exits 8
door=$work/repo/.ci/run call -R layout
expect ".ci/run hands its arguments to ctest" called "^ctest --test-dir .* -R layout$"
expect ".ci/run builds device code for one architecture" called "^cmake -S .* -DASSAY_CUDA_ARCHITECTURES=90a-real -DASSAY_QUICK_DEVICE_CODE=ON$"
expect ".ci/run uses no sanitizers" never_called "--preset"
: >"$CALLS"
door=$work/repo/.ci/run call --long
expect ".ci/run --long succeeds" exits 0
for preset in asan tsan; do
  expect ".ci/run --long builds $preset" called "^cmake --build --preset $preset "
  expect ".ci/run --long runs the tests of $preset" called "^ctest --preset $preset "
done
expect ".ci/run --long judges the standard profile" prints "<run> <--backend> <reference> <--profile> <standard>"
expect "with each of both" test "$(grep -c '<standard>' "$work/out")" == 2

((failures == 0)) || exit 1
echo "front door: all as expected"
