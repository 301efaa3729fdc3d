#include "golden/io/writer.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <set>
#include <stdexcept>
#include <string_view>

#include "golden/io/hdf5_handle.h"
#include "golden/io/reader.h"
#include "golden/io/replace_file.h"
#include "golden/io/sha256.h"
#include "golden/io/stored_type.h"
#include "golden/io/utf8.h"
#include "reference/types/error.h"
#include "reference/types/tensor.h"

namespace assay::golden {
namespace {

constexpr std::int64_t kSmallestCompressed = 1024;             // bytes; below, a chunk's index costs more than it saves
constexpr std::int64_t kLargestChunk = std::int64_t{1} << 20;  // bytes; HDF5's chunk cache is no larger
constexpr unsigned kGzipLevel = 6;
constexpr int kLargestRank = 8;
constexpr std::size_t kGrowth = std::size_t{1} << 20;  // of the image in memory
constexpr unsigned kCompactAttributes = 64;            // more than these go to an indexed heap

// ---- checks that the fixture can be read back unchanged

bool is_name(std::string_view name) {
  return !name.empty() && name != "." && name.find('/') == name.npos && is_printable_utf8(name);
}

std::vector<std::string> parts_of(const std::string& case_name) {
  std::vector<std::string> parts;
  if (case_name == "/") return parts;
  for (std::size_t begin = 0; begin <= case_name.size();) {
    const std::size_t end = std::min(case_name.find('/', begin), case_name.size());
    parts.push_back(case_name.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

void check_tensors(const std::string& where, const std::map<std::string, Tensor>& tensors) {
  for (const auto& [name, tensor] : tensors) {
    const std::string what = where + "/" + one_line(name);
    require(is_name(name), what, "no name for a dataset", "UTF-8 without '/' and control characters");
    require(dtype_named(name_of(tensor.type)).has_value(), what, name_of(tensor.type), "one of " + dtype_names());
    require(tensor.shape.size() <= kLargestRank, what, shape_text(tensor.shape), "at most 8 extents");
    std::int64_t bytes = 0;
    const bool fits = !__builtin_mul_overflow(element_count(tensor.shape), stored_bytes(tensor.type), &bytes);
    require(fits && static_cast<std::uint64_t>(bytes) == tensor.bytes.size(), what, show(tensor.bytes.size()) + " bytes",
            "as many as the shape " + shape_text(tensor.shape) + " needs");
  }
}

void check(const Fixture& fixture) {
  require(fixture.schema >= 1 && fixture.schema <= kNewestSchema, "assay_schema", fixture.schema,
          std::string("1 to ") + show(kNewestSchema));
  require(!fixture.cases.empty(), "cases", "empty", "at least one case");
  require(is_utf8_text(fixture.provenance), "provenance", "not text", "UTF-8 without NUL");
  std::set<std::string> names;
  for (const Case& each : fixture.cases) {
    const std::string what = "case " + one_line(each.name);
    const std::vector<std::string> parts = parts_of(each.name);
    for (const std::string& part : parts) {
      require(is_name(part), what, "no name for a group", "parts between '/' of UTF-8 without control characters");
    }
    require(names.insert(each.name).second, what, "named twice", "names that differ");
    require(!each.op.empty() && is_printable_utf8(each.op), what + ", op", "'" + one_line(each.op) + "'", "the name of an op");
    for (const auto& [name, value] : each.attributes) {
      const std::string attribute = what + ", attribute " + one_line(name);
      require(is_name(name) && name != "op", attribute, "reserved or no name", "UTF-8 other than op, without '/'");
      require(each.name != "/" || (name != "assay_schema" && name != "provenance"), attribute, "an attribute of the file",
              "another name in the case at the root");
      const std::string* text = std::get_if<std::string>(&value);
      require(text == nullptr || is_utf8_text(*text), attribute, "not text", "UTF-8 without NUL");
    }
    require(each.out.empty() || !fixture.provenance.empty(), "provenance", "empty",
            "JSON text: " + what + " has expected values");
    check_tensors(what + "/in", each.in);
    check_tensors(what + "/out", each.out);
  }
  // A case in `in` or `out` of another would be read as one of its tensors; a plain group in a case is an error.
  for (const std::string& name : names) {
    std::string prefix;
    std::vector<std::string> parts = parts_of(name);
    bool inside_case = names.contains("/");
    for (const std::string& part : parts) {
      prefix += (prefix.empty() ? "" : "/") + part;
      require(!inside_case || (part != "in" && part != "out" && names.contains(prefix)), "case " + one_line(name), "in a case",
              "a group that is no case, or a case directly in another");
      inside_case = names.contains(prefix);
    }
  }
}

// ---- the file

// The memory in which HDF5 creates the file. H5Fget_file_image would be simpler, but in 1.10.8 it breaks the
// checksum of the superblock; so the memory is allocated here, through the callbacks of the core driver, and is complete when
// the file has been closed.
class Image {
 public:
  Image() = default;
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;
  ~Image() { std::free(memory_); }

  void give_to(hid_t access) {
    H5FD_file_image_callbacks_t calls = {};
    calls.image_malloc = [](std::size_t size, H5FD_file_image_op_t, void* self) { return resize(nullptr, size, self); };
    calls.image_memcpy = [](void* to, const void* from, std::size_t size, H5FD_file_image_op_t, void*) {
      return std::memcpy(to, from, size);
    };
    calls.image_realloc = [](void* old, std::size_t size, H5FD_file_image_op_t, void* self) { return resize(old, size, self); };
    calls.image_free = [](void*, H5FD_file_image_op_t, void*) -> herr_t { return 0; };  // bytes() comes after
    calls.udata_copy = [](void* self) { return self; };
    calls.udata_free = [](void*) -> herr_t { return 0; };
    calls.udata = this;
    if (H5Pset_file_image_callbacks(access, &calls) < 0) throw std::runtime_error("HDF5: " + hdf5_reason());
  }

  // The driver grows the memory in large steps; the file ends where its superblock says (HDF5 file format, II.A,
  // version 2: size of offsets at byte 9, end of file address at byte 28).
  std::vector<std::byte> bytes() const {
    const bool is_version_2 = size_ >= 48 && memory_[8] == std::byte{2} && memory_[9] == std::byte{8};
    std::uint64_t end = 0;
    for (int i = 7; is_version_2 && i >= 0; --i) end = end << 8 | std::to_integer<std::uint64_t>(memory_[28 + i]);
    if (end == 0 || end > size_) throw std::runtime_error("HDF5 made a file of another format than was asked for");
    return {memory_, memory_ + end};
  }

 private:
  static void* resize(void*, std::size_t size, void* image) {
    Image& self = *static_cast<Image*>(image);
    void* grown = std::realloc(self.memory_, std::max<std::size_t>(size, 1));
    if (grown == nullptr) return nullptr;
    self.memory_ = static_cast<std::byte*>(grown);
    if (size > self.size_) std::memset(self.memory_ + self.size_, 0, size - self.size_);  // gaps must not have random contents
    self.size_ = size;
    return grown;
  }

  std::byte* memory_ = nullptr;
  std::size_t size_ = 0;
};

class Writer {
 public:
  explicit Writer(const WriteOptions& options) : options_(options) {}
  std::vector<std::byte> image(const Fixture& fixture) {
    open();
    const Handle root = ok(H5Gopen2(file_.get(), "/", H5P_DEFAULT), H5Gclose);
    write_attribute(root.get(), "assay_schema", fixture.schema);
    if (!fixture.provenance.empty()) write_attribute(root.get(), "provenance", fixture.provenance);

    std::vector<const Case*> cases;
    for (const Case& each : fixture.cases) cases.push_back(&each);
    std::sort(cases.begin(), cases.end(), [](const Case* a, const Case* b) { return a->name < b->name; });
    for (const Case* each : cases) write_case(*each);
    return take_image();
  }

 private:
  static Handle ok(hid_t id, Handle::Close close) {
    if (id < 0) throw std::runtime_error("HDF5 cannot make the file: " + hdf5_reason());
    return Handle(id, close);
  }
  static void ok(herr_t status) {
    if (status < 0) throw std::runtime_error("HDF5 cannot make the file: " + hdf5_reason());
  }

  // The file is created in memory: a full disk is then an error of one write here, not within the library.
  void open() {
    const Handle creation = ok(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
    set_group_properties(creation.get());
    const Handle access = ok(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    ok(H5Pset_fapl_core(access.get(), kGrowth, false));
    image_.give_to(access.get());
    ok(H5Pset_libver_bounds(access.get(), H5F_LIBVER_V18, H5F_LIBVER_V18));
    ok(H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG));
    file_ = ok(H5Fcreate("fixture in memory", H5F_ACC_TRUNC, creation.get(), access.get()), H5Fclose);
  }

  static void set_group_properties(hid_t creation) {
    ok(H5Pset_obj_track_times(creation, false));
    ok(H5Pset_attr_phase_change(creation, kCompactAttributes, kCompactAttributes / 2));
    ok(H5Pset_link_phase_change(creation, 64, 32));
  }

  Handle make_group(hid_t parent, const std::string& name) {
    const Handle creation = ok(H5Pcreate(H5P_GROUP_CREATE), H5Pclose);
    set_group_properties(creation.get());
    const Handle naming = utf8_names(H5P_LINK_CREATE);
    return ok(H5Gcreate2(parent, name.c_str(), naming.get(), creation.get(), H5P_DEFAULT), H5Gclose);
  }

  static Handle utf8_names(hid_t property_class) {
    Handle naming = ok(H5Pcreate(property_class), H5Pclose);
    ok(H5Pset_char_encoding(naming.get(), H5T_CSET_UTF8));
    return naming;
  }

  void write_case(const Case& each) {
    Handle group = ok(H5Gopen2(file_.get(), "/", H5P_DEFAULT), H5Gclose);
    std::string path;
    for (const std::string& part : parts_of(each.name)) {
      path += "/" + part;
      const bool is_new = groups_.insert(path).second;
      group = is_new ? make_group(group.get(), part) : ok(H5Gopen2(group.get(), part.c_str(), H5P_DEFAULT), H5Gclose);
    }
    write_attribute(group.get(), "op", each.op);
    for (const auto& [name, value] : each.attributes) write_attribute(group.get(), name, value);
    const std::string base = each.name == "/" ? "" : "/" + each.name;
    write_tensors(group.get(), base, "in", each.in);
    if (!each.out.empty()) write_tensors(group.get(), base, "out", each.out);
  }

  void write_attribute(hid_t object, const std::string& name, const Attribute& value) {
    const Handle space = ok(H5Screate(H5S_SCALAR), H5Sclose);
    const Handle naming = utf8_names(H5P_ATTRIBUTE_CREATE);
    const auto write = [&](hid_t file_type, hid_t memory_type, const void* data) {
      const Handle attribute = ok(H5Acreate2(object, name.c_str(), file_type, space.get(), naming.get(), H5P_DEFAULT), H5Aclose);
      ok(H5Awrite(attribute.get(), memory_type, data));
    };
    if (const std::int64_t* integer = std::get_if<std::int64_t>(&value)) {
      write(H5T_STD_I64LE, H5T_NATIVE_INT64, integer);
    } else if (const double* real = std::get_if<double>(&value)) {
      write(H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, real);
    } else {
      const Handle type = ok(H5Tcopy(H5T_C_S1), H5Tclose);
      ok(H5Tset_size(type.get(), H5T_VARIABLE));
      ok(H5Tset_cset(type.get(), H5T_CSET_UTF8));
      const char* text = std::get<std::string>(value).c_str();
      write(type.get(), type.get(), &text);
    }
  }

  void write_tensors(hid_t parent, const std::string& base, const std::string& side,
                     const std::map<std::string, Tensor>& tensors) {
    const Handle group = make_group(parent, side);
    for (const auto& [name, tensor] : tensors) {
      const std::string path = base + "/" + side + "/" + name;
      if (side == "out" && !options_.shares_outputs) {
        write_dataset(group.get(), name, tensor);
        continue;
      }
      const auto [first, is_new] = stored_.emplace(identity(tensor), path);
      if (is_new) {
        write_dataset(group.get(), name, tensor);
      } else {
        const Handle naming = utf8_names(H5P_LINK_CREATE);
        ok(H5Lcreate_hard(file_.get(), first->second.c_str(), group.get(), name.c_str(), naming.get(), H5P_DEFAULT));
      }
    }
  }

  // Tensors with the same identity are one dataset.
  static std::string identity(const Tensor& tensor) {
    return std::string(name_of(tensor.type)) + shape_text(tensor.shape) + sha256_hex(tensor.bytes);
  }

  void write_dataset(hid_t group, const std::string& name, const Tensor& tensor) {
    std::vector<hsize_t> extents(tensor.shape.begin(), tensor.shape.end());
    const int rank = static_cast<int>(extents.size());
    const Handle space =
        rank == 0 ? ok(H5Screate(H5S_SCALAR), H5Sclose) : ok(H5Screate_simple(rank, extents.data(), nullptr), H5Sclose);
    const Handle creation = ok(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    ok(H5Pset_obj_track_times(creation.get(), false));
    // Otherwise the rest of a last chunk would have random contents.
    const bool is_left = options_.leaves_large_uncompressed && tensor.bytes.size() > static_cast<std::size_t>(kLargestChunk);
    ok(H5Pset_fill_time(creation.get(), is_left ? H5D_FILL_TIME_NEVER : H5D_FILL_TIME_ALLOC));
    if (rank > 0 && tensor.bytes.size() >= kSmallestCompressed && !is_left) {
      const std::vector<hsize_t> chunk = chunk_shape(tensor);
      ok(H5Pset_chunk(creation.get(), rank, chunk.data()));
      if (stored_bytes(tensor.type) > 1) ok(H5Pset_shuffle(creation.get()));
      ok(H5Pset_deflate(creation.get(), kGzipLevel));
    }
    const hid_t type = storage_type(tensor.type);
    const Handle naming = utf8_names(H5P_LINK_CREATE);
    const Handle dataset =
        ok(H5Dcreate2(group, name.c_str(), type, space.get(), naming.get(), creation.get(), H5P_DEFAULT), H5Dclose);
    write_attribute(dataset.get(), "dtype", std::string(name_of(tensor.type)));
    if (!tensor.bytes.empty()) write_values(dataset.get(), type, tensor);
  }

  // The whole tensor, its outermost extents halved (rounded up) until it is small enough.
  static std::vector<hsize_t> chunk_shape(const Tensor& tensor) {
    std::vector<hsize_t> chunk(tensor.shape.begin(), tensor.shape.end());
    std::int64_t bytes = static_cast<std::int64_t>(tensor.bytes.size());
    for (std::size_t axis = 0; bytes > kLargestChunk && axis < chunk.size();) {
      if (chunk[axis] == 1) {
        ++axis;
        continue;
      }
      bytes /= static_cast<std::int64_t>(chunk[axis]);
      chunk[axis] = (chunk[axis] + 1) / 2;
      bytes *= static_cast<std::int64_t>(chunk[axis]);
    }
    return chunk;
  }

  // Bytes are put in order here, so that HDF5 converts nothing and every NaN keeps its payload.
  static void write_values(hid_t dataset, hid_t type, const Tensor& tensor) {
    if constexpr (std::endian::native == std::endian::little) {
      ok(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, tensor.bytes.data()));
    } else {
      std::vector<std::byte> swapped = tensor.bytes;
      const std::size_t width = static_cast<std::size_t>(stored_bytes(tensor.type));
      for (std::size_t at = 0; at < swapped.size(); at += width) std::reverse(&swapped[at], &swapped[at] + width);
      ok(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, swapped.data()));
    }
  }

  std::vector<std::byte> take_image() {
    if (!file_.close()) throw std::runtime_error("HDF5 cannot make the file: " + hdf5_reason());
    return image_.bytes();
  }

  const WriteOptions options_;
  Image image_;
  Handle file_;
  std::set<std::string> groups_;
  std::map<std::string, std::string> stored_;  // identity to the path of its dataset
};

}  // namespace

std::vector<std::byte> fixture_image(const Fixture& fixture, const WriteOptions& options) {
  check(fixture);
  const std::lock_guard<std::mutex> lock(hdf5_mutex());
  const QuietHdf5 quiet;
  return Writer(options).image(fixture);
}

void write_fixture(const std::filesystem::path& path, const Fixture& fixture, const WriteOptions& options) {
  replace_file(path, fixture_image(fixture, options));
}

}  // namespace assay::golden
