# Puts text files into a C++ source: SYMBOL, which HEADER declares as a span of EmbeddedText (conformance/support/embedded_text.h).
# embed_texts(OUTPUT HEADER SYMBOL FILE...): FILEs are watched, and OUTPUT changes only when they do.
function(embed_texts output header symbol)
  set(entries "")
  foreach(file IN LISTS ARGN)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(READ ${file} text)
    get_filename_component(name ${file} NAME)
    string(APPEND entries "  {\"${name}\", R\"__(${text})__\"},\n")
  endforeach()
  set(EMBEDDED_TEXTS "${entries}")
  file(CONFIGURE OUTPUT ${output} CONTENT [[// Made by cmake/embed_texts.cmake.
#include "@header@"

namespace assay::conformance {
namespace {
constexpr EmbeddedText @symbol@Entries[] = {
@EMBEDDED_TEXTS@};
}
const std::span<const EmbeddedText> @symbol@(@symbol@Entries);
}  // namespace assay::conformance
]] @ONLY)
endfunction()

# embed_text(OUTPUT HEADER SYMBOL FILE): one FILE as the std::string_view SYMBOL of the namespace assay, which HEADER declares.
function(embed_text output header symbol file)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} text)
  file(CONFIGURE OUTPUT ${output} CONTENT [[// Made by cmake/embed_texts.cmake.
#include "@header@"

namespace assay {
const std::string_view @symbol@ = R"__(@text@)__";
}  // namespace assay
]] @ONLY)
endfunction()
