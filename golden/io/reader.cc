#include "golden/io/reader.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "golden/io/hdf5_handle.h"
#include "golden/io/stored_type.h"
#include "golden/io/tensor.h"
#include "golden/io/utf8.h"
#include "reference/support/error.h"

namespace assay::golden {
namespace {

constexpr int kMaxRank = 8;
// gzip turns at most 1032 bytes into one; the rest leaves room for chunks that reach over the edge and for small
// datasets which were never written.
constexpr std::int64_t kBestRatio = 1100;
constexpr std::int64_t kUnwritten = std::int64_t{64} << 20;

// What the checks of a dataset find out.
struct Dataset {
  Format type = Format::f32;
  std::vector<std::int64_t> shape;
  std::int64_t bytes = 0;
};

// A tensor whose bytes are still in the file.
struct Pending {
  std::size_t case_index;
  bool is_output;
  std::string name;
  std::string path;
  haddr_t address;
};

struct Link {
  std::string name;
  H5L_type_t type;
};

void swap_bytes(std::vector<std::byte>& bytes, std::size_t width) {
  for (std::size_t at = 0; at + width <= bytes.size(); at += width) std::reverse(&bytes[at], &bytes[at] + width);
}

std::string class_name(hid_t type) {
  // A size that a plain number has, and yet not one: other bytes are unused, or the exponent is elsewhere.
  const std::size_t size = H5Tget_size(type);
  const bool is_unusual = (size == 4 || size == 8) && !stored_number(type);
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

class Reader {
 public:
  Reader(const std::filesystem::path& path, const ReadLimits& limits) : path_(path.string()), limits_(limits) {}

  Fixture read(const std::function<void(std::int64_t)>& admitted) {
    check_signature();
    open();
    read_root();
    walk(Handle(H5Gopen2(file_.get(), "/", H5P_DEFAULT), H5Gclose), "", 0, false);
    if (!fixture_.cases.empty() && fixture_.provenance.empty() && has_expected_values()) {
      fail("/", "has no provenance: expected values need one (JSON text: who produced them, and with what)");
    }
    if (fixture_.cases.empty()) fail("", "holds no case: expected a group with a string attribute op");
    if (admitted) admitted(total_);
    for (const Pending& pending : pending_) load(pending);
    std::sort(fixture_.cases.begin(), fixture_.cases.end(),
              [](const Case& a, const Case& b) { return a.name < b.name; });
    return std::move(fixture_);
  }

 private:
  [[noreturn]] void fail(std::string_view object, std::string_view reason) const {
    throw FixtureError(path_, object, reason);
  }
  // For a call that HDF5 refused.
  [[noreturn]] void fail_hdf5(std::string_view object, std::string_view what) const {
    fail(object, std::string(what) + ": " + hdf5_reason());
  }

  // ---- the file

  void check_signature() {
    namespace fs = std::filesystem;
    std::error_code error;
    const fs::file_status status = fs::status(path_, error);
    if (status.type() == fs::file_type::not_found) fail("", "no such file");
    if (error) fail("", error.message());
    if (status.type() == fs::file_type::directory) fail("", "is a directory: expected an HDF5 file");
    if (status.type() != fs::file_type::regular) fail("", "is not a regular file: expected an HDF5 file");
    const auto size = fs::file_size(path_, error);
    if (error) fail("", error.message());
    if (size == 0) fail("", "is empty: expected an HDF5 file");
    file_size_ = static_cast<std::int64_t>(std::min<std::uintmax_t>(size, std::uintmax_t{1} << 50));

    // It stands at byte 0, or at 512, 1024, 2048, ... after a user block (HDF5 file format, section II.A).
    constexpr std::array<char, 8> kSignature = {'\x89', 'H', 'D', 'F', '\r', '\n', '\x1a', '\n'};
    std::ifstream stream(path_, std::ios::binary);
    if (!stream) fail("", std::string("cannot be read: ") + std::strerror(errno));
    for (std::int64_t at = 0; at + 8 <= file_size_; at = at == 0 ? 512 : 2 * at) {
      std::array<char, 8> bytes{};
      stream.seekg(at);
      if (stream.read(bytes.data(), bytes.size()) && bytes == kSignature) return;
      stream.clear();
    }
    fail("", "is not an HDF5 file: it has no HDF5 signature");
  }

  void open() {
    const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    H5Pset_fapl_sec2(access.get());  // whatever HDF5_DRIVER says
    H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG);
#if H5_VERSION_GE(1, 10, 7)
    H5Pset_file_locking(access.get(), false, true);  // reading must work where locks do not
#endif
    file_ = Handle(H5Fopen(path_.c_str(), H5F_ACC_RDONLY, access.get()), H5Fclose);
    if (!file_) fail_hdf5("", "HDF5 cannot open it");
  }

  void read_root() {
    const Handle root(H5Gopen2(file_.get(), "/", H5P_DEFAULT), H5Gclose);
    if (!root) fail_hdf5("/", "cannot be opened");
    if (!has_attribute(root.get(), "/", "assay_schema")) {
      fail("/", "has no attribute assay_schema: this is not a fixture file");
    }
    const Attribute schema = read_attribute(root.get(), "/", "assay_schema");
    if (!std::holds_alternative<std::int64_t>(schema)) fail("/", "attribute assay_schema is not an integer: expected 1");
    fixture_.schema = std::get<std::int64_t>(schema);
    if (fixture_.schema > kNewestSchema) {
      fail("/", "assay_schema is " + show(fixture_.schema) + ": this build reads up to " + show(kNewestSchema) +
                    "; the file was made for a newer one");
    }
    if (fixture_.schema < 1) fail("/", "assay_schema is " + show(fixture_.schema) + ": expected 1");
    if (has_attribute(root.get(), "/", "provenance")) {
      Attribute provenance = read_attribute(root.get(), "/", "provenance");
      if (!std::holds_alternative<std::string>(provenance)) {
        fail("/", "attribute provenance is not a string: expected JSON text");
      }
      fixture_.provenance = std::get<std::string>(std::move(provenance));
    }
  }

  bool has_expected_values() const {
    return std::any_of(pending_.begin(), pending_.end(), [](const Pending& each) { return each.is_output; });
  }

  // ---- groups

  // `path` is "" for the root and "/a/b" below it. Returns true if the group holds datasets.
  bool walk(const Handle& group, const std::string& path, int depth, bool must_be_case) {
    const std::string shown = path.empty() ? "/" : path;
    if (!group) fail_hdf5(shown, "cannot be opened");
    if (depth > limits_.depth) fail(shown, "lies deeper than " + show(limits_.depth) + " groups");
    if (!seen_groups_.insert(info_of(group.get(), shown).addr).second) {
      fail(shown, "is a second link to a group: only datasets may be shared");
    }
    const bool is_case = has_attribute(group.get(), shown, "op");
    if (must_be_case && !is_case) {
      fail(shown, "is an unknown group in a case: expected in/, out/ or a case with an attribute op");
    }
    const std::size_t index = is_case ? begin_case(group.get(), shown, path) : 0;
    bool has_in = false;
    bool has_datasets = false;

    for (const Link& link : links_of(group.get(), shown)) {
      const std::string child_path = path + "/" + link.name;
      const Handle child = open_child(group.get(), link, child_path);
      const H5I_type_t kind = H5Iget_type(child.get());
      if (is_case && (link.name == "in" || link.name == "out")) {
        if (kind != H5I_GROUP) fail(child_path, "is not a group: expected a group of datasets");
        read_tensors(child.get(), child_path, index, link.name == "out");
        has_in = has_in || link.name == "in";
      } else if (kind == H5I_GROUP) {
        Handle subgroup(H5Gopen2(group.get(), link.name.c_str(), H5P_DEFAULT), H5Gclose);
        const bool holds = walk(subgroup, child_path, depth + 1, is_case);
        if (holds && (link.name == "in" || link.name == "out")) {
          fail(shown, "has no string attribute op, but holds " + link.name + "/ with datasets as a case does");
        }
      } else if (is_case) {
        fail(child_path, "is not expected in a case: its datasets belong in in/ or out/");
      } else {
        has_datasets = has_datasets || kind == H5I_DATASET;
      }
    }
    if (is_case && !has_in) fail(shown, "is a case without the group in/");
    return has_datasets;
  }

  std::size_t begin_case(hid_t group, const std::string& shown, const std::string& path) {
    Case made;
    made.name = path.empty() ? "/" : path.substr(1);
    for (const std::string& name : attributes_of(group, shown)) {
      if (path.empty() && (name == "assay_schema" || name == "provenance")) continue;
      Attribute value = read_attribute(group, shown, name);
      if (name != "op") {
        made.attributes.emplace(name, std::move(value));
      } else if (std::string* op = std::get_if<std::string>(&value)) {
        if (op->empty() || !is_printable_utf8(*op)) fail(shown, "attribute op is '" + *op + "': expected the name of an op");
        made.op = std::move(*op);
      } else {
        fail(shown, "attribute op is a number: expected a string");
      }
    }
    fixture_.cases.push_back(std::move(made));
    return fixture_.cases.size() - 1;
  }

  void read_tensors(hid_t group, const std::string& path, std::size_t index, bool is_output) {
    if (has_attribute(group, path, "op")) fail(path, "has an attribute op: in/ and out/ of a case cannot be cases");
    for (const Link& link : links_of(group, path)) {
      const std::string child_path = path + "/" + link.name;
      const Handle child = open_child(group, link, child_path);
      if (H5Iget_type(child.get()) != H5I_DATASET) fail(child_path, "is not a dataset: expected nothing else here");
      const haddr_t address = info_of(child.get(), child_path).addr;
      auto known = datasets_.find(address);
      if (known == datasets_.end()) known = datasets_.emplace(address, check_dataset(child.get(), child_path)).first;
      const Dataset& dataset = known->second;
      if (__builtin_add_overflow(total_, dataset.bytes, &total_) || total_ > limits_.bytes) {
        fail(child_path, "brings the tensors of this file to more than the limit of " + show(limits_.bytes) + " bytes");
      }
      Case& owner = fixture_.cases[index];
      (is_output ? owner.out : owner.in).emplace(link.name, Tensor{dataset.type, dataset.shape, {}});
      pending_.push_back({index, is_output, link.name, child_path, address});
    }
  }

  std::vector<Link> links_of(hid_t group, const std::string& path) {
    struct Found {
      std::vector<Link> links;
      std::int64_t room;
    } found{{}, limits_.objects - objects_};
    const auto add = [](hid_t, const char* name, const H5L_info_t* info, void* to) -> herr_t {
      try {
        Found& list = *static_cast<Found*>(to);
        if (list.room-- <= 0) return 1;  // also ends a loop in a damaged index
        list.links.push_back({name, info->type});
        return 0;
      } catch (const std::exception&) {
        return -1;
      }
    };
    const herr_t status = H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, nullptr, add, &found);
    if (status < 0) fail_hdf5(path, "its links cannot be listed");
    if (status > 0) fail(path, "brings the file to more than the limit of " + show(limits_.objects) + " objects");
    objects_ += static_cast<std::int64_t>(found.links.size());
    for (const Link& link : found.links) check_name(path, "a link", link.name);
    return std::move(found.links);
  }

