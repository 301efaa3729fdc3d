#include "golden/io/manifest.h"

#include <algorithm>
#include <bit>
#include <set>
#include <system_error>

#include <nlohmann/json.hpp>

#include "golden/io/contained_reader.h"
#include "golden/io/replace_file.h"
#include "golden/io/sha256.h"
#include "golden/io/text_file.h"
#include "reference/types/error.h"
#include "reference/types/tensor.h"

namespace assay::golden {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kDeepest = 64;  // levels of JSON
constexpr const char* kOrigins[] = {"reference", "outside"};

bool is_digest(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// A name in the manifest's own folder, so that a manifest cannot point elsewhere.
bool is_file_name(const std::string& text) {
  return !text.empty() && text[0] != '.' && text.find('/') == std::string::npos && text.find('\0') == std::string::npos;
}

class ManifestReader {
 public:
  explicit ManifestReader(const std::filesystem::path& path) : path_(path.string()) {}

  Manifest read() {
    bool is_deep = false;
    const auto watch = [&](int depth, Json::parse_event_t, const Json&) { return !(is_deep |= depth > kDeepest); };
    const Json json = Json::parse(read_text_file(path_), watch, false);
    if (is_deep) fail("", "is nested deeper than " + show(kDeepest) + " levels");
    if (json.is_discarded()) fail("", "is not JSON");
    if (!json.is_object() || !json.contains("fixtures") || !json["fixtures"].is_array()) {
      fail("fixtures", "is not there: expected an array");
    }
    Manifest manifest;
    std::set<std::string> files;
    for (std::size_t i = 0; i < json["fixtures"].size(); ++i) {
      manifest.push_back(entry(json["fixtures"][i], "fixtures[" + show(i) + "]"));
      if (!files.insert(manifest.back().file).second) fail("fixtures[" + show(i) + "].file", "is listed twice");
    }
    std::sort(manifest.begin(), manifest.end(), [](const auto& a, const auto& b) { return a.file < b.file; });
    return manifest;
  }

 private:
  [[noreturn]] void fail(std::string_view object, std::string_view reason) const { throw FixtureError(path_, object, reason); }

  ManifestEntry entry(const Json& json, const std::string& at) const {
    if (!json.is_object()) fail(at, "is not an object");
    ManifestEntry made;
    made.file = text(json, at, "file");
    if (!is_file_name(made.file)) fail(at + ".file", "is '" + made.file + "': expected a name without folders");
    made.origin = text(json, at, "origin");
    if (std::find(std::begin(kOrigins), std::end(kOrigins), made.origin) == std::end(kOrigins)) {
      fail(at + ".origin", "is '" + made.origin + "': expected reference or outside");
    }
    made.bytes = count(json, at, "bytes");
    made.sha256 = digest(json, at, "sha256");
    made.contents = digest(json, at, "contents");
    if (!json.contains("cases") || !json["cases"].is_object()) fail(at + ".cases", "is not there: expected an object");
    for (const auto& [op, number] : json["cases"].items()) made.cases[op] = count(json["cases"], at + ".cases", op);
    if (!json.contains("provenance")) fail(at + ".provenance", "is not there");
    const Json& provenance = json["provenance"];
    made.provenance = provenance.is_string() ? provenance.get<std::string>() : provenance.dump();
    return made;
  }

  std::string text(const Json& json, const std::string& at, const std::string& key) const {
    if (!json.contains(key) || !json[key].is_string()) fail(at + "." + key, "is not there: expected a string");
    return json[key].get<std::string>();
  }
  std::string digest(const Json& json, const std::string& at, const std::string& key) const {
    const std::string value = text(json, at, key);
    if (!is_digest(value)) fail(at + "." + key, "is '" + value + "': expected 64 lower-case hexadecimal digits");
    return value;
  }
  std::int64_t count(const Json& json, const std::string& at, const std::string& key) const {
    if (!json.contains(key) || !json[key].is_number_unsigned() || json[key].get<std::uint64_t>() > INT64_MAX) {
      fail(at + "." + key, "is not there: expected a number of at least 0");
    }
    return json[key].get<std::int64_t>();
  }

  const std::string path_;
};

// Feeds a digest with values in a form that does not depend on the machine.
class Canonical {
 public:
  void number(std::uint64_t value) {
    std::byte bytes[8];
    for (int i = 0; i < 8; ++i) bytes[i] = static_cast<std::byte>(value >> (8 * i));
    hash_.update(bytes);
  }
  void text(std::string_view value) {
    number(value.size());
    hash_.update(std::as_bytes(std::span(value)));
  }
  void attribute(const Attribute& value) {
    number(value.index());
    if (const auto* integer = std::get_if<std::int64_t>(&value)) number(static_cast<std::uint64_t>(*integer));
    if (const auto* real = std::get_if<double>(&value)) number(std::bit_cast<std::uint64_t>(*real));
    if (const auto* words = std::get_if<std::string>(&value)) text(*words);
  }
  void tensor(const Tensor& tensor) {
    text(name_of(tensor.type));
    number(tensor.shape.size());
    for (const std::int64_t extent : tensor.shape) number(static_cast<std::uint64_t>(extent));
    number(tensor.bytes.size());
    if constexpr (std::endian::native == std::endian::little) {
      hash_.update(tensor.bytes);
    } else {
      const std::size_t width = static_cast<std::size_t>(stored_bytes(tensor.type));
      std::vector<std::byte> swapped = tensor.bytes;
      for (std::size_t at = 0; at < swapped.size(); at += width) std::reverse(&swapped[at], &swapped[at] + width);
      hash_.update(swapped);
    }
  }
  std::string digest() { return hex_of(hash_.digest()); }

 private:
  Sha256 hash_;
};

// A JSON object stays an object, so that the manifest is readable; other text becomes a string.
Json provenance_json(const std::string& text) {
  Json json = Json::parse(text, nullptr, false);
  return json.is_object() ? json : Json(text);
}

}  // namespace

std::string contents_digest(const Fixture& fixture) {
  Canonical canonical;
  canonical.number(static_cast<std::uint64_t>(fixture.schema));
  canonical.text(fixture.provenance);
  canonical.number(fixture.cases.size());
  std::vector<const Case*> cases;
  for (const Case& each : fixture.cases) cases.push_back(&each);
  std::sort(cases.begin(), cases.end(), [](const Case* a, const Case* b) { return a->name < b->name; });
  for (const Case* each : cases) {
    canonical.text(each->name);
    canonical.text(each->op);
    canonical.number(each->attributes.size());
    for (const auto& [name, value] : each->attributes) {
      canonical.text(name);
      canonical.attribute(value);
    }
    for (const auto* side : {&each->in, &each->out}) {
      canonical.number(side->size());
      for (const auto& [name, tensor] : *side) {
        canonical.text(name);
        canonical.tensor(tensor);
      }
    }
  }
  return canonical.digest();
}

ManifestEntry describe(const std::filesystem::path& path, const std::string& origin) {
  const Fixture fixture = read_fixture_contained(path);
  ManifestEntry entry;
  entry.file = path.filename().string();
  entry.origin = origin;
  entry.bytes = static_cast<std::int64_t>(std::filesystem::file_size(path));
  entry.sha256 = sha256_hex_of_file(path);
  entry.contents = contents_digest(fixture);
  for (const Case& each : fixture.cases) ++entry.cases[each.op];
  entry.provenance = fixture.provenance;
  return entry;
}

Manifest read_manifest(const std::filesystem::path& path) { return ManifestReader(path).read(); }

void write_manifest(const std::filesystem::path& path, const Manifest& manifest) {
  Manifest sorted = manifest;
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.file < b.file; });
  Json fixtures = Json::array();
  for (const ManifestEntry& entry : sorted) {
    Json cases = Json::object();
    for (const auto& [op, count] : entry.cases) cases[op] = count;
    fixtures.push_back(Json{{"file", entry.file},
                            {"origin", entry.origin},
                            {"bytes", entry.bytes},
                            {"sha256", entry.sha256},
                            {"contents", entry.contents},
                            {"cases", std::move(cases)},
                            {"provenance", provenance_json(entry.provenance)}});
  }
  const std::string text = Json{{"fixtures", std::move(fixtures)}}.dump(2) + "\n";
  replace_file(path, std::as_bytes(std::span(text)));
}

std::vector<std::string> check_manifest(const std::filesystem::path& folder) {
  std::vector<std::string> deviations;
  std::set<std::string> listed;
  for (const ManifestEntry& entry : read_manifest(folder / "manifest.json")) {
    listed.insert(entry.file);
    std::error_code error;
    const auto bytes = std::filesystem::file_size(folder / entry.file, error);
    if (error) {
      deviations.push_back(entry.file + ": is listed in the manifest, but cannot be read: " + error.message());
    } else if (bytes != static_cast<std::uintmax_t>(entry.bytes)) {
      deviations.push_back(entry.file + ": has " + show(bytes) + " bytes: expected " + show(entry.bytes));
    } else if (const std::string found = sha256_hex_of_file(folder / entry.file); found != entry.sha256) {
      deviations.push_back(entry.file + ": its sha256 is " + found + ": expected " + entry.sha256);
    }
  }
  std::set<std::string> present;
  for (const auto& each : std::filesystem::directory_iterator(folder)) {
    if (each.path().extension() == ".h5") present.insert(each.path().filename().string());
  }
  for (const std::string& file : present) {
    if (!listed.contains(file)) deviations.push_back(one_line(file) + ": is not listed in the manifest");
  }
  return deviations;
}

}  // namespace assay::golden
