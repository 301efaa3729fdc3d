#pragma once
// The part of CLI11 that the verbs use, under CLI11's names in a namespace of ours. CLI11 is a library of headers that takes ten seconds a source file
// to compile; only cli.cc includes it. Wrap further parts of it here as needed.

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace assay::cli {

// A fault of the command line, or --help or --version.
class ParseError : public std::runtime_error {
 public:
  ParseError(const std::string& text, int exit_code) : std::runtime_error(text), exit_code_(exit_code) {}
  int get_exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

// An invalid value of an option: "NAME: TEXT".
class ValidationError : public ParseError {
 public:
  ValidationError(const std::string& name, const std::string& text);
};

struct Validator {
  enum class Kind { range, words, non_negative } kind;
  std::int64_t least = 0, most = 0;
  std::vector<std::string> words{};
};
inline Validator Range(std::int64_t least, std::int64_t most) { return {Validator::Kind::range, least, most}; }
inline Validator IsMember(std::initializer_list<const char*> words) {
  return {Validator::Kind::words, 0, 0, {words.begin(), words.end()}};
}
inline const Validator NonNegativeNumber{Validator::Kind::non_negative};

class Option {
 public:
  explicit Option(void* real) : real_(real) {}  // CLI11's option
  Option* required();
  Option* capture_default_str();
  Option* default_str(const std::string& text);
  Option* check(const Validator& validator);
  Option* allow_extra_args(bool allowed);
  Option* delimiter(char letter);
  Option* needs(Option* other);
  Option* excludes(Option* other);
  std::size_t count() const;                    // how often it was given
  std::vector<std::string> get_lnames() const;  // long names, without the two hyphens

 private:
  friend class App;
  void* real_;
};

class Formatter {
 public:
  void column_width(int columns);

 private:
  friend class App;
  void* real_ = nullptr;
};

class App {
 public:
  App(const std::string& description, const std::string& name);
  ~App();
  App(const App&) = delete;

  // `to` receives the value; it must live until the command line is parsed. An empty value of an option, as of --baseline
  // "$UNSET", is refused, except for --backend-options: the request would be ignored silently. Value: std::string, int, std::int64_t, or a vector
  // of std::string, for an option that may be given again.
  template <class Value>
  Option* add_option(const std::string& name, Value& to, const std::string& help);
  Option* add_flag(const std::string& name, bool& to, const std::string& help);
  Option* set_version_flag(const std::string& name, const std::string& version);
  Option* get_option(const std::string& name) const;
  bool remove_option(Option* option);
  std::vector<Option*> get_options() const;

  App* add_subcommand(const std::string& name, const std::string& help);
  std::vector<App*> get_subcommands(const std::function<bool(App*)>& filter) const;  // all where the filter is empty
  App* require_subcommand(int count);

  App* footer(const std::string& text);
  Formatter* get_formatter();
  const std::string& get_name() const;
  void final_callback(std::function<void()> action);  // called when this command was chosen and all is parsed

  // Errors: ParseError, which exit() prints; it returns the exit code, 0 for --help and --version.
  void parse(int argc, char** argv);
  int exit(const ParseError& error) const;

 private:
  struct Parts;
  explicit App(void* real);
  std::unique_ptr<Parts> parts_;
};

}  // namespace assay::cli
