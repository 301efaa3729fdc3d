/* A backend that is compiled against other versions of backend.h than the program: the first, and one that is longer. It has
 * two ops with several tensors, three algorithms and two axes, and checks everything that it is given which a wrong header would
 * change.
 *
 *   STATES_SIZES  the header has the sizes of structures in arrays, and the table states them
 *   LONGER        the header has a field `later` at the end of each structure, which the program does not know
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/backend.h"

struct assay_context {
  char error[200];
  int lane;
};
struct assay_stream {
  int nothing;
};

static assay_status refuse(assay_context* context, assay_status status, const char* what, const char* name) {
  snprintf(context->error, sizeof context->error, "%s '%.100s'", what, name);
  return status;
}

static assay_status open_context(const char* options, assay_context** context) {
  if (options[0] != '\0') return ASSAY_INVALID_ARGUMENT;
  *context = (assay_context*)calloc(1, sizeof **context);
  return *context == NULL ? ASSAY_OUT_OF_MEMORY : ASSAY_OK;
}
static void close_context(assay_context* context) { free(context); }
static const char* last_error(assay_context* context) { return context == NULL ? "no options are known" : context->error; }
static assay_status device_info(assay_context* context, assay_device_info* info) {
  if (info->struct_size < offsetof(assay_device_info, software) + sizeof info->software) {
    return refuse(context, ASSAY_FAILED, "too short:", "assay_device_info");
  }
#ifdef LONGER
  if (info->struct_size >= sizeof *info)
    return refuse(context, ASSAY_FAILED, "longer than the program knows it:", "assay_device_info");
#endif
  snprintf(info->name, sizeof info->name, "host processor");
  snprintf(info->software, sizeof info->software, "another version");
  return ASSAY_OK;
}

static assay_status allocate(assay_context* context, int64_t bytes, void** data) {
  if (bytes < 0 || posix_memalign(data, 256, (size_t)bytes + 256) != 0) {
    *data = NULL;
    return refuse(context, ASSAY_OUT_OF_MEMORY, "no memory for", "a buffer");
  }
  return ASSAY_OK;
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
  *stream = (assay_stream*)calloc(1, sizeof **stream);
  return *stream == NULL ? refuse(context, ASSAY_OUT_OF_MEMORY, "no memory for", "a stream") : ASSAY_OK;
}
static void stream_destroy(assay_context* context, assay_stream* stream) { (void)context, free(stream); }
static assay_status synchronize(assay_context* context, assay_stream* stream, int64_t timeout_ms) {
  (void)context, (void)stream, (void)timeout_ms;
  return ASSAY_OK;
}

/* Elements lie where this header has them: names are there, and what the program does not know is 0. */
static int good_tensors(const assay_tensor* tensors, int count) {
  for (int i = 0; i < count; ++i) {
    const assay_tensor* each = &tensors[i];
    if (each->name == NULL || each->name[0] == '\0' || each->rank < 1 || each->rank > 2 || each->bytes < 0) return 0;
    if (i > 0 && strcmp(tensors[i - 1].name, each->name) == 0) return 0;
#ifdef LONGER
    if (each->later[0] != 0 || each->later[2] != 0) return 0;
#endif
  }
  return 1;
}
static int good_parameters(const assay_parameter* parameters, int count) {
  for (int i = 0; i < count; ++i) {
    const assay_parameter* each = &parameters[i];
    if (each->name == NULL || each->name[0] == '\0' || (each->kind == ASSAY_TEXT) != (each->text != NULL)) return 0;
#ifdef LONGER
    if (each->later != 0) return 0;
#endif
  }
  return 1;
}
static int is_good(const assay_call* call) {
#ifdef STATES_SIZES
  if (call->parameter_size != sizeof(assay_parameter) || call->tensor_size != sizeof(assay_tensor)) return 0;
#endif
#ifdef LONGER
  if (call->struct_size >= sizeof *call) return 0;
#endif
  return good_parameters(call->parameters, call->parameter_count) && good_tensors(call->inputs, call->input_count) &&
         good_tensors(call->outputs, call->output_count);
}

static int64_t value_of(const assay_tensor* tensor, int64_t i) {
  return tensor->dtype == ASSAY_I32 ? ((const int32_t*)tensor->data)[i] : ((const int64_t*)tensor->data)[i];
}
static void put(const assay_tensor* tensor, int64_t i, int64_t value) {
  if (tensor->dtype == ASSAY_I32) {
    ((int32_t*)tensor->data)[i] = (int32_t)value;
  } else {
    ((int64_t*)tensor->data)[i] = value;
  }
}

static assay_status supports(assay_context* context, const assay_call* call) {
  if (!is_good(call)) return refuse(context, ASSAY_FAILED, "a call is laid out in another way than in this header, op", call->op);
  if (call->algorithm != -1 && (call->algorithm < 10 || call->algorithm > 12)) {
    return refuse(context, ASSAY_INVALID_ARGUMENT, "an algorithm that is not listed, of op", call->op);
  }
  if (strcmp(call->op, "splits_to_offsets_2d") == 0) {
    if (call->parameter_count != 0) return refuse(context, ASSAY_NOT_SUPPORTED, "no such parameter:", call->parameters[0].name);
    if (call->input_count != 2 || call->output_count != 1)
      return refuse(context, ASSAY_INVALID_ARGUMENT, "other tensors than those of", call->op);
    return ASSAY_OK;
  }
  if (strcmp(call->op, "splits_to_offsets_multi") == 0) {
    if (call->parameter_count != 1) return refuse(context, ASSAY_NOT_SUPPORTED, "other parameters than those of", call->op);
    if (call->input_count != 1) return refuse(context, ASSAY_INVALID_ARGUMENT, "other inputs than those of", call->op);
    return ASSAY_OK;
  }
  return refuse(context, ASSAY_NOT_SUPPORTED, "no op", call->op);
}
static assay_status numerics(assay_context* context, const assay_call* call, assay_numerics* numerics) {
  (void)context, (void)call;
  numerics->deterministic = numerics->batch_invariant = 1;
  return ASSAY_OK;
}
static assay_status workspace_bytes(assay_context* context, const assay_call* call, int64_t* bytes) {
  (void)context, (void)call;
  *bytes = 0;
  return ASSAY_OK;
}

