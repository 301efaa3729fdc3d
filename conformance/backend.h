/* The interface between Assay and an implementation under test. Plain C, versioned, no vendor named.
 *
 * A backend is a shared library (or an object linked in) that exports
 *
 *     const assay_backend* assay_backend_v1(void);
 *
 * and answers calls in the vocabulary of the fixtures: an op with named parameters, named input tensors and named output
 * tensors (the fixture schema; `assay list --schema` prints the names). Memory, streams, events, capture and replay are
 * reached through the backend too, so the harness runs on whatever the backend runs on. A host backend implements them in
 * ten lines: conformance/backends/example/example_backend.c.
 *
 * Rules for every function
 *   - Returns a status; on anything but ASSAY_OK, `last_error` tells why in one line. Never aborts, never prints.
 *   - A pointer it does not implement is NULL where the comment says "optional"; the harness then reports what it could
 *     not ask. All others must be set.
 *   - Tensor data are device pointers of the backend's own memory. Shapes and parameters are on the host; the contents of
 *     tensors, `splits` among them, may be read only on the device.
 *   - `execute` enqueues on the stream and does not synchronise, allocates nothing, and may be captured.
 *   - A call that is refused, with whatever status, leaves all memory untouched and does not disturb the next. The harness checks both.
 *   - Structures only grow at the end. `struct_size` is what the caller knows; a field past it is not there.
 */
#ifndef ASSAY_CONFORMANCE_BACKEND_H
#define ASSAY_CONFORMANCE_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ASSAY_BACKEND_VERSION 1

/* An enumeration is an int of 32 bits, and may hold numbers that have no name here: a caller or a backend may send any. */
#if defined(__cplusplus)
#define ASSAY_ENUMERATION(name) enum name : int32_t
#else
#define ASSAY_ENUMERATION(name) enum name
#endif

typedef ASSAY_ENUMERATION(assay_status) {
  ASSAY_OK = 0,
  ASSAY_NOT_SUPPORTED = 1,    /* well formed, but this implementation has no such path; `last_error` says what is missing */
  ASSAY_INVALID_ARGUMENT = 2, /* the call is wrong; `last_error` names the argument */
  ASSAY_OUT_OF_MEMORY = 3,
  ASSAY_TIMEOUT = 4,          /* from synchronize only: work is still pending */
  ASSAY_DEVICE_LOST = 5,      /* nothing further can be asked of this context */
  ASSAY_FAILED = 6            /* anything else */
} assay_status;

/* Element types, the same numbers as assay::Format. ASSAY_E2M1 tensors are shaped in bytes, two codes each. */
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
  int32_t rank;     /* 1 or 2 */
  int64_t shape[4]; /* row-major; elements as stored */
  void* data;       /* device pointer, at least 256-byte aligned unless the case says otherwise; NULL when there are no elements */
  int64_t bytes;
} assay_tensor;

/* One request. An output that is absent is not wanted. A parameter that the backend does not know is a reason for
 * ASSAY_NOT_SUPPORTED, never to be passed over: it may change the result. */
typedef struct assay_call {
  size_t struct_size;
  const char* op;
  const assay_parameter* parameters;
  int32_t parameter_count;
  const assay_tensor* inputs;
  int32_t input_count;
  const assay_tensor* outputs;
  int32_t output_count;
  void* workspace;         /* `workspace_bytes` of device memory with undefined contents; NULL when 0 */
  int64_t workspace_bytes;
  int64_t algorithm;       /* an `id` from list_algorithms, or -1: the backend's own choice */
} assay_call;

typedef struct assay_context assay_context;
typedef struct assay_stream assay_stream;
typedef struct assay_event assay_event;
typedef struct assay_graph assay_graph;

typedef struct assay_device_info {
  size_t struct_size;
  char name[128];         /* "NVIDIA H200", "AMD EPYC (host)" */
  char architecture[32];  /* "sm90", "x86-64": a row prefix of the tensor-core table where one fits */
  char software[256];     /* library and driver versions, one line */
  int32_t multiprocessors;
  int64_t memory_bytes;
} assay_device_info;

/* What the backend states about the numbers of one call, before it is made. The harness holds it to that. Empty text or -1:
 * nothing is stated, and the check is the weaker one that needs no statement. */
typedef struct assay_numerics {
  size_t struct_size;
  char unit[64];            /* row of the tensor-core table: "sm90.wgmma.fp8". A sum of no more products than it takes a step is one step */
  char plan[96];            /* name of an accumulation plan: `assay list --plans` */
  int32_t keeps_zero_sign;  /* 1: an exact -0 keeps its sign; 0: it becomes +0; -1: either */
  int32_t deterministic;    /* 1: the same call gives the same bits */
  int32_t batch_invariant;  /* 1: a group's bits do not depend on the other groups */
} assay_numerics;

