#include "golden/io/read_attribute.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "golden/io/hdf5_handle.h"
#include "golden/io/stored_type.h"
#include "golden/io/utf8.h"
#include "reference/types/error.h"

namespace assay::golden {
namespace {

std::string read_string(ReadContext& context, hid_t attribute, hid_t type, hid_t space, const std::string& path,
                        const std::string& what) {
  const htri_t is_variable = H5Tis_variable_str(type);
  if (is_variable < 0) context.fail_hdf5(path, what + " cannot be read");
  std::string text;
  if (is_variable > 0) {
    char* held = nullptr;
    if (H5Aread(attribute, type, &held) < 0) context.fail_hdf5(path, what + " cannot be read");
    if (held != nullptr) text.assign(held, strnlen(held, static_cast<std::size_t>(context.limits().text) + 1));
    H5Dvlen_reclaim(type, space, H5P_DEFAULT, &held);
  } else {
    const std::size_t size = H5Tget_size(type);
    if (size > static_cast<std::size_t>(std::min(context.limits().text, context.file_size()))) {
      context.fail(path, what + " claims " + show(size) + " characters: more than the file can hold");
    }
    text.resize(size);
    if (H5Aread(attribute, type, text.data()) < 0) context.fail_hdf5(path, what + " cannot be read");
    const H5T_str_t padding = H5Tget_strpad(type);
    if (padding == H5T_STR_NULLTERM) text.resize(strnlen(text.data(), text.size()));
    const char pad = padding == H5T_STR_SPACEPAD ? ' ' : '\0';
    while (!text.empty() && text.back() == pad) text.pop_back();
  }
  if (text.size() > static_cast<std::size_t>(context.limits().text)) {
    context.fail(path, what + " is longer than the limit of " + show(context.limits().text) + " bytes");
  }
  if (!is_utf8_text(text)) context.fail(path, what + " is not UTF-8 text");
  context.take_text(path, text.size());
  return text;
}

Attribute read_number(const ReadContext& context, hid_t attribute, hid_t type, const std::string& path, const std::string& what) {
  const bool is_enum = H5Tget_class(type) == H5T_ENUM;
  const Handle base(is_enum ? H5Tget_super(type) : H5Tcopy(type), H5Tclose);
  if (!base) context.fail_hdf5(path, what + " cannot be read");
  const std::optional<StoredNumber> number = stored_number(base.get());
  // An enumeration of a damaged file can have another size than its numbers.
  const bool fits = number && H5Tget_size(type) == static_cast<std::size_t>(number->bytes);
  if (!fits || (number->is_float && number->bytes < 4)) {
    context.fail(path, what + " is " + class_name(type) + ": expected int64, float64 or a string");
  }
  // Read as stored and widened here, so that the library does not convert an unusual type.
  std::vector<std::byte> raw(static_cast<std::size_t>(number->bytes));
  if (H5Aread(attribute, type, raw.data()) < 0) context.fail_hdf5(path, what + " cannot be read");
  if (number->swapped) swap_bytes(raw, raw.size());
  if (number->is_float) {
    double wide = 0;
    float narrow = 0;
    if (raw.size() == 8) std::memcpy(&wide, raw.data(), 8);
    if (raw.size() == 4) std::memcpy(&narrow, raw.data(), 4);
    return raw.size() == 8 ? wide : static_cast<double>(narrow);
  }
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const std::size_t place = std::endian::native == std::endian::little ? i : raw.size() - 1 - i;
    value |= std::to_integer<std::uint64_t>(raw[i]) << (8 * place);
  }
  const int unused = 64 - 8 * static_cast<int>(raw.size());
  if (number->is_signed) return static_cast<std::int64_t>(value << unused) >> unused;
  if (value >> 63 != 0) context.fail(path, what + " is " + show(value) + ": expected a value of int64");
  return static_cast<std::int64_t>(value);
}

}  // namespace

std::string class_name(hid_t type) {
  // A size that a plain number has, and yet not one: other bytes are unused, or the exponent is elsewhere.
  const std::size_t size = H5Tget_size(type);
  const bool is_unusual = (size == 2 || size == 4 || size == 8) && !stored_number(type);
  const std::string bits = show(8 * size) + (is_unusual ? " of an unusual layout" : "");
  switch (H5Tget_class(type)) {
    case H5T_INTEGER: return std::string(H5Tget_sign(type) == H5T_SGN_NONE ? "uint" : "int") + bits;
    case H5T_FLOAT: return std::string("float") + bits;
    case H5T_STRING: return "a string";
    case H5T_BITFIELD: return "a bit field";
    case H5T_OPAQUE: return "opaque";
    case H5T_COMPOUND: return "a compound";
    case H5T_REFERENCE: return "a reference";
    case H5T_ENUM: return "an enumeration";
    case H5T_VLEN: return "of variable length";
    case H5T_ARRAY: return "an array";
    default: return "of a time or unknown class";
  }
}

void check_name(const ReadContext& context, const std::string& path, std::string_view kind, const std::string& name) {
  const bool valid = !name.empty() && name != "." && name.find('/') == std::string::npos && is_printable_utf8(name);
  if (!valid) {
    context.fail(path, "holds " + std::string(kind) + " named '" + name + "': expected UTF-8 without control characters");
  }
}

bool has_attribute(const ReadContext& context, hid_t object, const std::string& path, const char* name) {
  const htri_t exists = H5Aexists(object, name);
  if (exists < 0) context.fail_hdf5(path, "its attributes cannot be read");
  return exists > 0;
}

std::vector<std::string> raw_attribute_names(const ReadContext& context, hid_t object, const std::string& path, bool& is_all) {
  struct Found {
    std::vector<std::string> names;
    std::int64_t room;
  } found{{}, context.limits().attributes};
  const auto add = [](hid_t, const char* name, const H5A_info_t*, void* to) -> herr_t {
    try {
      Found& list = *static_cast<Found*>(to);
      if (list.room-- <= 0) return 1;
      list.names.emplace_back(name);
      return 0;
    } catch (const std::exception&) {
      return -1;
    }
  };
  const herr_t status = H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, nullptr, add, &found);
  if (status < 0) context.fail_hdf5(path, "its attributes cannot be listed");
  is_all = status == 0;
  return std::move(found.names);
}

std::vector<std::string> attributes_of(ReadContext& context, hid_t object, const std::string& path) {
  bool is_all = false;
  std::vector<std::string> names = raw_attribute_names(context, object, path, is_all);
  if (!is_all) context.fail(path, "has more than " + show(context.limits().attributes) + " attributes");
  for (const std::string& name : names) {
    check_name(context, path, "an attribute", name);
    context.take_text(path, name.size());
  }
  return names;
}

Attribute read_attribute(ReadContext& context, hid_t object, const std::string& path, const std::string& name) {
  const std::string what = "attribute " + name;
  const Handle attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose);
  if (!attribute) context.fail_hdf5(path, what + " cannot be opened");
  const Handle space(H5Aget_space(attribute.get()), H5Sclose);
  const Handle type(H5Aget_type(attribute.get()), H5Tclose);
  if (!space || !type) context.fail_hdf5(path, what + " cannot be read");
  const bool is_string = H5Tget_class(type.get()) == H5T_STRING;
  if (is_string && H5Sget_simple_extent_type(space.get()) == H5S_NULL) return std::string();
  if (H5Sget_simple_extent_npoints(space.get()) != 1) context.fail(path, what + " is not a single value");
  if (is_string) return read_string(context, attribute.get(), type.get(), space.get(), path, what);

  return read_number(context, attribute.get(), type.get(), path, what);
}

}  // namespace assay::golden
