/* The interface between Assay and an implementation under test. Plain C99, versioned, no vendor named.
 *
 * A backend is a shared library (a plug-in), or an object linked in, that exports
 *
 *     const assay_backend* assay_backend_v1(void);
 *
 * and answers calls in the vocabulary of the fixtures: an op with named parameters, named input tensors and named output
 * tensors (`assay list --schema` prints them). Memory, streams, events, capture and replay are reached through the backend
 * too, so the harness runs on every device that a backend supports. A host backend implements them in ten lines:
 * conformance/backends/example/example_backend.c.
 *
 * 1. Every function
 *   - Returns a status, or void. After anything but ASSAY_OK, `last_error` gives the reason in one line.
 *   - Returns to its caller. It does not print, abort or exit, throws no exception through this interface and does not
 *     longjmp out of a call.
 *   - A function that the backend does not implement is NULL where the comment says "optional"; the harness then reports
 *     what it could not check. All others must be set.
 *   - Sizes are in bytes, times in milliseconds, shapes row-major in elements as stored.
 *   - Tensor data are device pointers of the backend's own memory. Shapes and parameters are on the host. The contents of
 *     tensors, `splits` among them, may be read only on the device: in the order of the stream, when the call is carried out.
 *   - `execute` enqueues on the stream, does not wait for it, allocates nothing, and may be captured.
 *
 * 2. Wrong calls
 *   - The host can see the fault: `execute` returns the status below and enqueues nothing. All memory stays as it is, and the next
 *     call is not disturbed. `last_error` names the part. The harness makes every such call (case lines with `contract=1`).
 *     ASSAY_INVALID_ARGUMENT
 *       the call      `op`, a name or a text value that is NULL; an array that is NULL beside a count; a count below 0 or above 1024;
 *                     a `struct_size` that ends before `algorithm`; two parameters, two inputs or two outputs of one name (an
 *                     input and an output may share one); an assay_parameter_kind that has no name here
 *       a tensor      an assay_dtype that has no name here; a rank that is negative or above 4; a negative extent; more elements than
 *                     an int64 counts; `bytes` that are not what type and shape take
 *       its address   `data` that is NULL where there are elements, or no multiple of the size of an element (1 for codes in bytes).
 *                     A kernel that needs a larger multiple, up to 256, refuses the call in the same way where the
 *                     address is none
 *       its memory    an output or the workspace that shares a byte with an input, another output or the workspace: no op works in
 *                     place. Inputs may share memory
 *       workspace     fewer bytes than `workspace_bytes` says, or NULL beside a size above 0
 *     ASSAY_NOT_SUPPORTED
 *       an op, parameter, input or output that the backend does not know, among them those of another op
 *     Either, since a backend may not have that path
 *       a required parameter or input that is absent; a type, rank or extent that the schema of the op does not have
 *       (`assay list --schema`) or that does not fit the other tensors; a value or kind of a parameter that the op does not take;
 *       an algorithm that is not listed
 *     A call with several faults is refused for any of them. The harness passes no NULL for a context, a stream, a call or an address
 *     of a result; built-in backends refuse it with ASSAY_INVALID_ARGUMENT.
 *   - Only the contents of tensors show the fault: a negative split; splits whose sum exceeds the rows of the tensors; an offset
 *     that its type does not hold; rows that the op's packing does not allow (an odd number where two codes share a byte); an entry of
 *     m_indices, psum or row_map that names no group or row.
 *     A backend that reads contents during the call (on the host) refuses the call as above, in `execute`, or in
 *     `graph_launch` where the call was captured. Any other backend returns ASSAY_OK there, and the next `synchronize` that waits
 *     for the call returns ASSAY_INVALID_ARGUMENT or ASSAY_FAILED. `last_error` names the fault.
 *     Outputs and workspace of that call then hold anything. Inputs and all other memory are as they were, the fault is
 *     reported once, and the copies and calls that follow on any stream succeed. Case lines with `fault=` check this.
 *   - Contents that are the caller's promise: no two entries of row_map name one row, and an amax that is given is 0 or more, or NaN.
 *     The harness makes no call that breaks it, and a backend need not look: it may refuse such a call as above, or carry it out, and
 *     the outputs then hold anything.
 *
 * 3. Where the calls come from
 *   - A plug-in and its calls run in a separate process, the worker; expected values are computed in another. The worker
 *     is a new program (spawned, not forked from a process with state) that loads the library with dlopen and carries many
 *     cases out. A plug-in is called on the main thread only; it holds one context at a time. A built-in
 *     backend holds one context per thread. Each context is used by one thread at a time, though not always the same one.
 *   - Time: a call that takes longer than the `--timeout` of the run (60 s unless given; 120 s for opening a device) is
 *     ended with its process. The case is then "unfinished".
 *   - End: if the process ends (a signal, exit, abort, an exception, longjmp), the running case fails, and the
 *     next gets a new process. If several cases had run in it, the failing one is judged again alone.
 *   - Threads: the library may start threads and keep them between calls. They may not touch the memory of a call that has
 *     been waited for. Child processes are ended with the worker.
 *   - Signals: all have their default action and none is blocked as the library is loaded; handlers of the library's own
 *     are its own affair. SIGKILL ends the worker at any time.
 *   - Environment and working directory are the program's. Changes to them, to the locale and to descriptors stay in the
 *     worker. Standard input is empty. Standard output and error are kept, the last 4 KiB, and shown with a fault.
 *   - Floating-point mode: each call begins with rounding to nearest, subnormals kept and no traps, and must return so. A
 *     mode that is set while the library is loaded is undone, with a note.
 *   - Memory: the `host` side of a copy is memory that the worker shares with the harness. It is valid until the stream has
 *     been waited for, must not be read or written after that, and has no alignment beyond 1. A plug-in may take three
 *     quarters of the memory that the machine had free.
 *   - Batches: several calls may come in one message and are then made one after another without a pause, questions
 *     (`workspace_bytes`, `supports`, `numerics`) among them. A call that fails ends its batch, except for calls that
 *     release something. The grouping of calls has no meaning.
 *
 * 4. Growth. Within version 1 structures only grow at the end, past their padding. A new member that is 0 or NULL
 *    means the behaviour without it.
 *   - A structure with `struct_size` has that many bytes: the side that fills it in sets it, and the other side reads and writes
 *     nothing past it. A table may end after `execute`, as it did at first; what follows is optional.
 *   - Structures in arrays have the backend's sizes: it states the sizes that it was compiled with in its table
 *     (`parameter_size` to `axis_size`). The harness cuts elements there or fills them up with zeros, so that `inputs[i]` is
 *     right in the backend's own code. Without these fields, elements have the sizes that version 1 first had.
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

typedef ASSAY_ENUMERATION(assay_status){
    ASSAY_OK = 0,
    ASSAY_NOT_SUPPORTED = 1,    /* well formed, but this implementation has no such path; `last_error` says what is missing */
    ASSAY_INVALID_ARGUMENT = 2, /* the call is wrong; `last_error` names the argument */
    ASSAY_OUT_OF_MEMORY = 3,
    ASSAY_TIMEOUT = 4,     /* from synchronize only: work is still pending */
    ASSAY_DEVICE_LOST = 5, /* this context cannot be used any more */
    ASSAY_FAILED = 6       /* anything else */
} assay_status;

