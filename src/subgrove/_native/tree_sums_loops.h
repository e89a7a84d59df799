/* Sums over the rows of one node: lines (scores, and last the weights) times the numbers of each column, and squares of
 * these numbers times the weights. */

#include "simd.h"
#include "tree_sums.h"

#define COLUMNS (LANES > 2 ? 4 : 2) /* columns that are summed in one pass over the rows */
#define DEFAULT_WIDTH (8 / LANES)   /* lanes of 5 to 8 lines: compiled separately, with its loops unrolled */

FORCE_INLINE double number_at(const char *column, const Numbers *x, int64_t row, ptrdiff_t place, const int scaled)
{
    double number;
    memcpy(&number, column + row * x->row_stride, sizeof(double));
    return scaled ? number * x->scale[place] - x->shift[place] : number;
}

/* Add a chunk of rows to the sums of some columns. `packed` has `width` lanes of lines for each row. */
FORCE_INLINE void add_chunk(const Numbers *x, const int64_t *rows, ptrdiff_t n_rows, ptrdiff_t first, const int columns,
                       const lanes *packed, const int width, const double *weights, const int scaled, lanes *sums,
                       double *squares)
{
    const char *at[COLUMNS];
    lanes total[COLUMNS * ((MAX_LINES + LANES - 1) / LANES)];
    double square[COLUMNS] = {0};
    for (int j = 0; j < columns; j++)
        at[j] = x->base + x->columns[first + j] * x->column_stride;
    for (int j = 0; j < columns * width; j++)
        total[j] = zero;
    for (ptrdiff_t i = 0; i < n_rows; i++)
        for (int j = 0; j < columns; j++) {
            double number = number_at(at[j], x, rows[i], first + j, scaled);
            for (int v = 0; v < width; v++)
                total[j * width + v] += packed[i * width + v] * number;
            square[j] += weights[i] * number * number;
        }
    for (int j = 0; j < columns; j++) {
        for (int v = 0; v < width; v++)
            sums[(first + j) * width + v] += total[j * width + v];
        squares[first + j] += square[j];
    }
}

/* One node: `stacked` has its lines, m numbers each, of which the first `size` are rows; the last line are weights. */
FORCE_INLINE void sum_rows(const Numbers *x, const int64_t *rows, const double *stacked, size_t m, ptrdiff_t size, int lines,
                      const int width, const int scaled, lanes *packed, lanes *sums, double *out, double *squares)
{
    memset(sums, 0, sizeof(lanes) * (size_t)(x->count * width));
    memset(squares, 0, sizeof(double) * (size_t)x->count);
    for (ptrdiff_t start = 0; start < size; start += CHUNK) {
        ptrdiff_t n_rows = size - start < CHUNK ? size - start : CHUNK, column = 0;
        const double *weights = stacked + (size_t)(lines - 1) * m + start;
        double *flat = (double *)packed;
        memset(packed, 0, sizeof(lanes) * (size_t)(n_rows * width));
        for (int k = 0; k < lines; k++)
            for (ptrdiff_t i = 0; i < n_rows; i++)
                flat[i * width * LANES + k] = stacked[(size_t)k * m + start + i];
        for (; column + COLUMNS <= x->count; column += COLUMNS)
            add_chunk(x, rows + start, n_rows, column, COLUMNS, packed, width, weights, scaled, sums, squares);
        for (; column < x->count; column++)
            add_chunk(x, rows + start, n_rows, column, 1, packed, width, weights, scaled, sums, squares);
    }
    const double *flat = (const double *)sums;
    for (int k = 0; k < lines; k++)
        for (ptrdiff_t c = 0; c < x->count; c++)
            out[k * x->count + c] = flat[c * width * LANES + k];
}

void sum_node(const Numbers *x, const int64_t *rows, const double *stacked, size_t m, ptrdiff_t size, int lines,
              double *packed, double *sums, double *out, double *squares)
{
    int width = (lines + LANES - 1) / LANES;
    lanes *own = (lanes *)packed, *total = (lanes *)sums;
    if (width == DEFAULT_WIDTH && !x->scale)
        sum_rows(x, rows, stacked, m, size, lines, DEFAULT_WIDTH, 0, own, total, out, squares);
    else if (width == DEFAULT_WIDTH)
        sum_rows(x, rows, stacked, m, size, lines, DEFAULT_WIDTH, 1, own, total, out, squares);
    else
        sum_rows(x, rows, stacked, m, size, lines, width, x->scale != NULL, own, total, out, squares);
}
