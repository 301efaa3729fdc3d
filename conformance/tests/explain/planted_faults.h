#pragma once
// Faults that are planted to judge `assay explain`. They are taken from reports of released libraries and the table of faults, not
// from the list of causes that it tries. None uses code of the diagnosis: outputs are made again by the scalar layer of a changed
// call, by second implementations, or by loops over the right outputs.

#include <functional>
#include <string>
#include <vector>

#include "golden/io/fixture.h"

namespace assay::conformance::planted_faults {

struct Fault {
  std::string name;    // "the first expert's scale for all"
  std::string source;  // "vllm-project/vllm#57092"
  std::string line;
  // Receives the call with its right outputs and spoils these. `before`: the call before on the same memory, of a replay.
  std::function<void(Case& call, const Case* before)> plant;
  // Words, all of which a text that names the cause has; further lists are other ways to say it.
  std::vector<std::vector<std::string>> names;
};

inline constexpr std::byte kPoison{0xA5};

const std::vector<Fault>& product_faults();
const std::vector<Fault>& sum_faults();
const std::vector<Fault>& quantize_faults();
const std::vector<Fault>& other_faults();

// The output of the call after `change`, by the scalar layer, over the poison.
Tensor redone(const Case& call, const std::string& output, const std::function<void(Case&)>& change);
// Takes the elements of `other` for which `where` holds: row and column of the whole output.
void take(Tensor& to, const Tensor& other, const std::function<bool(std::int64_t row, std::int64_t column)>& where);

// Rows of the groups of a call, and where each begins.
std::vector<std::int64_t> splits_of(const Case& call);
std::vector<std::int64_t> first_rows(const Case& call);

}  // namespace assay::conformance::planted_faults
