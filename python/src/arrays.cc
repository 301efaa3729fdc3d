#include "arrays.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <utility>

#include "reference/types/error.h"
#include "reference/types/tensor.h"

namespace assay::python {

std::map<std::string, conformance::TensorView> views_of(const nb::dict& tensors) {
  std::map<std::string, conformance::TensorView> views;
  for (const auto& [key, value] : tensors) {
    const auto name = nb::cast<std::string>(key);
    const auto parts = nb::cast<nb::tuple>(value);
    const auto format = nb::cast<std::string>(parts[0]);
    const auto bytes = nb::cast<Bytes>(parts[2]);
    conformance::TensorView view;
    require(format_named(format).has_value(), "format of " + name, format, "f32, bf16, f16, e4m3, e5m2, e8m0, e2m1, i32 or i64");
    view.type = *format_named(format);
    view.shape = nb::cast<std::vector<std::int64_t>>(parts[1]);
    view.bytes = element_count(view.shape) * stored_bytes(view.type);
    require(static_cast<std::int64_t>(bytes.size()) == view.bytes, "bytes of " + name, static_cast<std::int64_t>(bytes.size()),
            show(view.bytes) + " for " + format + " " + shape_text(view.shape));
    view.data = view.bytes == 0 ? nullptr : bytes.data();
    views.emplace(name, std::move(view));
  }
  return views;
}

std::map<std::string, Attribute> attributes_of(const nb::dict& values) {
  std::map<std::string, Attribute> attributes;
  for (const auto& [key, value] : values) {
    const auto name = nb::cast<std::string>(key);
    if (nb::isinstance<nb::int_>(value)) {
      attributes[name] = nb::cast<std::int64_t>(value);
    } else if (nb::isinstance<nb::float_>(value)) {
      attributes[name] = nb::cast<double>(value);
    } else {
      require(nb::isinstance<nb::str>(value), "attribute " + name, nb::cast<std::string>(nb::str(nb::handle(value))),
              "an int, a float or a str");
      attributes[name] = nb::cast<std::string>(value);
    }
  }
  return attributes;
}

nb::dict to_python(const std::map<std::string, Attribute>& attributes) {
  nb::dict made;
  for (const auto& [name, value] : attributes)
    std::visit([&, n = name](const auto& each) { made[n.c_str()] = nb::cast(each); }, value);
  return made;
}

nb::tuple to_python(Format type, const std::vector<std::int64_t>& shape, std::vector<std::byte> bytes) {
  auto kept = std::make_unique<std::vector<std::byte>>(std::move(bytes));
  const std::size_t count = kept->size();
  void* data = kept->data();
  const nb::capsule owner(kept.release(), [](void* each) noexcept { delete static_cast<std::vector<std::byte>*>(each); });
  const nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>> array(data, {count}, owner);
  return nb::make_tuple(std::string(name_of(type)), shape, array);
}

}  // namespace assay::python
