#!/usr/bin/env bash
# The front door in a copied checkout, with cmake, ctest, apt-get, id and sudo replaced by stand-ins that note how they
# were called. front_door_test.sh SOURCE WORK
# shellcheck disable=SC2016  # stand-ins expand their text when they run
set -uo pipefail
source=$1
work="$2/a path with spaces"
export CALLS=$work/calls MADE=$work/made
unset ASSAY_BUILD_DIR ASSAY_CMAKE_ARGS ASSAY_PACKAGES
failures=0

# A fresh checkout: the script, the list of packages, the folders it watches.
checkout() {
  rm -rf "$work"
  mkdir -p "$work/tools" "$work/repo/cmake" "$work/repo"/{reference,golden,conformance} "$work/elsewhere"
  cp "$source/assay" "$work/repo/"
  echo "needed-package command bash" >"$work/repo/cmake/packages.txt"
  touch "$work/repo/CMakeLists.txt"
  : >"$CALLS"
  cat >"$MADE" <<'TOOL'
#!/usr/bin/env bash
echo "program in $PWD:$(printf ' <%s>' "$@")"
[[ ${1:-} != fail ]] || exit 7
TOOL
  # Configuring notes the checkout in the cache; building makes the program.
  tool cmake 'folder=; root=; [[ $1 != --build ]] || folder=$2
    while (($#)); do case $1 in -S) root=$2 ;; -B) folder=$2 ;; esac; shift; done
    if [[ -n $root ]]; then [[ -z ${FAIL_CONFIGURE:-} ]] || { echo broken configure; exit 1; }
      echo "CMAKE_HOME_DIRECTORY:INTERNAL=$root" >"$folder/CMakeCache.txt"
    else [[ -z ${FAIL_BUILD:-} ]] || { echo broken source; exit 1; }
      mkdir -p "$folder/bin"; cp "$MADE" "$folder/bin/assay"; chmod +x "$folder/bin/assay"; fi'
  tool ctest 'echo "all tests passed"; exit ${CTEST_STATUS:-0}'
  tool apt-get 'exit ${APT_STATUS:-0}'
  tool sudo '[[ ${SUDO:-no} == yes ]] || exit 1; [[ $1 != -n ]] || shift; "$@"'
  tool id 'echo "${USER_ID:-1000}"'
  cd "$work/elsewhere" || exit 1
}

# tool NAME BODY: a stand-in that notes its call, then does BODY.
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

# Help and wrong usage build nothing.
checkout
call --help
expect "--help succeeds" exits 0
expect "--help names the set-up verbs" prints "./assay test"
expect "--help builds nothing" idle
call
expect "no verb is wrong usage" exits 2
expect "no verb shows the usage" says "./assay VERB"

# The first call sets up, the second does nothing, a newer source builds again.
checkout
call run --out "two words" ''
expect "the first run" exits 0
expect "arguments and folder reach the program" prints_only "program in $work/elsewhere: <run> <--out> <two words> <>"
expect "the first run configures" called "^cmake -S $work/repo -B $work/repo/build -DCMAKE_BUILD_TYPE=Release"
expect "the first run builds the program alone" called "^cmake --build .* --target assay$"
expect "nothing is installed" never_called "^apt-get"
: >"$CALLS"
call run
expect "the second run" prints "program in"
expect "the second run builds nothing" idle
sleep 0.02
touch "$work/repo/reference/new.cc"
call run
expect "a newer source is built" called "^cmake --build"
expect "a newer source needs no configuring" never_called "^cmake -S"
: >"$CALLS"
call fail
expect "the program's exit code is passed on" exits 7
call --help
expect "--help shows the program's help" prints "<--help>"

# Other arguments to cmake, another build folder, a moved checkout.
ASSAY_CMAKE_ARGS="-DA=1 -DB=2" call run
expect "new cmake arguments configure again" called "^cmake -S .* -DA=1 -DB=2$"
: >"$CALLS"
ASSAY_CMAKE_ARGS="-DA=1 -DB=2" call run
expect "the same cmake arguments do not" idle
ASSAY_BUILD_DIR="$work/other build" call run
expect "the build folder can be chosen" test -x "$work/other build/bin/assay"
mv "$work/repo" "$work/moved"
touch "$work/moved/reference/newer.cc"
: >"$CALLS"
door=$work/moved/assay call run
expect "a moved checkout runs" exits 0
expect "a moved checkout configures afresh" called "^cmake -S $work/moved .*--fresh"

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
expect "test builds everything" called "^cmake --build .* --parallel [0-9]*$"
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

((failures == 0)) || exit 1
echo "front door: all as expected"
