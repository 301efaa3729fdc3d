# Kernels compiled together. Half of the time of a small CUDA source goes into CUDA's headers: for a short build, sources whose names do
# not meet are included by one. Others stay as they are.

# assay_together(VARIABLE): in the list of sources, those of each line below are replaced by a source that includes them.
function(assay_together variable)
  set(kernels ${PROJECT_SOURCE_DIR}/device)
  set(groups
    "fp8_block_gemm/kernels_*.cu"
    "quantize/nvfp4/quantize_*.cu"
    "quantize/mxfp8/quantize_*.cu"
    "quantize/fp8_block/quantize_*.cu"
    "dequantize/dequantize_elements.cu emulated_gemm/fp8.cu layout/swizzle.cu quantize/per_tensor/per_tensor.cu"
    "dequantize/dequantize_rows.cu emulated_gemm/generic.cu layout/token_permutation.cu quantize/per_tensor/run_through.cu"
    "cublaslt/group_setup.cu dequantize/dequantize_columns.cu emulated_gemm/fp4.cu quantize/per_tensor/cast_windows.cu quantize/quantize.cu"
    "dbias/dbias.cu emulated_gemm/wide_sum.cu quantize/delayed_scaling.cu quantize/mxfp8/mxfp8.cu"
    "layout/offsets.cu emulated_gemm/setup.cu quantize/fp8_block/fp8_block.cu linear/linear_moves.cu"
    "cublaslt/bias.cu dequantize/dequantize.cu emulated_gemm/emulated_gemm.cu fp8_block_gemm/fp8_block_gemm.cu quantize/nvfp4/hadamard.cu"
    "quantize/by_rule/by_rule.cu quantize/per_tensor/cast_tiles.cu quantize/nvfp4/nvfp4.cu")
  set(number 0)
  foreach(group IN LISTS groups)
    math(EXPR number "${number} + 1")
    separate_arguments(patterns UNIX_COMMAND "${group}")
    set(text "// Made by cmake/together.cmake.\n")
    foreach(pattern IN LISTS patterns)
      file(GLOB found CONFIGURE_DEPENDS ${kernels}/${pattern})
      if(NOT found)
        message(FATAL_ERROR "cmake/together.cmake: there is no device/${pattern}")
      endif()
      list(REMOVE_ITEM ${variable} ${found})
      foreach(source IN LISTS found)
        string(APPEND text "#include \"${source}\"\n")
      endforeach()
    endforeach()
    set(together ${CMAKE_CURRENT_BINARY_DIR}/together/kernels_${number}.cu)
    file(CONFIGURE OUTPUT ${together} CONTENT "${text}" @ONLY)
    list(APPEND ${variable} ${together})
  endforeach()
  set(${variable} ${${variable}} PARENT_SCOPE)
endfunction()
