/* Version 1 of the interface as it was first published, without its comments. Never edited: libraries are built with it. */
#ifndef ASSAY_CONFORMANCE_BACKEND_H
#define ASSAY_CONFORMANCE_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ASSAY_BACKEND_VERSION 1

#if defined(__cplusplus)
#define ASSAY_ENUMERATION(name) enum name : int32_t
#else
#define ASSAY_ENUMERATION(name) enum name
#endif

typedef ASSAY_ENUMERATION(assay_status) {
  ASSAY_OK = 0,
  ASSAY_NOT_SUPPORTED = 1,
  ASSAY_INVALID_ARGUMENT = 2,
  ASSAY_OUT_OF_MEMORY = 3,
  ASSAY_TIMEOUT = 4,
  ASSAY_DEVICE_LOST = 5,
  ASSAY_FAILED = 6
} assay_status;

typedef ASSAY_ENUMERATION(assay_dtype) {
  ASSAY_F32 = 0, ASSAY_BF16 = 1, ASSAY_F16 = 2, ASSAY_E4M3 = 3, ASSAY_E5M2 = 4, ASSAY_E4M3_FNUZ = 5, ASSAY_E5M2_FNUZ = 6,
  ASSAY_E8M0 = 7, ASSAY_E2M1 = 8, ASSAY_I32 = 9, ASSAY_I64 = 10
} assay_dtype;

typedef ASSAY_ENUMERATION(assay_parameter_kind) { ASSAY_INTEGER = 0, ASSAY_REAL = 1, ASSAY_TEXT = 2 } assay_parameter_kind;

typedef struct assay_parameter {
  const char* name;
  assay_parameter_kind kind;
  int64_t integer;
  double real;
  const char* text;
} assay_parameter;

typedef struct assay_tensor {
  const char* name;
  assay_dtype dtype;
  int32_t rank;
  int64_t shape[4];
  void* data;
  int64_t bytes;
} assay_tensor;

typedef struct assay_call {
  size_t struct_size;
  const char* op;
  const assay_parameter* parameters;
  int32_t parameter_count;
  const assay_tensor* inputs;
  int32_t input_count;
  const assay_tensor* outputs;
  int32_t output_count;
  void* workspace;
  int64_t workspace_bytes;
  int64_t algorithm;
} assay_call;

typedef struct assay_context assay_context;
typedef struct assay_stream assay_stream;
typedef struct assay_event assay_event;
typedef struct assay_graph assay_graph;

typedef struct assay_device_info {
  size_t struct_size;
  char name[128];
  char architecture[32];
  char software[256];
  int32_t multiprocessors;
  int64_t memory_bytes;
} assay_device_info;

typedef struct assay_numerics {
  size_t struct_size;
  char unit[64];
  char plan[96];
  int32_t keeps_zero_sign;
  int32_t deterministic;
  int32_t batch_invariant;
} assay_numerics;

typedef struct assay_algorithm {
  size_t struct_size;
  int64_t id;
  char description[192];
  int64_t workspace_bytes;
} assay_algorithm;

typedef struct assay_axis {
  size_t struct_size;
  char name[48];
  char description[160];
  char values[160];
} assay_axis;

typedef struct assay_backend {
  size_t struct_size;
  uint32_t version;
  const char* name;
  const char* description;

  assay_status (*open)(const char* options, assay_context** context);
  void (*close)(assay_context* context);

  const char* (*last_error)(assay_context* context);
  assay_status (*device_info)(assay_context* context, assay_device_info* info);

  assay_status (*allocate)(assay_context* context, int64_t bytes, void** data);
  void (*release)(assay_context* context, void* data);
  assay_status (*copy_to_device)(assay_context* context, assay_stream* stream, void* device, const void* host, int64_t bytes);
  assay_status (*copy_to_host)(assay_context* context, assay_stream* stream, void* host, const void* device, int64_t bytes);
  assay_status (*fill)(assay_context* context, assay_stream* stream, void* device, uint8_t value, int64_t bytes);

  assay_status (*stream_create)(assay_context* context, assay_stream** stream);
  void (*stream_destroy)(assay_context* context, assay_stream* stream);

  assay_status (*synchronize)(assay_context* context, assay_stream* stream, int64_t timeout_ms);

  assay_status (*event_create)(assay_context* context, assay_event** event);
  void (*event_destroy)(assay_context* context, assay_event* event);
  assay_status (*event_record)(assay_context* context, assay_event* event, assay_stream* stream);
  assay_status (*event_elapsed)(assay_context* context, assay_event* start, assay_event* stop, double* milliseconds);

  assay_status (*capture_begin)(assay_context* context, assay_stream* stream);
  assay_status (*capture_end)(assay_context* context, assay_stream* stream, assay_graph** graph);
  assay_status (*graph_launch)(assay_context* context, assay_graph* graph, assay_stream* stream);
  void (*graph_destroy)(assay_context* context, assay_graph* graph);

  assay_status (*supports)(assay_context* context, const assay_call* call);
  assay_status (*numerics)(assay_context* context, const assay_call* call, assay_numerics* numerics);

  assay_status (*list_algorithms)(assay_context* context, const assay_call* call, assay_algorithm* algorithms, int32_t capacity,
                                  int32_t* count);

  assay_status (*list_axes)(assay_context* context, assay_axis* axes, int32_t capacity, int32_t* count);
  assay_status (*set_axis)(assay_context* context, const char* name, const char* value);

  assay_status (*workspace_bytes)(assay_context* context, const assay_call* call, int64_t* bytes);
  assay_status (*execute)(assay_context* context, assay_stream* stream, const assay_call* call);
} assay_backend;

typedef const assay_backend* (*assay_backend_entry)(void);
#define ASSAY_BACKEND_ENTRY "assay_backend_v1"

#ifdef __cplusplus
}
#endif

#endif
