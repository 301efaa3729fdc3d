# python_with_h5py(RESULT): of the Pythons here the first that has numpy and h5py; where none has both the default one, whose test
# says what is missing; empty without any.
function(python_with_h5py result)
  find_package(Python3 COMPONENTS Interpreter)
  set(${result} "${Python3_EXECUTABLE}" PARENT_SCOPE)
  foreach(candidate IN ITEMS ${Python3_EXECUTABLE} /usr/bin/python3)
    execute_process(COMMAND ${candidate} -c "import numpy, h5py" RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
    if(status EQUAL 0)
      set(${result} ${candidate} PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()
