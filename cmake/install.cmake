# cmake --install makes `find_package(assay)` work; it offers assay::reference, and assay::device where the build has CUDA.
# Headers keep their paths below include/assay, so that users write #include <reference/gemm/grouped_gemm.h>.
include(CMakePackageConfigHelpers)
set(assay_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/assay)

install(TARGETS assay_reference EXPORT assayTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT reference)
# What only sources of reference/ include stays at home; the test packaging/installed_headers finds others.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/reference DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/assay COMPONENT reference
        FILES_MATCHING PATTERN "*.h"
        REGEX "/approximations/tables[.]h$" EXCLUDE
        REGEX "/arithmetic/(exact_sum|other_steps|unit_text)[.]h$" EXCLUDE
        REGEX "/formats/x_types[.]h$" EXCLUDE
        REGEX "/gemm/(error_bound_parts|packed_operand|quantized_output)[.]h$" EXCLUDE
        REGEX "/rules/(code_rounder|preset_text|rule_band|rule_problem|rule_rows)[.]h$" EXCLUDE
        REGEX "/linear/linear_quantization[.]h$" EXCLUDE
        REGEX "/recipes/(checks|complete_call|dequantize_checks|fast_rows|fp8_tile|nvfp4_[a-z]+|row_bands|swiglu)[.]h$" EXCLUDE
        REGEX "/support/text_rows[.]h$" EXCLUDE
        REGEX "/types/named[.]h$" EXCLUDE
        PATTERN "tests" EXCLUDE PATTERN "build*" EXCLUDE)
install(EXPORT assayTargets NAMESPACE assay:: DESTINATION ${assay_package_dir} COMPONENT reference)

# What callers of assay::device include; everything else below device/ is internal.
set(assay_device_headers
  emulated_gemm/emulated_gemm.h cublaslt/cublaslt_gemm.h cublaslt/cublaslt_library.h cublaslt/gemm_workspaces.h
  fp8_block_gemm/fp8_block_gemm.h gemm/grouped_gemm.h
  layout/groups.h layout/offsets.h layout/swizzle.h layout/token_permutation.h
  linear/grouped_linear.h linear/linear_kernels.h linear/linear_path.h linear/linear_pool.h linear/linear_steps.h linear/linear_storage.h
  dbias/dbias.h quantize/by_rule/by_rule.h quantize/by_rule/program.h quantize/delayed_scaling.h dequantize/dequantize.h quantize/quantize.h
  support/device_code.h support/error.h support/memory_source.h support/stream.h)
if(TARGET assay_device)  # offers assay::device as well
  install(TARGETS assay_device EXPORT assayDeviceTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT device)
  foreach(header IN LISTS assay_device_headers)
    get_filename_component(folder ${header} DIRECTORY)
    install(FILES ${PROJECT_SOURCE_DIR}/device/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/assay/device/${folder} COMPONENT device)
  endforeach()
  install(EXPORT assayDeviceTargets NAMESPACE assay:: DESTINATION ${assay_package_dir} COMPONENT device)
  # The component is whole by itself: what it needs of the reference comes with it. (An export set that is installed twice is one
  # that cmake lets no other set depend on.)
  install(CODE "execute_process(COMMAND \"${CMAKE_COMMAND}\" --install \"${PROJECT_BINARY_DIR}\" --component reference
    --prefix \"\${CMAKE_INSTALL_PREFIX}\" COMMAND_ERROR_IS_FATAL ANY)" COMPONENT device)
endif()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/assayConfig.cmake.in ${PROJECT_BINARY_DIR}/assayConfig.cmake
                              INSTALL_DESTINATION ${assay_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/assayConfigVersion.cmake COMPATIBILITY SameMinorVersion)
foreach(component IN ITEMS reference device)
  install(FILES ${PROJECT_BINARY_DIR}/assayConfig.cmake ${PROJECT_BINARY_DIR}/assayConfigVersion.cmake
          DESTINATION ${assay_package_dir} COMPONENT ${component})
endforeach()

# The interface that a backend outside the tree implements, and the program that loads it.
install(FILES ${PROJECT_SOURCE_DIR}/conformance/backend.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/assay/conformance
        COMPONENT conformance)
if(TARGET assay)
  install(TARGETS assay RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT conformance)
  # The fixtures lie where the program looks for them: share/assay/golden beside its own folder.
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/golden/ DESTINATION share/assay/golden COMPONENT conformance
          FILES_MATCHING PATTERN "*.h5" PATTERN "manifest.json" PATTERN "cases/*.txt" PATTERN "io" EXCLUDE)
  install(FILES ${PROJECT_SOURCE_DIR}/conformance/report/report.schema.json DESTINATION share/assay COMPONENT conformance)
endif()
