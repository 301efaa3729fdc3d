// Files of predictions, as `run --predicted` and `predict --resume` read them. Each line ends with a digest of the file up to it, and the
// header names the program: so that more than the first line is read, a file is also tried with the digests that it should have and as one
// of this program.

#include <algorithm>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "conformance/report/line_chain.h"
#include "conformance/report/predictions_file.h"
#include "conformance/tests/fuzz/targets.h"
#include "golden/io/fixture_error.h"

namespace assay::fuzz {
namespace {

using namespace assay::conformance;
using nlohmann::json;

std::string body_of(std::string_view line) {
  const auto parts = split_chained(line);
  return parts ? std::string(parts->body) : std::string(line);
}

json object_of(const std::string& body) {
  json read = json::parse(body, nullptr, false);
  return read.is_object() ? read : json::object();
}

std::string first_line(std::string_view data) { return body_of(data.substr(0, data.find('\n'))); }

std::string sealed(std::string_view data) {
  std::string made, chain;
  for (std::size_t at = 0; at < data.size();) {
    const std::size_t end = std::min(data.find('\n', at), data.size());
    std::string body = body_of(data.substr(at, end - at));
    if (at == 0) {
      json header = object_of(body);
      header.update(predictor_of(Layer::fast));
      body = header.dump(-1, ' ', false, json::error_handler_t::replace);
    }
    made += chained(body, chain) + (end < data.size() ? "\n" : "");
    at = end + 1;
  }
  return made;
}

void expect_line(const std::exception& error, std::string_view input) {
  const std::string what = error.what();
  promise(!what.empty() && what.find('\n') == std::string::npos, "an error is one line: " + what, input);
}

void read_both_ways(const std::string& text, std::string_view input) {
  const InputFile file(text);
  RecordedPredictions begun;
  bool is_begun = false;
  try {
    begun = begun_predictions(file.path(), object_of(first_line(text)));
    is_begun = true;
  } catch (const golden::FixtureError& error) {
    expect_line(error, input);
  }
  try {
    const Predictions all({file.path()}, Layer::fast, false);
    promise(is_begun && begun.has_summary, "a whole file is one that was begun, and has a summary", input);
    for (const auto& [line, calls] : begun.predicted)
      promise(all.of(line)->calls.size() == calls.size(), "what the file predicts is found by its case", input);
    promise(all.files().size() == 1 && all.cases() >= begun.predicted.size(), "a case that is whole has predictions", input);
  } catch (const golden::FixtureError& error) {
    expect_line(error, input);
  }
}

}  // namespace

void run_predictions(std::string_view data) {
  read_both_ways(std::string(data), data);
  read_both_ways(sealed(data), data);
}

}  // namespace assay::fuzz
