#pragma once
// A case in memory: what a fixture file stores, what a case line generates and what a backend is called with. The vocabulary
// (ops, attribute names, tensor names, shapes) is that of the fixture schema, golden/schema.md.

#include <cstdint>
#include <map>
#include <string>
#include <variant>

#include "reference/types/tensor.h"

namespace assay {

using Attribute = std::variant<std::int64_t, double, std::string>;

struct Case {
  std::string name;  // path of the group in the file, without the leading '/'
  std::string op;
  std::map<std::string, Attribute> attributes;  // without `op`
  std::map<std::string, Tensor> in;
  std::map<std::string, Tensor> out;  // expected; an absent output is not checked
};

}  // namespace assay
