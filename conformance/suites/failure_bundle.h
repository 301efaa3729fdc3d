#pragma once
// A failure in a file: what a machine without the device needs to explain it. HDF5, a fixture file of schema 2 whose cases are
//
//   call        op, attributes (the plan that was expected too), inputs; `out` holds what the call gave
//   before/N    the inputs of the Nth call before it on the same memory, if there was one
//
// and whose `provenance` is JSON: producer, case line, text of the failure, when, poison, plan, unit, and the header of the run.

#include <atomic>
#include <filesystem>
#include <mutex>
#include <string>

#include "conformance/judge/kept_call.h"
#include "conformance/report/report.h"

namespace assay::conformance {

inline constexpr const char* kBundleProducer = "assay failure bundle";

struct FailureBundle {
  std::string line;         // the case line
  KeptCall kept;            // what the call read and gave
  std::string text;         // the failure as it was reported
  std::string environment;  // JSON: the header of the run (report/run_header.h)
};

// Errors: as golden::write_fixture.
void write_bundle(const std::filesystem::path& path, const FailureBundle& bundle);
// Errors: golden::FixtureError for a file that cannot be read or is no bundle; golden::MachineError.
FailureBundle read_bundle(const std::filesystem::path& path);
// Whether a fixture's provenance says that it is a bundle.
bool is_bundle(const std::string& provenance);

// The folder of --save-got: a file for each failing case whose outputs are wrong. Safe from any thread.
class BundleFolder {
 public:
  // Makes the folder if need be. Errors: golden::OutputError.
  BundleFolder(std::filesystem::path folder, std::string environment);

  // Writes the case's file, and forgets what was kept of it. Nothing if no outputs were kept.
  void save(CaseReport& report);

  std::int64_t saved() const { return saved_; }
  // "3 failures are saved in got (assay explain FILE names the cause)", or the path of the one that is.
  std::string text() const;
  std::string fault() const;  // why a file could not be written; empty: all were

 private:
  static constexpr std::int64_t kMostBytes = std::int64_t{8} << 30;  // of tensors, in one run

  const std::filesystem::path folder_;
  const std::string environment_;
  std::atomic<std::int64_t> saved_ = 0, left_out_ = 0, bytes_ = 0;
  mutable std::mutex mutex_;
  std::string last_, fault_;
};

// The note that says where failures were saved, and what went wrong with that.
void tell_saved(const BundleFolder& folder, Report& report);

}  // namespace assay::conformance
