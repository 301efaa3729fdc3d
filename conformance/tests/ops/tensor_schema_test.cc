// The tensors that `assay list --schema` prints are those that the ops read and write, in every case of the standard profile and
// of the recorded fixtures: none is missing, and none is too many.

#include "conformance/ops/tensor_schema.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "conformance/catalogue/catalogue.h"
#include "conformance/generate/generator.h"
#include "conformance/ops/answer.h"
#include "golden/io/reader.h"
#include "reference/layout/scale_shape.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

FormulaValues values(std::vector<std::int64_t> rows) {
  std::int64_t sum = 0;
  for (const std::int64_t each : rows) sum += each;
  return {{{"R", sum}, {"K", 7}, {"N", 0}, {"G", static_cast<std::int64_t>(rows.size())}}, std::move(rows)};
}

TEST(ShapeFormula, HasItsValue) {
  const FormulaValues at = values({5, 0, 9});
  EXPECT_EQ(value_of_formula("R", at), 14);
  EXPECT_EQ(value_of_formula("R/2*K", at), 49);
  EXPECT_EQ(value_of_formula("1+2*(3-1)", at), 5);
  EXPECT_EQ(value_of_formula("blocks(R,5)", at), 3);
  EXPECT_EQ(value_of_formula("blocks(N,5)", at), 0);
  EXPECT_EQ(value_of_formula("up(R,4)", at), 16);
  EXPECT_EQ(value_of_formula("up(blocks(K,2),4)", at), 4);
  EXPECT_EQ(value_of_formula("sum(r)", at), 14);
  EXPECT_EQ(value_of_formula("sum(r/2)*K+sum(up(r,4)*G)", at), 6 * 7 + (8 + 0 + 12) * 3);
  EXPECT_EQ(value_of_formula("sum(up(r,4)*G)", values({})), 0);
  EXPECT_EQ(extents_of_formula("up(R,4),K,1", at), (std::vector<std::int64_t>{16, 7, 1}));
}

TEST(ShapeFormula, RefusesWhatIsNone) {
  const FormulaValues at = values({5});
  for (const char* wrong : {"", "R,", "R K", "Q", "r", "R/N", "up(R)", "up(R,0)", "down(R,4)", "(R", "sum(r", "R,K,"}) {
    EXPECT_THROW(extents_of_formula(wrong, at), InvalidArgument) << wrong;
  }
  EXPECT_THROW(value_of_formula("R,K", at), InvalidArgument);
}

std::string shown(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t each : shape) text += std::to_string(each) + " ";
  return text;
}

// Whether the tensor has one of the schema's types and shapes.
void expect_described(const TensorSchema* schema, const std::string& what, const Request& request, Format type,
                      const std::vector<std::int64_t>& shape) {
  ASSERT_NE(schema, nullptr) << what << " is not in the schema";
  const std::vector<Format> types = types_of(*schema, request);
  EXPECT_NE(std::find(types.begin(), types.end(), type), types.end())
      << what << " is " << name_of(type) << ", said to be " << schema->type;
  const auto shapes = shapes_of(*schema, request);
  EXPECT_NE(std::find(shapes.begin(), shapes.end(), shape), shapes.end())
      << what << " has the shape " << shown(shape) << ", the schema " << schema->shape << " or " << schema->grouped_shape << ": "
      << shown(shapes[0]);
}

// One pass over all cases: their tensors, those that the ops read, and the entries of the schema that occur.
class Cases {
 public:
  static const Cases& all() {
    static const Cases cases;
    return cases;
  }
  std::vector<Case> cases;

 private:
  Cases() {
    for (const CaseLine& line : catalogue(Profile::standard)) {
      if (line.op == "scenario") continue;
      const CaseCost cost = cost_of(line);
      if (cost.elements > (1 << 20)) continue;  // shapes that occur in other cases with fewer elements
      cases.push_back(generate(line));
    }
    for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(ASSAY_GOLDEN_CASES).parent_path())) {
      if (entry.path().extension() != ".h5") continue;
      for (Case& each : golden::read_fixture(entry.path()).cases) cases.push_back(std::move(each));
    }
  }
};

