#pragma once

#include <cstddef>
#include <string_view>

namespace assay::golden {

// Length of the well-formed UTF-8 sequence at text[at] (1 to 4), or 0 if there is none: overlong forms, surrogates and
// values past U+10FFFF are not well formed (Unicode 15, table 3-7).
std::size_t utf8_sequence(std::string_view text, std::size_t at);

// True for UTF-8 text that may be a name: names are printed and written to JSON, so they contain no characters that change what
// a terminal shows around them. Those are the control characters (U+0000 to U+001F, U+007F to U+009F, which many terminals
// execute), the separators of lines and paragraphs (U+2028, U+2029), and the marks that reorder text (U+061C, U+200E, U+200F,
// U+202A to U+202E, U+2066 to U+2069).
bool is_printable_utf8(std::string_view text);

// True for UTF-8 text without NUL, which an attribute may hold.
bool is_utf8_text(std::string_view text);

}  // namespace assay::golden
