#include "golden/io/check_dataset.h"

#include <array>
#include <optional>

#include "golden/io/hdf5_handle.h"
#include "golden/io/read_attribute.h"
#include "golden/io/stored_type.h"
#include "reference/types/error.h"
#include "reference/types/tensor.h"

namespace assay::golden {
namespace {

// gzip compresses at most 1032 bytes to one; the rest allows for chunks that extend over the edge and for small
// datasets that were never written.
constexpr std::int64_t kBestRatio = 1100;
constexpr std::int64_t kUnwritten = std::int64_t{64} << 20;

// The most bytes that all tensors of the file can have together; file_size is at most 2^50.
std::int64_t capacity(const ReadContext& context) { return context.file_size() * kBestRatio + kUnwritten; }

void read_shape(const ReadContext& context, hid_t dataset, const std::string& path, Dataset& found) {
  const Handle space(H5Dget_space(dataset), H5Sclose);
  if (!space) context.fail_hdf5(path, "its shape cannot be read");
  if (H5Sget_simple_extent_type(space.get()) == H5S_NULL) context.fail(path, "has no shape (an empty dataspace)");
  const int rank = H5Sget_simple_extent_ndims(space.get());
  if (rank < 0) context.fail_hdf5(path, "its shape cannot be read");
  if (rank > kMaxRank) context.fail(path, "has " + show(rank) + " dimensions: at most " + show(kMaxRank) + " are expected");
  std::array<hsize_t, kMaxRank> extents{};
  if (H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr) < 0) context.fail_hdf5(path, "its shape cannot be read");

  std::uint64_t elements = 1;  // of the extents other than 0
  bool empty = false;
  std::string shape = "[";
  for (int i = 0; i < rank; ++i) {
    shape += (i == 0 ? "" : ",") + show(static_cast<std::uint64_t>(extents[i]));
    empty = empty || extents[i] == 0;
  }
  for (int i = 0; i < rank; ++i) {
    const std::uint64_t factor = extents[i] == 0 ? 1 : extents[i];
    if (__builtin_mul_overflow(elements, factor, &elements) || elements >> 60 != 0) {
      context.fail(path, "claims the shape " + shape + "]: more than the file can hold");
    }
    found.shape.push_back(static_cast<std::int64_t>(extents[i]));
  }
  if (empty) elements = 0;
  found.bytes = static_cast<std::int64_t>(elements) * stored_bytes(found.type);  // below 2^63: elements < 2^60
  if (found.bytes > capacity(context)) {
    context.fail(
        path, "claims " + show(elements) + " elements of " + std::string(name_of(found.type)) + ": more than the file can hold");
  }
}

void check_chunks(const ReadContext& context, hid_t creation, const std::string& path, const Dataset& found) {
  std::array<hsize_t, kMaxRank + 1> extents{};
  const int rank = H5Pget_chunk(creation, static_cast<int>(extents.size()), extents.data());
  if (rank != static_cast<int>(found.shape.size())) context.fail(path, "has chunks of another rank than its own");
  std::uint64_t bytes = static_cast<std::uint64_t>(stored_bytes(found.type));
  for (int i = 0; i < rank; ++i) {
    if (extents[i] == 0) context.fail(path, "has chunks of extent 0");
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extents[i]), &bytes) ||
        bytes > static_cast<std::uint64_t>(capacity(context))) {
      context.fail(path, "has chunks that are larger than the file can hold");
    }
  }
  const int filters = H5Pget_nfilters(creation);
  if (filters < 0) context.fail_hdf5(path, "its filters cannot be read");
  for (int i = 0; i < filters; ++i) {
    unsigned flags = 0;
    unsigned config = 0;
    std::size_t values = 0;
    std::array<char, 64> name{};
    const H5Z_filter_t filter =
        H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &values, nullptr, name.size() - 1, name.data(), &config);
    if (filter < 0) context.fail_hdf5(path, "its filters cannot be read");
    const std::string shown = "filter " + show(filter) + (name[0] == 0 ? "" : std::string(" (") + name.data() + ")");
    // 1 to 6 come with HDF5; a query about another would make it search for a plug-in to load.
    if (filter < H5Z_FILTER_DEFLATE || filter > H5Z_FILTER_SCALEOFFSET) {
      context.fail(path, "is stored through " + shown + ": expected one that HDF5 itself brings, such as gzip");
    }
    if (H5Zfilter_avail(filter) <= 0) context.fail(path, "is stored through " + shown + ", which this HDF5 library lacks");
  }
}

void check_storage(const ReadContext& context, hid_t dataset, const std::string& path, const Dataset& found) {
  const Handle creation(H5Dget_create_plist(dataset), H5Pclose);
  if (!creation) context.fail_hdf5(path, "its storage cannot be read");
  const H5D_layout_t layout = H5Pget_layout(creation.get());
  if (layout == H5D_VIRTUAL) context.fail(path, "is a virtual dataset: expected the values in this file");
  const int external = H5Pget_external_count(creation.get());
  if (external < 0) context.fail_hdf5(path, "its storage cannot be read");
  if (external > 0) context.fail(path, "keeps its values in another file: expected them in this one");
  if (layout == H5D_CHUNKED) {
    check_chunks(context, creation.get(), path, found);
  } else if (layout == H5D_CONTIGUOUS || layout == H5D_COMPACT) {
    const hsize_t stored = H5Dget_storage_size(dataset);
    const haddr_t offset = layout == H5D_CONTIGUOUS ? H5Dget_offset(dataset) : 0;
    const bool unwritten = stored == 0 || (layout == H5D_CONTIGUOUS && offset == HADDR_UNDEF);
    if (!unwritten && stored != static_cast<hsize_t>(found.bytes)) {
      context.fail(path, "stores " + show(static_cast<std::uint64_t>(stored)) + " bytes: its shape needs " + show(found.bytes));
    }
    const auto size = static_cast<hsize_t>(context.file_size());
    if (!unwritten && (stored > size || offset > size - stored)) context.fail(path, "its values lie past the end of the file");
  } else {
    context.fail(path, "has an unknown storage layout");
  }
}

// The type by the attribute `dtype` or, without it, by the stored type.
Format format_of(ReadContext& context, hid_t dataset, hid_t type, const std::string& path) {
  const std::string expected = "expected one of " + dtype_names();
  if (!has_attribute(context, dataset, path, "dtype")) {
    if (const std::optional<Format> format = format_of_plain(type)) return *format;
    context.fail(path, "has no attribute dtype, and is stored as " + class_name(type) + ": " + expected +
                           " (float16, float32, int32 and int64 need none)");
  }
  const Attribute dtype = read_attribute(context, dataset, path, "dtype");
  const std::string* name = std::get_if<std::string>(&dtype);
  if (name == nullptr) context.fail(path, "attribute dtype is a number: " + expected);
  const std::optional<Format> format = dtype_named(*name);
  if (!format) context.fail(path, "attribute dtype is '" + *name + "': " + expected);
  if (!stored_as(type, *format)) {
    context.fail(path, "is stored as " + class_name(type) + ": dtype " + *name + " needs " + std::string(storage_name(*format)));
  }
  return *format;
}

}  // namespace

Dataset check_dataset(ReadContext& context, hid_t dataset, const std::string& path) {
  const Handle type(H5Dget_type(dataset), H5Tclose);
  if (!type) context.fail_hdf5(path, "its type cannot be read");
  Dataset found;
  found.type = format_of(context, dataset, type.get(), path);
  read_shape(context, dataset, path, found);
  check_storage(context, dataset, path, found);
  return found;
}

}  // namespace assay::golden
