#pragma once
// A fixture with everything in the schema: every dtype, every kind of attribute, shapes of every rank, values that a conversion
// would change.

#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "golden/io/fixture.h"
#include "reference/types/tensor.h"

namespace assay::golden {

// Bytes 7, 44, 81, ...: every byte value occurs, so floats include NaNs with payloads.
inline Tensor patterned(Format type, std::vector<std::int64_t> shape, unsigned start = 7) {
  Tensor tensor = make_tensor(type, std::move(shape));
  for (std::size_t i = 0; i < tensor.bytes.size(); ++i) tensor.bytes[i] = static_cast<std::byte>(start + 37 * i);
  return tensor;
}

inline Fixture sample_fixture() {
  Fixture fixture;
  fixture.provenance = R"({"producer": "a test", "note": "größer, 大"})";

  Case every;
  every.name = "every/dtype";
  every.op = "quantize";
  every.attributes = {{"integer", std::int64_t{-5}},
                      {"largest", std::numeric_limits<std::int64_t>::max()},
                      {"smallest", std::numeric_limits<std::int64_t>::min()},
                      {"real", 0.1},
                      {"minus_zero", -0.0},
                      {"nan", std::numeric_limits<double>::quiet_NaN()},
                      {"text", std::string("block_1x128")},
                      {"empty_text", std::string()},
                      {"text_in_utf8", std::string("é 大")}};
  for (const Format type : {Format::f32, Format::i32, Format::i64, Format::bf16, Format::f16, Format::e4m3, Format::e5m2,
                            Format::e8m0, Format::e2m1}) {
    every.in[std::string(name_of(type))] = patterned(type, {3, 5});
    every.out[std::string(name_of(type))] = patterned(type, {64, 32}, 9);  // enough to be compressed
  }

  Case shapes;
  shapes.name = "shapes";
  shapes.op = "anything";
  shapes.in["scalar"] = patterned(Format::f32, {});
  shapes.in["none"] = make_tensor(Format::bf16, {0});
  shapes.in["no_rows"] = make_tensor(Format::e4m3, {0, 128});
  shapes.in["no_columns"] = make_tensor(Format::i64, {7, 0});
  shapes.in["rank_8"] = patterned(Format::e5m2, {1, 2, 1, 3, 1, 2, 1, 2});
  shapes.in["flat"] = patterned(Format::e4m3, {2'500'001});       // three chunks, the last not full
  shapes.in["wide_rows"] = patterned(Format::f32, {3, 300'001});  // a row is more than a chunk
  shapes.in["größe"] = patterned(Format::i32, {4});

  Case shared;
  shared.name = "größe/入力";
  shared.op = "quantize";
  shared.in["x"] = patterned(Format::f32, {3, 5});  // as every/dtype/in/f32
  shared.in["again"] = shared.in["x"];

  Case nested;
  nested.name = "shapes/nested";
  nested.op = "quantize";
  nested.in["x"] = patterned(Format::bf16, {2, 2});

  Case inputs_only;
  inputs_only.name = "a";
  inputs_only.op = "splits_to_offsets";
  inputs_only.in["splits"] = make_tensor(Format::i64, {4});

  // In the order of their names, as the reader returns them.
  fixture.cases = {inputs_only, every, shared, shapes, nested};
  return fixture;
}

// A few hundred bytes of tensors: for tests that make thousands of files from it.
inline Fixture small_fixture() {
  Fixture fixture;
  fixture.provenance = R"({"producer": "a test"})";
  Case each;
  each.name = "group/case";
  each.op = "quantize";
  each.attributes = {{"pow2", std::int64_t{1}}, {"eps", 0.5}, {"recipe", std::string("block_1x128")}};
  each.in["x"] = patterned(Format::bf16, {4, 6});
  each.in["splits"] = make_tensor(Format::i64, {2});
  each.out["rowwise_data"] = patterned(Format::e4m3, {32, 40});
  each.out["rowwise_scale_inv"] = patterned(Format::f32, {4});
  fixture.cases.push_back(each);
  each.name = "other";
  each.out.clear();
  fixture.cases.push_back(each);
  return fixture;
}

}  // namespace assay::golden
