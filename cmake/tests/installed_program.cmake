# Installs the program into an empty prefix and runs it there: it finds the fixtures that were installed with it.
# cmake -DBUILD=... -DWORK=... -P installed_program.cmake
file(REMOVE_RECURSE ${WORK})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix --component conformance RESULT_VARIABLE status OUTPUT_QUIET)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "the installation ends with ${status}")
endif()
unset(ENV{ASSAY_GOLDEN})

# expect(STATUS TEXT STREAM WORDS...): the installed program ends with STATUS, and STREAM (out or err) holds TEXT.
function(expect wanted text stream)
  execute_process(COMMAND ${WORK}/prefix/bin/assay ${ARGN} WORKING_DIRECTORY ${WORK} RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE err)
  string(FIND "${${stream}}" "${text}" place)
  if(NOT status EQUAL wanted OR place EQUAL -1)
    message(FATAL_ERROR "assay ${ARGN}\nends with ${status}, expected ${wanted} and '${text}' in std${stream}\n${out}\n${err}")
  endif()
endfunction()

expect(0 " 1 fixture file" err run offsets.h5 --profile smoke --backend reference)
expect(0 "${WORK}/prefix/share/assay/golden, every digest right" out doctor)
if(NOT EXISTS ${WORK}/prefix/share/assay/golden/cases/offsets.txt OR NOT EXISTS ${WORK}/prefix/share/assay/report.schema.json)
  message(FATAL_ERROR "the lists of cases or the schema of reports are not installed")
endif()
file(REMOVE ${WORK}/prefix/share/assay/golden/swizzle.h5)
expect(9 "share/assay/golden/swizzle.h5: no such file" err run --profile smoke --backend reference)
