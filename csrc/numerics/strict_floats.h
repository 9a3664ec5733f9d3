/* Refuse compilers that may change the results of floating-point operations.
 *
 * The bounds of bincp rest on the rounding of every single operation, on NaN and on subnormal numbers.
 * Under -ffast-math and its parts a lower bound may come out too high, and NaN scores are counted.
 * setup.py undoes such flags of the user; this file refuses kernels that are compiled in another way.
 * Only gcc tells about contraction to fused multiply-add: compile with -ffp-contract=off.
 */
#ifndef BINCP_STRICT_FLOATS_H
#define BINCP_STRICT_FLOATS_H

#include <float.h>

/* gcc tells by __GCC_IEC_559 whether any of the flags that break IEEE 754 is on. */
#if defined(__FAST_MATH__) || defined(_M_FP_FAST) \
    || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ > 0) \
    || (defined(__GCC_IEC_559) && __GCC_IEC_559 == 0)
#error "bincp needs exact floating-point arithmetic: compile without -ffast-math, -Ofast, their parts, and with -ffp-contract=off"
#endif

/* 1 and 2: operations are rounded to a wider type first, as by -mfpmath=387. */
#if FLT_EVAL_METHOD < 0 || FLT_EVAL_METHOD == 1 || FLT_EVAL_METHOD == 2
#error "bincp needs operations that are rounded to their own type: compile for SSE2, without -mfpmath=387"
#endif

/* The C library of MinGW rounds fma twice, by way of the 80-bit type. */
#if defined(__MINGW32__) && (defined(__x86_64__) || defined(__i386__)) && !defined(__FMA__)
#error "bincp needs fma that is rounded once, which the C library of MinGW has not: compile with -mfma"
#endif

#endif
