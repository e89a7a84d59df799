/* The loops of `sums.h` for processors that multiply and add four numbers in one instruction. */

#if defined(__GNUC__) && defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif
#define COMPILED_WIDE
#define sum_node sum_node_wide
#include "sums.h"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
