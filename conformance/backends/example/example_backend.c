/* A small backend, to be copied: host memory, streams that run at once, and one op,
 * `splits_to_offsets`. Everything else is declared absent, and execute() proves it: it refuses with memory untouched.
 *
 *   cc -std=c11 -shared -fPIC -I ASSAY example_backend.c -o libexample.so    ASSAY: the folder that holds conformance/backend.h
 *   assay run --backend ./libexample.so --profile smoke
 *
 * On a device, allocate, copy and fill become calls of its runtime, a stream is a real one, and execute() launches a kernel.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/backend.h"

struct assay_context {
  char error[200];
};
struct assay_stream {
  int nothing;
};

static assay_status refuse(assay_context* context, assay_status status, const char* what, const char* name) {
  snprintf(context->error, sizeof context->error, "%s '%s'", what, name);
  return status;
}

static assay_status open_context(const char* options, assay_context** context) {
  if (options[0] != '\0') return ASSAY_INVALID_ARGUMENT; /* last_error(NULL) tells why */
  *context = calloc(1, sizeof **context);
  return *context == NULL ? ASSAY_OUT_OF_MEMORY : ASSAY_OK;
}
static void close_context(assay_context* context) { free(context); }
static const char* last_error(assay_context* context) {
  return context == NULL ? "the example has no options, and needs a little memory" : context->error;
}
static assay_status device_info(assay_context* context, assay_device_info* info) {
  (void)context;
  snprintf(info->name, sizeof info->name, "host processor");
  snprintf(info->architecture, sizeof info->architecture, "host");
  snprintf(info->software, sizeof info->software, "example 1.0");
  return ASSAY_OK;
}

/* Memory and streams. */
static assay_status allocate(assay_context* context, int64_t bytes, void** data) {
  *data = bytes < 0 ? NULL : aligned_alloc(256, ((size_t)bytes + 256) / 256 * 256);
  return *data == NULL ? refuse(context, ASSAY_OUT_OF_MEMORY, "no memory for", "a buffer") : ASSAY_OK;
}
static void release(assay_context* context, void* data) { (void)context, free(data); }
static assay_status copy(assay_context* context, assay_stream* stream, void* to, const void* from, int64_t bytes) {
  (void)context, (void)stream;
  memcpy(to, from, (size_t)bytes);
  return ASSAY_OK;
}
static assay_status fill(assay_context* context, assay_stream* stream, void* data, uint8_t value, int64_t bytes) {
  (void)context, (void)stream;
  memset(data, value, (size_t)bytes);
  return ASSAY_OK;
}
static assay_status stream_create(assay_context* context, assay_stream** stream) {
  *stream = calloc(1, sizeof **stream);
  return *stream == NULL ? refuse(context, ASSAY_OUT_OF_MEMORY, "no memory for", "a stream") : ASSAY_OK;
}
static void stream_destroy(assay_context* context, assay_stream* stream) { (void)context, free(stream); }
static assay_status synchronize(assay_context* context, assay_stream* stream, int64_t timeout_ms) {
  (void)context, (void)stream, (void)timeout_ms; /* all work is done when its call returns */
  return ASSAY_OK;
}

/* What a tensor shows to be wrong by itself: backend.h, part 2. */
static assay_status check_tensor(assay_context* context, const assay_tensor* tensor, int64_t extent) {
  const char* name = tensor->name;
  if (tensor->dtype < ASSAY_F32 || tensor->dtype > ASSAY_E2M3)
    return refuse(context, ASSAY_INVALID_ARGUMENT, "no assay_dtype:", name);
  if (tensor->dtype != ASSAY_I64) return refuse(context, ASSAY_NOT_SUPPORTED, "the example has i64 only:", name);
  if (tensor->rank != 1 || tensor->shape[0] != extent) return refuse(context, ASSAY_INVALID_ARGUMENT, "of another shape:", name);
  if (tensor->bytes != extent * (int64_t)sizeof(int64_t))
    return refuse(context, ASSAY_INVALID_ARGUMENT, "expected 8 bytes for each element:", name);
  if (extent > 0 && tensor->data == NULL) return refuse(context, ASSAY_INVALID_ARGUMENT, "no memory for", name);
  if ((uintptr_t)tensor->data % sizeof(int64_t) != 0)
    return refuse(context, ASSAY_INVALID_ARGUMENT, "expected an address at a multiple of 8:", name);
  return ASSAY_OK;
}

/* The tensor of an array that has one, of that name. */
static assay_status find_tensor(assay_context* context, const assay_tensor* tensors, int32_t count, const char* name) {
  if (count < 0 || (count > 0 && tensors == NULL)) return refuse(context, ASSAY_INVALID_ARGUMENT, "no array of", name);
  for (int32_t i = 0; i < count; ++i) {
    if (tensors[i].name == NULL) return refuse(context, ASSAY_INVALID_ARGUMENT, "a tensor without a name beside", name);
    if (strcmp(tensors[i].name, name) != 0)
      return refuse(context, ASSAY_NOT_SUPPORTED, "the example has no tensor", tensors[i].name);
  }
  return count == 1 ? ASSAY_OK : refuse(context, ASSAY_INVALID_ARGUMENT, "expected one tensor", name);
}

