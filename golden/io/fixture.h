#pragma once
// A case in memory: what a fixture file stores, what a case line generates and what a backend is asked. The vocabulary
// (ops, attribute names, tensor names, shapes) is that of the fixture schema, so the three never need translation.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "reference/formats/format.h"

namespace assay::golden {

struct Tensor {
  Format type = Format::f32;
  std::vector<std::int64_t> shape;  // of the elements as stored: e2m1 counts bytes, two codes each
  std::vector<std::byte> bytes;     // row-major, native byte order

  // Elements as stored (bytes for e2m1).
  std::int64_t elements() const {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    return count;
  }
  template <class T>
  T* as() { return reinterpret_cast<T*>(bytes.data()); }
  template <class T>
  const T* as() const { return reinterpret_cast<const T*>(bytes.data()); }
};

// A tensor of zeros. Errors: a negative extent, or a size past int64.
Tensor make_tensor(Format type, std::vector<std::int64_t> shape);

using Attribute = std::variant<std::int64_t, double, std::string>;

struct Case {
  std::string name;                             // path of the group in the file, without the leading '/'
  std::string op;
  std::map<std::string, Attribute> attributes;  // without `op`
  std::map<std::string, Tensor> in;
  std::map<std::string, Tensor> out;            // expected; an absent output is not checked
};

// A file: its root attributes and its cases in the order of their names.
struct Fixture {
  std::int64_t schema = 1;
  std::string provenance;  // JSON text
  std::vector<Case> cases;
};

}  // namespace assay::golden
