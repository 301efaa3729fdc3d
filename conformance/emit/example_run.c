/* What the user of an emitted file writes, for the op splits_to_offsets (docs/write_cases.md, "Without this program"). */
#define ASSAY_DECLARATIONS_ONLY
#include "case.c" /* of: assay emit --c splits_to_offsets splits=... -o case.c */

int assay_run(const struct assay_case* call) {
  const struct assay_case_input* splits = &call->inputs[ASSAY_IN_splits];
  int64_t* offsets = (int64_t*)call->outputs[ASSAY_OUT_offsets].data;
  const int64_t stride = call->parameters[0].integer;
  int64_t group;
  offsets[0] = 0;
  for (group = 0; group < splits->shape[0]; ++group)
    offsets[group + 1] = offsets[group] + stride * ((const int64_t*)splits->data)[group];
  return 0;
}
