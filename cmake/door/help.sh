# Part of ./assay: help, also where the program is not built.

usage() {
  cat <<'TEXT'
./assay VERB ...       set up if need be, then run the assay program: ./assay run judges the best backend present
./assay test ...       build everything and run every test; arguments go to ctest (-R NAME, -j N, ...)
./assay bench ...      build the benchmarks and run those whose names hold every word; ./assay bench --help
./assay build          set up and build the program, no more; with --all-architectures all of the project, with device code
                       for every architecture that it knows

Set-up installs the packages of cmake/packages.txt with apt when run as root or with sudo that asks for no password,
or else prints the line to run. It builds what is judged: device code only where a device is, for that device.

Environment of the set-up:
  ASSAY_BUILD_DIR      where to build (default: build/ beside this script)
  ASSAY_CMAKE_ARGS     more arguments to cmake, separated by spaces
  ASSAY_PACKAGES=any   do not look for packages; cmake finds what it needs or says what is missing

TEXT
  if [[ -x $program ]]; then
    "$program" --help
  else
    echo "Verbs of the program, which is not built yet (./assay build takes a minute or two):"
    verbs | while IFS=$'\t' read -r name text; do printf '  %-12s %s\n' "$name" "$text"; done
  fi
}

# The table of verbs in the program's source, a Verb{...} or {...} per line, however it is split into lines.
verb_table() {
  { tr '\n' ' ' <"$root/conformance/program/main.cc"; echo; } 2>/dev/null | sed 's/{ *"/\n&/g; s/" \+"//g'
}

# NAME, a tab, its line of help.
verbs() {
  verb_table | sed -n '/add_golden_/d; s/^{ *"\([a-z-]*\)", "\([^"]*\)", add_[a-z_]*}.*/\1\t\2/p'
  verb_table | tr '\n' ' ' | sed 's/add_subcommand/\n&/g' | sed -n 's/^add_subcommand("\([a-z-]*\)", "\([^"]*\)").*/\1\t\2/p'
}

# Of `golden`, a name each.
verbs_of_golden() { verb_table | sed -n 's/^{ *"\([a-z-]*\)", .*add_golden_.*/\1/p'; }

# refuse_unknown_verb VERB [WORD ...]: a slip in a fresh clone does not wait for a build that can only say so.
refuse_unknown_verb() {
  local known
  if [[ -x $program ]]; then return; fi
  known=$(verbs | cut -f 1) || known=''  # sources without the program's: it will say
  if [[ -z $known || $1 == -* ]]; then return; fi
  if ! grep -qxF -- "$1" <<<"$known"; then
    say "'$1' is no verb: expected build test bench ${known//$'\n'/ }"
    exit 2
  fi
  if [[ $1 != golden || ${2:-} == -* ]]; then return; fi
  known=$(verbs_of_golden) || known=''
  if [[ -z $known ]] || grep -qxF -- "${2:-}" <<<"$known"; then return; fi
  say "'${2:-}' is no verb of golden: expected ${known//$'\n'/ }"
  exit 2
}

# options_in FILE: name and help of each option that a source adds, however they are split into lines and string literals.
options_in() {
  { tr '\n' ' ' <"$1"; echo; } | sed 's/add_\(option\|flag\)/\n&/g; s/" \+"//g' |
    sed -n 's/^add_\(option\|flag\)[a-z_]*( *"\([^"]*\)",[^"]*"\([^"]*\)".*/\2\t\3/p' |
    while IFS=$'\t' read -r name text; do printf '  %-18s %s\n' "$name" "$text"; done
}

# help_of VERB ...: help builds nothing. The program's own where it is built, else what its sources say.
help_of() {
  local text file
  if [[ -x $program ]]; then exec "$program" "$@"; fi
  text=$(verbs | sed -n "s/^$1\t//p")
  if [[ -z $text ]]; then
    usage
    return
  fi
  echo "./assay $1: $text"
  file=$root/conformance/program/${1//-/_}.cc
  if [[ -e ${file%.cc}_options.cc ]]; then file=${file%.cc}_options.cc; fi  # a verb with many options has a file for them
  if [[ -e $file ]]; then
    echo
    echo "Options:"
    options_in "$file"
    local shared=$root/conformance/program/backend_options.h
    if grep -q add_judge_options "$file"; then options_in "$shared"; fi
    if grep -q add_backend_options "$file"; then options_in "$shared" | grep -e --backend; fi
    if grep -q add_table_options "$file"; then options_in "$shared" | grep -e --units -e --presets; fi
  fi
  echo
  echo "The program is not built yet: after ./assay build, which takes a minute or two, it prints the whole page itself."
}
