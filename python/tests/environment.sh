# Part of the tests: environments with what they need.

skip() {
  echo "SKIPPED: $*"
  exit 77
}

# environment PYTHON FOLDER PACKAGE...: makes FOLDER an environment that has the packages. It is kept from run to run.
environment() {
  local interpreter=$1 folder=$2 wanted log=$2.log
  shift 2
  wanted="$("$interpreter" -c 'import sys; print(sys.version)') $*"
  if [[ -e $folder/.complete && $(<"$folder/.complete") == "$wanted" ]]; then return; fi
  "$interpreter" -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' ||
    skip "$interpreter has no Python.h (Debian has it in python3-dev)"
  rm -rf "$folder"
  mkdir -p "$(dirname "$folder")"
  "$interpreter" -m venv "$folder" >"$log" 2>&1 || skip "no environment can be made: $(tail -n 1 "$log") (Debian has it in python3-venv)"
  "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --retries 1 "$@" >"$log" 2>&1 ||
    skip "pip could not install $*: $(grep -m 1 ERROR "$log" || tail -n 1 "$log")"
  echo "$wanted" >"$folder/.complete"
}
