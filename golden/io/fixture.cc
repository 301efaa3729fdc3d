#include "golden/io/fixture.h"

#include <bit>

namespace assay::golden {
namespace {

bool same_attribute(const Attribute& a, const Attribute& b) {
  const double* x = std::get_if<double>(&a);
  const double* y = std::get_if<double>(&b);
  if (x != nullptr && y != nullptr) return std::bit_cast<std::uint64_t>(*x) == std::bit_cast<std::uint64_t>(*y);
  return a == b;
}

template <class Map, class Same>
bool same_map(const Map& a, const Map& b, Same same) {
  if (a.size() != b.size()) return false;
  for (auto x = a.begin(), y = b.begin(); x != a.end(); ++x, ++y) {
    if (x->first != y->first || !same(x->second, y->second)) return false;
  }
  return true;
}

}  // namespace

bool same_fixture(const Fixture& a, const Fixture& b) {
  if (a.schema != b.schema || a.provenance != b.provenance || a.cases.size() != b.cases.size()) return false;
  for (std::size_t i = 0; i < a.cases.size(); ++i) {
    const Case& x = a.cases[i];
    const Case& y = b.cases[i];
    if (x.name != y.name || x.op != y.op || !same_map(x.attributes, y.attributes, same_attribute) ||
        !same_map(x.in, y.in, same_tensor) || !same_map(x.out, y.out, same_tensor)) {
      return false;
    }
  }
  return true;
}

}  // namespace assay::golden
