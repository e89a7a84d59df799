/* Several numbers at a time, for loops that are compiled twice: `*_plain.c` for any processor and `*_wide.c` for those
 * with AVX2 and fused multiply-add. A `lanes` holds LANES numbers; arithmetic is element-wise. Compilers without vector
 * types get one number at a time: the same loops, slower.
 */

#ifndef SUBGROVE_SIMD_H
#define SUBGROVE_SIMD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MAX_LANES 4 /* of all variants: what memory is allocated for */

#if defined(COMPILED_WIDE)
#define LANES 4
#elif defined(__GNUC__)
#define LANES 2
#else
#define LANES 1
#endif

#if defined(__GNUC__)
#define FORCE_INLINE static inline __attribute__((always_inline))
#else
#define FORCE_INLINE static inline
#endif

#if LANES > 1
typedef double lanes __attribute__((vector_size(LANES * sizeof(double))));
typedef int64_t masks __attribute__((vector_size(LANES * sizeof(double))));

/* The larger of two numbers in each lane. */
FORCE_INLINE lanes larger(lanes one, lanes other)
{
    masks first = one > other;
    return (lanes)(((masks)one & first) | ((masks)other & ~first));
}
#else
typedef double lanes;

FORCE_INLINE lanes larger(lanes one, lanes other) { return one > other ? one : other; }
#endif

static const lanes zero = {0};

FORCE_INLINE lanes load(const double *numbers)
{
    lanes loaded;
    memcpy(&loaded, numbers, sizeof(lanes));
    return loaded;
}

FORCE_INLINE void store(lanes stored, double *numbers) { memcpy(numbers, &stored, sizeof(lanes)); }

FORCE_INLINE double sum_of(lanes added)
{
    double one[LANES], total = 0.0;
    store(added, one);
    for (int i = 0; i < LANES; i++)
        total += one[i];
    return total;
}

#endif
