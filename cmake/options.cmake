# One place for what every target needs.

find_package(Threads REQUIRED)

# No contraction: a fused multiply-add would change reference bits. No fast-math for the same reason.
add_library(assay_options INTERFACE)
target_compile_features(assay_options INTERFACE cxx_std_20)
target_include_directories(assay_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(assay_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-ffp-contract=off;-fno-fast-math>
  $<$<CONFIG:Release>:-O3>)
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

# assay_tests(formats assay_reference): every conformance/suites/formats/*_test.cc in one program, each test known to CTest.
function(assay_tests room)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/conformance/suites/${room}/*_test.cc)
  if(NOT ASSAY_BUILD_TESTS OR NOT sources)
    return()
  endif()
  add_executable(${room}_test ${sources})
  target_link_libraries(${room}_test PRIVATE ${ARGN} assay_options GTest::gtest GTest::gtest_main)
  gtest_discover_tests(${room}_test TEST_PREFIX ${room}/ DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 900 LABELS ${room})
endfunction()
if(ASSAY_BUILD_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
