# Copies of sources with numbered points that can be made wrong, and libraries of them.

# mutated_copies(TARGET FOLDER folder SCRIPT script.py ARGUMENTS words before the files COMMENT text FILES paths below the checkout): what
# depends on TARGET comes after the copies, each of which has its path below FOLDER, beside points.inc. TARGET_COPIES is set to them.
function(mutated_copies target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FOLDER;SCRIPT;COMMENT" "ARGUMENTS;FILES")
  list(TRANSFORM arg_FILES PREPEND ${arg_FOLDER}/ OUTPUT_VARIABLE copies)
  list(TRANSFORM arg_FILES PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE originals)
  add_custom_command(OUTPUT ${arg_FOLDER}/made BYPRODUCTS ${copies} ${arg_FOLDER}/points.inc VERBATIM
    COMMAND ${Python3_EXECUTABLE} -B ${arg_SCRIPT} ${arg_ARGUMENTS} ${arg_FILES}
    COMMAND ${CMAKE_COMMAND} -E touch ${arg_FOLDER}/made
    DEPENDS ${arg_SCRIPT} ${originals} COMMENT "${arg_COMMENT}")
  add_custom_target(${target} DEPENDS ${arg_FOLDER}/made)
  set(${target}_COPIES ${copies} PARENT_SCOPE)
endfunction()

# use_mutated_copies(TARGET COPIES folder AFTER target of mutated_copies): the copies come before the sources of the same name.
function(use_mutated_copies target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "COPIES;AFTER" "")
  add_dependencies(${target} ${arg_AFTER})
  target_include_directories(${target} BEFORE PRIVATE ${arg_COPIES})
endfunction()

# hide_symbols(TARGET): a module that is loaded beside the objects that it has copies of shows its entry alone.
function(hide_symbols target)
  set_target_properties(${target} PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON)
  target_link_options(${target} PRIVATE -Wl,--exclude-libs,ALL)
endfunction()
