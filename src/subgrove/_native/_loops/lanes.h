/* Several numbers at a time, for loops that are compiled twice: `..._plain.c` for any processor and `..._wide.c` for those
 * that multiply and add four numbers in one instruction. A `lanes` holds LANES numbers, and arithmetic on it is done on all
 * of them at once. Compilers without vector types get one number at a time: the same loops, slower.
 */

#ifndef SUBGROVE_LANES_H
#define SUBGROVE_LANES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(COMPILED_WIDE)
#define LANES 4
#elif defined(__GNUC__)
#define LANES 2
#else
#define LANES 1
#endif

#if defined(__GNUC__)
#define INLINED static inline __attribute__((always_inline))
#else
#define INLINED static inline
#endif

#if LANES > 1
typedef double lanes __attribute__((vector_size(LANES * sizeof(double))));
typedef int64_t marks __attribute__((vector_size(LANES * sizeof(double))));

/* The larger of two numbers in each lane. */
INLINED lanes larger(lanes one, lanes other)
{
    marks first = one > other;
    return (lanes)(((marks)one & first) | ((marks)other & ~first));
}
#else
typedef double lanes;

INLINED lanes larger(lanes one, lanes other) { return one > other ? one : other; }
#endif

static const lanes none = {0};

INLINED lanes load(const double *numbers)
{
    lanes loaded;
    memcpy(&loaded, numbers, sizeof(lanes));
    return loaded;
}

INLINED void store(lanes stored, double *numbers) { memcpy(numbers, &stored, sizeof(lanes)); }

INLINED double sum_of(lanes added)
{
    double one[LANES], total = 0.0;
    store(added, one);
    for (int i = 0; i < LANES; i++)
        total += one[i];
    return total;
}

#endif