  void check_name(const std::string& path, std::string_view kind, const std::string& name) const {
    const bool valid = !name.empty() && name != "." && name.find('/') == std::string::npos && is_printable_utf8(name);
    if (!valid) fail(path, "holds " + std::string(kind) + " named '" + name + "': expected UTF-8 without control characters");
  }

  Handle open_child(hid_t group, const Link& link, const std::string& path) const {
    if (link.type == H5L_TYPE_SOFT) fail(path, "is a soft link: expected a hard link");
    if (link.type == H5L_TYPE_EXTERNAL) fail(path, "is a link to another file: expected a hard link");
    if (link.type != H5L_TYPE_HARD) fail(path, "is a link of a user-defined kind: expected a hard link");
    Handle child(H5Oopen(group, link.name.c_str(), H5P_DEFAULT), H5Oclose);
    if (!child) fail_hdf5(path, "cannot be opened");
    return child;
  }

  H5O_info_t info_of(hid_t object, const std::string& path) const {
    H5O_info_t info;
    if (H5Oget_info2(object, &info, H5O_INFO_BASIC) < 0) fail_hdf5(path, "its object header cannot be read");
    return info;
  }

  // ---- attributes

  bool has_attribute(hid_t object, const std::string& path, const char* name) const {
    const htri_t exists = H5Aexists(object, name);
    if (exists < 0) fail_hdf5(path, "its attributes cannot be read");
    return exists > 0;
  }

