#include "golden/io/reader.h"

#include <algorithm>
#include <set>
#include <utility>

#include "golden/io/check_dataset.h"
#include "golden/io/hdf5_handle.h"
#include "golden/io/opened_file.h"
#include "golden/io/read_attribute.h"
#include "golden/io/read_context.h"
#include "golden/io/stored_type.h"
#include "golden/io/utf8.h"
#include "reference/types/error.h"
#include "reference/types/tensor.h"

namespace assay::golden {
namespace {

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

class Reader {
 public:
  Reader(ReadContext& context, Extent extent) : context_(context), file_(context), extent_(extent) {}

  LeftOut take_left_out() { return std::move(left_out_); }

  Fixture read(const std::function<void(std::int64_t)>& admitted) {
    read_root();
    walk(Handle(H5Gopen2(file_.id(), "/", H5P_DEFAULT), H5Gclose), "", 0, false);
    if (!fixture_.cases.empty() && fixture_.provenance.empty() && has_expected_values()) {
      context_.fail("/", "has no provenance: expected values need one (JSON text: who produced them, and with what)");
    }
    if (fixture_.cases.empty()) context_.fail("", "holds no case: expected a group with a string attribute op");
    if (admitted) admitted(total_);
    for (const Pending& pending : pending_) load(pending);
    file_.check_unchanged();
    // A dataset outside cases that a case links to is in the fixture.
    for (const auto& [path, address] : outside_) {
      if (!datasets_.contains(address)) leave_out("dataset " + path);
    }
    std::sort(fixture_.cases.begin(), fixture_.cases.end(), [](const Case& a, const Case& b) { return a.name < b.name; });
    return std::move(fixture_);
  }

