/* A table of numbers as the sums over its rows see it. */

#ifndef SUBGROVE_NUMBERS_H
#define SUBGROVE_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

#define MOST 33    /* most lines: scores of a row, and its weight */
#define CHUNK 256  /* rows whose scores stay in the first cache while all columns pass */

/* A table of numbers and what is wanted of it. */
typedef struct {
    const char *base;
    ptrdiff_t by_row, by_column; /* bytes from a number to the next */
    const int64_t *columns;
    const double *scale, *shift; /* a number counts as number * scale - shift; null where all are 1 and 0 */
    ptrdiff_t count;
} Numbers;

/* One node: `stacked` has its lines, m numbers each, of which the first `size` are rows; the last line are weights. */
typedef void sum_function(const Numbers *x, const int64_t *rows, const double *stacked, size_t m, ptrdiff_t size, int lines,
                          double *packed, double *sums, double *out, double *squares);

#endif
