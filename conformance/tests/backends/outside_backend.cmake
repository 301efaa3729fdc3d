# Copies the example backend out of the tree, builds it with backend.h alone, and judges it: as it is, and with faults
# planted in its source that must not pass.
# cmake -DSOURCE=... -DHEADER=... -DWORK=... -DASSAY=... -DC=... -DFLAGS=... -DGENERATOR=... -P outside_backend.cmake

include(${CMAKE_CURRENT_LIST_DIR}/expect.cmake)

# build(NAME [OLD NEW [OLD NEW]]): the example in ${WORK}/NAME, with each OLD replaced in its source.
function(build name)
  file(COPY ${SOURCE}/ DESTINATION ${WORK}/${name})
  file(READ ${WORK}/${name}/example_backend.c text)
  foreach(old IN ITEMS 1 3)
    if(ARGC GREATER old)
      math(EXPR new "${old} + 1")
      string(FIND "${text}" "${ARGV${old}}" place)
      if(place EQUAL -1)
        message(FATAL_ERROR "the example has no '${ARGV${old}}' to change")
      endif()
      string(REPLACE "${ARGV${old}}" "${ARGV${new}}" text "${text}")
    endif()
  endforeach()
  file(WRITE ${WORK}/${name}/example_backend.c "${text}")
  run(0 ${CMAKE_COMMAND} -S ${WORK}/${name} -B ${WORK}/${name}/build -G ${GENERATOR} -DCMAKE_C_COMPILER=${C}
        -DCMAKE_C_FLAGS=${FLAGS} -DASSAY_INCLUDE=${WORK}/include)
  run(0 ${CMAKE_COMMAND} --build ${WORK}/${name}/build)
endfunction()

file(REMOVE_RECURSE ${WORK})
file(COPY ${HEADER} DESTINATION ${WORK}/include/conformance)

build(whole)
run(0 ${ASSAY} run --backend ${WORK}/whole/build/libexample.so splits_to_offsets --profile smoke)
expect("libexample.so on host processor")
expect(": 9 passed, 0 failed")
foreach(fault IN ITEMS negative_split sum_overflow)
  run(0 ${ASSAY} repro "splits_to_offsets splits=3,0,5,9 stride=24 fault=${fault}" --backend ${WORK}/whole/build/libexample.so)
  expect(": 1 passed, 0 failed")
endforeach()
run(0 ${ASSAY} repro "splits_to_offsets splits=3,0,5 stride=24 contract=1" --backend ${WORK}/whole/build/libexample.so)
expect(": 1 passed, 0 failed")
run(0 ${ASSAY} run --backend ${WORK}/whole/build/libexample.so --profile smoke)
expect("0 failed")
expect("cases: the example has no op 'quantize'")
run(2 ${ASSAY} run --backend ${WORK}/whole/build/libexample.so --backend-options fast=1 splits_to_offsets --profile smoke)

build(off_by_one "i < groups" "i + 1 < groups")
run(1 ${ASSAY} run --backend ${WORK}/off_by_one/build/libexample.so splits_to_offsets --profile smoke)
expect("offsets i64 [6]")
expect("not written")
expect("assay repro 'splits_to_offsets splits=1,0,127,128,129' --backend")

build(misaligned "% sizeof(int64_t) != 0" "% sizeof(int64_t) > 8")
run(1 ${ASSAY} repro "splits_to_offsets splits=3,0,5 stride=24 contract=1" --backend ${WORK}/misaligned/build/libexample.so)
expect("with output offsets one byte past its address: returned 'ok': expected a refusal, and it changed memory")

build(no_check "if (!good_splits(splits, groups, stride))" "if (0)")
run(1 ${ASSAY} repro "splits_to_offsets splits=3,0,5,9 stride=24 fault=negative_split" --backend ${WORK}/no_check/build/libexample.so)
expect("with splits[0] = -1 (3 is right): returned 'ok', and so did the wait behind it")

# As a device does: the call is accepted, and the wait after it reports the fault, once or on every call.
set(refused [=[return refuse(context, ASSAY_INVALID_ARGUMENT, "negative, or past int64 in sum:", "splits")]=])
set(waits "/* all work is done when its call returns */")
build(late_report "${refused}" "return context->error[0] = 1, ASSAY_OK"
      "${waits}" "if (context->error[0] == 1) return refuse(context, ASSAY_FAILED, \"a fault in\", \"splits\");")
build(for_ever "${refused}" "return context->error[0] = 1, ASSAY_OK"
      "${waits}" "if (context->error[0] == 1) return ASSAY_FAILED;")
foreach(fault IN ITEMS negative_split sum_overflow)
  set(line "splits_to_offsets splits=3,0,5,9 stride=24 fault=${fault}")
  run(0 ${ASSAY} repro ${line} --backend ${WORK}/late_report/build/libexample.so)
  expect(": 1 passed, 0 failed")
  run(1 ${ASSAY} repro ${line} --backend ${WORK}/for_ever/build/libexample.so)
  expect("the right call, after one with splits[0] = ")
endforeach()

build(no_stride "+ stride * splits[i]" "+ splits[i]")
run(1 ${ASSAY} run --backend ${WORK}/no_stride/build/libexample.so splits_to_offsets --profile smoke)
expect("splits_to_offsets splits=4x5000000000 stride=7168")
expect("offsets i64 [5]")

# Refuses after it has written: a skip without proof.
build(late_refusal "const assay_status status = supports(context, call);"
      "((char*)call->outputs[0].data)[0] = 1; const assay_status status = supports(context, call);")
run(6 ${ASSAY} run --backend ${WORK}/late_refusal/build/libexample.so splits_to_offsets_2d --profile smoke)
expect("declared absent, but the call changed memory: offsets was written")
