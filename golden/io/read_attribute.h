#pragma once
// Attributes of an object in an HDF5 file, each checked before it is read.

#include <hdf5.h>

#include <string>
#include <string_view>
#include <vector>

#include "golden/io/fixture.h"
#include "golden/io/read_context.h"

namespace assay::golden {

// "int64", "a compound", ...: a stored type in messages.
std::string class_name(hid_t type);

// Errors: FixtureError unless `name` is UTF-8 without '/' and control characters, and not empty or ".". `kind` is "a link"
// or "an attribute", of the object at `path`.
void check_name(const ReadContext& context, const std::string& path, std::string_view kind, const std::string& name);

bool has_attribute(const ReadContext& context, hid_t object, const std::string& path, const char* name);

// Names of attributes as the file has them, in order; of more than the limit, the first ones.
std::vector<std::string> raw_attribute_names(const ReadContext& context, hid_t object, const std::string& path, bool& is_all);

// Their names, in order, each checked. Errors: FixtureError also for more than the limit.
std::vector<std::string> attributes_of(ReadContext& context, hid_t object, const std::string& path);

Attribute read_attribute(ReadContext& context, hid_t object, const std::string& path, const std::string& name);

}  // namespace assay::golden
