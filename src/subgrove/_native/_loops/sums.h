/* Sums over the rows of one node: lines (scores, and last the weights) times the numbers of each column, and squares of
 * these numbers times the weights. */

#include "lanes.h"
#include "numbers.h"

#define TOGETHER (LANES > 2 ? 4 : 2) /* columns that share a look at a row's lines */
#define USUAL (8 / LANES)            /* lanes of 5 to 8 lines: compiled on its own, with its loops unrolled */

INLINED double number_at(const char *column, const Numbers *x, int64_t row, ptrdiff_t place, const int moved)
{
    double number;
    memcpy(&number, column + row * x->by_row, sizeof(double));
    return moved ? number * x->scale[place] - x->shift[place] : number;
}

/* Add to the sums of some columns what a chunk of rows gives. `packed` has `width` lanes of lines for each row. */
INLINED void add_chunk(const Numbers *x, const int64_t *rows, ptrdiff_t part, ptrdiff_t first, const int columns,
                       const lanes *packed, const int width, const double *weights, const int moved, lanes *sums,
                       double *squares)
{
    const char *at[TOGETHER];
    lanes total[TOGETHER * ((MOST + LANES - 1) / LANES)];
    double square[TOGETHER] = {0};
    for (int j = 0; j < columns; j++)
        at[j] = x->base + x->columns[first + j] * x->by_column;
    for (int j = 0; j < columns * width; j++)
        total[j] = none;
    for (ptrdiff_t i = 0; i < part; i++)
        for (int j = 0; j < columns; j++) {
            double number = number_at(at[j], x, rows[i], first + j, moved);
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
INLINED void sum_rows(const Numbers *x, const int64_t *rows, const double *stacked, size_t m, ptrdiff_t size, int lines,
                      const int width, const int moved, lanes *packed, lanes *sums, double *out, double *squares)
{
    memset(sums, 0, sizeof(lanes) * (size_t)(x->count * width));
    memset(squares, 0, sizeof(double) * (size_t)x->count);
    for (ptrdiff_t start = 0; start < size; start += CHUNK) {
        ptrdiff_t part = size - start < CHUNK ? size - start : CHUNK, column = 0;
        const double *weights = stacked + (size_t)(lines - 1) * m + start;
        double *flat = (double *)packed;
        memset(packed, 0, sizeof(lanes) * (size_t)(part * width));
        for (int k = 0; k < lines; k++)
            for (ptrdiff_t i = 0; i < part; i++)
                flat[i * width * LANES + k] = stacked[(size_t)k * m + start + i];
        for (; column + TOGETHER <= x->count; column += TOGETHER)
            add_chunk(x, rows + start, part, column, TOGETHER, packed, width, weights, moved, sums, squares);
        for (; column < x->count; column++)
            add_chunk(x, rows + start, part, column, 1, packed, width, weights, moved, sums, squares);
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
    if (width == USUAL && !x->scale)
        sum_rows(x, rows, stacked, m, size, lines, USUAL, 0, own, total, out, squares);
    else if (width == USUAL)
        sum_rows(x, rows, stacked, m, size, lines, USUAL, 1, own, total, out, squares);
    else
        sum_rows(x, rows, stacked, m, size, lines, width, x->scale != NULL, own, total, out, squares);
}
