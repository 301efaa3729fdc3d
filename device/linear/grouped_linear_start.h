#pragma once
// Shared by all calls of the module's steps. Internal to GroupedLinear.

#include <string>

#include "device/layout/check_rows.h"
#include "device/linear/grouped_linear.h"
#include "device/linear/linear_parts.h"

namespace assay::device {

inline void require_null(const void* pointer, const char* argument, const std::string& why) {
  require(pointer == nullptr, argument, "a pointer", "null, as " + why);
}

// Placeholder for an address that is not known yet, while sizes are computed; not read.
template <class Pointer>
void stand_in(Pointer*& pointer) {
  pointer = Parts(nullptr).take<Pointer>(0);
}

template <class Call>
Call GroupedLinear::start(const Rows& rows) const {
  Call call;
  call.config = options_.config;
  call.rows = rows;
  call.N = options_.N;
  call.K = options_.K;
  call.path = options_.path;
  call.rows_multiple = options_.rows_multiple;
  call.column_alignment = column_alignment();
  // Sizes exclude the memory of GemmWorkspaces; give_path() passes its addresses to a product.
  stand_in(call.path.settings.library_workspace);
  stand_in(call.path.settings.group_arrays);
  call.constants = constants_;
  call.status = options_.status;
  return call;
}

template <class Call>
void GroupedLinear::give(Call& call, const Workspace& workspace) const {
  call.workspace = workspace.memory;
  call.workspace_bytes = workspace.bytes;
}

}  // namespace assay::device
