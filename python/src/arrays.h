#pragma once
// Tensors between Python and the reference. Python passes a tensor as (format, shape, bytes): the name of its format, its shape as
// stored, and a one-dimensional array of its bytes in host memory, through DLPack or the buffer protocol. Nothing is copied.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "conformance/ops/request.h"
#include "reference/types/case.h"

namespace assay::python {

namespace nb = nanobind;

using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Views of `tensors`, a dict of name: (format, shape, bytes), which must outlive them.
// Errors (InvalidArgument): a format that is unknown, a negative extent, a number of bytes that the shape does not have.
std::map<std::string, conformance::TensorView> views_of(const nb::dict& tensors);

// A dict of int, float and str. Errors (InvalidArgument): a value of another type.
std::map<std::string, Attribute> attributes_of(const nb::dict& values);
nb::dict to_python(const std::map<std::string, Attribute>& attributes);

// (format, shape, bytes). The bytes move into the array.
nb::tuple to_python(Format type, const std::vector<std::int64_t>& shape, std::vector<std::byte> bytes);

}  // namespace assay::python