  std::vector<std::string> attributes_of(hid_t object, const std::string& path) const {
    struct Found {
      std::vector<std::string> names;
      std::int64_t room;
    } found{{}, limits_.attributes};
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
    if (status < 0) fail_hdf5(path, "its attributes cannot be listed");
    if (status > 0) fail(path, "has more than " + show(limits_.attributes) + " attributes");
    for (const std::string& name : found.names) check_name(path, "an attribute", name);
    return std::move(found.names);
  }

  Attribute read_attribute(hid_t object, const std::string& path, const std::string& name) const {
    const std::string what = "attribute " + name;
    const Handle attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose);
    if (!attribute) fail_hdf5(path, what + " cannot be opened");
    const Handle space(H5Aget_space(attribute.get()), H5Sclose);
    const Handle type(H5Aget_type(attribute.get()), H5Tclose);
    if (!space || !type) fail_hdf5(path, what + " cannot be read");
    const bool is_string = H5Tget_class(type.get()) == H5T_STRING;
    if (is_string && H5Sget_simple_extent_type(space.get()) == H5S_NULL) return std::string();
    if (H5Sget_simple_extent_npoints(space.get()) != 1) fail(path, what + " is not a single value");
    if (is_string) return read_string(attribute.get(), type.get(), space.get(), path, what);

