/* Function clones: one function, compiled once per instruction set.
 *
 * The loader picks the clone that the CPU can run. That takes ifunc, hence glibc, and a compiler
 * that knows "arch=x86-64-v4" here: gcc 12 or clang 14. Everywhere else, and where BINCP_NO_CLONES
 * is defined, the macros are empty and the function is compiled once, for the target of the build.
 *
 * "arch=x86-64-v4" is matched against the features of the CPU; names of CPU models are not
 * ("skylake-avx512" never matches an AMD). Cloned functions are static, behind plain ones, because
 * clang cannot export clones, and have names of their own in all of csrc, because its resolvers are
 * not static. A function that a clone calls is compiled for its instruction set only
 * if it is inlined into it: hence ALWAYS_INLINE.
 */
#ifndef BINCP_CLONES_H
#define BINCP_CLONES_H

#include <stdint.h> /* defines __GLIBC__ */

#include "numerics/strict_floats.h"

#if defined(__GNUC__)
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))
#else
#define ALWAYS_INLINE inline
#define NOINLINE
#endif

#if defined(__clang__)
#define HAS_CLONES (__clang_major__ >= 14)
#elif defined(__GNUC__)
#define HAS_CLONES (__GNUC__ >= 12)
#else
#define HAS_CLONES 0
#endif

#if HAS_CLONES && defined(__x86_64__) && defined(__GLIBC__) && !defined(BINCP_NO_CLONES)
#define CLONES_AVX2 __attribute__((target_clones("avx2", "default")))
#define CLONES_V4 __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define CLONES_AVX2
#define CLONES_V4
#endif

#endif
