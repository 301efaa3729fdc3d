#pragma once
// Questions to a backend about a call before it is made.

#include <cstdint>
#include <string>

#include "conformance/backend.h"

namespace assay::conformance {

// How one call of the table ended.
struct CallResult {
  bool made = false;  // false: an earlier failure prevented it
  assay_status status = ASSAY_OK;
  std::string error;  // last_error() where status is not ASSAY_OK
  bool is_ok() const { return made && status == ASSAY_OK; }
};

struct Questions {
  bool sized = false;  // the call has its workspace: workspace_bytes() is not asked
  CallResult workspace_bytes, supports, numerics;
  std::int64_t bytes = 0;   // what workspace_bytes() gave
  assay_numerics stated{};  // what numerics() gave
  Questions() {
    stated.struct_size = sizeof stated;
    stated.keeps_zero_sign = stated.deterministic = stated.batch_invariant = -1;
  }
};

enum class Question { workspace_bytes, supports, numerics };

// The call must get a workspace first; no other question was asked.
inline bool needs_workspace(const Questions& questions) {
  return !questions.sized && questions.workspace_bytes.status == ASSAY_OK && questions.bytes > 0;
}

// Asks workspace_bytes() unless `sized`; then, unless the call is still to get a workspace, supports(), and numerics() where that
// is ASSAY_OK. `make(question, result, body)` makes the call `body`, and fills in `result`.
template <class Make>
void ask_questions(const assay_backend& table, assay_context* context, const assay_call& call, Questions& questions, Make make) {
  Questions& q = questions;
  if (!q.sized) {
    make(Question::workspace_bytes, q.workspace_bytes, [&] { return table.workspace_bytes(context, &call, &q.bytes); });
    if (needs_workspace(q)) return;
  }
  make(Question::supports, q.supports, [&] { return table.supports(context, &call); });
  if (q.supports.status == ASSAY_OK)
    make(Question::numerics, q.numerics, [&] { return table.numerics(context, &call, &q.stated); });
}

}  // namespace assay::conformance
