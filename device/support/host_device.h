#pragma once
// For functions that a host compiler and a device's compiler both read.

#if defined(__CUDACC__)
#define ASSAY_HD __host__ __device__
#else
#define ASSAY_HD
#endif
