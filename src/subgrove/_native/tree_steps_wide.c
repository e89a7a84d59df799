/* The loops of `tree_steps_loops.h` for processors with AVX2 and fused multiply-add. */

#if defined(__GNUC__) && defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif
#define COMPILED_WIDE
#define dense_steps dense_steps_wide
#define mask_margins mask_margins_wide
#define loss_increase loss_increase_wide
#define mean_increase mean_increase_wide
#include "tree_steps_loops.h"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
