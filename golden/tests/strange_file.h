#pragma once
// Makes files with HDF5 itself, right and wrong ones, as other programs would.

#include <hdf5.h>

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace assay::golden {

// An identifier or status that must be valid; the tests' own calls do not fail.
template <class Id>
Id sure(Id id) {
  if (id < 0) throw std::logic_error("an HDF5 call of the test failed");
  return id;
}

// A file under construction. Identifiers are closed with it.
class StrangeFile {
 public:
  // With the root attributes of a fixture and one case, "c": in/x e4m3 [2,3], out/y f32 [2].
  static void make(const std::filesystem::path& path, void (*change)(StrangeFile&)) {
    StrangeFile file(path);
    file.put("/", "assay_schema", 1);
    file.put("/", "provenance", "{}");
    file.add_case("c");
    change(file);
  }

  // A file that was created elsewhere, and is closed here.
  explicit StrangeFile(hid_t opened) : id(opened) {}
  explicit StrangeFile(const std::filesystem::path& path) : path_(path) {
    const hid_t access = sure(H5Pcreate(H5P_FILE_ACCESS));
    H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
    id = sure(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access));
    H5Pclose(access);
  }
  ~StrangeFile() { H5Fclose(id); }
  StrangeFile(const StrangeFile&) = delete;
  StrangeFile& operator=(const StrangeFile&) = delete;

  hid_t open(const std::string& object) const { return sure(H5Oopen(id, object.c_str(), H5P_DEFAULT)); }
  hid_t group(const std::string& name) const { return sure(H5Gcreate2(id, name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)); }
  void unlink(const std::string& name) const { sure(H5Ldelete(id, name.c_str(), H5P_DEFAULT)); }
  void link(const std::string& from, const std::string& to) const {
    sure(H5Lcreate_hard(id, from.c_str(), id, to.c_str(), H5P_DEFAULT, H5P_DEFAULT));
  }

  void put(const std::string& object, const std::string& name, std::int64_t value) const {
    put_raw(object, name, H5T_STD_I64LE, H5T_NATIVE_INT64, {}, &value);
  }
  void put(const std::string& object, const std::string& name, double value) const {
    put_raw(object, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, {}, &value);
  }
  void put(const std::string& object, const std::string& name, int value) const { put(object, name, std::int64_t{value}); }
  void put(const std::string& object, const std::string& name, const char* value) const {
    put_raw(object, name, text_type(), text_type(), {}, &value);
  }
  void remove(const std::string& object, const std::string& name) const {
    sure(H5Adelete_by_name(id, object.c_str(), name.c_str(), H5P_DEFAULT));
  }
  // Replaces an attribute of that name.
  void put_raw(const std::string& object, const std::string& name, hid_t file_type, hid_t memory_type,
               const std::vector<hsize_t>& shape, const void* value) const {
    const hid_t to = open(object);
    if (H5Aexists(to, name.c_str()) > 0) sure(H5Adelete(to, name.c_str()));
    const hid_t attribute = sure(H5Acreate2(to, name.c_str(), file_type, space_of(shape), H5P_DEFAULT, H5P_DEFAULT));
    if (value != nullptr) sure(H5Awrite(attribute, memory_type, value));
  }

  hid_t dataset(const std::string& name, const char* dtype, hid_t type, const std::vector<hsize_t>& shape, const void* values,
                hid_t creation = H5P_DEFAULT) const {
    return dataset_in(name, dtype, type, space_of(shape), values, creation);
  }
  hid_t dataset_in(const std::string& name, const char* dtype, hid_t type, hid_t space, const void* values,
                   hid_t creation = H5P_DEFAULT) const {
    const hid_t made = sure(H5Dcreate2(id, name.c_str(), type, space, H5P_DEFAULT, creation, H5P_DEFAULT));
    if (values != nullptr) sure(H5Dwrite(made, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    if (dtype != nullptr) put(name, "dtype", dtype);
    return made;
  }
  void add_case(const std::string& name) const {
    static constexpr std::uint8_t kX[6] = {1, 2, 3, 4, 5, 6};
    static constexpr float kY[2] = {1.5f, -2};
    group(name);
    put(name, "op", "quantize");
    group(name + "/in");
    group(name + "/out");
    dataset(name + "/in/x", "e4m3", H5T_STD_U8LE, {2, 3}, kX);
    dataset(name + "/out/y", "f32", H5T_IEEE_F32LE, {2}, kY);
  }

  static hid_t space_of(const std::vector<hsize_t>& shape) {
    return sure(shape.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr));
  }
  static hid_t text_type() {
    const hid_t type = sure(H5Tcopy(H5T_C_S1));
    sure(H5Tset_size(type, H5T_VARIABLE));
    sure(H5Tset_cset(type, H5T_CSET_UTF8));
    return type;
  }
  static hid_t fixed_text_type(std::size_t size, H5T_str_t padding) {
    const hid_t type = sure(H5Tcopy(H5T_C_S1));
    sure(H5Tset_size(type, size));
    sure(H5Tset_strpad(type, padding));
    return type;
  }
  // binary16, as h5py stores numpy.float16.
  static hid_t half_type(hid_t order = H5T_IEEE_F32LE) {
    const hid_t type = sure(H5Tcopy(order));
    sure(H5Tset_fields(type, 15, 10, 5, 0, 10));
    sure(H5Tset_size(type, 2));
    sure(H5Tset_ebias(type, 15));
    return type;
  }
  static hid_t chunked(const std::vector<hsize_t>& chunk) {
    const hid_t creation = sure(H5Pcreate(H5P_DATASET_CREATE));
    sure(H5Pset_chunk(creation, static_cast<int>(chunk.size()), chunk.data()));
    return creation;
  }

  const std::filesystem::path& path() const { return path_; }
  hid_t id = -1;

 private:
  std::filesystem::path path_;
};

}  // namespace assay::golden
