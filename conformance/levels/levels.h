#pragma once
// Conformance levels: named, versioned lists of required cases (conformance/levels/*.txt), and lists that users write.
//
//   # text after a # at the start of a line says why
//   level mx 1
//   claims MXFP8 quantization, scale layouts and products equal the specification.
//   quantize/mxfp8/*
//   linear_ recipe=mxfp8
//   fixture offsets.h5
//
// A line of words requires every case of the profile that all of its words match, as WORDS of `assay run` select;
// `fixture NAME` every case of a fixture file of golden/, `fixture *` every one of every file.

#include <filesystem>
#include <string>
#include <vector>

#include "conformance/cases/case_line.h"

namespace assay::conformance {

struct Level {
  std::string name;
  int version = 0;
  std::string claims;
  std::vector<std::vector<std::string>> selections;
  std::vector<std::string> fixtures;
  std::string title() const;  // "mx 1", or the name alone for one that has no version
};

// Those of conformance/levels, sorted by name, "all" last.
const std::vector<Level>& levels();
const Level* find_level(const std::string& name);

// `source` is named in errors. Errors (golden::FixtureError): a line that is none of the above, no selection at all.
Level parse_level(const std::string& text, const std::string& source);

// What --require names: a level, a file of the form above (which may leave out `level` and `claims`), else words.
// Errors: golden::FixtureError for a file that cannot be read.
Level requirement_of(const std::string& word);

// Places in `names` and `texts` (name_of and to_text of each line of a catalogue) of the cases that a level requires.
std::vector<std::size_t> required_by(const Level& level, const std::vector<std::string>& texts,
                                     const std::vector<std::string>& names);

}  // namespace assay::conformance
