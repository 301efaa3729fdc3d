#pragma once
// A file of results: one line of JSON for the header, one for each verdict as it is given, one for the summary. Lines are
// appended by one write each, so that no verdict is lost, even if the program crashes. Each has a digest (line_chain.h).

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace assay::conformance {

class ResultsFile {
 public:
  // Makes the file anew, or (`append`) continues after its last whole line; a symbolic link is followed, and a file that is
  // there keeps its mode. Errors: golden::OutputError.
  ResultsFile(const std::string& path, bool append);
  virtual ~ResultsFile();
  ResultsFile(const ResultsFile&) = delete;
  ResultsFile& operator=(const ResultsFile&) = delete;

  // Each entry a line, all with one write. Not safe from several threads at once. Errors: golden::OutputError.
  virtual void append(const std::vector<nlohmann::json>& entries);

 private:
  std::string path_;
  int descriptor_ = -1;
  std::string chain_;       // of the last line
  bool is_chained_ = true;  // false: the file is of an earlier version, whose lines have no digests
};

}  // namespace assay::conformance
