# Copies the example backend out of the tree, builds it with backend.h alone, and judges it: as it is, and with faults
# planted in its source that must not pass.
# cmake -DSOURCE=... -DHEADER=... -DWORK=... -DASSAY=... -DC=... -DFLAGS=... -DGENERATOR=... -P outside_backend.cmake

include(${CMAKE_CURRENT_LIST_DIR}/expect.cmake)

# build(NAME [OLD NEW]): the example in ${WORK}/NAME, with OLD replaced in its source.
function(build name)
  file(COPY ${SOURCE}/ DESTINATION ${WORK}/${name})
  if(ARGC GREATER 1)
    file(READ ${WORK}/${name}/example_backend.c text)
    string(FIND "${text}" "${ARGV1}" place)
    if(place EQUAL -1)
      message(FATAL_ERROR "the example has no '${ARGV1}' to change")
    endif()
    string(REPLACE "${ARGV1}" "${ARGV2}" text "${text}")
    file(WRITE ${WORK}/${name}/example_backend.c "${text}")
  endif()
  run(0 ${CMAKE_COMMAND} -S ${WORK}/${name} -B ${WORK}/${name}/build -G ${GENERATOR} -DCMAKE_C_COMPILER=${C}
        -DCMAKE_C_FLAGS=${FLAGS} -DASSAY_INCLUDE=${WORK}/include)
  run(0 ${CMAKE_COMMAND} --build ${WORK}/${name}/build)
endfunction()

file(REMOVE_RECURSE ${WORK})
file(COPY ${HEADER} DESTINATION ${WORK}/include/conformance)

build(whole)
run(0 ${ASSAY} run --backend ${WORK}/whole/build/libexample.so splits_to_offsets --profile smoke)
expect("libexample.so on host processor")
expect(": 8 passed, 0 failed")
run(0 ${ASSAY} run --backend ${WORK}/whole/build/libexample.so --profile smoke)
expect("0 failed")
expect("cases: the example has no op 'quantize'")
run(2 ${ASSAY} run --backend ${WORK}/whole/build/libexample.so --backend-options fast=1 splits_to_offsets --profile smoke)

build(off_by_one "i < groups" "i + 1 < groups")
run(1 ${ASSAY} run --backend ${WORK}/off_by_one/build/libexample.so splits_to_offsets --profile smoke)
expect("offsets i64 [6]")
expect("not written")
expect("assay repro 'splits_to_offsets splits=1,0,127,128,129' --backend")

build(no_stride "+ stride * splits[i]" "+ splits[i]")
run(1 ${ASSAY} run --backend ${WORK}/no_stride/build/libexample.so splits_to_offsets --profile smoke)
expect("splits_to_offsets splits=4x5000000000 stride=7168")
expect("offsets i64 [5]")

# Refuses, but has written by then: a skip without proof.
build(late_refusal "const assay_status status = supports(context, call);"
      "((char*)call->outputs[0].data)[0] = 1; const assay_status status = supports(context, call);")
run(6 ${ASSAY} run --backend ${WORK}/late_refusal/build/libexample.so splits_to_offsets_2d --profile smoke)
expect("declared absent, but the call changed memory: offsets was written")
