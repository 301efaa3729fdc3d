#include "conformance/report/page_text.h"

#include <algorithm>

#include "conformance/report/matrix.h"

namespace assay::conformance {
namespace {

bool is_alphanumeric(char letter) {
  return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
}

constexpr std::string_view kHead = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
)";
constexpr std::string_view kStyle =
    R"(:root { color-scheme: light dark; --text: #1b1f24; --page: #ffffff; --quiet: #57606a; --line: #d0d7de; --box: #f6f8fa;
  --link: #0756b3; --failed: #a40e26; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6edf3; --page: #0d1117; --quiet: #9aa4af; --line: #3d444d; --box: #161b22; --link: #6cb0ff;
    --failed: #ff8182; }
}
body { margin: 0 auto; padding: 1rem; max-width: 80rem; color: var(--text); background: var(--page);
  font: 1rem/1.45 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; } h3 { font-size: 1rem; margin: 1.75rem 0 0.25rem; }
a { color: var(--link); }
small, .quiet { color: var(--quiet); font-size: 0.85rem; }
small { display: block; font-weight: 400; }
.failed { color: var(--failed); font-weight: 600; }
div.scroll { overflow-x: auto; } div.scroll td { min-width: 8rem; }
table { border-collapse: collapse; width: 100%; }
th, td { border: 1px solid var(--line); padding: 0.4rem 0.6rem; text-align: left; vertical-align: top; }
th { font-weight: 600; background: var(--box); }
td.number { text-align: right; width: 4rem; overflow-wrap: normal; }
pre { margin: 0.4rem 0; padding: 0.6rem; background: var(--box); border: 1px solid var(--line); overflow-x: auto;
  font-size: 0.85rem; }
pre.repro { white-space: pre-wrap; }
details { margin: 0.3rem 0; } summary { cursor: pointer; }
details details { margin-left: 1rem; }
:target { outline: 2px solid var(--link); outline-offset: 0.4rem; }
@media (max-width: 48rem) {
  .wide thead { display: none; }
  .wide, .wide tbody, .wide tr, .wide th, .wide td { display: block; width: auto; }
  .wide tr { margin-bottom: 1rem; }
  .wide td { border-top: 0; }
  .wide td.none { display: none; }
  .wide td::before { content: attr(data-title); display: block; color: var(--quiet); font-size: 0.85rem; }
}
)";

}  // namespace

std::string html_head(const std::string& title, std::string_view more_style) {
  return std::string(kHead) + "<title>" + html_text(title) + "</title>\n<style>\n" + std::string(kStyle) +
         std::string(more_style) + "</style>\n</head>\n<body>\n";
}

std::string html_text(std::string_view text) {
  std::string made;
  for (const char letter : printable(text)) {
    switch (letter) {
      case '&': made += "&amp;"; break;
      case '<': made += "&lt;"; break;
      case '>': made += "&gt;"; break;
      case '"': made += "&quot;"; break;
      case '\'': made += "&#39;"; break;
      default: made += letter;
    }
  }
  return made;
}

// Names may break after the marks that join their words.
std::string html_name(std::string_view text) {
  std::string made;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(":._,", at), text.size() - 1) + 1;
    made += html_text(text.substr(at, end - at)) + (end < text.size() ? "<wbr>" : "");
    at = end;
  }
  return made;
}

std::string html_small(const std::string& text) { return text.empty() ? "" : "<small>" + html_text(text) + "</small>"; }

// On one line, with nothing in it that Markdown reads. An underscore inside a word means nothing there.
std::string markdown_text(std::string_view text) {
  const std::string shown = printable(text);
  std::string made;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const char letter = shown[i];
    const bool inside = i > 0 && i + 1 < shown.size() && is_alphanumeric(shown[i - 1]) && is_alphanumeric(shown[i + 1]);
    if (letter == '\n') {
      made += ' ';
    } else if (letter == '<') {
      made += "&lt;";
    } else if (letter == '>') {
      made += "&gt;";
    } else if (letter == '&') {
      made += "&amp;";
    } else if (std::string_view("\\`*[]|~!#").find(letter) != std::string_view::npos || (letter == '_' && !inside)) {
      made += {'\\', letter};
    } else {
      made += letter;
    }
  }
  return made;
}

// Lines as they are, between fences that are longer than any run of backticks in them.
std::string markdown_block(std::string_view text) {
  const std::string shown = printable(text);
  std::size_t longest = 0, run = 0;
  for (const char letter : shown) longest = std::max(longest, run = letter == '`' ? run + 1 : 0);
  const std::string fence(std::max<std::size_t>(3, longest + 1), '`');
  return fence + "text\n" + shown + "\n" + fence + "\n";
}

}  // namespace assay::conformance
