#include "conformance/emit/c_runtime.h"

namespace assay::conformance {

const char* const kCUsage = R"( * Use: write assay_run() in a file of your own, and link both.
 *
 *     #define ASSAY_DECLARATIONS_ONLY
 *     #include "case.c"                                    (this file, under the name that it has)
 *     int assay_run(const struct assay_case *call) {
 *       ... reads call->inputs[ASSAY_IN_...].data, writes call->outputs[ASSAY_OUT_...].data
 *       return 0;                                          (another number: it cannot be done)
 *     }
 *
 *     cc -std=c99 case.c my_run.c -o case && ./case
 *
 * main() makes the call twice, over outputs filled with 0xFF and with 0xA5 bytes, and compares. Exit status: 0, every word is as
 * expected; 1, at least one differs; 2, assay_run() returned another number than 0.
 *
 * -DASSAY_NO_MAIN    no main(): call assay_check(), or assay_fill(), your code and assay_compare()
 * -DASSAY_NO_STDIO   nothing is printed, and <stdio.h> and <inttypes.h> are not needed
 * -DASSAY_RUN=NAME -DASSAY_CHECK=NAME -DASSAY_FILL=NAME -DASSAY_COMPARE=NAME -DASSAY_CASE=NAME
 *                    other names, so that several of these files can be linked into one program
 *
 * Arrays hold one word an element, row-major: f32 in 32 bits, bf16 and f16 in 16, FP8, e8m0 and FP6 (packed, four codes in three
 * bytes) in 8, integers as they are. A byte of e2m1 holds two codes, the lower index in its low half. In the memory of a
 * little-endian machine the words of an array are the bytes of the tensor.
 *
 * A word is right if it equals the expected one, or where an output has intervals, if its value lies between the two ends; NaN equals any
 * NaN in f32, bf16 and f16. Words in a range that is marked
 * ASSAY_KEPT (padding of compact scales, rows of no group) must hold what they held before the call; those that are marked
 * ASSAY_FREE may hold anything.
)";

const char* const kCTypes = R"(#ifndef ASSAY_RUN
#define ASSAY_RUN assay_run
#endif
#ifndef ASSAY_CHECK
#define ASSAY_CHECK assay_check
#endif
#ifndef ASSAY_FILL
#define ASSAY_FILL assay_fill
#endif
#ifndef ASSAY_COMPARE
#define ASSAY_COMPARE assay_compare
#endif
#ifndef ASSAY_CASE
#define ASSAY_CASE assay_the_case
#endif

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct assay_case_input {
  const char *name;
  const char *type; /* "f32", "bf16", "f16", "e4m3", "e5m2", "e8m0", "e2m1", "i32", "i64" */
  int rank;
  int64_t shape[2], stride[2]; /* in words */
  size_t bytes;
  const void *data; /* null without elements */
};

struct assay_case_output {
  const char *name;
  const char *type;
  int rank;
  int64_t shape[2], stride[2];
  size_t bytes;
  void *data;
};

enum assay_parameter_type { ASSAY_PARAMETER_INTEGER, ASSAY_PARAMETER_REAL, ASSAY_PARAMETER_TEXT };

struct assay_case_parameter {
  const char *name;
  enum assay_parameter_type type;
  int64_t integer;
  double real;
  const char *text;
};

struct assay_case {
  const char *line; /* the case line */
  const char *op;
  size_t parameter_count, input_count, output_count;
  const struct assay_case_parameter *parameters;
  const struct assay_case_input *inputs;
  const struct assay_case_output *outputs;
};

/* The first word that is not as expected. */
struct assay_case_difference {
  const char *output;     /* its name; null if all is right */
  uint64_t element;       /* position in the output; of e2m1 in codes */
  uint64_t got, want;     /* `want` is what it held before where `is_kept` */
  int is_kept;            /* 1: a word that the call must not change */
  uint64_t most;          /* other end of the interval that begins at `want`; equals it where one word is right */
};

/* Yours: carries out the call. Returns 0, or another number if it cannot. */
int ASSAY_RUN(const struct assay_case *call);

/* The call. Its outputs have memory in this file. */
extern const struct assay_case ASSAY_CASE;
/* Fills all outputs with one byte. */
void ASSAY_FILL(int byte);
/* How many words of the outputs differ from the expected ones. `filled`: the byte that they were filled with before the call, or -1
 * if that is not known; then words that must not change are not looked at. `first` may be null. */
uint64_t ASSAY_COMPARE(int filled, struct assay_case_difference *first);
/* What main() does: 0, 1 or 2 as its exit status. */
int ASSAY_CHECK(void);

