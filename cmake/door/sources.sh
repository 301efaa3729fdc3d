# Part of ./assay: whether the times of the sources can be trusted, by what they hold.
#
# The build system compares times. A source that tar, rsync or a checkout gives an older time than its object has would not be
# compiled, so the digest of every source is kept in the build folder, and what holds something else than when the build system
# last saw it is touched, unless it is newer than that already. `.assay-sources` is the list of sizes and times that goes with
# the digests, so that nothing is read where nothing changed: the time of the last change of an inode cannot be set by hand.

source_folders=(assay CMakeLists.txt cmake reference device golden conformance bench)

# The sources with their sizes and times; fixtures are no sources. Folders that are not there are passed over.
list_sources() {
  (cd "$root" && find -L "${source_folders[@]}" -type f ! -name '*.h5' -printf '%p %s %T@ %C@\n' 2>/dev/null) || true
}

digests() {
  (cd "$root" && find -L "${source_folders[@]}" -type f ! -name '*.h5' -print0 2>/dev/null | LC_ALL=C sort -z | xargs -0 sha256sum) || true
}

# Brings the times of the sources in line with their contents; the build follows.
show_sources() {
  local now path new="$build/.assay-digests.new" trusted=$build/.assay-build-ended
  now=$(list_sources)
  if [[ -e $build/.assay-sources && $(<"$build/.assay-sources") == "$now" ]]; then return; fi
  digests >"$new"
  if [[ -e $build/.assay-digests ]]; then
    while IFS= read -r path; do
      path=$root/${path:66}
      if [[ -e $trusted && $path -nt $trusted ]]; then continue; fi
      touch -c "$path" 2>/dev/null || rebuild_all "$path"
    done < <(LC_ALL=C comm -13 <(LC_ALL=C sort "$build/.assay-digests") <(LC_ALL=C sort "$new"))
    now=$(list_sources)
  fi
  rm -f "$build/.assay-build-ended"  # set again when the build that begins now has ended
  mv "$new" "$build/.assay-digests"
  echo "$now" >"$build/.assay-sources" || fail "$build cannot be written to"
}

# A source whose time cannot be set.
rebuild_all() {
  say "$1 changed, but its time cannot be set: building everything again"
  cmake --build "$build" --target clean >/dev/null 2>&1 </dev/null 9>&- || true
}

build_ended() {  # build_ended well | failed
  : >"$build/.assay-build-ended"
  if [[ $1 == well ]]; then cp "$build/.assay-digests" "$build/.assay-built"; else rm -f "$build/.assay-built"; fi
}

# Whether the program was built from these very contents.
sources_are_built() { [[ -e $build/.assay-built && $(<"$build/.assay-built") == "$(digests)" ]]; }
