# Part of ./assay: what a long command is doing, and how far it is.

# quietly WHAT LOG COMMAND...: output goes to LOG. A terminal sees the last progress line, other readers one every ten
# seconds, and everyone the end of a failure. The command is a direct child in the foreground: Ctrl-C reaches it, and what it
# leaves behind holds nothing of this script open.
quietly() {
  local what=$1 log=$2 status=0 printer
  shift 2
  : >"$log" || fail "$log cannot be written"
  show_progress "$what" "$log" 9>&- &
  printer=$!
  "$@" >"$log" 2>&1 </dev/null 9>&- || status=$?
  kill "$printer" 2>/dev/null || true
  wait "$printer" 2>/dev/null || true
  if [[ -t 2 ]]; then printf '\r\033[K' >&2; fi
  ((status == 0)) || tail -n 60 "$log" >&2
  return "$status"
}

# Runs until it is ended, or the script is gone. `read` on a pipe without a writer sleeps without a child process.
show_progress() {
  local begun=$SECONDS every=10 last line width nothing
  trap - EXIT
  exec {nothing}<> <(:)
  if [[ -t 2 ]]; then every=1; fi
  last=$SECONDS
  width=$(tput cols 2>/dev/null || echo 80)
  while kill -0 $$ 2>/dev/null; do
    read -rt 0.5 -u "$nothing" line || true
    if ((SECONDS - last < every)); then continue; fi
    last=$SECONDS
    line=$(tail -c 4000 "$2" 2>/dev/null | grep '^\[' | tail -n 1) || line=
    if [[ -t 2 ]]; then
      printf '\r\033[K%s' "${line:0:width-1}" >&2
    else
      echo "assay: $1${line:+ ${line%%]*}]}, $((SECONDS - begun)) s" >&2
    fi
  done
}
