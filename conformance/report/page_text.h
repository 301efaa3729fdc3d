#pragma once
// Texts of result files in pages: whatever they hold, they change nothing around them.

#include <string>
#include <string_view>

namespace assay::conformance {

// The head of a page, up to <body>: no scripts, no other files, dark and light. `more_style` follows the common styles.
std::string html_head(const std::string& title, std::string_view more_style = "");

// As the content of an element or of an attribute; XML needs the same.
std::string html_text(std::string_view text);
std::string html_name(std::string_view text);       // may break after the marks that join its words
std::string html_small(const std::string& text);    // in <small>; empty: nothing
std::string markdown_text(std::string_view text);   // on one line
std::string markdown_block(std::string_view text);  // lines as they are

}  // namespace assay::conformance