/* Element types, the same numbers as assay::Format. ASSAY_E2M1 tensors are shaped in bytes, two codes each;
 * ASSAY_E3M2 and ASSAY_E2M3 tensors in bytes, four codes in three. */
typedef ASSAY_ENUMERATION(assay_dtype){ASSAY_F32 = 0,       ASSAY_BF16 = 1,      ASSAY_F16 = 2,  ASSAY_E4M3 = 3, ASSAY_E5M2 = 4,
                                       ASSAY_E4M3_FNUZ = 5, ASSAY_E5M2_FNUZ = 6, ASSAY_E8M0 = 7, ASSAY_E2M1 = 8, ASSAY_I32 = 9,
                                       ASSAY_I64 = 10,      ASSAY_E3M2 = 11,     ASSAY_E2M3 = 12} assay_dtype;

typedef ASSAY_ENUMERATION(assay_parameter_kind){ASSAY_INTEGER = 0, ASSAY_REAL = 1, ASSAY_TEXT = 2} assay_parameter_kind;

typedef struct assay_parameter {
  const char* name;
  assay_parameter_kind kind;
  int64_t integer;  /* ASSAY_INTEGER */
  double real;      /* ASSAY_REAL */
  const char* text; /* ASSAY_TEXT */
} assay_parameter;

