#include "conformance/diagnose/scale_map/scale_map.h"

#include <fmt/format.h>

#include <cstddef>
#include <new>

#include "conformance/diagnose/scale_map/calls.h"
#include "conformance/diagnose/scale_map/pieces.h"
#include "conformance/diagnose/scale_map/product.h"
#include "conformance/diagnose/scale_map/reads.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

std::vector<const ScaleArray*> chosen(const MappedProduct& product, const std::string& operand) {
  std::vector<const ScaleArray*> arrays;
  for (const ScaleArray* array : {&product.rows, &product.columns}) {
    if (operand.empty() || operand == array->operand) arrays.push_back(array);
  }
  require(!arrays.empty(), "operand", operand, product.rows.operand + " or " + product.columns.operand);
  return arrays;
}

}  // namespace

std::int64_t scale_map_calls(const CaseLine& line, const ScaleMapOptions& options) {
  const MappedProduct product = product_of(line);
  return product.blocks * static_cast<std::int64_t>(chosen(product, options.operand).size());
}

ScaleMap map_scales(Backend& backend, const CaseLine& line, const ScaleMapOptions& options) {
  const MappedProduct product = product_of(line);
  const std::vector<const ScaleArray*> arrays = chosen(product, options.operand);
  ScaleMap map;
  if (product.tiles == 0) {
    map.verdict = Verdict::not_run;
    map.trouble = "no element of D is a sum of products, so that no scale is used";
    return map;
  }
  const auto caught = [&](auto&& body) {
    try {
      body();
      return true;
    } catch (const CallTrouble& trouble) {
      map.verdict = trouble.verdict;
      map.trouble = trouble.text;
    } catch (const BackendError& error) {
      map.verdict = error.status() == ASSAY_TIMEOUT ? Verdict::unfinished : Verdict::machine_failed;
      map.trouble = error.what();
    } catch (const std::bad_alloc&) {
      map.verdict = Verdict::machine_failed;
      map.trouble = "the harness is out of memory";
    }
    return false;
  };
  bool interrupted = false;
  const bool finished = caught([&] {
    ScaleCalls calls(backend, product, options);
    calls.open();
    for (const ScaleArray* array : arrays) {
      ScaleSide& side = map.sides.emplace_back();
      side.array = *array;
      side.planned = product.blocks;
      ScaleReads reads(product, *array);
      // Findings before an error are still reported.
      const auto tell = [&] { tell_reads(reads, side); };
      try {
        calls.look_at(array->of_columns);
        for (std::int64_t block = 0; block < product.blocks; ++block) {
          interrupted = options.interrupted && options.interrupted();
          if (interrupted) break;
          const std::vector<std::byte>& d = calls.ask(block);
          reads.look(block, reinterpret_cast<const float*>(d.data()));
          map.elements += static_cast<std::int64_t>(d.size() / 4);
          ++side.calls;
          if (options.called) options.called(fmt::format("scales of {}, block {}", array->operand, block));
        }
        calls.require_scales_kept();
      } catch (...) {
        tell();
        throw;
      }
      tell();
      if (interrupted) break;
    }
  });
  bool right = true;
  for (const ScaleSide& side : map.sides) right = right && side.wrong_pairs == 0;
  if (!finished) {
    if (!right && map.verdict == Verdict::unfinished) map.verdict = Verdict::failed;  // a failure found earlier remains
    return map;
  }
  map.verdict = !right ? Verdict::failed : interrupted ? Verdict::unfinished : Verdict::passed;
  if (interrupted) map.trouble = "interrupted before the end";
  return map;
}

}  // namespace assay::conformance
