#pragma once

#include <map>
#include <string>

#include "conformance/ops/request.h"

namespace assay::conformance {

// A read-only view of a case: a request does not write to its inputs.
inline Request request_of(const Case& problem, const std::map<std::string, Attribute>& attributes) {
  Request request = Request::read_only(problem);
  request.attributes = attributes;
  request.out.clear();
  return request;
}

}  // namespace assay::conformance