typedef struct assay_tensor {
  const char* name;
  assay_dtype dtype;
  int32_t rank;     /* 1 or 2 in all ops so far */
  int64_t shape[4]; /* row-major; elements as stored */
  void* data;       /* device pointer at a multiple of 256 bytes unless the case says otherwise; NULL without elements */
  int64_t bytes;
} assay_tensor;

/* One request. It and everything that it points to, except tensor data, is valid during the call only. An output that is
 * absent is not requested. A parameter, input or output that the backend does not know is a reason for ASSAY_NOT_SUPPORTED,
 * never to be ignored: it may change the result. */
typedef struct assay_call {
  size_t struct_size;
  const char* op;
  const assay_parameter* parameters;
  int32_t parameter_count;
  const assay_tensor* inputs;
  int32_t input_count;
  const assay_tensor* outputs;
  int32_t output_count;
  void* workspace; /* `workspace_bytes` of device memory with undefined contents; NULL when 0 */
  int64_t workspace_bytes;
  int64_t algorithm;     /* an `id` from list_algorithms, or -1: the backend's own choice */
  size_t parameter_size; /* bytes from one parameter to the next, as in the backend's table; 0: those of version 1 at first */
  size_t tensor_size;    /* the same of inputs and of outputs */
} assay_call;

typedef struct assay_context assay_context;
typedef struct assay_stream assay_stream;
typedef struct assay_event assay_event;
typedef struct assay_graph assay_graph;

/* Texts end with a zero byte within their arrays, here and below. */
typedef struct assay_device_info {
  size_t struct_size;
  char name[128];        /* "NVIDIA H200", "AMD EPYC (host)" */
  char architecture[32]; /* "sm90", "x86-64": a row prefix of the tensor-core table where one fits */
  char software[256];    /* library and driver versions, one line */
  int32_t multiprocessors;
  int64_t memory_bytes;
} assay_device_info;

/* What the backend states about the numbers of one call, before it is made. The harness holds it to that. Empty text or -1:
 * nothing is stated, and the check is the weaker one that needs no statement. */
typedef struct assay_numerics {
  size_t struct_size;
  char unit[64];           /* row of the tensor-core table: "sm90.wgmma.fp8". A sum of at most one step's products is one step */
  char plan[96];           /* name of an accumulation plan: `assay list --plans`; or its line, where that fits */
  int32_t keeps_zero_sign; /* 1: an exact -0 keeps its sign; 0: it becomes +0; -1: either */
  int32_t deterministic;   /* 1: the same call gives the same bits */
  int32_t batch_invariant; /* 1: a group's bits do not depend on the other groups */
  int32_t unused;
  /* The plan as a line: "unit=sm90.wgmma.fp8,promote=128,association=rows_first". Any plan can be stated so, also one that no
   * table has. `plan` may be empty then, or give the same plan. */
  char plan_line[512];
} assay_numerics;

typedef struct assay_algorithm {
  size_t struct_size;
  int64_t id;            /* stable within one library build */
  char description[192]; /* tile, stages, split-K, ... */
  int64_t workspace_bytes;
} assay_algorithm;

/* A setting that changes how a call is carried out but must not change its meaning: workspace size, number of SMs to use,
 * average-size hints, pointer mode. */
typedef struct assay_axis {
  size_t struct_size;
  char name[48]; /* "sm_target" */
  char description[160];
  char values[160]; /* values worth trying, separated by spaces; the first is the default */
} assay_axis;

