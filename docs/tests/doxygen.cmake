# Makes the reference of the public headers elsewhere than Doxyfile says; any warning fails.
# cmake -DDOXYGEN=... -DSOURCE=... -DOUTPUT=... -P doxygen.cmake
file(READ ${SOURCE}/Doxyfile settings)
file(MAKE_DIRECTORY ${OUTPUT})
file(WRITE ${OUTPUT}/Doxyfile "${settings}\nOUTPUT_DIRECTORY = ${OUTPUT}\n")
execute_process(COMMAND ${DOXYGEN} ${OUTPUT}/Doxyfile WORKING_DIRECTORY ${SOURCE} RESULT_VARIABLE status ERROR_VARIABLE warnings)
if(NOT status EQUAL 0 OR NOT EXISTS ${OUTPUT}/html/index.html)
  message(FATAL_ERROR "doxygen ends with ${status}\n${warnings}")
endif()
