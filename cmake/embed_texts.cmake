# Puts text files into a C++ source, as kLevelTexts of conformance/levels/level_texts.h.
# embed_level_texts(OUTPUT FILE...): FILEs are watched, and OUTPUT changes only when they do.
function(embed_level_texts output)
  set(entries "")
  foreach(file IN LISTS ARGN)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(READ ${file} text)
    get_filename_component(name ${file} NAME)
    string(APPEND entries "  {\"${name}\", R\"__(${text})__\"},\n")
  endforeach()
  set(EMBEDDED_TEXTS "${entries}")
  file(CONFIGURE OUTPUT ${output} CONTENT [[// Made by cmake/embed_texts.cmake.
#include "conformance/levels/level_texts.h"

namespace assay::conformance {
namespace {
constexpr LevelText kTexts[] = {
@EMBEDDED_TEXTS@};
}
const std::span<const LevelText> kLevelTexts(kTexts);
}  // namespace assay::conformance
]] @ONLY)
endfunction()
