#!/usr/bin/env bash
# The script ./assay with a real build system and compiler, on a project of one file: whatever is changed, the program that runs
# is that of the present sources. front_door_build_test.sh SOURCE WORK
set -uo pipefail
source=$1
work="$2/a path with spaces"
unset ASSAY_BUILD_DIR ASSAY_CMAKE_ARGS CC CXX CFLAGS CMAKE_GENERATOR CMAKE_BUILD_TYPE CCACHE_BASEDIR
export ASSAY_PACKAGES=any
failures=0

rm -rf "$work"
mkdir -p "$work/repo/cmake" "$work/repo/device" "$work/tools"
cp "$source/assay" "$work/repo/"
cp -r "$source/cmake/door" "$work/repo/cmake/"
cat >"$work/repo/CMakeLists.txt" <<'TEXT'
cmake_minimum_required(VERSION 3.25)
project(assay LANGUAGES C)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
add_executable(assay device/kernel.c)
target_compile_definitions(assay PRIVATE PLACE="${PROJECT_SOURCE_DIR}")
TEXT
kernel() {  # kernel VALUE [TIME]: a kernel that prints VALUE, with this time of change
  printf '#include <stdio.h>\n#ifndef MADE_BY\n#define MADE_BY "cc"\n#endif\nint main(void) { puts(PLACE " " MADE_BY " %s"); }\n' "$1" >"$repo/device/kernel.c"
  [[ -z ${2:-} ]] || touch -d "$2" "$repo/device/kernel.c"
}
call() {
  out=$("$repo/assay" run 2>"$work/err" </dev/null)
  status=$?
}
expect() {  # expect WHAT TEXT
  [[ $out == "$2" && $status == 0 ]] && return
  failures=$((failures + 1))
  printf 'FAILED: %s\n  want   %s\n  got    %s\n  status %s\n  stderr %s\n' "$1" "$2" "$out" "$status" "$(<"$work/err")"
}

repo=$work/repo
kernel 1
call
expect "a first build" "$repo cc 1"
sleep 1
kernel 2
call
expect "a kernel edited under device/" "$repo cc 2"
kernel 3 "2001-01-01"
call
expect "a kernel with an older time, as tar gives it" "$repo cc 3"
kernel 4 "2001-01-01"
call
expect "other contents of the same size and time" "$repo cc 4"
first=$(stat -c %Y "$repo/build/bin/assay")
sleep 1
touch -d "2001-01-01" "$repo/device/kernel.c"
call
expect "the same contents" "$repo cc 4"
[[ $(stat -c %Y "$repo/build/bin/assay") == "$first" ]] || { echo "FAILED: an older time alone builds nothing"; failures=$((failures + 1)); }

# A failed build counts as well: the sources from before it are rebuilt.
printf 'broken\n' >"$repo/device/kernel.c"
call
[[ $status == 9 ]] || { echo "FAILED: a broken source ends with $status, want 9"; failures=$((failures + 1)); }
kernel 5 "2001-01-01"
call
expect "after a failed build, an older time" "$repo cc 5"

# A copied checkout, with its build folder.
cp -a "$repo" "$work/copy"
repo=$work/copy
call
expect "a copied checkout runs its own program" "$repo cc 5"
kernel 6 "2001-01-01"
call
expect "a change in the copy" "$repo cc 6"
repo=$work/repo
call
expect "the original is left alone" "$repo cc 5"

# Another compiler. It also leaves a daemon running, which must not keep the lock.
cat >"$work/tools/other-cc" <<'TEXT'
#!/usr/bin/env bash
sleep 60 >/dev/null 2>&1 </dev/null &
echo $! >>"$DAEMONS"
exec cc -DMADE_BY='"other-cc"' "$@"
TEXT
chmod +x "$work/tools/other-cc"
export DAEMONS=$work/daemons PATH=$work/tools:$PATH
export CC=other-cc
call
expect "another compiler builds anew" "$repo other-cc 5"
SECONDS=0
call
expect "with a daemon about" "$repo other-cc 5"
((SECONDS < 30)) || { echo "FAILED: a daemon of the compiler keeps the lock"; failures=$((failures + 1)); }
while read -r daemon; do kill "$daemon" 2>/dev/null; done <"$DAEMONS"

# A build folder that cannot be written to: its program runs as long as it matches the sources. Root may write everywhere, so
# another user runs this test.
unset CC
if (($(id -u) == 0)); then
  repo=$(mktemp -d)/repo
  cp -a "$work/repo" "$repo"
  chmod -R a+rX "$(dirname "$repo")"
  as_reader=(setpriv --reuid=65534 --regid=65534 --clear-groups)
else
  as_reader=()
fi
call
expect "back to the first compiler" "$repo cc 5"
((${#as_reader[@]})) || chmod a-w "$repo/build"
reader() {
  out=$("${as_reader[@]}" "$repo/assay" run 2>"$work/err" </dev/null)
  status=$?
}
reader
expect "a folder without permission to write" "$repo cc 5"
kernel 7
reader
if ((status != 9)) || ! grep -q "is not that of these sources" "$work/err"; then
  echo "FAILED: a stale program in such a folder: status $status, $(<"$work/err")"
  failures=$((failures + 1))
fi
chmod u+w "$repo/build"
[[ $repo == "$work"/* ]] || rm -rf "$(dirname "$repo")"

((failures == 0)) || exit 1
echo "front door with a build system: all as expected"
