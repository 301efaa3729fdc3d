#include "device/tests/mutants/on_device/notes.h"

#include <cstdint>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "conformance/support/counter_random.h"

namespace assay::mutants {
namespace {

// Of the file: a number for the mutants and the size of a note, then the name (its length first) and the note of each call.
struct Header {
  std::uint64_t mutants, size;
};

Header header_of(const std::vector<std::string>& keys) {
  std::string all;
  for (const std::string& key : keys) all += key + "\n";
  return {conformance::fnv1a(all), sizeof(Noted)};
}

template <class T>
bool take(std::istream& in, T& value) {
  return static_cast<bool>(in.read(reinterpret_cast<char*>(&value), sizeof value));
}

template <class T>
void put(std::ostream& out, const T& value) {
  out.write(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

Notes read_notes(const std::string& path, const std::vector<std::string>& keys) {
  Notes notes;
  std::ifstream in(path, std::ios::binary);
  if (!in) return notes;
  const Header expected = header_of(keys);
  Header found{};
  if (!take(in, found) || std::memcmp(&found, &expected, sizeof found) != 0)
    throw std::runtime_error(path + ": has the notes of no library with these mutants");
  for (std::uint32_t length = 0; take(in, length);) {
    if (length > 1 << 16) throw std::runtime_error(path + ": has a name of " + std::to_string(length) + " bytes");
    std::string name(length, ' ');
    if (!in.read(name.data(), length) || !take(in, notes[name])) throw std::runtime_error(path + ": ends in a note");
  }
  return notes;
}

void write_notes(const std::string& path, const std::vector<std::string>& keys, const Notes& notes) {
  std::ofstream out(path, std::ios::binary);
  put(out, header_of(keys));
  for (const auto& [name, note] : notes) {
    put(out, static_cast<std::uint32_t>(name.size()));
    out << name;
    put(out, note);
  }
  if (!out.flush()) throw std::runtime_error(path + ": cannot be written");
}

}  // namespace assay::mutants
