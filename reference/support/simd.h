#pragma once
// Run-time dispatch for plain loops: the compiler clones a function for each instruction set and the loader picks one.
//
//   ASSAY_CLONES void scale(std::span<const float> x, float s, float* y) { for (...) y[i] = x[i] * s; }
//
// Clones differ in speed only: no contraction, no reassociation, so every clone computes the same bits. What a cloned
// function calls must be inlined into it (ASSAY_INLINE) to be vectorised with it. Elsewhere than x86-64 with GCC, and
// under sanitizers (whose runtime is not ready when the loader resolves clones), there is one plain version.
//
// Give cloned functions internal linkage: GCC exports the symbol of any other from a shared library, hidden or not.

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__) && !defined(ASSAY_PORTABLE)
#define ASSAY_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#define ASSAY_X86_DISPATCH 1
#else
#define ASSAY_CLONES
#define ASSAY_X86_DISPATCH 0
#endif

#define ASSAY_INLINE inline __attribute__((always_inline))
