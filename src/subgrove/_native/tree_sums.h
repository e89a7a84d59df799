/* The table of numbers that sums over rows are formed of. */

#ifndef SUBGROVE_TREE_SUMS_H
#define SUBGROVE_TREE_SUMS_H

#include <stddef.h>
#include <stdint.h>

#define MAX_LINES 33 /* scores of a row, and its weight */
#define CHUNK 256    /* rows whose scores stay in the first cache while all columns are multiplied */

typedef struct {
    const char *base;
    ptrdiff_t row_stride, column_stride; /* strides in bytes */
    const int64_t *columns;
    const double *scale, *shift; /* numbers become number * scale - shift; null: unchanged */
    ptrdiff_t count;
} Numbers;

/* One node: `stacked` has its lines, m numbers each, of which the first `size` are rows; the last line are weights. */
typedef void sum_function(const Numbers *x, const int64_t *rows, const double *stacked, size_t m, ptrdiff_t size, int lines,
                          double *packed, double *sums, double *out, double *squares);

#endif