TEST(TensorSchema, DescribesEveryTensorOfEveryCase) {
  for (const Case& each : Cases::all().cases) {
    Case copy = each;
    const Request request = Request::of(copy);
    const OpTensors& op = tensors_of(each.op);
    for (const auto& [name, tensor] : each.in) {
      expect_described(find_tensor(op.in, name, request), each.name + " in/" + name, request, tensor.type, tensor.shape);
    }
    for (const TensorSchema& tensor : op.in) {
      const bool needed = tensor.need == Need::required && holds(tensor, request);
      EXPECT_TRUE(!needed || each.in.count(tensor.name) == 1) << each.name << " has no " << tensor.name;
    }
    std::set<std::string> given;
    for (const OutputSpec& spec : outputs_of(request)) {
      given.insert(spec.name);
      expect_described(find_tensor(op.out, spec.name, request), each.name + " out/" + spec.name, request, spec.type, spec.shape);
    }
    for (const TensorSchema& tensor : op.out) {
      const bool certain = tensor.need == Need::required && holds(tensor, request) && tensor.name.find('#') == std::string::npos;
      EXPECT_TRUE(!certain || given.count(tensor.name) == 1) << each.name << " gives no " << tensor.name;
    }
    for (const auto& [name, tensor] : each.out) EXPECT_EQ(given.count(name), 1u) << each.name << " out/" << name;
    if (HasFailure()) return;
  }
}

// Every entry occurs in some case.
TEST(TensorSchema, HasNoEntryThatNoCaseMeets) {
  std::set<const TensorSchema*> met;
  for (const Case& each : Cases::all().cases) {
    Case copy = each;
    const Request request = Request::of(copy);
    const OpTensors& op = tensors_of(each.op);
    for (const auto& [name, tensor] : each.in) met.insert(find_tensor(op.in, name, request));
    for (const OutputSpec& spec : outputs_of(request)) met.insert(find_tensor(op.out, spec.name, request));
  }
  // Tensors that occur only in calls of a user.
  Case own = generate(parse_case_line("quantize recipe=nvfp4 R=16 K=32"));
  own.in["columnwise_amax"] = make_tensor(Format::f32, {1});
  const Request request = Request::of(own);
  EXPECT_NO_THROW(outputs_of(request));
  met.insert(find_tensor(tensors_of("quantize").in, "columnwise_amax", request));
  for (const OpTensors& op : tensor_schema()) {
    for (const auto* list : {&op.in, &op.out}) {
      for (const TensorSchema& tensor : *list)
        EXPECT_EQ(met.count(&tensor), 1u) << op.op << " " << tensor.name << " if " << tensor.when;
    }
  }
}

// An op reads exactly the attributes and inputs that the schema names.
TEST(TensorSchema, NamesWhatTheOpsAskFor) {
  std::map<std::string, std::set<std::string>> asked;
  for (const Case& each : Cases::all().cases) {
    Case copy = each;
    const Request request = Request::of(copy);
    outputs_of(request);
    asked[each.op].insert(request.asked_for().begin(), request.asked_for().end());
  }
  ASSERT_EQ(tensor_schema().size(), known_ops().size());
  for (std::size_t i = 0; i < known_ops().size(); ++i) {
    const OpTensors& op = tensor_schema()[i];
    EXPECT_EQ(op.op, known_ops()[i]);
    std::set<std::string> named(op.attributes.begin(), op.attributes.end());
    for (const TensorSchema& tensor : op.in) named.insert(tensor.name);
    EXPECT_EQ(asked[std::string(op.op)], named) << op.op;
  }
}

