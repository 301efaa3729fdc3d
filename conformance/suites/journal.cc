#include "conformance/suites/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>

#include "conformance/report/json_text.h"
#include "conformance/report/judgement_json.h"
#include "conformance/report/line_chain.h"
#include "conformance/report/output_file.h"
#include "conformance/report/run_header.h"
#include "conformance/support/interrupt.h"
#include "golden/io/fixture_error.h"
#include "golden/io/replace_file.h"
#include "golden/io/text_file.h"

namespace assay::conformance {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

std::string first_line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The 22nd field of /proc/PID/stat: when the process began. Empty: there is none. Names in it may hold blanks and parentheses.
std::string start_of(std::int64_t pid) {
  const std::string text = first_line_of(fmt::format("/proc/{}/stat", pid));
  std::istringstream rest(text.substr(std::min(text.rfind(')') + 1, text.size())));
  std::string field;
  for (int i = 3; i <= 22; ++i) rest >> field;
  return rest ? field : "";
}

std::string link_text(const char* path) {
  std::error_code none;
  return std::filesystem::read_symlink(path, none).string();
}

json process_identity() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return {{"host", host},
          {"boot", first_line_of("/proc/sys/kernel/random/boot_id")},
          {"processes", link_text("/proc/self/ns/pid")},
          {"pid", getpid()},
          {"start", start_of(getpid())}};
}

// Whether a process of this machine, which it can see, has ended; nothing: it cannot be known.
std::optional<bool> has_ended(const json& of) {
  const json self = process_identity();
  for (const char* same : {"/boot", "/processes"}) {
    if (text_at(self, same).empty() || text_at(self, same) != text_at(of, same)) return std::nullopt;
  }
  const json pid = of.value("pid", json());
  if (!pid.is_number_integer()) return std::nullopt;
  return start_of(pid) != text_at(of, "/start");
}

std::string unique_name() {
  std::random_device random;
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  std::string name;
  for (const char* letter = host; *letter != '\0'; ++letter)
    name += std::isalnum(static_cast<unsigned char>(*letter)) != 0 ? *letter : '-';
  return fmt::format("{}-{}-{:08x}", name, getpid(), random());
}

void write_and_sync(int descriptor, const std::string& path, const std::string& text) {
  write_all(descriptor, path, text);
  if (fsync(descriptor) != 0 && errno != EINVAL) throw golden::OutputError(path, errno);
}

bool exists(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0;
}

struct BlockName {
  std::int64_t block = -1, generation = 0;  // 0: done
};
std::optional<BlockName> block_of(const std::string& name) {
  long long block = 0, generation = 0;
  int end = 0;
  if (std::sscanf(name.c_str(), "block-%lld.done%n", &block, &end) == 1 && end == static_cast<int>(name.size()))
    return BlockName{block, 0};
  end = 0;
  if (std::sscanf(name.c_str(), "block-%lld.%lld.jsonl%n", &block, &generation, &end) == 2 &&
      end == static_cast<int>(name.size()))
    return BlockName{block, generation};
  return std::nullopt;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code failed;
  for (std::filesystem::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
    names.push_back(at->path().filename().string());
  if (failed) throw golden::FixtureError(folder, "", "cannot be listed: " + failed.message());
  std::sort(names.begin(), names.end());
  return names;
}

json journal_record(const std::string& folder) {
  const std::string path = folder + "/run.json";
  json record = json::parse(golden::read_text_file(path), nullptr, false);
  if (!record.is_object() || text_at(record, "/record") != "journal" || !record.contains("header") ||
      !record.value("blocks", json()).is_number_integer() || !record.value("lease_seconds", json()).is_number())
    throw golden::FixtureError(path, "", "is not the start of a journal of assay run or assay predict");
  return record;
}

}  // namespace

Journal::Journal(std::string folder, const json& header, JournalSettings settings)
    : folder_(std::move(folder)), worker_(unique_name()), header_(header), settings_(settings) {
  std::error_code failed;
  std::filesystem::create_directories(folder_, failed);
  if (failed) throw golden::OutputError(folder_, failed.value());
  join(header);
  blocks_.resize(static_cast<std::size_t>(settings_.blocks));
  if (settings_.blocks > 0) first_ = std::hash<std::string>()(worker_) % blocks_.size();
  register_worker();
}

