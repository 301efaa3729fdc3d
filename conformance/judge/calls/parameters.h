#pragma once
// Parameters of a call that is made by hand.

#include <cstdint>

#include "conformance/backend.h"

namespace assay::conformance {

inline assay_parameter text_parameter(const char* name, const char* text) {
  assay_parameter parameter{};
  parameter.name = name;
  parameter.kind = ASSAY_TEXT;
  parameter.text = text;
  return parameter;
}

inline assay_parameter integer_parameter(const char* name, std::int64_t value) {
  assay_parameter parameter{};
  parameter.name = name;
  parameter.kind = ASSAY_INTEGER;
  parameter.integer = value;
  return parameter;
}

inline assay_parameter real_parameter(const char* name, double value) {
  assay_parameter parameter{};
  parameter.name = name;
  parameter.kind = ASSAY_REAL;
  parameter.real = value;
  return parameter;
}

}  // namespace assay::conformance