/* Items are written as this header has them: they are as long as the table states. */
static assay_status list_algorithms(assay_context* context, const assay_call* call, assay_algorithm* algorithms, int32_t capacity,
                                    int32_t* count) {
  if (!is_good(call)) return refuse(context, ASSAY_FAILED, "a call is laid out in another way than in this header, op", call->op);
  *count = 3;
  for (int i = 0; i < capacity && i < 3; ++i) {
    if (algorithms[i].struct_size != sizeof(assay_algorithm))
      return refuse(context, ASSAY_FAILED, "of another size:", "assay_algorithm");
    memset(&algorithms[i], 0, sizeof algorithms[i]);
    algorithms[i].struct_size = sizeof algorithms[i];
    algorithms[i].id = 10 + i;
    snprintf(algorithms[i].description, sizeof algorithms[i].description, "tile %d", 10 + i);
  }
  return ASSAY_OK;
}
static assay_status list_axes(assay_context* context, assay_axis* axes, int32_t capacity, int32_t* count) {
  *count = 2;
  for (int i = 0; i < capacity && i < 2; ++i) {
    if (axes[i].struct_size != sizeof(assay_axis)) return refuse(context, ASSAY_FAILED, "of another size:", "assay_axis");
    memset(&axes[i], 0, sizeof axes[i]);
    axes[i].struct_size = sizeof axes[i];
    snprintf(axes[i].name, sizeof axes[i].name, "%s", i == 0 ? "pace" : "lane");
    snprintf(axes[i].description, sizeof axes[i].description, "changes nothing");
    snprintf(axes[i].values, sizeof axes[i].values, "%s", i == 0 ? "slow fast" : "1 2");
  }
  return ASSAY_OK;
}
static assay_status set_axis(assay_context* context, const char* name, const char* value) {
  if (strcmp(name, "pace") != 0 && strcmp(name, "lane") != 0) return refuse(context, ASSAY_INVALID_ARGUMENT, "no axis", name);
  (void)value;
  return ASSAY_OK;
}

static assay_status execute(assay_context* context, assay_stream* stream, const assay_call* call) {
  const assay_status status = supports(context, call);
  if (status != ASSAY_OK) return status;
  (void)stream;
  if (call->input_count == 2) {
    int64_t sum = 0;
    put(&call->outputs[0], 0, 0);
    for (int64_t i = 0; i < call->inputs[0].shape[0]; ++i) {
      sum += value_of(&call->inputs[0], i) * value_of(&call->inputs[1], i);
      put(&call->outputs[0], i + 1, sum);
    }
    return ASSAY_OK;
  }
  /* STRIDE:TYPE[:inclusive],...: item N is of the output offsets_N, which need not be requested. */
  for (int o = 0; o < call->output_count; ++o) {
    const char* text = call->parameters[0].text;
    for (long item = strtol(call->outputs[o].name + strlen("offsets_"), NULL, 10); item > 0; --item) text = strchr(text, ',') + 1;
    const int64_t stride = strtoll(text, NULL, 10);
    const char* end = strchr(text, ',');
    const char* word = strstr(text, ":inclusive");
    const int inclusive = word != NULL && (end == NULL || word < end);
    int64_t sum = 0, at = 0;
    if (!inclusive) put(&call->outputs[o], at++, 0);
    for (int64_t i = 0; i < call->inputs[0].shape[0]; ++i)
      put(&call->outputs[o], at++, stride * (sum += value_of(&call->inputs[0], i)));
  }
  return ASSAY_OK;
}

static assay_backend table;
const assay_backend* assay_backend_v1(void);
const assay_backend* assay_backend_v1(void) {
  table.struct_size = sizeof table;
  table.version = ASSAY_BACKEND_VERSION;
  table.name = "another version";
  table.description = "compiled against another backend.h";
  table.open = open_context, table.close = close_context, table.last_error = last_error, table.device_info = device_info;
  table.allocate = allocate, table.release = release, table.copy_to_device = copy, table.copy_to_host = copy, table.fill = fill;
  table.stream_create = stream_create, table.stream_destroy = stream_destroy, table.synchronize = synchronize;
  table.supports = supports, table.numerics = numerics, table.workspace_bytes = workspace_bytes, table.execute = execute;
  table.list_algorithms = list_algorithms, table.list_axes = list_axes, table.set_axis = set_axis;
#ifdef STATES_SIZES
  table.parameter_size = sizeof(assay_parameter), table.tensor_size = sizeof(assay_tensor);
  table.algorithm_size = sizeof(assay_algorithm), table.axis_size = sizeof(assay_axis);
#endif
  return &table;
}