Journal::~Journal() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  ends_.notify_all();
  if (beating_.joinable()) beating_.join();
  try {
    write_and_sync(beats_, folder_ + "/worker-" + worker_, "end\n");
  } catch (const golden::OutputError&) {  // then its leases expire by time
  }
  close(beats_);
}

void Journal::join(const json& header) {
  const std::string path = folder_ + "/run.json";
  if (!exists(path)) {
    for (const std::string& name : names_in(folder_)) {
      if (name.starts_with("run.json.")) continue;  // of a worker that begins at this moment
      if (!exists(path))
        throw golden::FixtureError(folder_, "", "holds '" + name + "', but no journal: expected an empty folder");
    }
    const json record{
        {"record", "journal"}, {"header", header}, {"blocks", settings_.blocks}, {"lease_seconds", settings_.lease_s}};
    create(path, record.dump(1) + "\n");
  }
  const json record = journal_record(folder_);
  if (const std::string difference = header_difference(record.at("header"), header); !difference.empty())
    throw golden::FixtureError(folder_, "", "is the journal of another run: " + difference);
  settings_ = {record.at("blocks"), record.at("lease_seconds")};
}

void Journal::register_worker() {
  const std::string path = folder_ + "/worker-" + worker_;
  beats_ = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  if (beats_ < 0) throw golden::OutputError(path, errno);
  write_and_sync(beats_, path, line_of(process_identity()) + "\n");
  checked_ = Clock::now();
  beating_ = std::thread([this] { beat(); });
}

void Journal::beat() {
  const auto pause = std::chrono::duration<double>(settings_.lease_s / 6);
  std::unique_lock lock(mutex_);
  while (!ends_.wait_for(lock, pause, [this] { return ended_; })) {
    lock.unlock();
    try {
      write_and_sync(beats_, folder_ + "/worker-" + worker_, ".");
    } catch (const golden::OutputError&) {  // others take the blocks then, and appending verdicts says why
    }
    lock.lock();
  }
}

std::string Journal::block_path(std::int64_t block, std::int64_t generation) const {
  return fmt::format("{}/block-{:06}.{}.jsonl", folder_, block, generation);
}
std::string Journal::done_path(std::int64_t block) const { return fmt::format("{}/block-{:06}.done", folder_, block); }

// Makes a file with its content at once. False: it exists.
bool Journal::create(const std::string& path, const std::string& text) {
  const std::string made = path + "." + worker_ + ".new";
  const int descriptor = open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) throw golden::OutputError(made, errno);
  try {
    write_and_sync(descriptor, made, text);
  } catch (const golden::OutputError&) {
    close(descriptor);
    unlink(made.c_str());
    throw;
  }
  close(descriptor);
  const int fault = link(made.c_str(), path.c_str()) == 0 ? 0 : errno;
  struct stat status {};
  // The answer to a link that was made may be lost on the way, and its repetition fails.
  const bool is_made = fault == 0 || (fault == EEXIST && stat(made.c_str(), &status) == 0 && status.st_nlink == 2);
  unlink(made.c_str());
  if (is_made || fault == EEXIST) return is_made;
  if (fault != EPERM && fault != EOPNOTSUPP && fault != ENOSYS && fault != EMLINK) throw golden::OutputError(path, fault);
  const int exclusive = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);  // there are no hard links here
  if (exclusive < 0 && errno == EEXIST) return false;
  if (exclusive < 0) throw golden::OutputError(path, errno);
  write_and_sync(exclusive, path, text);
  close(exclusive);
  return true;
}

void Journal::scan() {
  for (const std::string& name : names_in(folder_)) {
    const std::optional<BlockName> found = block_of(name);
    if (!found || found->block < 0 || found->block >= settings_.blocks) continue;
    State& state = blocks_[static_cast<std::size_t>(found->block)];
    if (found->generation == 0) state.done = true;
    state.generation = std::max(state.generation, found->generation);
  }
}

std::optional<Journal::Lease> Journal::lease(std::int64_t block, std::int64_t generation) {
  json header = header_;
  header["record"] = "header";
  header["journal"] = {{"block", block}, {"generation", generation}, {"worker", worker_}};
  Lease made{block, generation, block_path(block, generation), {}};
  State& state = blocks_[static_cast<std::size_t>(block)];
  state.generation = std::max(state.generation, generation);
  std::string chain;
  if (!create(made.path, chained(line_of(header), chain) + "\n")) return std::nullopt;
  for (std::int64_t each = 1; each < generation; ++each) made.earlier.push_back(block_path(block, each));
  checked_ = Clock::now();
  if (exists(done_path(block))) {  // its worker had finished just before
    state.done = true;
    return std::nullopt;
  }
  return made;
}

