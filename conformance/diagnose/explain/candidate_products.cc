// The product computed otherwise: the ways of the hints, and further ones.

#include <algorithm>
#include <cstring>
#include <exception>

#include "conformance/diagnose/explain/candidate.h"
#include "reference/support/parallel.h"

namespace assay::conformance::explaining {
namespace {

using diagnosis::NamedVariant;
using diagnosis::ProductVariant;

constexpr std::int64_t kMostProducts = std::int64_t{1} << 33;  // of one candidate by the scalar layer

std::int64_t products_of(const GroupedGemmView& view) {
  std::int64_t products = 0;
  for (const GroupView& group : view.groups) products += group.m * group.n * std::max<std::int64_t>(group.depth, 1);
  return products;
}

}  // namespace

bool write_product(const ProductVariant& variant, const FailedOutput& output, Tensor& tensor) {
  if (products_of(variant.view) > kMostProducts) return false;
  const auto width = static_cast<std::size_t>(bits_of(output.want.type) / 8);
  parallel_for(output.elements, 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end; ++at) {
      const auto word = variant.word(at);
      if (word) std::memcpy(tensor.bytes.data() + static_cast<std::size_t>(at) * width, &*word, width);
    }
  });
  return true;
}

void propose_products(const Failure& failure, const ProductVariant& right, const Propose& propose) {
  const FailedOutput* const output = failure.product();
  if (output == nullptr || bits_of(output->want.type) < 16 || right.view.groups.empty()) return;
  int cost = 10;
  const auto family = [&](ProductWays (*ways)(const ProductVariant&)) {
    for (NamedVariant& named : ways(right)) {
      auto variant = std::make_shared<ProductVariant>(right);
      const auto way = std::make_shared<NamedVariant>(std::move(named));  // may own what the variant reads
      try {
        if (!way->apply(*variant)) continue;
      } catch (const std::exception&) {  // no unit has such a step
        continue;
      }
      Candidate candidate{way->text, cost};
      candidate.some = [variant, way](std::span<const std::int64_t> elements) {
        Words words;
        for (const std::int64_t at : elements) words.push_back(variant->word(at));
        return words;
      };
      candidate.all = [variant, way, output](Outputs& outputs) {
        return write_product(*variant, *output, outputs[output->name]);
      };
      candidate.way = way;
      propose(std::move(candidate));
    }
    ++cost;
  };
  family(diagnosis::finish_variants);
  family(diagnosis::read_variants);
  family(diagnosis::sum_variants);
  family(further_plans);
  family(scale_places);
  family(operand_places);
}

}  // namespace assay::conformance::explaining