 private:
  void read_root() {
    const Handle root(H5Gopen2(file_.id(), "/", H5P_DEFAULT), H5Gclose);
    if (!root) context_.fail_hdf5("/", "cannot be opened");
    if (!has_attribute(context_, root.get(), "/", "assay_schema")) {
      context_.fail("/", "has no attribute assay_schema: this is not a fixture file");
    }
    const Attribute schema = read_attribute(context_, root.get(), "/", "assay_schema");
    if (!std::holds_alternative<std::int64_t>(schema)) context_.fail("/", "attribute assay_schema is not an integer: expected 1");
    fixture_.schema = std::get<std::int64_t>(schema);
    if (fixture_.schema > kNewestSchema) {
      context_.fail("/", "assay_schema is " + show(fixture_.schema) + ": this build reads up to " + show(kNewestSchema) +
                             "; the file was made for a newer one");
    }
    if (fixture_.schema < 1) context_.fail("/", "assay_schema is " + show(fixture_.schema) + ": expected 1");
    if (has_attribute(context_, root.get(), "/", "provenance")) {
      Attribute provenance = read_attribute(context_, root.get(), "/", "provenance");
      if (!std::holds_alternative<std::string>(provenance)) {
        context_.fail("/", "attribute provenance is not a string: expected JSON text");
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
    context_.begin(shown);
    if (!group) context_.fail_hdf5(shown, "cannot be opened");
    if (depth > context_.limits().depth) context_.fail(shown, "lies deeper than " + show(context_.limits().depth) + " groups");
    if (!seen_groups_.insert(info_of(group.get(), shown).addr).second) {
      context_.fail(shown, "is a second link to a group: only datasets may be shared");
    }
    const bool is_case = has_attribute(context_, group.get(), shown, "op");
    if (must_be_case && !is_case) {
      context_.fail(shown, "is an unknown group in a case: expected in/, out/ or a case with an attribute op");
    }
    if (!is_case) leave_out_attributes(group.get(), shown);
    const std::size_t index = is_case ? begin_case(group.get(), shown, path) : 0;
    bool has_in = false;
    bool has_datasets = false;

    for (const Link& link : links_of(group.get(), shown)) {
      const std::string child_path = path + "/" + link.name;
      const Handle child = open_child(group.get(), link, child_path);
      const H5I_type_t kind = H5Iget_type(child.get());
      if (is_case && (link.name == "in" || link.name == "out")) {
        if (kind != H5I_GROUP) context_.fail(child_path, "is not a group: expected a group of datasets");
        if (extent_ == Extent::whole) read_tensors(child.get(), child_path, index, link.name == "out");
        has_in = has_in || link.name == "in";
      } else if (kind == H5I_GROUP) {
        Handle subgroup(H5Gopen2(group.get(), link.name.c_str(), H5P_DEFAULT), H5Gclose);
        const bool holds = walk(subgroup, child_path, depth + 1, is_case);
        if (holds && (link.name == "in" || link.name == "out")) {
          context_.fail(shown, "has no string attribute op, but holds " + link.name + "/ with datasets as a case does");
        }
      } else if (is_case) {
        context_.fail(child_path, "is not expected in a case: its datasets belong in in/ or out/");
      } else {
        if (kind == H5I_DATASET) outside_.emplace_back(child_path, info_of(child.get(), child_path).addr);
        if (kind != H5I_DATASET) leave_out("type " + child_path);
        has_datasets = has_datasets || kind == H5I_DATASET;
      }
    }
    if (is_case && !has_in) context_.fail(shown, "is a case without the group in/");
    return has_datasets;
  }

  void leave_out(const std::string& what) {
    if (++left_out_.count <= static_cast<std::int64_t>(LeftOut::kMaxNamed)) left_out_.named.push_back(one_line(what));
  }

  // All except those of the schema.
  void leave_out_attributes(hid_t object, const std::string& path) {
    bool is_all = false;
    for (const std::string& name : raw_attribute_names(context_, object, path, is_all)) {
      const bool is_known = path == "/" ? name == "assay_schema" || name == "provenance" : name == "dtype";
      if (!is_known) leave_out("attribute " + name + " of " + path);
    }
  }

  std::size_t begin_case(hid_t group, const std::string& shown, const std::string& path) {
    Case made;
    made.name = path.empty() ? "/" : path.substr(1);
    for (const std::string& name : attributes_of(context_, group, shown)) {
      if (path.empty() && (name == "assay_schema" || name == "provenance")) continue;
      Attribute value = read_attribute(context_, group, shown, name);
      if (name != "op") {
        made.attributes.emplace(name, std::move(value));
      } else if (std::string* op = std::get_if<std::string>(&value)) {
        if (op->empty() || !is_printable_utf8(*op))
          context_.fail(shown, "attribute op is '" + *op + "': expected the name of an op");
        made.op = std::move(*op);
      } else {
        context_.fail(shown, "attribute op is a number: expected a string");
      }
    }
    fixture_.cases.push_back(std::move(made));
    return fixture_.cases.size() - 1;
  }

  void read_tensors(hid_t group, const std::string& path, std::size_t index, bool is_output) {
    if (has_attribute(context_, group, path, "op"))
      context_.fail(path, "has an attribute op: in/ and out/ of a case cannot be cases");
    for (const Link& link : links_of(group, path)) {
      const std::string child_path = path + "/" + link.name;
      context_.begin(child_path);
      const Handle child = open_child(group, link, child_path);
      if (H5Iget_type(child.get()) != H5I_DATASET) context_.fail(child_path, "is not a dataset: expected nothing else here");
      const haddr_t address = info_of(child.get(), child_path).addr;
      auto known = datasets_.find(address);
      if (known == datasets_.end()) {
        known = datasets_.emplace(address, check_dataset(context_, child.get(), child_path)).first;
        leave_out_attributes(child.get(), child_path);
      }
      const Dataset& dataset = known->second;
      if (__builtin_add_overflow(total_, dataset.bytes, &total_) || total_ > context_.limits().bytes) {
        context_.fail(child_path,
                      "brings the tensors of this file to more than the limit of " + show(context_.limits().bytes) + " bytes");
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
    } found{{}, context_.limits().objects - objects_};
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
    if (status < 0) context_.fail_hdf5(path, "its links cannot be listed");
    if (status > 0)
      context_.fail(path, "brings the file to more than the limit of " + show(context_.limits().objects) + " objects");
    objects_ += static_cast<std::int64_t>(found.links.size());
    for (const Link& link : found.links) {
      check_name(context_, path, "a link", link.name);
      context_.take_text(path, path.size() + link.name.size());
    }
    // In order of their names; a damaged index can hold one twice.
    const auto twice =
        std::adjacent_find(found.links.begin(), found.links.end(), [](const Link& a, const Link& b) { return a.name == b.name; });
    if (twice != found.links.end()) context_.fail(path, "holds two links named '" + twice->name + "'");
    return std::move(found.links);
  }

  Handle open_child(hid_t group, const Link& link, const std::string& path) const {
    if (link.type == H5L_TYPE_SOFT) context_.fail(path, "is a soft link: expected a hard link");
    if (link.type == H5L_TYPE_EXTERNAL) context_.fail(path, "is a link to another file: expected a hard link");
    if (link.type != H5L_TYPE_HARD) context_.fail(path, "is a link of a user-defined kind: expected a hard link");
    Handle child(H5Oopen(group, link.name.c_str(), H5P_DEFAULT), H5Oclose);
    if (!child) context_.fail_hdf5(path, "cannot be opened");
    return child;
  }

  H5O_info_t info_of(hid_t object, const std::string& path) const {
    H5O_info_t info;
    if (H5Oget_info2(object, &info, H5O_INFO_BASIC) < 0) context_.fail_hdf5(path, "its object header cannot be read");
    return info;
  }

  // ---- values

  void load(const Pending& pending) {
    context_.begin(pending.path);
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
    const Handle dataset(H5Dopen2(file_.id(), pending.path.c_str(), H5P_DEFAULT), H5Dclose);
    const Handle type(dataset ? H5Dget_type(dataset.get()) : -1, H5Tclose);
    const Handle space(dataset ? H5Dget_space(dataset.get()) : -1, H5Sclose);
    if (!dataset || !type || !space) context_.fail_hdf5(pending.path, "cannot be opened");
    const std::int64_t width = stored_bytes(tensor.type);
    if (!stored_as(type.get(), tensor.type) ||
        H5Sget_simple_extent_npoints(space.get()) != static_cast<hssize_t>(expected.bytes / width)) {
      context_.fail(pending.path, "changed while it was read");
    }
    if (H5Dread(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, tensor.bytes.data()) < 0) {
      context_.fail_hdf5(pending.path, "its values cannot be read");
    }
    if (stored_number(type.get())->swapped) swap_bytes(tensor.bytes, static_cast<std::size_t>(width));
  }

  ReadContext& context_;
  OpenedFile file_;
  Extent extent_;
  Fixture fixture_;
  std::int64_t objects_ = 0;
  std::int64_t total_ = 0;
  std::set<haddr_t> seen_groups_;
  std::map<haddr_t, Dataset> datasets_;
  std::vector<Pending> pending_;
  std::vector<std::pair<std::string, haddr_t>> outside_;  // datasets that belong to no case
  LeftOut left_out_;
  std::map<haddr_t, const Tensor*> loaded_;
};

}  // namespace

void ReadContext::fail_hdf5(std::string_view object, std::string_view what) const {
  const std::string reason = std::string(what) + ": " + hdf5_reason();
  if (hdf5_lacked_memory()) throw LacksMemory(path_, object, reason);
  throw FixtureError(path_, object, reason);
}

Fixture read_fixture(const std::filesystem::path& path, const ReadLimits& limits,
                     const std::function<void(std::int64_t)>& admitted, const std::function<void(std::string_view)>& begins,
                     LeftOut* left_out, Extent extent) {
  const std::lock_guard<std::mutex> lock(hdf5_mutex());
  const QuietHdf5 quiet;
  try {
    ReadContext context(path.string(), limits, begins);
    Reader reader(context, extent);
    Fixture fixture = reader.read(admitted);
    if (left_out != nullptr) *left_out = reader.take_left_out();
    return fixture;
  } catch (const std::bad_alloc&) {
    throw LacksMemory(path.string(), "", "needs more memory than there is");
  }
}

}  // namespace assay::golden