static assay_status check_stride(assay_context* context, const assay_call* call) {
  if (call->parameter_count < 0 || (call->parameter_count > 0 && call->parameters == NULL))
    return refuse(context, ASSAY_INVALID_ARGUMENT, "no array of", "parameters");
  for (int32_t i = 0; i < call->parameter_count; ++i) {
    const assay_parameter* parameter = &call->parameters[i];
    if (parameter->name == NULL) return refuse(context, ASSAY_INVALID_ARGUMENT, "a parameter without", "a name");
    if (strcmp(parameter->name, "stride") != 0)
      return refuse(context, ASSAY_NOT_SUPPORTED, "the example has no parameter", parameter->name);
    if (i > 0) return refuse(context, ASSAY_INVALID_ARGUMENT, "given twice: parameter", parameter->name);
    if (parameter->kind != ASSAY_INTEGER)
      return refuse(context, ASSAY_INVALID_ARGUMENT, "not an integer: parameter", parameter->name);
    if (parameter->integer < 1) return refuse(context, ASSAY_INVALID_ARGUMENT, "expected 1 or more: parameter", parameter->name);
  }
  return ASSAY_OK;
}

/* The op: offsets[0] = 0, offsets[i + 1] = offsets[i] + stride * splits[i]. Unknown parts are refused, never ignored. */
static assay_status supports(assay_context* context, const assay_call* call) {
  if (call->op == NULL) return refuse(context, ASSAY_INVALID_ARGUMENT, "a call without", "an op");
  if (strcmp(call->op, "splits_to_offsets") != 0) return refuse(context, ASSAY_NOT_SUPPORTED, "the example has no op", call->op);
  if (call->algorithm != -1) return refuse(context, ASSAY_NOT_SUPPORTED, "the example has one algorithm; pin none for", call->op);
  if (call->workspace_bytes < 0) return refuse(context, ASSAY_INVALID_ARGUMENT, "a negative size:", "workspace");
  assay_status status = check_stride(context, call);
  if (status == ASSAY_OK) status = find_tensor(context, call->inputs, call->input_count, "splits");
  if (status == ASSAY_OK) status = find_tensor(context, call->outputs, call->output_count, "offsets");
  if (status != ASSAY_OK) return status;
  const assay_tensor *splits = call->inputs, *offsets = call->outputs;
  if (splits->rank != 1 || splits->shape[0] < 0 || splits->shape[0] > INT32_MAX)
    return refuse(context, ASSAY_INVALID_ARGUMENT, "expected one extent, of 0 to 2^31 - 1:", "splits");
  const int64_t groups = splits->shape[0];
  status = check_tensor(context, splits, groups);
  if (status == ASSAY_OK) status = check_tensor(context, offsets, groups + 1);
  if (status != ASSAY_OK) return status;
  const uintptr_t from = (uintptr_t)splits->data, to = (uintptr_t)offsets->data;
  if (from < to + (uintptr_t)offsets->bytes && to < from + (uintptr_t)splits->bytes)
    return refuse(context, ASSAY_INVALID_ARGUMENT, "in memory of splits:", "offsets");
  return ASSAY_OK;
}
static assay_status numerics(assay_context* context, const assay_call* call, assay_numerics* numerics) {
  (void)context, (void)call;
  numerics->unit[0] = numerics->plan[0] = '\0'; /* integers: no unit and no plan to state */
  numerics->keeps_zero_sign = -1;
  numerics->deterministic = numerics->batch_invariant = 1;
  return ASSAY_OK;
}
static assay_status workspace_bytes(assay_context* context, const assay_call* call, int64_t* bytes) {
  (void)context, (void)call;
  *bytes = 0;
  return ASSAY_OK;
}
/* Contents that no call may have. A device backend finds them in its kernel, and synchronize() reports them. */
static int good_splits(const int64_t* splits, int64_t count, int64_t stride) {
  int64_t left = INT64_MAX / stride; /* rows that an offset can still count */
  for (int64_t g = 0; g < count; ++g) {
    if (splits[g] < 0 || splits[g] > left) return 0;
    left -= splits[g];
  }
  return 1;
}
static assay_status execute(assay_context* context, assay_stream* stream, const assay_call* call) {
  const assay_status status = supports(context, call);
  if (status != ASSAY_OK) return status;
  (void)stream;
  const int64_t* splits = call->inputs[0].data;
  int64_t* offsets = call->outputs[0].data;
  const int64_t groups = call->inputs[0].shape[0];
  const int64_t stride = call->parameter_count == 0 ? 1 : call->parameters[0].integer;
  if (!good_splits(splits, groups, stride))
    return refuse(context, ASSAY_INVALID_ARGUMENT, "negative, or past int64 in sum:", "splits");
  offsets[0] = 0;
  for (int64_t i = 0; i < groups; ++i) offsets[i + 1] = offsets[i] + stride * splits[i];
  return ASSAY_OK;
}

/* Members not named here are NULL: no events, no capture, no algorithms, no axes. */
static const assay_backend table = {
    .struct_size = sizeof(assay_backend),
    .version = ASSAY_BACKEND_VERSION,
    .name = "example",
    .description = "a backend to start from: splits_to_offsets on the host",
    .open = open_context,
    .close = close_context,
    .last_error = last_error,
    .device_info = device_info,
    .allocate = allocate,
    .release = release,
    .copy_to_device = copy,
    .copy_to_host = copy,
    .fill = fill,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .synchronize = synchronize,
    .supports = supports,
    .numerics = numerics,
    .workspace_bytes = workspace_bytes,
    .execute = execute,
    .parameter_size = sizeof(assay_parameter),
    .tensor_size = sizeof(assay_tensor),
    .algorithm_size = sizeof(assay_algorithm),
    .axis_size = sizeof(assay_axis),
};

const assay_backend* assay_backend_v1(void);
const assay_backend* assay_backend_v1(void) { return &table; }