std::optional<Journal::Lease> Journal::take() {
  scan();
  while (!interrupted()) {
    bool all_done = true;
    for (std::size_t i = 0; i < blocks_.size() && !interrupted(); ++i) {
      const auto block = static_cast<std::int64_t>((first_ + i) % blocks_.size());
      const State state = blocks_[static_cast<std::size_t>(block)];
      if (state.done || given_up_.count(block) != 0) continue;
      all_done = false;
      if (state.generation > 0 && !has_expired(block, state.generation)) continue;
      if (state.generation >= kMaxTries && brought_nothing(block, state.generation)) {
        given_up_.insert(block);
        continue;
      }
      if (std::optional<Lease> made = lease(block, state.generation + 1)) return made;
    }
    if (all_done) break;
    std::unique_lock lock(mutex_);
    ends_.wait_for(lock, std::chrono::duration<double>(std::min(1.0, settings_.lease_s / 6)), [] { return false; });
    lock.unlock();
    scan();
  }
  return std::nullopt;
}

// Whether the last kMaxTries leases of a block hold no verdict.
bool Journal::brought_nothing(std::int64_t block, std::int64_t generation) const {
  for (std::int64_t each = generation; each > generation - kMaxTries; --each) {
    std::ifstream file(block_path(block, each));
    int lines = 0;
    for (std::string line; lines < 2 && std::getline(file, line);) ++lines;
    if (lines > 1) return false;
  }
  return true;
}

bool Journal::has_expired(std::int64_t block, std::int64_t generation) {
  std::string& owner = owners_[{block, generation}];
  if (owner.empty()) {
    const json header = json::parse(first_line_of(block_path(block, generation)), nullptr, false);
    owner = text_at(header, "/journal/worker");
  }
  if (owner == worker_) return true;  // this worker gave the block back
  return is_dead(owner, fmt::format("{}.{}", block, generation));
}

bool Journal::is_dead(const std::string& worker, const std::string& seen_as) {
  // A lease that does not say whose it is yet is observed by itself.
  const std::string key = worker.empty() ? seen_as : worker;
  std::int64_t bytes = 0;
  if (!worker.empty()) {
    std::ifstream file(folder_ + "/worker-" + worker, std::ios::binary);  // opened anew: NFS asks the server then
    std::ostringstream all;
    all << file.rdbuf();
    const std::string text = all.str();
    if (text.ends_with("end\n")) return true;
    const json who = json::parse(text.substr(0, text.find('\n')), nullptr, false);
    if (who.is_object()) {
      if (const std::optional<bool> ended = has_ended(who)) return *ended;
    }
    bytes = static_cast<std::int64_t>(text.size());
  }
  const auto now = Clock::now();
  const auto [found, is_new] = seen_.emplace(key, Seen{bytes, now});
  if (found->second.bytes != bytes) found->second = {bytes, now};
  return !is_new && std::chrono::duration<double>(now - found->second.since).count() > settings_.lease_s;
}

bool Journal::holds(const Lease& lease) {
  const auto now = Clock::now();
  if (std::chrono::duration<double>(now - checked_).count() < settings_.lease_s / 6) return true;
  checked_ = now;
  return !exists(block_path(lease.block, lease.generation + 1));
}

void Journal::finish(const Lease& lease) {
  const int descriptor = open(lease.path.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0 || (fsync(descriptor) != 0 && errno != EINVAL)) {
    const int fault = errno;
    if (descriptor >= 0) close(descriptor);
    throw golden::OutputError(lease.path, fault);
  }
  close(descriptor);
  create(done_path(lease.block), "");
  blocks_[static_cast<std::size_t>(lease.block)].done = true;
}

JournalFiles journal_files(const std::string& folder) {
  JournalFiles files;
  files.blocks = journal_record(folder).at("blocks");
  for (const std::string& name : names_in(folder)) {
    const std::optional<BlockName> found = block_of(name);
    if (!found) continue;
    if (found->generation == 0) {
      ++files.done;
    } else {
      files.leases.push_back(folder + "/" + name);
    }
  }
  return files;
}

}  // namespace assay::conformance
