# Installs assay::reference into an empty prefix, builds the project of consumer/ against it as an outside user would, and runs
# it.
# cmake -DBUILD=... -DWORK=... -DCONSUMER=... -DCXX=... -DFLAGS=... -DGENERATOR=... -DNM=... -P outside_project.cmake

include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)

file(REMOVE_RECURSE ${WORK})
file(COPY ${CONSUMER}/ DESTINATION "${WORK}/source of a stranger")
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix --component reference)
run(${CMAKE_COMMAND} -S "${WORK}/source of a stranger" -B ${WORK}/build -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${WORK}/prefix
    -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_FLAGS=${FLAGS} -DCMAKE_DISABLE_FIND_PACKAGE_Eigen3=ON)
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/consumer)
if(NOT output STREQUAL "0 1 3 4 4 16 8 24 12 ")
  message(FATAL_ERROR "the consumer printed '${output}'")
endif()

# Two builds of the library in one process do not interfere: a shared library that links it exports none of its symbols.
run(${NM} -D --defined-only ${WORK}/build/libplugin.so)
if(NOT output MATCHES " T plugin_entry\n")
  message(FATAL_ERROR "the plug-in does not export its function: ${output}")
endif()
string(REGEX MATCHALL "[^\n]*5assay[^\n]*" exported "${output}")
list(LENGTH exported count)
if(NOT count EQUAL 0)
  message(FATAL_ERROR "the plug-in exports ${count} symbols of the library: ${exported}")
endif()

# The package may be moved: nothing in it names a folder of the machine that built it.
file(GLOB_RECURSE configs ${WORK}/prefix/*.cmake)
foreach(config IN LISTS configs)
  file(READ ${config} text)
  string(FIND "${text}" ${BUILD} place)
  if(NOT place EQUAL -1)
    message(FATAL_ERROR "${config} names the build folder")
  endif()
endforeach()