#ifdef __cplusplus
}
#endif
)";

const char* const kCExpected =
    R"(/* How words are compared: with the expected one, with what they held before the call, or not at all. */
enum assay_use { ASSAY_COMPARED, ASSAY_KEPT, ASSAY_FREE };

/* Words of an output that are not compared with expected ones. Those of e2m1 are codes, two a byte. */
struct assay_range {
  uint64_t first, count;
  enum assay_use use;
};

enum assay_nan {
  ASSAY_NAN_IS_A_WORD,
  ASSAY_NAN_F32,
  ASSAY_NAN_BF16,
  ASSAY_NAN_F16,
  ASSAY_NAN_E4M3,
  ASSAY_NAN_E5M2
};

struct assay_expected {
  const void *want;
  const void *most; /* other ends of intervals; null: `want` alone is right */
  uint64_t elements;
  int bits; /* of an element: 4, 8, 16, 32 or 64 */
  enum assay_nan nan;
  int zero_sign_free; /* 1: +0 and -0 are one code */
  const struct assay_range *ranges;
  size_t range_count;
  uint64_t kept, free_words; /* how many words the ranges hold */
};
)";

const char* const kCProgram = R"(static uint64_t assay_word(const void *words, int bits, uint64_t at) {
  const unsigned char *bytes = (const unsigned char *)words;
  union {
    unsigned char bytes[8];
    uint16_t in_16;
    uint32_t in_32;
    uint64_t in_64;
  } copy = {{0, 0, 0, 0, 0, 0, 0, 0}};
  int i;
  if (bits == 4) return (uint64_t)((bytes[at / 2] >> (at % 2 * 4)) & 0xF);
  if (bits == 8) return bytes[at];
  for (i = 0; i < bits / 8; ++i) copy.bytes[i] = bytes[at * (uint64_t)(bits / 8) + (uint64_t)i];
  return bits == 16 ? copy.in_16 : bits == 32 ? copy.in_32 : copy.in_64;
}

static int assay_is_nan(enum assay_nan nan, uint64_t word) {
  switch (nan) {
    case ASSAY_NAN_F32: return (word & 0x7FFFFFFFu) > 0x7F800000u;
    case ASSAY_NAN_BF16: return (word & 0x7FFFu) > 0x7F80u;
    case ASSAY_NAN_F16: return (word & 0x7FFFu) > 0x7C00u;
    case ASSAY_NAN_E4M3: return (word & 0x7Fu) == 0x7Fu;
    case ASSAY_NAN_E5M2: return (word & 0x7Fu) > 0x7Cu;
    case ASSAY_NAN_IS_A_WORD: break;
  }
  return 0;
}

/* Words of numbers in the order of their values; both zeros are 0. */
static int64_t assay_ordered(uint64_t sign, uint64_t word) {
  const int64_t magnitude = (int64_t)(word & (sign - 1));
  return (word & sign) != 0 ? -magnitude : magnitude;
}

static int assay_right(const struct assay_expected *expected, uint64_t got, uint64_t want, uint64_t most) {
  const uint64_t sign = (uint64_t)1 << (expected->bits - 1);
  if (expected->most != NULL) {
    if (assay_is_nan(expected->nan, got) || assay_is_nan(expected->nan, want))
      return assay_is_nan(expected->nan, got) && assay_is_nan(expected->nan, want);
    return assay_ordered(sign, got) >= assay_ordered(sign, want) && assay_ordered(sign, got) <= assay_ordered(sign, most);
  }
  if (got == want) return 1;
  if (assay_is_nan(expected->nan, got) && assay_is_nan(expected->nan, want)) return 1;
  return expected->zero_sign_free && ((got | want) & (sign - 1)) == 0;
}

/* What the word `at` of memory that was filled with this byte holds. */
static uint64_t assay_filled_word(int bits, int filled, uint64_t at) {
  unsigned char bytes[8];
  int i;
  for (i = 0; i < 8; ++i) bytes[i] = (unsigned char)filled;
  return assay_word(bytes, bits, bits == 4 ? at % 2 : 0);
}

void ASSAY_FILL(int byte) {
  size_t i, at;
  for (i = 0; i < ASSAY_CASE.output_count; ++i) {
    unsigned char *bytes = (unsigned char *)ASSAY_CASE.outputs[i].data;
    for (at = 0; at < ASSAY_CASE.outputs[i].bytes; ++at) bytes[at] = (unsigned char)byte;
  }
}

