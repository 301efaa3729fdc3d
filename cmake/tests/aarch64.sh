#!/usr/bin/env bash
# The reference for aarch64: cross-built, and an outside project that links it run under qemu. Hosted CI runs it; it needs
# g++-aarch64-linux-gnu, qemu-user and libeigen3-dev.
# aarch64.sh SOURCE WORK
set -euo pipefail
source=$1 work=$2
cmake -S "$source" -B "$work" -DCMAKE_BUILD_TYPE=Release -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
  -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ -DASSAY_CUDA=OFF \
  -DASSAY_BUILD_CONFORMANCE=OFF -DASSAY_BUILD_TESTS=OFF -DASSAY_BUILD_BENCH=OFF
cmake --build "$work" --parallel
aarch64-linux-gnu-g++ -std=c++20 -ffp-contract=off -I "$source" "$source/cmake/tests/consumer/main.cc" \
  "$work/reference/libassay_reference.a" -static -pthread -o "$work/consumer"
printed=$(qemu-aarch64 "$work/consumer")
expected="0 1 3 4 4 16 8 24 12 "
[[ "$printed " == "$expected"* ]] || { echo "aarch64 prints '$printed': expected '$expected'"; exit 1; }
echo "aarch64: as expected"
