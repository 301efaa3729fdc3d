// Wrong calls of every op, tensor and kind, on the reference: the status and the words that part 2 of backend.h states, and memory as
// it was. The tables here are written from that page, not from the code.

#include "conformance/judge/calls/wrong_calls.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "conformance/backends/built_in.h"
#include "conformance/catalogue/catalogue.h"
#include "conformance/judge/call_runner.h"
#include "conformance/judge/judge_parts.h"
#include "conformance/ops/tensor_schema.h"
#include "conformance/tests/judge/rogue_backend.h"

namespace assay::conformance {
namespace {

// What backend.h says about a kind of fault. `when`: the tensors that can have it.
enum class When { always, elements, wide, outputs, two_extents, matrices };
struct Documented {
  const char* fault;
  Refusal refusal;
  When when;
  bool names_part;  // last_error must hold the name of the tensor
};
// clang-format off
constexpr Documented kTensorFaults[] = {
    {"without a name",                                 Refusal::invalid_argument, When::always,   false},
    {"given twice",                                    Refusal::invalid_argument, When::always,   true},
    {"of type -1",                                     Refusal::invalid_argument, When::always,   true},
    {"of type 99",                                     Refusal::invalid_argument, When::always,   true},
    {"of rank -1",                                     Refusal::invalid_argument, When::always,   true},
    {"of rank 5",                                      Refusal::invalid_argument, When::always,   true},
    {"of a negative extent",                           Refusal::invalid_argument, When::always,   true},
    {"of 2^80 elements",                               Refusal::invalid_argument, When::always,   true},
    {"of 8 bytes fewer than its shape takes",          Refusal::invalid_argument, When::always,   true},
    {"of 8 bytes more than its shape takes",           Refusal::invalid_argument, When::always,   true},
    {"without memory",                                 Refusal::invalid_argument, When::elements, true},
    {"one byte past its address",                      Refusal::invalid_argument, When::wide,     true},
    {"at the address of another tensor",                             Refusal::invalid_argument, When::outputs,  true},
    {"on the end of another tensor",                                 Refusal::invalid_argument, When::outputs,  true},
    {"on the start of another tensor",                               Refusal::invalid_argument, When::outputs,  true},
    {"of another type",                                Refusal::either,           When::always,   false},
    {"with an extent of 1 more",                       Refusal::either,           When::always,   false},
    {"in one extent",                                  Refusal::either,           When::two_extents, false},
    {"with its extents exchanged",                     Refusal::either,           When::two_extents, false},
    {"of one row more",                                Refusal::either,           When::elements, false},
    {"of no row",                                      Refusal::either,           When::elements, false},
    {"of one column more",                             Refusal::either,           When::matrices, false},
    {"of no column",                                   Refusal::either,           When::matrices, false},
};
constexpr const char* kOfSomeSizes[] = {"of one row fewer", "of one column fewer"};  // where there are two
struct DocumentedCall { const char* fault; Refusal refusal; };
constexpr DocumentedCall kCallFaults[] = {
    {"the unknown op 'no_such_op'",               Refusal::not_supported},
    {"no op",                                     Refusal::invalid_argument},
    {"the unknown algorithm 1099511627776",       Refusal::either},
    {"the unknown algorithm -2",                  Refusal::either},
    {"the unknown parameter 'no_such_parameter'", Refusal::not_supported},
    {"the unknown input 'no_such_input'",         Refusal::not_supported},
    {"the unknown output 'no_such_output'",       Refusal::not_supported},
    {"a workspace of -1 bytes",                   Refusal::invalid_argument},
};
constexpr const char* kParameterFaults[] = {"no {}", "{} given twice", "{} without a name", "{} of the kind 9"};
// clang-format on

// "offsets_0" as the schema has it.
std::string schema_name(std::string name) {
  while (!name.empty() && std::isdigit(static_cast<unsigned char>(name.back())) != 0) name.back() = '#';
  return name;
}

using Part = std::tuple<std::string, std::string, std::string>;  // op, "input" or "output", name
Part part_of(const std::string& op, const char* folder, const std::string& name) { return {op, folder, schema_name(name)}; }

struct Asked {
  Case problem;
  std::unique_ptr<CallRunner> runner;
  std::vector<WrongCall> wrong;
};

// The calls of all cases with wrong calls, on the reference.
class WrongCalls : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    backend = std::make_unique<Backend>(*reference_backend());
    for (const CaseLine& line : catalogue(Profile::standard)) {
      if (line.op == "scenario" || line.integer("contract") == 0) continue;
      auto made = std::make_unique<Asked>();
      made->problem = generate(line);
      const std::vector<std::string> wanted = wanted_outputs(line);
      const std::vector<OutputSpec> specs = wanted_specs(made->problem, nullptr, &wanted);
      made->runner = std::make_unique<CallRunner>(*backend, made->problem, specs, -1, 60'000);
      made->wrong = wrong_calls(made->runner->call());
      all.push_back(std::move(made));
    }
  }
  static void TearDownTestSuite() {
    all.clear();
    backend.reset();
  }
  static inline std::unique_ptr<Backend> backend;
  static inline std::vector<std::unique_ptr<Asked>> all;
};

bool can_have(const Documented& row, const assay_tensor& tensor, bool is_output) {
  const std::int64_t width = tensor.dtype == ASSAY_E2M1 ? 1 : bits_of(static_cast<Format>(tensor.dtype)) / 8;
  switch (row.when) {
    case When::always: return true;
    case When::elements: return tensor.bytes > 0;
    case When::wide: return tensor.bytes > 0 && width > 1;
    case When::outputs: return is_output && tensor.bytes > 0;
    case When::two_extents: return tensor.rank == 2;
    case When::matrices: return tensor.bytes > 0 && tensor.rank == 2;
  }
  return false;
}

std::set<std::string> faults_of(const Asked& asked, const std::string& part) {
  std::set<std::string> faults;
  for (const WrongCall& wrong : asked.wrong) {
    if (wrong.part == part) faults.insert(wrong.fault);
  }
  return faults;
}

// Every tensor of every call has every fault of the table that it can have, outputs with every other tensor; and no fault is made
// that the tables do not have.
TEST_F(WrongCalls, MakeEveryFaultOfEveryTensor) {
  std::set<std::string> known;
  for (const Documented& row : kTensorFaults) known.insert(row.fault);
  for (const char* fault : kOfSomeSizes) known.insert(fault);
  for (const auto& asked : all) {
    const assay_call& call = asked->runner->call();
    const auto look = [&](const assay_tensor& tensor, bool is_output) {
      const std::set<std::string> faults = faults_of(*asked, (is_output ? "output " : "input ") + std::string(tensor.name));
      for (const Documented& row : kTensorFaults) {
        const bool found = faults.count(row.fault) != 0;
        EXPECT_EQ(found, can_have(row, tensor, is_output)) << asked->problem.name << ", " << tensor.name << " " << row.fault;
      }
      for (const std::string& fault : faults) EXPECT_TRUE(known.count(fault) == 1 || fault == "no {}") << fault;
    };
    std::ptrdiff_t outputs = 0, others = 0;
    for (std::int32_t i = 0; i < call.input_count; ++i) look(call.inputs[i], false), others += call.inputs[i].bytes > 0 ? 1 : 0;
    for (std::int32_t i = 0; i < call.output_count; ++i)
      look(call.outputs[i], true), outputs += call.outputs[i].bytes > 0 ? 1 : 0;
    const auto is_overlap = [](const WrongCall& each) { return each.fault.ends_with("of another tensor"); };
    EXPECT_EQ(std::count_if(asked->wrong.begin(), asked->wrong.end(), is_overlap), outputs * 3 * (others + outputs - 1))
        << asked->problem.name;
    for (const DocumentedCall& row : kCallFaults) {
      const auto has = [&](const WrongCall& each) { return each.part.empty() && each.fault == row.fault; };
      EXPECT_EQ(std::count_if(asked->wrong.begin(), asked->wrong.end(), has), 1) << row.fault;
    }
    for (std::int32_t i = 0; i < call.parameter_count; ++i) {
      const std::set<std::string> faults = faults_of(*asked, "parameter " + std::string(call.parameters[i].name));
      for (const char* fault : kParameterFaults) EXPECT_EQ(faults.count(fault), 1u) << fault;
    }
  }
}

// The tensors that occur in any small case of the profile, as generator and ops have them: a second route beside the schema.
std::set<Part> tensors_that_occur() {
  std::set<Part> parts;
  for (const CaseLine& line : catalogue(Profile::standard)) {
    if (line.op == "scenario" || cost_of(line).elements > 1 << 14) continue;
    const Case problem = generate(line);
    for (const auto& [name, tensor] : problem.in) parts.insert(part_of(problem.op, "input", name));
    for (const OutputSpec& spec : outputs_of(Request::read_only(problem))) parts.insert(part_of(problem.op, "output", spec.name));
  }
  return parts;
}

std::set<Part> tensors_of_the_schema() {
  std::set<Part> parts;
  for (const OpTensors& op : tensor_schema()) {
    for (const TensorSchema& each : op.in) parts.emplace(op.op, "input", each.name);
    for (const TensorSchema& each : op.out) parts.emplace(op.op, "output", each.name);
  }
  return parts;
}

TEST_F(WrongCalls, AreMadeOfEveryTensorOfEveryOp) {
  std::set<Part> made;
  for (const auto& asked : all) {
    const assay_call& call = asked->runner->call();
    for (std::int32_t i = 0; i < call.input_count; ++i) made.insert(part_of(call.op, "input", call.inputs[i].name));
    for (std::int32_t i = 0; i < call.output_count; ++i) made.insert(part_of(call.op, "output", call.outputs[i].name));
  }
  const std::set<Part> occur = tensors_that_occur(), schema = tensors_of_the_schema();
  for (const std::set<Part>* wanted : {&occur, &schema}) {
    for (const Part& each : *wanted) {
      const auto& [op, folder, name] = each;
      if (name == "columnwise_amax" && op == "quantize" && folder == "input") continue;  // of no case: calls of a user alone
      EXPECT_EQ(made.count(each), 1u) << op << " " << folder << " " << name << ": no line with contract=1 has it";
    }
  }
  EXPECT_EQ(made.size(), 119u);  // a tensor more needs a line with contract=1
}

std::string bare(const std::string& part) { return part.substr(part.find(' ') + 1); }

TEST_F(WrongCalls, AreRefusedAsDocumented) {
  std::map<std::string, Refusal> documented;
  for (const DocumentedCall& row : kCallFaults) documented[row.fault] = row.refusal;
  std::int64_t refused = 0;
  std::set<std::string> of_option;
  for (const auto& asked : all) {
    CallRunner& runner = *asked->runner;
    for (const WrongCall& wrong : asked->wrong) {
      if (wrong.decides == Decides::schema && !is_wrong_by_schema(runner.call(), wrong)) continue;
      CallParts parts(runner.call());
      wrong.change(parts);
      const Attempt tried = runner.refused(parts.call(), 0xa5);
      const std::string where = asked->problem.name + ", " + wrong.what + ": " + tried.error;
      if (wrong.decides == Decides::reference && tried.status == ASSAY_OK) continue;  // it may be left out, or be so
      EXPECT_TRUE(tried.damage.empty()) << where << ": " << tried.damage.front();
      ++refused;
      Refusal expected = documented.count(wrong.fault) != 0 ? documented.at(wrong.fault) : wrong.refusal;
      bool names_part = false;
      for (const Documented& row : kTensorFaults) {
        if (wrong.part.starts_with("parameter") || wrong.fault != row.fault) continue;
        expected = row.refusal, names_part = row.names_part;
      }
      EXPECT_TRUE(is_documented(expected, tried.status)) << where << ": " << name_of(tried.status);
      EXPECT_TRUE(!names_part || tried.error.find("/" + bare(wrong.part)) != std::string::npos) << where;
      // A function in Python has no other check of types than this.
      if (wrong.fault == "of another type" && !is_wrong_by_schema(runner.call(), wrong))
        of_option.insert(asked->problem.op + " " + wrong.part);
      EXPECT_FALSE(tried.error.empty()) << where;
      EXPECT_EQ(tried.error.find_first_of("\n\r"), std::string::npos) << where;
      // Questions refuse the call too, and write nothing.
      const assay_status asked_first = backend->table().supports(backend->context(), &parts.call());
      EXPECT_TRUE(asked_first != ASSAY_OK || wrong.decides == Decides::reference) << where;
      assay_numerics numerics{};
      numerics.struct_size = sizeof numerics;
      backend->table().numerics(backend->context(), &parts.call(), &numerics);
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(refused, 10'000);
  EXPECT_EQ(of_option, std::set<std::string>{"quantize input x"});  // draws of TransformerEngine are of bf16 alone
}

// Sizes that only contents decide, or that are free: another size of such a tensor is not wrong for who cannot read them. Every other
// change of a type, a rank or an extent shows in some call.
constexpr const char* kDecidedByContents[] = {
    "dequantize input columnwise_scale_inv",  // sum over the groups, of the padded rows of each: up to what any splits have
    "quantize_by_rule output amax",
    "swizzle input splits",  // how many groups there are shows in no other shape
    "unswizzle input splits",
    "quantize_by_rule input splits",
    "quantize_by_rule input amax",  // one for each group, or for each row of a group
    "grouped_dbias input dy",       // rows behind the last group are allowed
    "permute input row_map",        // any number of choices
    "unpermute input permuted",     // any number of rows
};

TEST_F(WrongCalls, AreWrongUnlessContentsDecide) {
  std::set<std::string> free, wrong_somewhere;
  for (const auto& asked : all) {
    for (const WrongCall& wrong : asked->wrong) {
      if (wrong.decides != Decides::schema) continue;
      const auto [op, folder, name] =
          part_of(asked->problem.op, wrong.part.starts_with("in") ? "input" : "output", bare(wrong.part));
      const std::string text = op + " " + folder + " " + name + "|" + wrong.fault;
      (is_wrong_by_schema(asked->runner->call(), wrong) ? wrong_somewhere : free).insert(text);
    }
  }
  std::set<std::string> found;
  for (const std::string& each : free) {
    if (wrong_somewhere.count(each) != 0) continue;
    const std::string fault = each.substr(each.find('|') + 1);
    EXPECT_TRUE(fault.find(" row") != std::string::npos || fault.find(" column") != std::string::npos) << each;
    found.insert(each.substr(0, each.find('|')));
  }
  EXPECT_EQ(found, std::set<std::string>(std::begin(kDecidedByContents), std::end(kDecidedByContents)));
}

}  // namespace
}  // namespace assay::conformance