typedef struct assay_algorithm {
  size_t struct_size;
  int64_t id;             /* stable within one library build */
  char description[192];  /* tile, stages, split-K, ... */
  int64_t workspace_bytes;
} assay_algorithm;

/* A setting that changes how a call is carried out but must not change its meaning: workspace size, number of SMs to use,
 * average-size hints, pointer mode. */
typedef struct assay_axis {
  size_t struct_size;
  char name[48];         /* "sm_target" */
  char description[160];
  char values[160];      /* values worth trying, separated by spaces; the first is the default */
} assay_axis;

typedef struct assay_backend {
  size_t struct_size;
  uint32_t version;  /* ASSAY_BACKEND_VERSION */
  const char* name;
  const char* description;
  /* `options` is what the user wrote after --backend-options, or "". A process holds one context of a plug-in at a time, of a built-in backend one a
   * thread; several processes may hold one each. A context is used from one thread at a time, though not always from the same one. */
  assay_status (*open)(const char* options, assay_context** context);
  void (*close)(assay_context* context);
  /* Why the last call failed; valid until the next call. `context` may be NULL after a failed open. */
  const char* (*last_error)(assay_context* context);
  assay_status (*device_info)(assay_context* context, assay_device_info* info);

  /* Memory; `allocate` gives multiples of 256, and tensors lie at such multiples within what it gave, many to an allocation. A copy is between host
   * and device or within the device; copies and fills are ordered on the stream; the host side may be used again only after synchronize. */
  assay_status (*allocate)(assay_context* context, int64_t bytes, void** data);
  void (*release)(assay_context* context, void* data);
  assay_status (*copy_to_device)(assay_context* context, assay_stream* stream, void* device, const void* host, int64_t bytes);
  assay_status (*copy_to_host)(assay_context* context, assay_stream* stream, void* host, const void* device, int64_t bytes);
  assay_status (*fill)(assay_context* context, assay_stream* stream, void* device, uint8_t value, int64_t bytes);

  assay_status (*stream_create)(assay_context* context, assay_stream** stream);
  void (*stream_destroy)(assay_context* context, assay_stream* stream);
  /* Waits for all work of the stream, at most `timeout_ms` (-1: for ever). */
  assay_status (*synchronize)(assay_context* context, assay_stream* stream, int64_t timeout_ms);

  /* Events, for timing. Optional, all four or none. */
  assay_status (*event_create)(assay_context* context, assay_event** event);
  void (*event_destroy)(assay_context* context, assay_event* event);
  assay_status (*event_record)(assay_context* context, assay_event* event, assay_stream* stream);
  assay_status (*event_elapsed)(assay_context* context, assay_event* start, assay_event* stop, double* milliseconds);

  /* Capture of `execute` calls, one or several, and their replay, on whatever stream. Optional, all four or none. */
  assay_status (*capture_begin)(assay_context* context, assay_stream* stream);
  assay_status (*capture_end)(assay_context* context, assay_stream* stream, assay_graph** graph);
  assay_status (*graph_launch)(assay_context* context, assay_graph* graph, assay_stream* stream);
  void (*graph_destroy)(assay_context* context, assay_graph* graph);

  /* ASSAY_OK: the call can be made. ASSAY_NOT_SUPPORTED: the path is declared absent, and last_error says why; the harness
   * still makes the call and requires ASSAY_NOT_SUPPORTED with memory untouched. Here, in numerics, list_algorithms and
   * workspace_bytes the tensors are those of the call to come; a device backend need not read their contents, and none may write to them. */
  assay_status (*supports)(assay_context* context, const assay_call* call);
  assay_status (*numerics)(assay_context* context, const assay_call* call, assay_numerics* numerics);

  /* Algorithms that can serve the call: up to `capacity` are written, `count` receives how many there are. Optional. */
  assay_status (*list_algorithms)(assay_context* context, const assay_call* call, assay_algorithm* algorithms, int32_t capacity,
                                  int32_t* count);
  /* Configuration axes. Optional, both or none. set_axis with value "" restores the default. */
  assay_status (*list_axes)(assay_context* context, assay_axis* axes, int32_t capacity, int32_t* count);
  assay_status (*set_axis)(assay_context* context, const char* name, const char* value);

  /* Workspace that `execute` needs for this call. */
  assay_status (*workspace_bytes)(assay_context* context, const assay_call* call, int64_t* bytes);
  assay_status (*execute)(assay_context* context, assay_stream* stream, const assay_call* call);
} assay_backend;

typedef const assay_backend* (*assay_backend_entry)(void);
#define ASSAY_BACKEND_ENTRY "assay_backend_v1"

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
