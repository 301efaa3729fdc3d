// The chosen path, and the report about it. A1, A2, A3, A7, C13, C14 of conformance/cases/faults.md: a requirement is a value
// with a reason, and no choice is silent.

#include <gtest/gtest.h>

#include "device/linear/linear_product.h"
#include "device/tests/linear/layer.h"

namespace assay::device_linear_suite {
namespace {

using device::LinearChoice;
using device::LinearNeeds;
using device::LinearVerdict;

// A library with the requirements of spec measured-2.1, written a second time.
std::string gates(int version, const device::GroupedGemmCall& call, int architecture) {
  const std::string name = "cuBLASLt " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + ".0";
  if (version < 130300) return name + " has no grouped layouts (13.3 is needed)";
  const bool later = call.kind == GemmKind::mxfp8 || call.kind == GemmKind::nvfp4;
  if (later && architecture < 100) return std::string(name_of(call.kind)) + " needs sm100";
  if (call.kind == GemmKind::fp8_block && architecture != 90) return "block scaling is Hopper's";
  if (call.kind == GemmKind::fp8_block && version < 130600) return name + " has a fault with block scaling (13.6 is needed)";
  if (call.kind == GemmKind::fp8_per_tensor && architecture < 100 && version < 130500) return name + " (13.5 is needed)";
  if (architecture < 100 && version < 130400) return name + " (13.4 is needed)";
  if (call.kind == GemmKind::bf16 && call.d_type == Format::f16) return "no kernel from bf16 to f16";
  return "";
}

struct ChoiceCase {
  LinearRecipe recipe;
  int version, architecture;
  LinearVerdict verdict;
  std::string reason;
  std::string arithmetic = "";
  Format dw_type = Format::f32;
  bool wgrad = true;
  Format type = Format::bf16;
};

void PrintTo(const ChoiceCase& c, std::ostream* out) {
  *out << name_of(c.recipe) << " " << name_of(c.type) << " dw " << (c.wgrad ? name_of(c.dw_type) : "none") << " version "
       << c.version << " sm" << c.architecture;
}

using enum LinearRecipe;
using enum LinearVerdict;

// clang-format off
const ChoiceCase kCases[] = {
    {none, 131000, 90, cublaslt, "cublaslt: cuBLASLt 13.10.0 has every product on sm90"},
    {tensor_current, 131000, 90, cublaslt, "cublaslt: cuBLASLt 13.10.0 has every product on sm90"},
    {tensor_delayed, 130500, 90, cublaslt, "cublaslt: cuBLASLt 13.5.0 has every product on sm90"},
    {block, 130600, 90, assay, "assay: one kernel of our own for every product on sm90"},
    {mxfp8, 131000, 100, cublaslt, "cublaslt: cuBLASLt 13.10.0 has every product on sm100"},
    {nvfp4, 131000, 100, cublaslt, "cublaslt: cuBLASLt 13.10.0 has every product on sm100"},
    {none, 130100, 90, emulated, "emulated: forward: cuBLASLt 13.1.0 has no grouped layouts (13.3 is needed)", "sm90"},
    {none, 130300, 90, emulated, "emulated: forward: cuBLASLt 13.3.0 (13.4 is needed)", "sm90"},
    {tensor_current, 130400, 90, emulated, "emulated: forward: cuBLASLt 13.4.0 (13.5 is needed)", "sm90"},
    {block, 130500, 90, assay, "assay: one kernel of our own for every product on sm90"},
    {block, 131000, 90, assay, "assay: one kernel of our own for every product on sm90", "", Format::bf16, true, Format::f16},
    {block, 131000, 80, emulated, "emulated: forward: block scaling is Hopper's", "sm90"},
    {block, 131000, 89, emulated, "emulated: forward: block scaling is Hopper's", "sm90"},
    {block, 131000, 100, emulated, "emulated: forward: block scaling is Hopper's", "sm90"},
    {mxfp8, 131000, 90, emulated, "emulated: forward: mxfp8 needs sm100", "sm100"},
    {nvfp4, 131000, 90, emulated, "emulated: forward: nvfp4 needs sm100", "sm100"},
    {mxfp8, 130100, 80, emulated, "emulated: forward: cuBLASLt 13.1.0 has no grouped layouts (13.3 is needed)", "sm100"},
    {none, 131000, 90, emulated, "emulated: wgrad: no kernel from bf16 to f16", "sm90", Format::f16},
    {none, 131000, 90, cublaslt, "cublaslt: cuBLASLt 13.10.0 has every product on sm90", "", Format::f16, false},
    {none, 131000, 90, cublaslt, "cublaslt: cuBLASLt 13.10.0 has every product on sm90", "", Format::f32, true,
     Format::f16},
    {none, 131000, 75, refused, "refused: the device is sm75, and quantization and the emulated GEMM need sm80"},
};
// clang-format on

class Choice : public testing::TestWithParam<ChoiceCase> {};

TEST_P(Choice, IsTold) {
  const ChoiceCase& c = GetParam();
  host_device().reset();
  host_device().version = c.version;
  host_device().missing = [&](const device::GroupedGemmCall& call, int architecture) {
    return gates(c.version, call, architecture);
  };
  LinearConfig config;
  config.recipe = c.recipe;
  config.type = c.type;
  LinearNeeds needs;
  needs.dw_type = c.dw_type;
  needs.wgrad = c.wgrad;
  const LinearChoice choice = device::choose_linear_path(config, needs, c.architecture, host_kernels());
  EXPECT_EQ(choice.verdict, c.verdict);
  EXPECT_EQ(choice.reason, c.reason);
  EXPECT_EQ(choice.arithmetic, c.arithmetic);
  EXPECT_TRUE(host_device().log.empty()) << "nothing is launched";
}

INSTANTIATE_TEST_SUITE_P(DeviceLinear, Choice, testing::ValuesIn(kCases));

// What our own kernel lacks of one product that is needed leaves all of them to what was there before, with both reasons.
TEST(LinearPath, WithoutAKernelOfOurOwn) {
  LinearConfig config;
  config.recipe = block;
  for (const GemmLayout lacked : {GemmLayout::TN, GemmLayout::NN, GemmLayout::NT}) {
    const std::string why = std::string("; not assay: ") + device::step_name(lacked) + ": a build for 90";
    for (const int version : {130500, 131000}) {
      host_device().reset();
      host_device().version = version;
      host_device().missing = [&](const device::GroupedGemmCall& call, int architecture) {
        return gates(version, call, architecture);
      };
      host_device().assay_missing = [&](const device::GroupedGemmCall& call) {
        return std::string(call.layout == lacked ? "a build for 90" : "");
      };
      const auto chosen = [&](LinearNeeds needs) { return device::choose_linear_path(config, needs, 90, host_kernels()); };
      const LinearChoice choice = chosen({});
      EXPECT_EQ(choice.verdict, version == 131000 ? cublaslt : emulated);
      EXPECT_EQ(choice.reason,
                (version == 131000 ? "cublaslt: cuBLASLt 13.10.0 has every product on sm90"
                                   : "emulated: forward: cuBLASLt 13.5.0 has a fault with block scaling (13.6 is needed)") +
                    why);
      EXPECT_EQ(chosen({.dgrad = false}).verdict == assay, lacked == GemmLayout::NN);
      EXPECT_EQ(chosen({.wgrad = false}).verdict == assay, lacked == GemmLayout::NT);
    }
  }
}

// Its instructions were measured on one architecture, and other recipes have no such quantization.
TEST(LinearPath, AnActivationRunsOnSm90) {
  host_device().reset();
  LinearConfig config;
  config.recipe = block;
  config.activation = Activation::swiglu;
  EXPECT_EQ(device::choose_linear_path(config, {}, 90, host_kernels()).verdict, assay);
  for (const int architecture : {80, 89, 100, 120}) {
    const LinearChoice choice = device::choose_linear_path(config, {}, architecture, host_kernels());
    EXPECT_EQ(choice.verdict, refused);
    EXPECT_EQ(choice.reason, "refused: the device is sm" + std::to_string(architecture) +
                                 ", and the instructions of activation swiglu were measured on sm90 alone");
  }
  for (const LinearRecipe recipe : kRecipes) {
    if (recipe == block) continue;
    config.recipe = recipe;
    EXPECT_THROW(device::choose_linear_path(config, {}, 90, host_kernels()), device::InvalidArgument) << name_of(recipe);
  }
}

TEST(LinearPath, NoLibraryIsAReasonToo) {
  host_device().reset();
  host_device().missing_library = "libcublasLt.so.13: cannot open shared object file";
  const LinearChoice choice = device::choose_linear_path({}, {}, 90, host_kernels());
  EXPECT_EQ(choice.verdict, emulated);
  EXPECT_EQ(choice.reason, "emulated: forward: libcublasLt.so.13: cannot open shared object file");
}

// Each product is queried in the form in which it will run: kind, layout, types, accumulation and scalars.
TEST(LinearPath, AsksForTheProductsThatWillRun) {
  for (const LinearRecipe recipe : kRecipes) {
    host_device().reset();
    std::vector<device::GroupedGemmCall> asked;  // of our own kernel, then of the library
    host_device().assay_missing = [&](const device::GroupedGemmCall& call) {
      asked.push_back(call);
      return std::string(call.layout == GemmLayout::NT ? "lacked" : "");
    };
    host_device().missing = [&](const device::GroupedGemmCall& call, int) {
      asked.push_back(call);
      return std::string();
    };
    LinearConfig config;
    config.recipe = recipe;
    config.backward_code = Format::e5m2;
    device::choose_linear_path(config, {}, 90, host_kernels());
    ASSERT_EQ(asked.size(), recipe == block ? 6u : 3u);
    const bool per_tensor = recipe == tensor_current || recipe == tensor_delayed, small = recipe == mxfp8 || recipe == nvfp4;
    const GemmLayout layouts[] = {GemmLayout::TN, GemmLayout::NN, GemmLayout::NT};
    for (std::size_t at = 0; at < asked.size(); ++at) {
      const device::GroupedGemmCall& call = asked[at];
      const std::size_t i = at % 3;
      const bool wgrad = i == 2;
      EXPECT_EQ(call.layout, layouts[i]);
      EXPECT_EQ(call.kind, recipe == none    ? GemmKind::bf16
                           : per_tensor      ? GemmKind::fp8_per_tensor
                           : recipe == block ? GemmKind::fp8_block
                           : recipe == mxfp8 ? GemmKind::mxfp8
                                             : GemmKind::nvfp4);
      EXPECT_EQ(call.split_accumulator, recipe == block || (per_tensor && i != 0));
      EXPECT_EQ(call.scale_layout, small ? ScaleLayout::swizzled : ScaleLayout::compact);
      EXPECT_EQ(call.d_type, wgrad ? Format::f32 : Format::bf16);
      EXPECT_EQ(call.beta != nullptr, wgrad);
      EXPECT_EQ(call.alpha, nullptr);
      const Format code = recipe == none ? Format::bf16 : recipe == nvfp4 ? Format::e2m1 : Format::e4m3;
      EXPECT_EQ(call.x.type, code);
      EXPECT_EQ(call.w.type, code);
      EXPECT_EQ(call.dy.type, recipe == none || recipe == nvfp4 ? code : Format::e5m2);
      EXPECT_EQ(call.x.columnwise, wgrad && recipe != none);
      EXPECT_EQ(call.w.columnwise, i == 1 && recipe != none);
      EXPECT_EQ(call.weight_block, WeightBlock::b128x128);
    }
  }
}

// The plans are those that the suite finds on its own, and a refused choice gives no path.
TEST(LinearPath, OfAChoice) {
  host_device().reset();
  for (const LinearRecipe recipe : kRecipes) {
    const Case c = make_case(recipe);
    LinearChoice choice;
    choice.verdict = emulated;
    choice.arithmetic = recipe == mxfp8 || recipe == nvfp4 ? "sm100" : "sm90";
    const device::LinearPath made = device::linear_path_of(choice, c.config, {});
    const device::LinearPath expected = path_of(c, device::GemmPath::emulated);
    EXPECT_EQ(made.path, device::GemmPath::emulated);
    for (const auto product : {&device::LinearPath::forward, &device::LinearPath::dgrad, &device::LinearPath::wgrad}) {
      EXPECT_EQ((made.*product).arithmetic.plan, (expected.*product).arithmetic.plan) << name_of(recipe);
      EXPECT_EQ((made.*product).arithmetic.unit, (expected.*product).arithmetic.unit) << name_of(recipe);
    }
    choice.verdict = cublaslt;
    EXPECT_EQ(device::linear_path_of(choice, c.config, {}).path, device::GemmPath::cublaslt);
    choice.verdict = LinearVerdict::assay;
    const device::LinearPath own = device::linear_path_of(choice, c.config, {});
    EXPECT_EQ(own.path, device::GemmPath::assay);
    EXPECT_FALSE(own.forward.fp8_block.order || own.dgrad.fp8_block.order || own.wgrad.fp8_block.order)
        << "the kernel's defaults";
    choice.verdict = refused;
    choice.reason = "refused: a reason";
    EXPECT_THROW(device::linear_path_of(choice, c.config, {}), device::NotSupported);
  }
}

// If the build has no code for the device, neither path can launch anything.
TEST(LinearPath, RefusesADeviceWithoutCode) {
  for (const int architecture : {89, 103, 110, 120, 121}) {
    host_device().reset();
    host_device().missing_code =
        "this build has device code for 90a-real, and none that runs on sm" + std::to_string(architecture);
    const LinearChoice choice = device::choose_linear_path({}, {}, architecture, host_kernels());
    EXPECT_EQ(choice.verdict, refused);
    EXPECT_EQ(choice.reason, "refused: " + host_device().missing_code);
    host_device().reset();
    EXPECT_NE(device::choose_linear_path({}, {}, architecture, host_kernels()).verdict, refused);
  }
}

TEST(LinearPath, RefusesWhatNoPathTakes) {
  host_device().reset();
  const auto refused = [](LinearConfig config, LinearNeeds needs, const std::string& expected) {
    try {
      device::choose_linear_path(config, needs, 90, host_kernels());
      ADD_FAILURE() << "no error: " << expected;
    } catch (const device::InvalidArgument& error) {
      EXPECT_EQ(std::string(error.what()).rfind(expected, 0), 0u) << error.what();
    }
  };
  LinearConfig config;
  config.type = Format::f32;
  refused(config, {}, "config.type is f32");
  config = {};
  config.recipe = static_cast<LinearRecipe>(9);
  refused(config, {}, "config.recipe is 9");
  config.recipe = nvfp4;
  config.type = Format::f16;
  refused(config, {}, "config.type is f16");
  EXPECT_EQ(device::choose_linear_path(config, {.wgrad = false}, 100, host_kernels()).verdict, cublaslt);
  config = {};
  config.recipe = block;
  config.amax_epsilon = -1;
  refused(config, {}, "config.amax_epsilon is -1");
  config.amax_epsilon = std::nanf("");
  refused(config, {}, "config.amax_epsilon is nan");
  refused({}, {.dw_type = Format::e4m3}, "needs.dw_type is e4m3");
}

// Columns of 16 bytes save copies by the kernel that takes them, and where nothing is promised that saves them.
TEST(LinearPath, AlignsColumnsWhereThatSavesCopies) {
  for (const LinearRecipe recipe : {LinearRecipe::none, LinearRecipe::tensor_current, LinearRecipe::block, LinearRecipe::mxfp8}) {
    for (const device::GemmPath path : {device::GemmPath::cublaslt, device::GemmPath::emulated, device::GemmPath::assay}) {
      for (const std::int64_t promise : {1, 8, 16, 24, 32}) {
        LinearConfig config;
        config.recipe = recipe;
        const bool aligns = recipe == LinearRecipe::block && path == device::GemmPath::assay && promise % 16 != 0;
        EXPECT_EQ(device::column_alignment_of(config, path, promise), aligns ? 16 : 1);
      }
    }
  }
}

}  // namespace
}  // namespace assay::device_linear_suite
