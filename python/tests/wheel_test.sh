#!/usr/bin/env bash
# `pip wheel .` as a user does it, then the wheel in a fresh environment: it imports, quantizes and judges.
#
#   wheel_test.sh PYTHON SOURCE FOLDER
set -uo pipefail
python=$1 source=$2 folder=$3
# shellcheck source=/dev/null
source "$source/python/tests/environment.sh"
environment "$python" "$folder/environment" numpy ml_dtypes
rm -rf "$folder/wheels"
CMAKE_BUILD_PARALLEL_LEVEL=2 "$folder/environment/bin/python" -m pip wheel --quiet --no-deps -w "$folder/wheels" "$source" || exit 1
"$folder/environment/bin/python" -m pip install --quiet --no-deps --force-reinstall "$folder"/wheels/assay-*.whl || exit 1
cd "$folder" || exit 1
"$folder/environment/bin/python" - <<'PROGRAM'
import sys
import assay, numpy
assert not {"torch", "jax", "cupy", "h5py"} & set(sys.modules)
codes, scale_inv = assay.quantize(numpy.full((4, 32), 448, numpy.float32), recipe="mxfp8")
assert (codes == 0x7E).all() and (scale_inv[:4, 0] == 127).all()
result = assay.check(lambda t: None, "splits_to_offsets splits=3,4")
assert not result.passed and "not written" in str(result), result
PROGRAM
