/* The loops of `tree_fit_loops.h` for processors with AVX2 and fused multiply-add. */

#if defined(__GNUC__) && defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif
#define COMPILED_WIDE
#define fit_node fit_node_wide
#include "tree_fit_loops.h"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
