# Part of ./assay: what is configured, and when that must happen again.

# `device_code` is the device code to build: none, all (the project's own list), given (the user's arguments say it, or a
# configuration made by hand), or architectures separated by blanks, with the word `quick` where no device runs the code: it is
# compiled with little optimization, in a third of the time.

# Everything that the configuration depends on, as text: arguments, the environment that cmake reads, the compilers themselves.
configuration() {
  local name compilers=() path
  echo "cmake ${cmake_args[*]}"
  for name in CC CXX CUDACXX CUDAHOSTCXX CFLAGS CXXFLAGS CUDAFLAGS LDFLAGS CUDA_PATH CMAKE_PREFIX_PATH CMAKE_GENERATOR CMAKE_BUILD_TYPE \
    CMAKE_C_COMPILER_LAUNCHER CMAKE_CXX_COMPILER_LAUNCHER CMAKE_CUDA_COMPILER_LAUNCHER; do
    if [[ -n ${!name:-} ]]; then echo "$name=${!name}"; fi
  done
  for name in "${CC:-cc}" "${CXX:-c++}" "${CUDACXX:-nvcc}"; do
    path=$(type -P "${name%% *}" || true)
    if [[ -n $path ]]; then compilers+=("$path"); fi
  done
  if ((${#compilers[@]})); then stat -L -c '%n %s %Y' "${compilers[@]}"; fi
}

device_part() { echo "device code: $device_code"; }

configured() {
  [[ -e $build/.assay-configured && $(<"$build/.assay-configured") == "$(configuration; device_part)" ]] && in_place
}

# Whether the build folder is where it was made, for this checkout.
in_place() {
  local line made_in=
  while IFS= read -r line; do
    if [[ $line == CMAKE_CACHEFILE_DIR:INTERNAL=* ]]; then made_in=${line#*=}; fi
  done < <(grep -s '^CMAKE_CACHEFILE_DIR' "$build/CMakeCache.txt")
  [[ $made_in -ef $build ]] && grep -qsxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$build/CMakeCache.txt"
}

# The compute capabilities of the devices here, one a line without the dot. Without nvidia-smi the CUDA compiler knows them too.
capabilities() {
  local found nvcc
  found=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | tr -d ' .' || true)
  if [[ -z $found ]] && compgen -G '/dev/nvidia[0-9]*' >/dev/null; then
    nvcc=$(readlink -f "$(type -P "${CUDACXX:-nvcc}" || echo /usr/local/cuda/bin/nvcc)")
    found=$("$(dirname "$nvcc")/__nvcc_device_query" 2>/dev/null | tr ',' '\n' || true)
  fi
  grep -x '[0-9]\+' <<<"$found" | sort -u || true
}

# What to build for these devices, as CMAKE_CUDA_ARCHITECTURES has it. Nothing where there is none that device/ runs on.
present_architectures() {
  local capability
  while read -r capability; do
    if ((capability < 80)); then
      say "a device of compute capability ${capability%?}.${capability: -1} is here: device code needs 8.0 or more, and is not built for it"
    elif ((capability >= 90)); then
      echo "${capability}a-real"  # instructions of this very architecture are used
    else
      echo "$capability-real"
    fi
  done < <(capabilities)
}

# Device code is built where a device is, for that device; for one architecture where everything is built; and not at all where
# nothing here can run it. What was built once stays: a change of mind would build the program twice.
choose_device_code() {  # choose_device_code TARGET
  local before=none devices known architecture
  if [[ " ${cmake_args[*]}" == *" -DASSAY_CUDA"* || " ${cmake_args[*]}" == *" -DCMAKE_CUDA_ARCHITECTURES"* ]]; then device_code=given; fi
  if [[ $device_code == given ]]; then return; fi
  if [[ ! -e $build/.assay-configured && -e $build/CMakeCache.txt ]] && in_place; then
    device_code=given
    return
  fi
  if [[ -e $build/.assay-configured ]] && grep -qxF "cmake ${cmake_args[*]}" "$build/.assay-configured"; then
    before=$(sed -n 's/^device code: //p' "$build/.assay-configured")
  fi
  if [[ $device_code == all || $before == all || $before == given ]]; then
    device_code=${device_code:-$before}
    return
  fi
  # Asking the driver can take a second: its answer is kept while the same devices are there.
  devices=$(compgen -G '/dev/nvidia[0-9]*' || true; compgen -G '/proc/driver/nvidia/gpus/*' || true; type -P nvidia-smi nvcc || true)
  known=$build/.assay-devices
  if [[ ! -e $known || $(head -n -1 "$known") != "$devices" ]]; then
    { echo "$devices"; present_architectures | tr '\n' ' '; echo; } >"$known.new"
    mv "$known.new" "$known"
  fi
  device_code=$(tail -n 1 "$known")
  if [[ -n ${device_code// /} ]]; then
    before=${before/quick/}
  elif [[ $1 == all && $before == none ]]; then
    device_code="90a-real quick"
  fi
  if [[ $before != none ]]; then
    for architecture in $before; do
      if [[ " $device_code " != *" $architecture "* ]]; then device_code+=" $architecture"; fi
    done
  fi
  device_code=$(tr ' ' '\n' <<<"$device_code" | sed '/^$/d' | sort -u | tr '\n' ' ')
  device_code=${device_code% }
  device_code=${device_code:-none}
}

configure() {
  local arguments=(-S "$root" -B "$build") fresh=no
  if [[ ! -e $build/CMakeCache.txt ]]; then
    say "configuring and building in $build; the first time takes minutes"
    fresh=yes
  elif ! in_place; then
    say "configuring afresh: $build was made for another place"
    arguments+=(--fresh)
    fresh=yes
  elif [[ -e $build/.assay-configured ]]; then
    say "configuring again: arguments, compilers or devices have changed"
    arguments+=(--fresh)  # the cache would keep what is no longer asked for
    fresh=yes
  fi
  if [[ $fresh == yes ]]; then
    arguments+=(-DCMAKE_BUILD_TYPE="${CMAKE_BUILD_TYPE:-Release}" -DASSAY_UNITY=ON)
    if [[ -z ${CMAKE_GENERATOR:-} ]] && command -v ninja >/dev/null; then arguments+=(-G Ninja); fi
  fi
  case $device_code in
    given | all) ;;
    none) arguments+=(-DASSAY_CUDA=OFF) ;;
    *" quick") arguments+=("-DASSAY_CUDA_ARCHITECTURES=$(sed 's/ quick$//; s/ /;/g' <<<"$device_code")" -DASSAY_QUICK_DEVICE_CODE=ON) ;;
    *) arguments+=("-DASSAY_CUDA_ARCHITECTURES=${device_code// /;}") ;;
  esac
  rm -f "$build/.assay-configured"
  quietly configuring "$build/configure.log" cmake "${arguments[@]}" "${cmake_args[@]}" ||
    fail "could not configure; the whole log is $build/configure.log"
  { configuration; device_part; } >"$build/.assay-configured"
}