static uint64_t assay_compare_output(size_t which, int filled, struct assay_case_difference *first) {
  const struct assay_expected *expected = &assay_expected_outputs[which];
  const struct assay_case_output *output = &ASSAY_CASE.outputs[which];
  uint64_t differ = 0, at, range_end = 0;
  size_t range = 0;
  int use = ASSAY_COMPARED;
  for (at = 0; at < expected->elements; ++at) {
    uint64_t got, want, most;
    if (use != ASSAY_COMPARED && at == range_end) use = ASSAY_COMPARED;
    if (range < expected->range_count && expected->ranges[range].first == at) {
      use = (int)expected->ranges[range].use;
      range_end = at + expected->ranges[range].count;
      ++range;
    }
    if (use == ASSAY_FREE || (use == ASSAY_KEPT && filled < 0)) continue;
    got = assay_word(output->data, expected->bits, at);
    want = use == ASSAY_KEPT ? assay_filled_word(expected->bits, filled, at) : assay_word(expected->want, expected->bits, at);
    most = use == ASSAY_COMPARED && expected->most != NULL ? assay_word(expected->most, expected->bits, at) : want;
    if (use == ASSAY_KEPT ? got == want : assay_right(expected, got, want, most)) continue;
    if (differ++ == 0 && first->output == NULL) {
      first->output = output->name;
      first->element = at;
      first->got = got;
      first->want = want;
      first->is_kept = use == ASSAY_KEPT;
      first->most = most;
    }
  }
  return differ;
}

#ifndef ASSAY_NO_STDIO
#include <inttypes.h>
#include <stdio.h>

static void assay_print_difference(size_t which, uint64_t differ, const struct assay_case_difference *first) {
  const struct assay_case_output *output = &ASSAY_CASE.outputs[which];
  const struct assay_expected *expected = &assay_expected_outputs[which];
  const int digits = expected->bits == 4 ? 1 : expected->bits / 4;
  const uint64_t row = (uint64_t)output->stride[0] * (expected->bits == 4 ? 2u : 1u);
  printf("FAILED  %s\n  output  %s %s: %" PRIu64 " of %" PRIu64 " words differ\n", ASSAY_CASE.line, output->name, output->type,
         differ, expected->elements - expected->free_words);
  printf("  first   word %" PRIu64, first->element);
  if (output->rank == 2) printf(" [%" PRIu64 ",%" PRIu64 "]", first->element / row, first->element % row);
  printf(": got 0x%0*" PRIX64 ", want 0x%0*" PRIX64, digits, first->got, digits, first->want);
  if (first->most != first->want) printf(" to 0x%0*" PRIX64, digits, first->most);
  printf("%s\n", first->is_kept ? ", which the call must not change" : "");
}
#endif

uint64_t ASSAY_COMPARE(int filled, struct assay_case_difference *first) {
  const struct assay_case_difference none = {NULL, 0, 0, 0, 0, 0};
  uint64_t differ = 0;
  size_t i;
  if (first != NULL) *first = none;
  for (i = 0; i < ASSAY_CASE.output_count; ++i) {
    struct assay_case_difference of_this = none;
    const uint64_t here = assay_compare_output(i, filled, &of_this);
    if (here == 0) continue;
#ifndef ASSAY_NO_STDIO
    assay_print_difference(i, here, &of_this);
#endif
    if (differ == 0 && first != NULL) *first = of_this;
    differ += here;
  }
  return differ;
}

int ASSAY_CHECK(void) {
  static const int fills[2] = {0xFF, 0xA5};
  uint64_t compared = 0, kept = 0;
  size_t i;
  for (i = 0; i < 2; ++i) {
    int refused;
    ASSAY_FILL(fills[i]);
    refused = ASSAY_RUN(&ASSAY_CASE);
    if (refused != 0) {
#ifndef ASSAY_NO_STDIO
      printf("NOT RUN  %s\n  assay_run() returned %d\n", ASSAY_CASE.line, refused);
#endif
      return 2;
    }
    if (ASSAY_COMPARE(fills[i], NULL) != 0) return 1;
  }
  for (i = 0; i < ASSAY_CASE.output_count; ++i) {
    compared += assay_expected_outputs[i].elements - assay_expected_outputs[i].kept - assay_expected_outputs[i].free_words;
    kept += assay_expected_outputs[i].kept;
  }
#ifndef ASSAY_NO_STDIO
  printf("passed  %s\n  %" PRIu64 " words as expected, %" PRIu64 " unchanged, over two fills\n", ASSAY_CASE.line, compared, kept);
#else
  (void)compared;
  (void)kept;
#endif
  return 0;
}

#ifndef ASSAY_NO_MAIN
int main(void) { return ASSAY_CHECK(); }
#endif
)";

}  // namespace assay::conformance
