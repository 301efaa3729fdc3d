#pragma once
// Answers of a backend are checked before use: texts have an end and can be printed, numbers are in range.

#include <cstdint>
#include <string>

#include "conformance/backend.h"

namespace assay::conformance {

// Bytes that are not UTF-8, and control characters except newline and tab, become "\x9f".
std::string printable(const std::string& text);

// The fault of an answer, or empty; texts of a valid answer are made printable. The function's name heads the fault:
// "device_info() gives a name without an end".
std::string check_answer(assay_device_info& info);
std::string check_answer(assay_numerics& stated);
std::string check_answer(assay_algorithm& algorithm);
std::string check_answer(assay_axis& axis);
// `function`: "list_axes()".
std::string check_count(const std::string& function, std::int32_t count);

}  // namespace assay::conformance
