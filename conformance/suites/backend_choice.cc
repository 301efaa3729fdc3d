#include "conformance/suites/backend_choice.h"

#include <fmt/format.h>

#include <cstdlib>

#include "conformance/worker/row_files.h"
#include "conformance/worker/visible_device.h"
#include "golden/io/utf8.h"

namespace assay::conformance {

std::string quoted(const std::string& word) {
  if (!word.empty() &&
      word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%") == std::string::npos) {
    return word;
  }
  std::string text = "'";
  if (!golden::is_printable_utf8(word)) {  // quoted for bash, without control characters that a terminal would interpret
    text = "$'";
    for (const char letter : word) {
      const bool plain = letter >= ' ' && letter < 0x7F && letter != '\'' && letter != '\\';
      text += plain ? std::string(1, letter) : fmt::format("\\x{:02x}", static_cast<unsigned char>(letter));
    }
    return text + "'";
  }
  for (const char letter : word) text += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return text + "'";
}

std::string command_name() {
  const char* named = std::getenv("ASSAY_COMMAND");
  return named == nullptr || *named == '\0' ? "assay" : quoted(named);
}

std::string best_backend(std::string* why_not) {
  if (why_not != nullptr) why_not->clear();
  try {
    Backend("device");
    return "device";
  } catch (const BackendError& error) {
    if (why_not != nullptr) *why_not = error.what();
    return "reference";
  }
}

std::unique_ptr<Backend> BackendChoice::open(std::size_t device) const {
  const worker::OnDevice here(visible(device));
  auto backend = std::make_unique<Backend>(name, options, timeout_s * 1000);
  for (const std::string& each : axes) {
    const std::size_t equals = each.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw BackendError(ASSAY_INVALID_ARGUMENT, "--axis " + each + ": expected NAME=VALUE");
    }
    backend->set_axis(each.substr(0, equals), each.substr(equals + 1));
  }
  return backend;
}

std::unique_ptr<Backend> BackendChoice::open_expecting(std::size_t device) const {
  const worker::OnDevice here(visible(device));
  constexpr std::int64_t kPatience = 10;  // it predicts what the other only computes
  return expect_by.empty() || expect_by == "reference" ? nullptr
                                                       : std::make_unique<Backend>(expect_by, "", timeout_s * 1000 * kPatience);
}

std::string BackendChoice::words() const {
  std::string text;
  if (name != "reference") text += " --backend " + quoted(name);
  if (!options.empty()) text += " --backend-options " + quoted(options);
  if (!expect_by.empty()) text += " --expect-by " + quoted(expect_by);
  if (algorithm >= 0) text += " --algorithm " + std::to_string(algorithm);
  for (const std::string& each : axes) text += " --axis " + quoted(each);
  text += worker::row_file_options(quoted);
  return text;
}

JudgeOptions BackendChoice::judge_options() const {
  JudgeOptions made;
  // The reference must not judge itself: its fast layer is compared with the scalar one, and the scalar one with the fast.
  made.layer = name == "reference" && options != "layer=scalar" ? Layer::scalar : Layer::fast;
  made.timeout_ms = timeout_s * 1000;
  made.algorithm = algorithm;
  made.explains = explains;
  made.keeps_got = keeps_got || save_got != nullptr;
  return made;
}

}  // namespace assay::conformance
