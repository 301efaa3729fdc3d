#include <string>

#include "device/linear/linear_product.h"
#include "device/linear/linear_steps.h"

namespace assay::device {
namespace {

std::string described(const LinearReport::Quantized& quantized) {
  std::string text;
  if (quantized.rowwise) text += "rowwise";
  if (quantized.columnwise) text += text.empty() ? "columnwise" : "+columnwise";
  if (quantized.calls > 1) text += " in " + std::to_string(quantized.calls) + " calls";
  return text;
}

std::string described(const LinearReport::Product& product) {
  std::string promise =
      product.rows_multiple == 1 ? "" : ", groups of " + std::to_string(product.rows_multiple) + " rows or multiples";
  if (product.pow2_scales) promise += ", scales that are powers of two";
  if (product.path != GemmPath::cublaslt)
    return std::string(name_of(product.path)) + ": plan " + product.plan + ", unit " + product.unit + promise;
  return "cublaslt " + version_text(product.library_version) +
         (product.route == CublasLtRoute::direct ? " direct: " : " with expanded scales: ") + product.algorithm.description() +
         promise;
}

}  // namespace

std::string LinearReport::description() const {
  std::string text;
  const auto say = [&](const std::string& part) { text += (text.empty() ? "" : "; ") + part; };
  const auto quantized = [&](const char* name, const Quantized& of) {
    if (of.calls != 0) say(std::string(name) + " quantized " + described(of));
  };
  quantized("x", x);
  quantized("dy", dy);
  quantized("w", w);
  if (dbias != DbiasRoute::none) say(dbias == DbiasRoute::fused ? "dbias fused" : "dbias separate");
  const auto product = [&](const char* name, const Product& of) {
    if (of.ran) say(std::string(name) + " by " + described(of));
  };
  product("forward", forward);
  product("dgrad", dgrad);
  product("wgrad", wgrad);
  return text.empty() ? "nothing was launched" : text;
}

}  // namespace assay::device
