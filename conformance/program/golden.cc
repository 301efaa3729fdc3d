// assay golden build | check

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "conformance/program/verbs.h"
#include "conformance/suites/fixture_cases.h"
#include "conformance/suites/golden_cases.h"
#include "conformance/suites/progress.h"
#include "conformance/support/interrupt.h"
#include "conformance/support/standard_output.h"
#include "golden/io/manifest.h"
#include "golden/io/text_file.h"
#include "golden/io/writer.h"

namespace assay::conformance {
namespace {

struct GoldenOptions {
  std::string folder;
  bool quiet = false;
};

std::shared_ptr<GoldenOptions> add_options(cli::App& verb) {
  const auto options = std::make_shared<GoldenOptions>();
  verb.add_option("--folder", options->folder,
                  "The golden folder: cases/*.txt, *.h5 and manifest.json (default: " + golden_folder().string() + ")");
  verb.add_flag("--quiet", options->quiet, "No progress");
  return options;
}

std::filesystem::path folder_of(const GoldenOptions& options) {
  const std::filesystem::path folder = options.folder.empty() ? golden_folder() : std::filesystem::path(options.folder);
  std::error_code none;
  const bool is_there = std::filesystem::exists(folder, none);
  if (!std::filesystem::is_directory(folder, none))
    throw golden::FixtureError(folder.string(), "", is_there ? "is no folder" : "no such folder");
  return folder;
}

bool holds_exactly(const std::filesystem::path& path, const std::vector<std::byte>& bytes) {
  std::error_code failed;
  if (std::filesystem::file_size(path, failed) != bytes.size() || failed) return false;
  const std::string text = golden::read_text_file(path, static_cast<std::int64_t>(bytes.size()));
  return std::ranges::equal(std::as_bytes(std::span(text)), bytes);
}

golden::Manifest outside_entries(const std::filesystem::path& folder) {
  golden::Manifest kept;
  if (!std::filesystem::exists(folder / "manifest.json")) return kept;
  for (golden::ManifestEntry& entry : golden::read_manifest(folder / "manifest.json")) {
    if (entry.origin == "outside") kept.push_back(std::move(entry));
  }
  return kept;
}

ExitCode build(const GoldenOptions& options) {
  const std::filesystem::path folder = folder_of(options);
  const std::vector<std::filesystem::path> lists = case_lists(folder);
  if (lists.empty()) {
    say("no lists of cases in {}\n", (folder / "cases").string());
    return ExitCode::nothing_selected;
  }
  golden::Manifest manifest = outside_entries(folder);
  Progress line("golden build", static_cast<std::int64_t>(lists.size()), !options.quiet);
  std::int64_t bytes = 0;
  for (const std::filesystem::path& list : lists) {
    const std::filesystem::path file = folder / (list.stem().string() + ".h5");
    const golden::Fixture made = make_fixture(list);
    if (interrupted()) {
      say("interrupted: {} and what follows it were not written, nor was the manifest\n", file.filename().string());
      return ExitCode::incomplete;
    }
    golden::write_fixture(file, made);
    manifest.push_back(golden::describe(file, "reference"));
    bytes += manifest.back().bytes;
    line.done(file.filename().string(), false);
  }
  std::sort(manifest.begin(), manifest.end(), [](const auto& a, const auto& b) { return a.file < b.file; });
  golden::write_manifest(folder / "manifest.json", manifest);
  say("{} fixtures written to {}, {:.1f} MB\n", lists.size(), folder.string(), static_cast<double>(bytes) / 1e6);
  return ExitCode::passed;
}

// What the manifest says of an oracle besides the digest of its file.
void compare_with_entry(const std::filesystem::path& file, const golden::ManifestEntry& entry, std::vector<std::string>& faults) {
  try {
    const golden::ManifestEntry found = golden::describe(file, entry.origin);
    if (found.contents != entry.contents)
      faults.push_back(
          fmt::format("{}: contents is {} in manifest.json: expected {}", entry.file, entry.contents, found.contents));
    if (found.cases != entry.cases)
      faults.push_back(fmt::format("{}: manifest.json counts other cases than the file has", entry.file));
  } catch (const golden::FixtureError& error) {
    faults.push_back(error.what());
  }
}

ExitCode check(const GoldenOptions& options) {
  const std::filesystem::path folder = folder_of(options);
  std::vector<std::string> faults = golden::check_manifest(folder);
  const golden::Manifest manifest = golden::read_manifest(folder / "manifest.json");
  Progress line("golden check", static_cast<std::int64_t>(manifest.size()), !options.quiet);
  std::int64_t rebuilt = 0, same_contents = 0, pinned = 0;
  for (const golden::ManifestEntry& entry : manifest) {
    const bool outside = entry.origin == "outside";
    if (outside) {
      ++pinned;  // by its digest, which check_manifest has compared
      compare_with_entry(folder / entry.file, entry, faults);
    } else {
      const std::filesystem::path list = folder / "cases" / (std::filesystem::path(entry.file).stem().string() + ".txt");
      const golden::Fixture made = make_fixture(list);
      if (interrupted()) {
        say("interrupted: {} and what follows it were not checked\n", entry.file);
        return ExitCode::incomplete;
      }
      if (holds_exactly(folder / entry.file, golden::fixture_image(made))) {
        ++rebuilt;
      } else if (golden::contents_digest(made) == entry.contents) {
        ++same_contents;  // another libhdf5 or zlib lays the same contents out in other bytes
      } else {
        faults.push_back(fmt::format("{}: rebuilding it from {} gives other contents", entry.file, list.filename().string()));
      }
    }
    line.done(entry.file, !faults.empty());
  }
  for (const std::filesystem::path& list : case_lists(folder)) {
    const std::string file = list.stem().string() + ".h5";
    const bool listed = std::any_of(manifest.begin(), manifest.end(), [&](const auto& entry) { return entry.file == file; });
    if (!listed) faults.push_back(fmt::format("{}: has a list of cases but is not in manifest.json (assay golden build)", file));
  }
  for (const std::string& fault : faults) say("{}\n", fault);
  say("{}: {} rebuilt byte for byte, {} rebuilt with the same contents in other bytes, {} outside oracles with the right digest, "
      "{} faults\n",
      faults.empty() ? "PASS" : "FAIL", rebuilt, same_contents, pinned, faults.size());
  if (same_contents > 0)
    say("other bytes for the same contents come from another version of libhdf5 or zlib than the files were written with\n");
  return faults.empty() ? ExitCode::passed : ExitCode::bad_fixture;
}

}  // namespace

Action add_golden_build(cli::App& verb) {
  const auto options = add_options(verb);
  return [options] { return build(*options); };
}

Action add_golden_check(cli::App& verb) {
  const auto options = add_options(verb);
  return [options] { return check(*options); };
}

}  // namespace assay::conformance
