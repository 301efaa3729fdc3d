// Two causes at once, where each is known in a form that the other can be put into.

#include <algorithm>
#include <exception>
#include <set>

#include "conformance/diagnose/explain/candidate.h"
#include "conformance/ops/product.h"

namespace assay::conformance::explaining {
namespace {

using diagnosis::NamedVariant;
using diagnosis::OtherCall;
using diagnosis::ProductVariant;
using diagnosis::QuantizeRules;

// Both changes of the call; nothing where they change the same part.
std::shared_ptr<OtherCall> merged(const Request& right, const OtherCall& first, const OtherCall& second) {
  auto made = std::make_shared<OtherCall>(first.request);
  const auto differs = [&](const Request& request, const std::string& name) {
    const auto own = right.attributes.find(name), other = request.attributes.find(name);
    const bool had = own != right.attributes.end(), has = other != request.attributes.end();
    return had != has || (had && own->second != other->second);
  };
  std::set<std::string> names;
  for (const Request* request : {&right, &first.request, &second.request})
    for (const auto& [name, value] : request->attributes) names.insert(name);
  for (const std::string& name : names) {
    if (!differs(second.request, name)) continue;
    if (differs(first.request, name)) return nullptr;
    const auto found = second.request.attributes.find(name);
    if (found == second.request.attributes.end()) {
      made->request.attributes.erase(name);
    } else {
      made->request.attributes[name] = found->second;
    }
  }
  const auto data_of = [](const Request& request, const std::string& name) -> const TensorView* {
    const auto found = request.in.find(name);
    return found == request.in.end() ? nullptr : &found->second;
  };
  std::set<std::string> inputs;
  for (const Request* request : {&right, &first.request, &second.request})
    for (const auto& [name, view] : request->in) inputs.insert(name);
  const auto moved = [&](const Request& request, const std::string& name) {
    const TensorView *own = data_of(right, name), *other = data_of(request, name);
    return (own == nullptr) != (other == nullptr) || (own != nullptr && (own->data != other->data || own->type != other->type));
  };
  for (const std::string& name : inputs) {
    if (!moved(second.request, name)) continue;
    if (moved(first.request, name)) return nullptr;
    const TensorView* const view = data_of(second.request, name);
    if (view == nullptr) {
      made->request.in.erase(name);
    } else {
      made->request.in[name] = *view;
    }
  }
  return made;
}

// Null in one of them: the other's; both set: nothing.
template <class Member>
bool take(QuantizeRules& rules, const QuantizeRules& other, Member member) {
  if (other.*member == nullptr) return true;
  if (rules.*member != nullptr) return false;
  rules.*member = other.*member;
  return true;
}

std::optional<QuantizeRules> merged(const QuantizeRules& first, const QuantizeRules& second) {
  QuantizeRules made = first;
  const bool taken = take(made, second, &QuantizeRules::amax) && take(made, second, &QuantizeRules::scale) &&
                     take(made, second, &QuantizeRules::product) && take(made, second, &QuantizeRules::rounded) &&
                     take(made, second, &QuantizeRules::code);
  return taken ? std::optional(made) : std::nullopt;
}

Words words_of(const ProductVariant& variant, std::span<const std::int64_t> elements) {
  Words words;
  for (const std::int64_t at : elements) words.push_back(variant.word(at));
  return words;
}

// A product of a changed call, in another way too.
void set_product(Candidate& made, const Failure& failure, std::shared_ptr<const OtherCall> call,
                 std::shared_ptr<const NamedVariant> way) {
  const auto visit = [call, way](auto use) {
    visit_product(call->request, [&](const GroupedGemmProblem& problem, void* d) {
      ProductVariant variant(view_of(problem, d), diagnosis::rows_of(problem), diagnosis::columns_of(problem));
      if (way == nullptr || way->apply(variant)) use(variant);
    });
  };
  made.some = [visit](std::span<const std::int64_t> elements) {
    Words words(elements.size());
    visit([&](const ProductVariant& variant) { words = words_of(variant, elements); });
    return words;
  };
  made.all = [visit, &failure](Outputs& outputs) {
    const FailedOutput* const output = failure.product();
    bool written = false;
    visit([&](const ProductVariant& variant) { written = write_product(variant, *output, outputs[output->name]); });
    return written;
  };
}

}  // namespace

std::optional<Candidate> combined(const Failure& failure, const ProductVariant* right, const Candidate& first,
                                  const Candidate& second) {
  Candidate made{first.text + "; and " + second.text, first.cost + second.cost};
  if (second.is_transform && !first.is_transform) {
    made.all = [one = first.all, two = second.all](Outputs& outputs) {
      if (!one(outputs)) return false;
      const Outputs before = outputs;
      // A second change that changes nothing is none.
      return two(outputs) && std::any_of(before.begin(), before.end(),
                                         [&](const auto& each) { return each.second.bytes != outputs.at(each.first).bytes; });
    };
    return made;
  }
  if (first.rules != nullptr && second.rules != nullptr) {
    const auto rules = merged(first.rules->rules, second.rules->rules);
    if (!rules) return std::nullopt;
    made.all = [&failure, rules = *rules](Outputs& outputs) { return write_by_rules(failure, rules, outputs); };
    return made;
  }
  if (first.way != nullptr && second.way != nullptr && right != nullptr) {
    auto variant = std::make_shared<ProductVariant>(*right);
    try {
      if (!first.way->apply(*variant) || !second.way->apply(*variant)) return std::nullopt;
    } catch (const std::exception&) {
      return std::nullopt;
    }
    made.some = [variant](std::span<const std::int64_t> elements) { return words_of(*variant, elements); };
    made.all = [variant, one = first.way, two = second.way, &failure](Outputs& outputs) {
      const FailedOutput& output = *failure.product();
      return write_product(*variant, output, outputs[output.name]);
    };
    return made;
  }
  const bool product = right != nullptr && bits_of(failure.product()->want.type) >= 16;
  if (first.call != nullptr && second.call != nullptr) {
    const std::shared_ptr<OtherCall> both = merged(failure.request(), *first.call, *second.call);
    if (both == nullptr) return std::nullopt;
    // The parts that own what the request points to.
    const std::shared_ptr<const OtherCall> held(both.get(), [both, one = first.call, two = second.call](const OtherCall*) {});
    if (product) {
      set_product(made, failure, held, nullptr);
    }
    made.all = [held, &failure](Outputs& outputs) {
      for (auto& [name, tensor] : failure.answered(held->request)) outputs[name].bytes = std::move(tensor.bytes);
      return true;
    };
    return made;
  }
  if (product && first.call != nullptr && second.way != nullptr) {
    set_product(made, failure, first.call, second.way);
    return made;
  }
  if (product && first.way != nullptr && second.call != nullptr) {
    set_product(made, failure, second.call, first.way);
    return made;
  }
  return std::nullopt;
}

}  // namespace assay::conformance::explaining
