# Installs every component into an empty prefix. Each installed header compiles alone: as C++20, and the interface of backends
# as strict C99 too. Exactly the public headers are installed, and no header includes one that is not.
# cmake -DBUILD=... -DSOURCE=... -DWORK=... -DCXX=... -DC=... -P installed_headers.cmake
file(REMOVE_RECURSE ${WORK})
foreach(component IN ITEMS reference conformance device)
  execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix --component ${component}
                  RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE errors)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "the installation of ${component} ends with ${status}\n${errors}")
  endif()
endforeach()
set(root ${WORK}/prefix/include/assay)

# compiles(HEADER COMPILER FLAGS...): twice included, by itself.
function(compiles header compiler)
  file(WRITE ${WORK}/alone.txt "#include <${header}>\n#include <${header}>\nint main(void) { return 0; }\n")
  execute_process(COMMAND ${compiler} ${ARGN} -Wall -Wextra -Werror -fsyntax-only -I ${root} ${WORK}/alone.txt
                  RESULT_VARIABLE status ERROR_VARIABLE errors)
  if(NOT status EQUAL 0)
    string(APPEND wrong "${header} does not compile alone:\n${errors}\n")
    set(wrong "${wrong}" PARENT_SCOPE)
  endif()
endfunction()

set(wrong "")
file(GLOB_RECURSE headers RELATIVE ${root} ${root}/*)
list(LENGTH headers count)
if(count LESS 20)
  message(FATAL_ERROR "only ${count} headers are installed: ${headers}")
endif()
foreach(header IN LISTS headers)
  if(NOT header MATCHES "^(reference|device)/.*[.]h$" AND NOT header STREQUAL conformance/backend.h)
    string(APPEND wrong "${header} is installed, and is no public header\n")
    continue()
  endif()
  compiles(${header} ${CXX} -x c++ -std=c++20)
endforeach()
compiles(conformance/backend.h ${C} -x c -std=c99 -pedantic)
compiles(conformance/backend.h ${C} -x c -std=c11 -pedantic)
if(wrong)
  message(FATAL_ERROR "${wrong}")
endif()

# A header of the reference that nothing outside it and no other installed header includes is internal.
execute_process(COMMAND grep -rhoE "^#include [\"<]reference/[^\">]+" ${SOURCE}/device ${SOURCE}/conformance ${SOURCE}/golden ${SOURCE}/bench
                        ${SOURCE}/reference/tests ${root}
                OUTPUT_VARIABLE included RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "no header of the reference is included anywhere")
endif()
foreach(header IN LISTS headers)
  string(FIND "${included}" "${header}\n" place)
  if(header MATCHES "^reference/" AND place EQUAL -1)
    string(APPEND wrong "${header} is installed, and only sources of reference/ include it\n")
  endif()
endforeach()
if(wrong)
  message(FATAL_ERROR "${wrong}")
endif()

# The fixtures are installed with the program, and no other part of the suite.
file(GLOB_RECURSE shared RELATIVE ${WORK}/prefix/share/assay ${WORK}/prefix/share/assay/*)
list(FILTER shared EXCLUDE REGEX "^golden/([a-z0-9_]+/)*[a-z0-9_]+[.]h5$|^golden/cases/[a-z0-9_]+[.]txt$")
list(REMOVE_ITEM shared golden/manifest.json report.schema.json)
if(shared OR NOT EXISTS ${WORK}/prefix/share/assay/golden/manifest.json)
  message(FATAL_ERROR "share/assay holds other files than fixtures and their lists, or lacks the manifest: ${shared}")
endif()
