# Common settings of all targets.

find_package(Threads REQUIRED)

# No contraction: a fused multiply-add would change reference bits. No fast-math for the same reason. Nothing traps on a floating-point
# exception or reads its flag, and no bit depends on them: GCC, unlike Clang, takes the contrary for granted, and then vectorises no loop
# with an addition under a condition (encoding E4M3 takes nine times as long).
add_library(assay_options INTERFACE)
target_compile_features(assay_options INTERFACE cxx_std_20)
target_include_directories(assay_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(assay_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-ffp-contract=off;-fno-fast-math;-fno-trapping-math>
  $<$<CONFIG:Release>:$<IF:$<STREQUAL:$<TARGET_PROPERTY:ASSAY_LEAN>,NOTHING>,-O0,$<IF:$<BOOL:$<TARGET_PROPERTY:ASSAY_LEAN>>,-Og,-O3>>>
  # The compiler collects its garbage less often: 4 % of a build.
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-expand=400;--param=ggc-min-heapsize=400000>)
target_link_libraries(assay_options INTERFACE Threads::Threads)
if(ASSAY_PORTABLE)
  target_compile_definitions(assay_options INTERFACE ASSAY_PORTABLE)
endif()
if(ASSAY_SANITIZE)
  target_compile_options(assay_options INTERFACE -fsanitize=${ASSAY_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(assay_options INTERFACE -fsanitize=${ASSAY_SANITIZE})
endif()
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

option(ASSAY_UNITY "Compile several sources of a lean library as one, for a short first build; ./assay does" OFF)

# assay_lean(assay_program [HOT sha256.cc]): in Release, a target whose time is spent elsewhere is compiled for a short build, but
# for the sources after HOT. Bits do not depend on it: no option here changes floating-point arithmetic.
function(assay_lean target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "HOT")
  set_target_properties(${target} PROPERTIES ASSAY_LEAN ON UNITY_BUILD ${ASSAY_UNITY} UNITY_BUILD_BATCH_SIZE 16)
  if(arg_HOT)  # options of its own keep a source out of those compiled as one
    set_property(SOURCE ${arg_HOT} APPEND PROPERTY COMPILE_OPTIONS $<$<CONFIG:Release>:-O3>)
  endif()
endfunction()

# Precompiled headers save a third of the time of a first build, 184 s without them and 122 s with them on two cores. With our
# ccache launcher every object of a second build in the same folder comes from the cache too; of other launchers that
# is not known.
if(CMAKE_CXX_COMPILER_LAUNCHER AND NOT ASSAY_LAUNCHER_KEEPS_PRECOMPILED)
  set(precompile OFF)
else()
  set(precompile ON)
endif()
option(ASSAY_PRECOMPILED_HEADERS "Precompile the standard library's headers" ${precompile})

# assay_precompiled(NAME [PROGRAMS] [UNOPTIMIZED] [LIBRARIES ...] HEADERS ...): an entry of assay_precompile() below, for libraries or
# for programs, which are compiled with other options.
function(assay_precompiled name)
  if(NOT ASSAY_PRECOMPILED_HEADERS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "PROGRAMS;UNOPTIMIZED" "" "LIBRARIES;HEADERS")
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "// Compiles the headers that are precompiled.\nint main() { return 0; }\n")
  if(arg_PROGRAMS)
    add_executable(${name} ${source})
  else()
    add_library(${name} OBJECT ${source})
  endif()
  if(arg_UNOPTIMIZED)
    set_target_properties(${name} PROPERTIES ASSAY_LEAN NOTHING)
  endif()
  target_link_libraries(${name} PRIVATE assay_options ${arg_LIBRARIES})
  target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
endfunction()

# assay_precompile(NAME TARGET...): the targets use the headers of NAME, where headers are precompiled.
function(assay_precompile name)
  if(ASSAY_PRECOMPILED_HEADERS)
    foreach(target IN LISTS ARGN)
      target_precompile_headers(${target} REUSE_FROM ${name})
    endforeach()
  endif()
endfunction()

set(assay_standard_headers <algorithm> <array> <charconv> <cmath> <cstdint> <cstring> <functional> <limits> <map> <memory>
  <optional> <set> <span> <stdexcept> <string> <string_view> <utility> <variant> <vector>)
assay_precompiled(assay_standard_library HEADERS ${assay_standard_headers})

# assay_register(recipes_test recipes 4): one CTest entry for the whole program, or SHARDS entries that run side by side.
# There are thousands of tests, and a process for each would take longer than the tests do. A limit only ends what hangs:
# beside other work a test takes several times as long as alone. Those of a high cost begin first (ctest has no times in a fresh
# build folder), so that no long one is left for the end: assay_register(recipes_test recipes 4 30), in seconds.
function(assay_register program name shards)
  math(EXPR last "${shards} - 1")
  foreach(shard RANGE ${last})
    math(EXPR number "${shard} + 1")
    if(shards EQUAL 1)
      set(entry ${name})
    else()
      set(entry ${name}/${number}of${shards})
    endif()
    add_test(NAME ${entry} COMMAND ${program} --gtest_brief=1)
    set_tests_properties(${entry} PROPERTIES TIMEOUT 1800 LABELS ${name})
    if(ARGC GREATER 3)
      set_tests_properties(${entry} PROPERTIES COST ${ARGV3})
    endif()
    if(shards GREATER 1)
      set_tests_properties(${entry} PROPERTIES ENVIRONMENT "GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${shard}")
    endif()
  endforeach()
endfunction()

# assay_tests(formats LIBRARIES assay_reference [SHARDS 4] [COST 30] [FOLDER .] [LEAN] [UNOPTIMIZED] [UNITY 8]): every *_test.cc of the
# folder formats here in one program. LEAN: its own sources take no time, only what they call does; they compile in half the time.
# UNOPTIMIZED: it waits for the programs that it runs. UNITY: so many of its sources are compiled as one where ASSAY_UNITY is on.
function(assay_tests room)
  cmake_parse_arguments(PARSE_ARGV 1 arg "LEAN;UNOPTIMIZED" "SHARDS;COST;FOLDER;UNITY" "LIBRARIES")
  if(NOT arg_FOLDER)
    set(arg_FOLDER ${room})
  endif()
  if(NOT arg_SHARDS)
    set(arg_SHARDS 1)
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${arg_FOLDER}/*_test.cc)
  add_executable(${room}_test ${sources})
  target_link_libraries(${room}_test PRIVATE ${arg_LIBRARIES} assay_options GTest::gtest GTest::gtest_main)
  if(arg_UNITY)
    set_target_properties(${room}_test PROPERTIES UNITY_BUILD ${ASSAY_UNITY} UNITY_BUILD_BATCH_SIZE ${arg_UNITY})
  endif()
  if(arg_UNOPTIMIZED)
    set_target_properties(${room}_test PROPERTIES ASSAY_LEAN NOTHING)
    assay_precompile(assay_unoptimized_test_headers ${room}_test)
  else()
    set_target_properties(${room}_test PROPERTIES ASSAY_LEAN ${arg_LEAN})
    assay_precompile(assay_test_headers ${room}_test)
  endif()
  assay_register(${room}_test ${room} ${arg_SHARDS} ${arg_COST})
endfunction()
if(ASSAY_BUILD_TESTS)
  find_package(GTest REQUIRED)
  assay_precompiled(assay_test_headers PROGRAMS LIBRARIES GTest::gtest HEADERS ${assay_standard_headers} <bit> <ostream> <gtest/gtest.h>)
  assay_precompiled(assay_unoptimized_test_headers PROGRAMS UNOPTIMIZED LIBRARIES GTest::gtest
    HEADERS ${assay_standard_headers} <filesystem> <fstream> <ostream> <sstream> <gtest/gtest.h>)
endif()