/* The function table. It and its texts stay valid and unchanged until the library is unloaded. */
typedef struct assay_backend {
  size_t struct_size;
  uint32_t version; /* ASSAY_BACKEND_VERSION */
  const char* name;
  const char* description;

  /* Opens a context. `options` is what the user wrote after --backend-options, or "".
   * Errors: INVALID_ARGUMENT for options that it does not know; NOT_SUPPORTED where there is no device that it can use. */
  assay_status (*open)(const char* options, assay_context** context);
  /* Releases everything that the context holds; its streams and memory were released before. */
  void (*close)(assay_context* context);
  /* Why the last call of this context failed, one line of UTF-8; valid until the next call. After a failed `open`,
   * `context` is NULL. */
  const char* (*last_error)(assay_context* context);
  /* Fills in `info`, whose struct_size is set; everything else in it is zero. */
  assay_status (*device_info)(assay_context* context, assay_device_info* info);

  /* `bytes` (0 or more) of device memory at a multiple of 256; the harness divides it among many tensors at such multiples.
   * Errors: OUT_OF_MEMORY. */
  assay_status (*allocate)(assay_context* context, int64_t bytes, void** data);
  /* `data` is a pointer that `allocate` returned; no work that uses it is pending. */
  void (*release)(assay_context* context, void* data);
  /* Copies of `bytes` bytes between host and device, and fills, in the order of the stream. They may return before they are
   * done: the host side must stay as it is until the stream has been waited for. */
  assay_status (*copy_to_device)(assay_context* context, assay_stream* stream, void* device, const void* host, int64_t bytes);
  assay_status (*copy_to_host)(assay_context* context, assay_stream* stream, void* host, const void* device, int64_t bytes);
  assay_status (*fill)(assay_context* context, assay_stream* stream, void* device, uint8_t value, int64_t bytes);

  /* Streams: work on one is done in order; work on two may overlap. */
  assay_status (*stream_create)(assay_context* context, assay_stream** stream);
  void (*stream_destroy)(assay_context* context, assay_stream* stream);
  /* Waits for all work of the stream, at most `timeout_ms` milliseconds (-1: without limit).
   * Errors: TIMEOUT while work is pending; INVALID_ARGUMENT or FAILED if a call that it waited for has invalid contents
   * (2. above), once; DEVICE_LOST. */
  assay_status (*synchronize)(assay_context* context, assay_stream* stream, int64_t timeout_ms);

  /* Events, for timing. Optional, all four or none. `event_elapsed` gives the milliseconds between two recorded events that
   * have been waited for. */
  assay_status (*event_create)(assay_context* context, assay_event** event);
  void (*event_destroy)(assay_context* context, assay_event* event);
  assay_status (*event_record)(assay_context* context, assay_event* event, assay_stream* stream);
  assay_status (*event_elapsed)(assay_context* context, assay_event* start, assay_event* stop, double* milliseconds);

  /* Capture of `execute` calls, one or several, into a graph, and its replay on any stream. Optional, all four or none. A
   * captured call keeps its parameters and the addresses of its tensors; their contents are read at each launch. */
  assay_status (*capture_begin)(assay_context* context, assay_stream* stream);
  assay_status (*capture_end)(assay_context* context, assay_stream* stream, assay_graph** graph);
  assay_status (*graph_launch)(assay_context* context, assay_graph* graph, assay_stream* stream);
  void (*graph_destroy)(assay_context* context, assay_graph* graph);

  /* Questions about a later call; its tensors are in place: a device backend need not read their contents, and none may
   * write to them. The same holds for list_algorithms and workspace_bytes.
   * `supports`: OK, the call can be made. NOT_SUPPORTED, the path is declared absent, and last_error says why; the harness
   * still makes the call and requires NOT_SUPPORTED with memory untouched. */
  assay_status (*supports)(assay_context* context, const assay_call* call);
  /* Fills in `numerics`, whose struct_size is set, with -1 in its choices and empty texts otherwise. */
  assay_status (*numerics)(assay_context* context, const assay_call* call, assay_numerics* numerics);

  /* Algorithms that can serve the call: up to `capacity` are written, `count` receives how many there are. `algorithms` is
   * NULL where `capacity` is 0; else each item's struct_size is set, and is the distance to the next. Optional. */
  assay_status (*list_algorithms)(assay_context* context, const assay_call* call, assay_algorithm* algorithms, int32_t capacity,
                                  int32_t* count);
  /* Configuration axes, as list_algorithms. Optional, both or none. */
  assay_status (*list_axes)(assay_context* context, assay_axis* axes, int32_t capacity, int32_t* count);
  /* Sets an axis until the context is closed; value "" restores the default.
   * Errors: INVALID_ARGUMENT for a name or value that the backend does not have. */
  assay_status (*set_axis)(assay_context* context, const char* name, const char* value);

  /* Bytes of workspace that `execute` needs for this call, 0 or more: with fewer it refuses the call. */
  assay_status (*workspace_bytes)(assay_context* context, const assay_call* call, int64_t* bytes);
  /* Enqueues the call. Errors: those of 2. above, with all memory as it was. */
  assay_status (*execute)(assay_context* context, assay_stream* stream, const assay_call* call);

  /* sizeof of the structures that travel in arrays, as the backend was compiled. A table that goes on after `execute` states
   * all four. */
  size_t parameter_size, tensor_size, algorithm_size, axis_size;
} assay_backend;

typedef const assay_backend* (*assay_backend_entry)(void);
#define ASSAY_BACKEND_ENTRY "assay_backend_v1"

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
