#include "golden/io/stored_type.h"

#include <algorithm>
#include <bit>

#include "reference/types/error.h"

namespace assay::golden {
namespace {

enum class Storage { u8, u16, i32, i64, f32 };

struct Dtype {
  Format format;
  Storage storage;
};

// golden/schema.md, "Types".
constexpr Dtype kDtypes[] = {
    {Format::f32, Storage::f32}, {Format::i32, Storage::i32}, {Format::i64, Storage::i64}, {Format::bf16, Storage::u16},
    {Format::f16, Storage::u16}, {Format::e4m3, Storage::u8}, {Format::e5m2, Storage::u8}, {Format::e8m0, Storage::u8},
    {Format::e2m1, Storage::u8}, {Format::e3m2, Storage::u8}, {Format::e2m3, Storage::u8},
};

Storage storage_of(Format format) {
  for (const Dtype& each : kDtypes) {
    if (each.format == format) return each.storage;
  }
  throw InvalidArgument("dtype", name_of(format), "one of " + dtype_names());
}

struct Types {
  hid_t little, big;
};

Types types_of(Storage storage) {
  switch (storage) {
    case Storage::u8: return {H5T_STD_U8LE, H5T_STD_U8BE};
    case Storage::u16: return {H5T_STD_U16LE, H5T_STD_U16BE};
    case Storage::i32: return {H5T_STD_I32LE, H5T_STD_I32BE};
    case Storage::i64: return {H5T_STD_I64LE, H5T_STD_I64BE};
    case Storage::f32: break;
  }
  return {H5T_IEEE_F32LE, H5T_IEEE_F32BE};
}

// binary16, of which HDF5 has no type of its own before 1.14.4. Made once, under the lock around HDF5.
Types half_types() {
  const auto made = [](hid_t from) {
    const hid_t type = H5Tcopy(from);
    H5Tset_fields(type, 15, 10, 5, 0, 10);
    H5Tset_size(type, 2);
    H5Tset_ebias(type, 15);
    return type;
  };
  static const Types types{made(H5T_IEEE_F32LE), made(H5T_IEEE_F32BE)};
  return types;
}

}  // namespace

std::optional<Format> dtype_named(std::string_view name) {
  for (const Dtype& each : kDtypes) {
    if (name_of(each.format) == name) return each.format;
  }
  return std::nullopt;
}

std::string dtype_names() {
  std::string names;
  for (const Dtype& each : kDtypes) names += (names.empty() ? "" : ", ") + std::string(name_of(each.format));
  return names;
}

std::string_view storage_name(Format format) {
  switch (storage_of(format)) {
    case Storage::u8: return "uint8 (raw bits)";
    case Storage::u16: return "uint16 (raw bits)";
    case Storage::i32: return "int32";
    case Storage::i64: return "int64";
    case Storage::f32: break;
  }
  return "float32";
}

hid_t storage_type(Format format) { return types_of(storage_of(format)).little; }

bool stored_as(hid_t type, Format format) {
  const auto is = [&](Types types) { return H5Tequal(type, types.little) > 0 || H5Tequal(type, types.big) > 0; };
  return is(types_of(storage_of(format))) || (format == Format::f16 && is(half_types()));
}

std::optional<Format> format_of_plain(hid_t type) {
  const std::optional<StoredNumber> number = stored_number(type);
  if (!number) return std::nullopt;
  if (number->is_float && number->bytes == 2) return Format::f16;
  if (number->is_float && number->bytes == 4) return Format::f32;
  if (!number->is_float && number->is_signed && number->bytes == 4) return Format::i32;
  if (!number->is_float && number->is_signed && number->bytes == 8) return Format::i64;
  return std::nullopt;
}

std::optional<StoredNumber> stored_number(hid_t type) {
  const struct {
    hid_t little, big;
    StoredNumber number;
    // clang-format off
  } kNumbers[] = {
      {H5T_STD_I8LE, H5T_STD_I8BE, {1, false, true, false}},    {H5T_STD_U8LE, H5T_STD_U8BE, {1, false, false, false}},
      {H5T_STD_I16LE, H5T_STD_I16BE, {2, false, true, false}},  {H5T_STD_U16LE, H5T_STD_U16BE, {2, false, false, false}},
      {H5T_STD_I32LE, H5T_STD_I32BE, {4, false, true, false}},  {H5T_STD_U32LE, H5T_STD_U32BE, {4, false, false, false}},
      {H5T_STD_I64LE, H5T_STD_I64BE, {8, false, true, false}},  {H5T_STD_U64LE, H5T_STD_U64BE, {8, false, false, false}},
      {H5T_IEEE_F32LE, H5T_IEEE_F32BE, {4, true, true, false}}, {H5T_IEEE_F64LE, H5T_IEEE_F64BE, {8, true, true, false}},
      {half_types().little, half_types().big, {2, true, true, false}},
  };
  // clang-format on
  constexpr bool kIsLittle = std::endian::native == std::endian::little;
  for (const auto& each : kNumbers) {
    StoredNumber number = each.number;
    if (H5Tequal(type, each.little) > 0) {
      number.swapped = !kIsLittle;
      return number;
    }
    if (H5Tequal(type, each.big) > 0) {
      number.swapped = kIsLittle;
      return number;
    }
  }
  return std::nullopt;
}

void swap_bytes(std::span<std::byte> bytes, std::size_t width) {
  for (std::size_t at = 0; at + width <= bytes.size(); at += width) std::reverse(&bytes[at], &bytes[at] + width);
}

}  // namespace assay::golden
