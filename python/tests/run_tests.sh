#!/usr/bin/env bash
# Installs the package into an environment of its own, with the libraries of a build, and runs its tests.
#
#   run_tests.sh PYTHON SOURCE BUILD ENVIRONMENT PROGRAM [PYTEST ARGUMENTS]
set -uo pipefail
python=$1 source=$2 build=$3 environment=$4 program=$5
shift 5
# shellcheck source=/dev/null
source "$source/python/tests/environment.sh"
environment "$python" "$environment" scikit-build-core nanobind ninja numpy ml_dtypes pytest pytest-xdist hypothesis apache-tvm-ffi
export CMAKE_BUILD_PARALLEL_LEVEL=2
"$environment/bin/python" -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --force-reinstall \
  --config-settings=cmake.source-dir=python --config-settings=cmake.define.ASSAY_BUILD="$build" \
  --config-settings=build-dir="$environment/extension" "$source" || exit 1
export ASSAY_PROGRAM=$program
cd "$environment" || exit 1
exec "$environment/bin/python" -m pytest -q -p no:cacheprovider "$source/python/tests" "$source/conformance/adapters/tests" "$@"