// A required input cannot be left out, an optional one can.
TEST(TensorSchema, SaysWhichInputsAreOptional) {
  std::set<const TensorSchema*> left_out;
  for (const Case& each : Cases::all().cases) {
    for (const auto& [name, tensor] : each.in) {
      Case whole = each, less = each;
      const TensorSchema* schema = find_tensor(tensors_of(each.op).in, name, Request::of(whole));
      ASSERT_NE(schema, nullptr) << each.name << " " << name;
      if (schema->need == Need::depends) continue;
      less.in.erase(name);
      for (const auto& [other, value] : each.in) {  // inputs that belong to it are left out too
        const TensorSchema* with = find_tensor(tensors_of(each.op).in, other, Request::of(whole));
        if (with->when.find("in/" + name) == std::string::npos) continue;
        less.in.erase(other);
        less.attributes.erase("scale_layout");
      }
      if (schema->need == Need::required) {
        EXPECT_ANY_THROW(outputs_of(Request::of(less))) << each.name << " without " << name;
        continue;
      }
      try {
        outputs_of(Request::of(less));
        left_out.insert(schema);
      } catch (const std::exception&) {
        // flat tensors of groups have no single-tensor form: other cases can leave it out
      }
    }
    if (HasFailure()) return;
  }
  for (const OpTensors& op : tensor_schema()) {
    for (const TensorSchema& tensor : op.in) {
      const bool must = tensor.need == Need::optional && tensor.name != "columnwise_amax";
      EXPECT_TRUE(!must || left_out.count(&tensor) == 1) << op.op << " " << tensor.name;
    }
  }
}

// As many elements are written, and so compared, as the schema says.
TEST(TensorSchema, SaysHowManyElementsAreCompared) {
  std::set<const TensorSchema*> checked;
  for (const Case& each : Cases::all().cases) {
    Case copy = each;
    Request request = Request::of(copy);
    if (request.in.count("noop") != 0) continue;  // which may skip
    std::vector<std::vector<std::byte>> memory;
    request.out.clear();
    std::int64_t bytes = 0;
    for (const OutputSpec& spec : outputs_of(request)) {
      const Tensor made = make_tensor(spec.type, spec.shape);
      memory.push_back(made.bytes);
      bytes += static_cast<std::int64_t>(made.bytes.size());
      request.out[spec.name] = {spec.type, spec.shape, memory.back().empty() ? nullptr : memory.back().data(),
                                static_cast<std::int64_t>(made.bytes.size())};
    }
    if (bytes > (1 << 18) && !written_prefixes(request)) continue;  // each is computed twice
    for (const auto& [name, mask] : written_bytes(request)) {
      const TensorSchema* schema = find_tensor(tensors_of(each.op).out, name, request);
      ASSERT_NE(schema, nullptr) << each.name << " " << name;
      const OutputView& tensor = request.out.at(name);
      const std::int64_t elements = written_elements(*schema, request).value_or(tensor.elements());
      const std::int64_t width = tensor.elements() == 0 ? 1 : tensor.bytes / tensor.elements();
      EXPECT_EQ(std::count(mask.begin(), mask.end(), 1), elements * width) << each.name << " " << name << ": " << schema->written;
      checked.insert(schema);
    }
    if (HasFailure()) return;
  }
  for (const OpTensors& op : tensor_schema()) {
    for (const TensorSchema& tensor : op.out) {
      const bool cache = tensor.when.find("in/noop") != std::string::npos;
      EXPECT_TRUE(cache || checked.count(&tensor) == 1) << op.op << " " << tensor.name << " if " << tensor.when;
    }
  }
}

// Formulas for scales, with more sizes than the cases have.
TEST(TensorSchema, ScalesHaveTheShapesOfTheLayout) {
  for (const char* recipe : {"block_1x128", "block_128x128", "mxfp8", "nvfp4"}) {
    for (const char* name : {"rowwise_scale_inv", "columnwise_scale_inv"}) {
      Request request("quantize");
      request.attributes["recipe"] = std::string(recipe);
      request.in["x"] = {Format::bf16, {1, 1}, nullptr, 0};
      const TensorSchema* schema = find_tensor(tensors_of("quantize").out, name, request);
      ASSERT_NE(schema, nullptr) << recipe;
      const Direction direction = name[0] == 'r' ? Direction::rowwise : Direction::columnwise;
      for (std::int64_t rows = 0; rows < 300; rows += 7) {
        for (std::int64_t columns = 0; columns < 300; columns += 3) {
          request.in["x"].shape = {rows, columns};
          const ScaleShape want = scale_shape(*recipe_named(recipe), direction, rows, columns);
          ASSERT_EQ(shapes_of(*schema, request)[0], (std::vector<std::int64_t>{want.rows, want.columns}))
              << recipe << " " << rows << " " << columns;
          ASSERT_EQ(written_elements(*schema, request), want.used_rows * want.used_columns)
              << recipe << " " << rows << " " << columns;
        }
      }
    }
  }
}

}  // namespace
}  // namespace assay::conformance
