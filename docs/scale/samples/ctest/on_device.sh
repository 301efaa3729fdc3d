#!/bin/sh
# on_device.sh assay run ...: runs it on the device that CTest gave this test, CTEST_RESOURCE_GROUP_0_GPUS=id:1,slots:1. An option of the
# backend would not do: merge refuses parts with different options.
id=${CTEST_RESOURCE_GROUP_0_GPUS:?CTest gave no device: expected ctest --resource-spec-file}
id=${id#id:}
exec "$@" --device "${id%%,*}"
