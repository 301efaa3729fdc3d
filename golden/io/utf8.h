#pragma once

#include <cstddef>
#include <string_view>

namespace assay::golden {

// Length of the well-formed UTF-8 sequence at text[at] (1 to 4), or 0 if there is none: overlong forms, surrogates and
// values past U+10FFFF are not well formed (Unicode 15, table 3-7).
std::size_t utf8_sequence(std::string_view text, std::size_t at);

// True for UTF-8 text without control characters: what may be a name, since names are printed and put in JSON.
bool is_printable_utf8(std::string_view text);

}  // namespace assay::golden
