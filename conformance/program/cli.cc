// CLI11 behind cli.h.

#include "conformance/program/cli.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "conformance/cases/case_schema.h"

namespace assay::cli {
namespace {

CLI::Option& real(void* option) { return *static_cast<CLI::Option*>(option); }

// As CLI11's IsMember, but names the word that is nearest to a wrong one.
CLI::Validator one_of(const std::vector<std::string>& words) {
  std::string listed;
  for (const std::string& word : words) listed += (listed.empty() ? "" : ",") + word;
  const auto check = [words, listed](const std::string& given) {
    if (std::find(words.begin(), words.end(), given) != words.end()) return std::string();
    const std::vector<std::string_view> known(words.begin(), words.end());
    return given + " not in {" + listed + "}" + conformance::did_you_mean(given, known);
  };
  return CLI::Validator(check, "{" + listed + "}");
}

// CLI11 reads a number that is too large as the largest possible.
std::string fits(const std::string& given) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), value);
  const bool good = error == std::errc() && end == given.data() + given.size() && value >= 0;
  return good ? "" : given + ": expected a number from 0 to " + std::to_string(INT64_MAX);
}

std::string is_not_empty(const std::string& given) { return given.empty() ? "is empty: expected a value" : ""; }

}  // namespace

ValidationError::ValidationError(const std::string& name, const std::string& text)
    : ParseError(name + ": " + text, static_cast<int>(CLI::ExitCodes::ValidationError)) {}

Option* Option::required() { return real(real_).required(), this; }
Option* Option::capture_default_str() { return real(real_).capture_default_str(), this; }
Option* Option::default_str(const std::string& text) { return real(real_).default_str(text), this; }
Option* Option::allow_extra_args(bool allowed) { return real(real_).allow_extra_args(allowed), this; }
Option* Option::delimiter(char letter) { return real(real_).delimiter(letter), this; }
Option* Option::needs(Option* other) { return real(real_).needs(&real(other->real_)), this; }
Option* Option::excludes(Option* other) { return real(real_).excludes(&real(other->real_)), this; }
std::size_t Option::count() const { return real(real_).count(); }
std::vector<std::string> Option::get_lnames() const { return real(real_).get_lnames(); }

Option* Option::check(const Validator& validator) {
  switch (validator.kind) {
    case Validator::Kind::range: real(real_).check(CLI::Range(validator.least, validator.most)); break;
    case Validator::Kind::words: real(real_).check(one_of(validator.words)); break;
    case Validator::Kind::non_negative: real(real_).check(CLI::Validator(fits, "NONNEGATIVE")); break;
  }
  return this;
}

void Formatter::column_width(int columns) {
  static_cast<CLI::FormatterBase*>(real_)->column_width(static_cast<std::size_t>(columns));
}

struct App::Parts {
  CLI::App* app = nullptr;
  std::unique_ptr<CLI::App> owned;  // of the outermost one
  std::map<CLI::Option*, std::unique_ptr<Option>> options;
  std::deque<std::unique_ptr<App>> commands;
  Formatter formatter;
  std::exception_ptr failure;  // what exit() prints

  // The wrapper of CLI11's option; each has one.
  Option* wrapped(CLI::Option* option) {
    std::unique_ptr<Option>& kept = options[option];
    if (kept == nullptr) kept = std::make_unique<Option>(option);
    return kept.get();
  }
};

App::App(const std::string& description, const std::string& name) : parts_(std::make_unique<Parts>()) {
  parts_->owned = std::make_unique<CLI::App>(description, name);
  parts_->app = parts_->owned.get();
}

App::App(void* real) : parts_(std::make_unique<Parts>()) { parts_->app = static_cast<CLI::App*>(real); }

App::~App() = default;

template <class Value>
Option* App::add_option(const std::string& name, Value& to, const std::string& help) {
  CLI::Option* const made = parts_->app->add_option(name, to, help);
  if (name.starts_with('-') && name != "--backend-options") made->check(CLI::Validator(is_not_empty, ""));
  return parts_->wrapped(made);
}
template Option* App::add_option(const std::string&, std::string&, const std::string&);
template Option* App::add_option(const std::string&, int&, const std::string&);
template Option* App::add_option(const std::string&, std::int64_t&, const std::string&);
template Option* App::add_option(const std::string&, std::vector<std::string>&, const std::string&);

Option* App::add_flag(const std::string& name, bool& to, const std::string& help) {
  return parts_->wrapped(parts_->app->add_flag(name, to, help));
}
Option* App::set_version_flag(const std::string& name, const std::string& version) {
  return parts_->wrapped(parts_->app->set_version_flag(name, version));
}
Option* App::get_option(const std::string& name) const { return parts_->wrapped(parts_->app->get_option(name)); }
bool App::remove_option(Option* option) {
  CLI::Option* const gone = &real(option->real_);
  parts_->options.erase(gone);
  return parts_->app->remove_option(gone);
}
std::vector<Option*> App::get_options() const {
  std::vector<Option*> all;
  for (CLI::Option* each : parts_->app->get_options({})) all.push_back(parts_->wrapped(each));
  return all;
}

App* App::add_subcommand(const std::string& name, const std::string& help) {
  return parts_->commands.emplace_back(new App(parts_->app->add_subcommand(name, help))).get();
}
std::vector<App*> App::get_subcommands(const std::function<bool(App*)>& filter) const {
  std::vector<App*> all;
  for (const std::unique_ptr<App>& each : parts_->commands) {
    if (!filter || filter(each.get())) all.push_back(each.get());
  }
  return all;
}
App* App::require_subcommand(int count) { return parts_->app->require_subcommand(count), this; }

App* App::footer(const std::string& text) { return parts_->app->footer(text), this; }
Formatter* App::get_formatter() {
  parts_->formatter.real_ = parts_->app->get_formatter().get();
  return &parts_->formatter;
}
const std::string& App::get_name() const { return parts_->app->get_name(); }
void App::final_callback(std::function<void()> action) { parts_->app->final_callback(std::move(action)); }

void App::parse(int argc, char** argv) {
  try {
    parts_->app->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    parts_->failure = std::current_exception();
    throw ParseError(error.what(), error.get_exit_code());
  }
}

int App::exit(const ParseError& error) const {
  if (parts_->failure == nullptr) return parts_->app->exit(CLI::ParseError(error.what(), error.get_exit_code()));
  try {
    std::rethrow_exception(parts_->failure);
  } catch (const CLI::ParseError& original) {
    return parts_->app->exit(original);
  }
}

}  // namespace assay::cli
