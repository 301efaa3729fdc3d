#!/bin/sh
# on_device.sh COMMAND ...: runs the command where it sees the device that CTest gave this test, and no other one:
# CTEST_RESOURCE_GROUP_0_GPUS=id:1,slots:1. An option of the backend would not do: merge refuses parts with different options.
id=${CTEST_RESOURCE_GROUP_0_GPUS:?CTest gave no device: expected ctest --resource-spec-file}
id=${id#id:}
export CUDA_VISIBLE_DEVICES="${id%%,*}"
echo "device $CUDA_VISIBLE_DEVICES"
exec "$@"