    const bool is_enum = H5Tget_class(type.get()) == H5T_ENUM;
    const Handle base(is_enum ? H5Tget_super(type.get()) : H5Tcopy(type.get()), H5Tclose);
    if (!base) fail_hdf5(path, what + " cannot be read");
    const std::optional<StoredNumber> number = stored_number(base.get());
    if (!number || (number->is_float && number->bytes < 4)) {
      fail(path, what + " is " + class_name(type.get()) + ": expected int64, float64 or a string");
    }
    // Read as stored and widened here, so that no conversion of the library is asked to handle a strange type.
    std::vector<std::byte> raw(static_cast<std::size_t>(number->bytes));
    if (H5Aread(attribute.get(), type.get(), raw.data()) < 0) fail_hdf5(path, what + " cannot be read");
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
    if (value >> 63 != 0) fail(path, what + " is " + show(value) + ": expected a value of int64");
    return static_cast<std::int64_t>(value);
  }

  std::string read_string(hid_t attribute, hid_t type, hid_t space, const std::string& path,
                          const std::string& what) const {
    const htri_t is_variable = H5Tis_variable_str(type);
    if (is_variable < 0) fail_hdf5(path, what + " cannot be read");
    std::string text;
    if (is_variable > 0) {
      char* held = nullptr;
      if (H5Aread(attribute, type, &held) < 0) fail_hdf5(path, what + " cannot be read");
      if (held != nullptr) text.assign(held, strnlen(held, static_cast<std::size_t>(limits_.text) + 1));
      H5Dvlen_reclaim(type, space, H5P_DEFAULT, &held);
    } else {
      const std::size_t size = H5Tget_size(type);
      if (size > static_cast<std::size_t>(std::min(limits_.text, file_size_))) {
        fail(path, what + " claims " + show(size) + " characters: more than the file can hold");
      }
      text.resize(size);
      if (H5Aread(attribute, type, text.data()) < 0) fail_hdf5(path, what + " cannot be read");
      const H5T_str_t padding = H5Tget_strpad(type);
      if (padding == H5T_STR_NULLTERM) text.resize(strnlen(text.data(), text.size()));
      const char pad = padding == H5T_STR_SPACEPAD ? ' ' : '\0';
      while (!text.empty() && text.back() == pad) text.pop_back();
    }
    if (text.size() > static_cast<std::size_t>(limits_.text)) {
      fail(path, what + " is longer than the limit of " + show(limits_.text) + " bytes");
    }
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t length = utf8_sequence(text, at);
      if (length == 0 || text[at] == '\0') fail(path, what + " is not UTF-8 text");
      at += length;
    }
    return text;
  }

  // ---- datasets

  Dataset check_dataset(hid_t dataset, const std::string& path) const {
    Dataset found;
    if (!has_attribute(dataset, path, "dtype")) fail(path, "has no attribute dtype: expected one of " + dtype_names());
    const Attribute dtype = read_attribute(dataset, path, "dtype");
    const std::string* name = std::get_if<std::string>(&dtype);
    if (name == nullptr) fail(path, "attribute dtype is a number: expected one of " + dtype_names());
    const std::optional<Format> format = dtype_named(*name);
    if (!format) fail(path, "attribute dtype is '" + *name + "': expected one of " + dtype_names());
    found.type = *format;

    const Handle type(H5Dget_type(dataset), H5Tclose);
    if (!type) fail_hdf5(path, "its type cannot be read");
    if (!stored_as(type.get(), found.type)) {
      fail(path, "is stored as " + class_name(type.get()) + ": dtype " + *name + " needs " +
                     std::string(storage_name(found.type)));
    }
    read_shape(dataset, path, found);
    check_storage(dataset, path, found);
    return found;
  }

  void read_shape(hid_t dataset, const std::string& path, Dataset& found) const {
    const Handle space(H5Dget_space(dataset), H5Sclose);
    if (!space) fail_hdf5(path, "its shape cannot be read");
    if (H5Sget_simple_extent_type(space.get()) == H5S_NULL) fail(path, "has no shape (an empty dataspace)");
    const int rank = H5Sget_simple_extent_ndims(space.get());
    if (rank < 0) fail_hdf5(path, "its shape cannot be read");
    if (rank > kMaxRank) fail(path, "has " + show(rank) + " dimensions: at most " + show(kMaxRank) + " are expected");
    std::array<hsize_t, kMaxRank> extents{};
    if (H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr) < 0) fail_hdf5(path, "its shape cannot be read");

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
        fail(path, "claims the shape " + shape + "]: more than the file can hold");
      }
      found.shape.push_back(static_cast<std::int64_t>(extents[i]));
    }
    if (empty) elements = 0;
    found.bytes = static_cast<std::int64_t>(elements) * stored_bytes(found.type);  // below 2^63: elements < 2^60
    if (found.bytes > capacity()) {
      fail(path, "claims " + show(elements) + " elements of " + std::string(name_of(found.type)) +
                     ": more than the file can hold");
    }
  }

  std::int64_t capacity() const { return file_size_ * kBestRatio + kUnwritten; }  // file_size_ is at most 2^50

  void check_storage(hid_t dataset, const std::string& path, const Dataset& found) const {
    const Handle creation(H5Dget_create_plist(dataset), H5Pclose);
    if (!creation) fail_hdf5(path, "its storage cannot be read");
    const H5D_layout_t layout = H5Pget_layout(creation.get());
    if (layout == H5D_VIRTUAL) fail(path, "is a virtual dataset: expected the values in this file");
    const int external = H5Pget_external_count(creation.get());
    if (external < 0) fail_hdf5(path, "its storage cannot be read");
    if (external > 0) fail(path, "keeps its values in another file: expected them in this one");
    if (layout == H5D_CHUNKED) {
      check_chunks(creation.get(), path, found);
    } else if (layout == H5D_CONTIGUOUS || layout == H5D_COMPACT) {
      const hsize_t stored = H5Dget_storage_size(dataset);
      const haddr_t offset = layout == H5D_CONTIGUOUS ? H5Dget_offset(dataset) : 0;
      const bool unwritten = stored == 0 || (layout == H5D_CONTIGUOUS && offset == HADDR_UNDEF);
      if (!unwritten && stored != static_cast<hsize_t>(found.bytes)) {
        fail(path, "stores " + show(static_cast<std::uint64_t>(stored)) + " bytes: its shape needs " + show(found.bytes));
      }
      const auto size = static_cast<hsize_t>(file_size_);
      if (!unwritten && (stored > size || offset > size - stored)) fail(path, "its values lie past the end of the file");
    } else {
      fail(path, "has an unknown storage layout");
    }
  }

  void check_chunks(hid_t creation, const std::string& path, const Dataset& found) const {
    std::array<hsize_t, kMaxRank + 1> extents{};
    const int rank = H5Pget_chunk(creation, static_cast<int>(extents.size()), extents.data());
    if (rank != static_cast<int>(found.shape.size())) fail(path, "has chunks of another rank than its own");
    std::uint64_t bytes = static_cast<std::uint64_t>(stored_bytes(found.type));
    for (int i = 0; i < rank; ++i) {
      if (extents[i] == 0) fail(path, "has chunks of extent 0");
      if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extents[i]), &bytes) ||
          bytes > static_cast<std::uint64_t>(capacity())) {
        fail(path, "has chunks that are larger than the file can hold");
      }
    }
    const int filters = H5Pget_nfilters(creation);
    if (filters < 0) fail_hdf5(path, "its filters cannot be read");
    for (int i = 0; i < filters; ++i) {
      unsigned flags = 0;
      unsigned config = 0;
      std::size_t values = 0;
      std::array<char, 64> name{};
      const H5Z_filter_t filter = H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &values, nullptr,
                                                 name.size() - 1, name.data(), &config);
      if (filter < 0) fail_hdf5(path, "its filters cannot be read");
      const std::string shown = "filter " + show(filter) + (name[0] == 0 ? "" : std::string(" (") + name.data() + ")");
      // 1 to 6 come with HDF5; asking about another would make it look for a plug-in to load.
      if (filter < H5Z_FILTER_DEFLATE || filter > H5Z_FILTER_SCALEOFFSET) {
        fail(path, "is stored through " + shown + ": expected one that HDF5 itself brings, such as gzip");
      }
      if (H5Zfilter_avail(filter) <= 0) fail(path, "is stored through " + shown + ", which this HDF5 library lacks");
    }
  }

  void load(const Pending& pending) {
    Case& owner = fixture_.cases[pending.case_index];
    Tensor& tensor = (pending.is_output ? owner.out : owner.in).at(pending.name);
    const auto [loaded, is_first] = loaded_.emplace(pending.address, &tensor);
    if (!is_first) {
      tensor.bytes = loaded->second->bytes;
      return;
    }
    const Dataset& expected = datasets_.at(pending.address);
    tensor.bytes.resize(static_cast<std::size_t>(expected.bytes));
    if (expected.bytes == 0) return;
    const Handle dataset(H5Dopen2(file_.get(), pending.path.c_str(), H5P_DEFAULT), H5Dclose);
    const Handle type(dataset ? H5Dget_type(dataset.get()) : -1, H5Tclose);
    const Handle space(dataset ? H5Dget_space(dataset.get()) : -1, H5Sclose);
    if (!dataset || !type || !space) fail_hdf5(pending.path, "cannot be opened");
    const std::int64_t width = stored_bytes(tensor.type);
    if (!stored_as(type.get(), tensor.type) ||
        H5Sget_simple_extent_npoints(space.get()) != static_cast<hssize_t>(expected.bytes / width)) {
      fail(pending.path, "changed while it was read");
    }
    if (H5Dread(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, tensor.bytes.data()) < 0) {
      fail_hdf5(pending.path, "its values cannot be read");
    }
    if (stored_number(type.get())->swapped) swap_bytes(tensor.bytes, static_cast<std::size_t>(width));
  }

  const std::string path_;
  const ReadLimits limits_;
  std::int64_t file_size_ = 0;
  Handle file_;
  Fixture fixture_;
  std::int64_t objects_ = 0;
  std::int64_t total_ = 0;
  std::set<haddr_t> seen_groups_;
  std::map<haddr_t, Dataset> datasets_;
  std::vector<Pending> pending_;
  std::map<haddr_t, const Tensor*> loaded_;
};

}  // namespace

Fixture read_fixture(const std::filesystem::path& path, const ReadLimits& limits,
                     const std::function<void(std::int64_t)>& admitted) {
  const std::lock_guard<std::mutex> lock(hdf5_mutex());
  const QuietHdf5 quiet;
  try {
    return Reader(path, limits).read(admitted);
  } catch (const std::bad_alloc&) {
    throw FixtureError(path.string(), "", "needs more memory than there is");
  }
}

}  // namespace assay::golden
