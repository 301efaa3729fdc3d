# Installs the component device alone into an empty prefix, builds the project of device_consumer/ against it, runs it.
# cmake -DBUILD=... -DWORK=... -DCONSUMER=... -DCXX=... -DGENERATOR=... -P device_project.cmake
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)

file(REMOVE_RECURSE ${WORK})
file(COPY ${CONSUMER}/ DESTINATION ${WORK}/source)
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix --component device)
run(${CMAKE_COMMAND} -S ${WORK}/source -B ${WORK}/build -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${WORK}/prefix
    -DCMAKE_CXX_COMPILER=${CXX} -DHEADERS=${WORK}/prefix/include/assay)
run(${CMAKE_COMMAND} --build ${WORK}/build)
execute_process(COMMAND ${WORK}/build/train OUTPUT_VARIABLE output RESULT_VARIABLE status)
if(status EQUAL 9)
  message(STATUS "built and linked; not run: ${output}")
elseif(NOT status EQUAL 0 OR NOT output STREQUAL "equal by bits\n")
  message(FATAL_ERROR "the trainer ends with ${status}: ${output}")
endif()
message(STATUS "the trainer: ${output}")

# Internal headers are not installed.
file(GLOB_RECURSE internal ${WORK}/prefix/include/assay/device/*.cuh ${WORK}/prefix/include/assay/device/*launch*)
if(internal)
  message(FATAL_ERROR "internal headers are installed: ${internal}")
endif()
