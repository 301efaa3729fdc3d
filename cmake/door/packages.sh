# Part of ./assay: the packages of cmake/packages.txt, with apt.

found() {  # found command NAME | found header PATH
  local folder
  if [[ $1 == command ]]; then
    command -v "$2" >/dev/null
    return
  fi
  for folder in /usr/include /usr/local/include; do
    if [[ -e $folder/$2 ]]; then return 0; fi
  done
  return 1
}

install_packages() {
  local package kind name optional as_root=()
  local needed=() wished=()
  while read -r package kind name optional; do
    if [[ -z $package || $package == \#* ]] || found "$kind" "$name"; then continue; fi
    if [[ $optional == optional ]]; then wished+=("$package"); else needed+=("$package"); fi
  done <"$root/cmake/packages.txt"
  ((${#needed[@]})) || return 0

  local line="apt-get install -y --no-install-recommends ${needed[*]}"
  command -v apt-get >/dev/null || fail "these Debian packages, or what holds the same here, are missing: ${needed[*]}"
  if (($(id -u) != 0)); then
    if ! sudo -n true 2>/dev/null; then
      fail "packages are missing; please run: sudo $line"
    fi
    as_root=(sudo)
  fi
  say "installing ${needed[*]}"
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120)
  local install=("${apt[@]}" install -y --no-install-recommends)
  quietly "reading the lists of packages" "$build/packages.log" "${apt[@]}" update || say "apt-get update failed; trying with the lists at hand"
  quietly "installing" "$build/packages.log" "${install[@]}" "${needed[@]}" || fail "could not install; please run: sudo $line"
  for package in "${wished[@]}"; do
    "${install[@]}" "$package" >>"$build/packages.log" 2>&1 </dev/null 9>&- || true
  done
}
