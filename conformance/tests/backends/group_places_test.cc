// Requests whose groups lie in other places than one after another, as calls of the device library. No device is needed.
#ifdef ASSAY_HAS_DEVICE

#include <gtest/gtest.h>

#include <string>

#include "conformance/backends/device/gemm_request.h"
#include "conformance/cases/case_line.h"
#include "conformance/generate/generator.h"
#include "conformance/judge/call_runner.h"
#include "conformance/ops/answer.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

// What the kernels read of groups in other places: the tensor itself, and the attributes.
TEST(GemmRequest, PassesThePlacesOfGroups) {
  struct Row {
    const char* text;
    const char* tensor;
    GroupedLayout layout;
    std::int64_t capacity, alignment, max_m;
  };
  const Row rows[] = {
      {"grouped_gemm kind=bf16 grouped_layout=m_indices alignment=8 splits=5,0,17,8 N=24 K=40", "m_indices",
       GroupedLayout::m_indices, 40, 8, 0},
      {"grouped_gemm kind=fp8_block grouped_layout=psum alignment=16 splits=5,0,33 N=24 K=144 extra_rows=3", "psum",
       GroupedLayout::psum, 67, 16, 0},
      {"grouped_gemm kind=bf16 layout=NT grouped_layout=psum alignment=32 splits=5,0,70 N=24 K=40", "psum", GroupedLayout::psum,
       128, 32, 0},
      {"grouped_gemm kind=fp8_block grouped_layout=masked max_m=20 splits=5,0,20,8 N=24 K=144", "splits", GroupedLayout::masked,
       80, 1, 20},
      {"grouped_gemm kind=bf16 grouped_layout=psum splits=0x0 N=8 K=16 extra_rows=3", "psum", GroupedLayout::psum, 3, 128, 0},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.text);
    Case problem = generate(parse_case_line(row.text));
    Backend backend("reference");
    CallRunner runner(backend, problem, outputs_of(Request::of(problem)), -1, 60'000);
    const Request request = Request::of(runner.call());
    Request copy = request;
    const GemmRequest parsed(copy);
    for (auto& [name, tensor] : copy.in) tensor.data = nullptr;  // the call is made after the request is gone
    alignas(256) std::uint32_t status = 0;
    alignas(256) std::byte workspace[4096];
    const device::GroupedGemmCall ready = parsed.bind(workspace, &status, nullptr);
    EXPECT_NO_THROW(device::check_grouped_gemm(ready));
    EXPECT_EQ(ready.places.layout, row.layout);
    EXPECT_EQ(ready.rows.capacity, row.capacity);
    EXPECT_EQ(ready.places.alignment, row.alignment);
    EXPECT_EQ(ready.places.max_m, row.max_m);
    const void* given = request.input(row.tensor).data;
    const void* read = row.layout == GroupedLayout::masked ? static_cast<const void*>(ready.rows.splits) : ready.places.index;
    EXPECT_EQ(read, given == nullptr ? &status : given);
  }
}

TEST(GemmRequest, RefusesPlacesThatMakeNoSense) {
  const struct {
    const char* line;
    void (*change)(Case&);
    const char* reported;
    // clang-format off
  } rows[] = {
      {"m_indices", [](Case& each) { each.in.at("m_indices") = make_tensor(Format::i32, {39}); }, "rows of x"},
      {"m_indices", [](Case& each) { each.in.at("m_indices").type = Format::f32; }, "in/m_indices"},
      {"m_indices", [](Case& each) { each.attributes["alignment"] = std::int64_t{0}; }, "alignment"},
      {"m_indices", [](Case& each) { each.attributes.erase("groups"); }, "groups"},
      {"m_indices", [](Case& each) { each.attributes["groups"] = std::int64_t{-1}; }, "groups"},
      {"m_indices", [](Case& each) { each.in.at("x_rowwise_scale_inv").shape[0] -= 1; }, "x_rowwise_scale_inv"},
      {"psum", [](Case& each) { each.in.at("psum").shape = {2, 2}; }, "in/psum"},
      {"psum", [](Case& each) { each.in.erase("psum"); }, "psum"},
      {"masked", [](Case& each) { each.attributes["max_m"] = std::int64_t{19}; }, "rows of x"},
      {"masked", [](Case& each) { each.attributes.erase("max_m"); }, "max_m"},
  };
  // clang-format on
  for (const auto& row : rows) {
    SCOPED_TRACE(std::string(row.line) + ", " + row.reported);
    const std::string places = row.line == std::string("masked") ? " max_m=20" : " alignment=8";
    Case problem = generate(parse_case_line(
        "grouped_gemm kind=fp8_block d_type=f32 N=24 K=136 splits=5,0,17,8 grouped_layout=" + std::string(row.line) + places));
    const std::int64_t R = row.line == std::string("masked") ? 80 : 40;
    problem.out["d"] = make_tensor(Format::f32, {R, 24});
    EXPECT_NO_THROW(GemmRequest{Request::of(problem)});
    row.change(problem);
    try {
      const GemmRequest request(Request::of(problem));
      ADD_FAILURE() << "was taken";
    } catch (const std::exception& error) {
      EXPECT_NE(std::string(error.what()).find(row.reported), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace assay::conformance

#endif
