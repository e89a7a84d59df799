/* Loops over all pairs of rows for the MMD: squared distances, the search for their median, and sums of the kernel.
 *
 * `_fidelity/mmd.py` has the same in NumPy, which is the reference and the fallback;
 * `tests/fidelity/test_pairs.py` compares the two.
 *
 * A block of pairs is a rectangle (each row of one sample with each of another) or the part of a square above its
 * diagonal (each two rows of one sample once). Its squared distances are `base`, one for each pair row after row, or 0
 * where there is no base, plus those of some columns: `left` has rows x columns, `right` columns x rows. The last
 * `labels` of these columns are codes of categories: the squared distance of two different ones is 1. Only a tile of one
 * row is in memory, which does not grow with the number of pairs.
 */

#include "buffers.h"

#define TILE 512
#define LANES 8

/* Where the dynamic loader can select a variant, the loops are also compiled for processors with AVX2. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define SIMD_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define SIMD_CLONES
#endif

/* Inlined into each loop, so that it is compiled for the same processor. */
#if defined(__GNUC__)
#define FORCE_INLINE static inline __attribute__((always_inline))
#else
#define FORCE_INLINE static inline
#endif

typedef union {
    double number;
    uint64_t bits;
} Bits;

typedef struct {
    const double *base, *left, *right;
    Py_ssize_t rows, others, columns, labels;
    int triangle;
} Block;

static Py_ssize_t pairs_of(Py_ssize_t rows, Py_ssize_t others, int triangle)
{
    return triangle ? rows * (rows - 1) / 2 : rows * others;
}

/* First of the other rows that a row is paired with. */
FORCE_INLINE Py_ssize_t first_of(const Block *block, Py_ssize_t row) { return block->triangle ? row + 1 : 0; }

/* Squared distances of one row to `size` others from `from` on; `base` points at the first of these pairs. */
FORCE_INLINE void distances(const Block *block, const double *base, Py_ssize_t row, Py_ssize_t from, Py_ssize_t size,
                    double *restrict out)
{
    if (base)
        memcpy(out, base, sizeof(double) * (size_t)size);
    else
        memset(out, 0, sizeof(double) * (size_t)size);
    for (Py_ssize_t k = 0; k < block->columns; k++) {
        const double own = block->left[row * block->columns + k];
        const double *restrict theirs = block->right + k * block->others + from;
        if (k >= block->columns - block->labels)
            for (Py_ssize_t j = 0; j < size; j++)
                out[j] += own != theirs[j] ? 1.0 : 0.0;
        else
            for (Py_ssize_t j = 0; j < size; j++) {
                double gap = own - theirs[j];
                out[j] += gap * gap;
            }
    }
}

/* exp(x) for x <= 0, of a whole tile: x = n log 2 + r, a Taylor polynomial in r, and n put into the exponent. */
FORCE_INLINE void exponentials(double *restrict x, Py_ssize_t size)
{
    const double round = 6755399441055744.0; /* 1.5 * 2^52: adding it leaves the nearest whole number in the low bits */
    for (Py_ssize_t j = 0; j < size; j++) {
        double given = x[j] < -708.0 ? -708.0 : x[j];
        double shifted = given * 1.4426950408889634 + round;
        double n = shifted - round;
        double r = (given - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
        double p = 1.0 / 6227020800.0;
        p = p * r + 1.0 / 479001600.0;
        p = p * r + 1.0 / 39916800.0;
        p = p * r + 1.0 / 3628800.0;
        p = p * r + 1.0 / 362880.0;
        p = p * r + 1.0 / 40320.0;
        p = p * r + 1.0 / 5040.0;
        p = p * r + 1.0 / 720.0;
        p = p * r + 1.0 / 120.0;
        p = p * r + 1.0 / 24.0;
        p = p * r + 1.0 / 6.0;
        p = p * r + 0.5;
        p = p * r + 1.0;
        p = p * r + 1.0;
        Bits whole = {.number = shifted}, value = {.number = p};
        value.bits += whole.bits << 52; /* adds n to the exponent; higher bits fall out */
        x[j] = value.number;
    }
}

/* Sum of exp(-gamma * squared distance) over the pairs of a block. */
SIMD_CLONES static double kernel_total(const Block *block, double gamma)
{
    double tile[TILE], total = 0.0;
    const double *base = block->base;
    for (Py_ssize_t row = 0; row < block->rows; row++) {
        double lanes[LANES] = {0};
        for (Py_ssize_t from = first_of(block, row); from < block->others; from += TILE) {
            Py_ssize_t size = block->others - from < TILE ? block->others - from : TILE, j = 0;
            distances(block, base, row, from, size, tile);
            for (Py_ssize_t i = 0; i < size; i++)
                tile[i] *= -gamma;
            exponentials(tile, size);
            for (; j + LANES <= size; j += LANES)
                for (int lane = 0; lane < LANES; lane++)
                    lanes[lane] += tile[j + lane];
            for (; j < size; j++)
                lanes[0] += tile[j];
            if (base)
                base += size;
        }
        for (int lane = 0; lane < LANES; lane++)
            total += lanes[lane];
    }
    return total;
}

/* Number of squared distances below `low`; those from `low` to `high` go to `out`, at most `max_inside` of them. */
SIMD_CLONES static Py_ssize_t collect(const Block *block, double low, double high, double *restrict out,
                                      Py_ssize_t max_inside, Py_ssize_t *n_inside)
{
    double tile[TILE];
    const double *base = block->base;
    Py_ssize_t below = 0, inside = 0;
    for (Py_ssize_t row = 0; row < block->rows; row++)
        for (Py_ssize_t from = first_of(block, row); from < block->others; from += TILE) {
            Py_ssize_t size = block->others - from < TILE ? block->others - from : TILE;
            distances(block, base, row, from, size, tile);
            if (inside + size <= max_inside)
                for (Py_ssize_t j = 0; j < size; j++) {
                    below += tile[j] < low;
                    out[inside] = tile[j];
                    inside += (tile[j] >= low) & (tile[j] <= high);
                }
            else
                for (Py_ssize_t j = 0; j < size; j++) {
                    int within = (tile[j] >= low) & (tile[j] <= high);
                    below += tile[j] < low;
                    if (within && inside < max_inside)
                        out[inside] = tile[j];
                    inside += within;
                }
            if (base)
                base += size;
        }
    *n_inside = inside;
    return below;
}

/* Squared distances of all pairs, one after the other. */
SIMD_CLONES static void fill(const Block *block, double *out)
{
    for (Py_ssize_t row = 0; row < block->rows; row++)
        for (Py_ssize_t from = first_of(block, row); from < block->others; from += TILE) {
            Py_ssize_t size = block->others - from < TILE ? block->others - from : TILE;
            distances(block, NULL, row, from, size, out);
            out += size;
        }
}

/* Hold and check the arrays of a block: base, left, right and, if `count` is 4, an array to write `n_out` numbers to. */
static int read_block(PyObject **objects, Py_buffer *views, int count, Py_ssize_t n_out, Block *block)
{
    if (block->rows < 0 || block->others < 0 || block->labels < 0 || block->columns < block->labels ||
        (block->triangle && block->rows != block->others) || product(block->rows, block->others) < 0) {
        PyErr_SetString(PyExc_ValueError, "rows, others, columns, labels: sizes are out of range.");
        return -1;
    }
    const ArraySpec specs[4] = {
        {"base", FLOAT64, READ_OR_NONE, pairs_of(block->rows, block->others, block->triangle)},
        {"left", FLOAT64, READ, product(block->rows, block->columns)},
        {"right", FLOAT64, READ, product(block->columns, block->others)},
        {"out", FLOAT64, WRITE, n_out}};
    if (acquire_buffers(objects, views, specs, count))
        return -1;
    block->base = views[0].buf;
    block->left = views[1].buf;
    block->right = views[2].buf;
    return 0;
}

/* kernel_sum(base, left, right, rows, others, columns, triangle, gamma, labels = 0) */
static PyObject *kernel_sum(PyObject *self, PyObject *args)
{
    PyObject *objects[3];
    Py_buffer views[3];
    Block block = {.labels = 0};
    double gamma, total;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOnnnpd|n", &objects[0], &objects[1], &objects[2], &block.rows, &block.others,
                          &block.columns, &block.triangle, &gamma, &block.labels) ||
        read_block(objects, views, 3, 0, &block))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    total = kernel_total(&block, gamma);
    Py_END_ALLOW_THREADS
    release_buffers(views, 3);
    return PyFloat_FromDouble(total);
}

/* between(base, left, right, rows, others, columns, triangle, low, high, max_inside, out, labels = 0): the numbers of
 * squared distances below low, and from low to high; the first max_inside of the latter are written to out. */
static PyObject *between(PyObject *self, PyObject *args)
{
    PyObject *objects[4];
    Py_buffer views[4];
    Block block = {.labels = 0};
    double low, high;
    Py_ssize_t max_inside, below, n_inside;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOnnnpddnO|n", &objects[0], &objects[1], &objects[2], &block.rows, &block.others,
                          &block.columns, &block.triangle, &low, &high, &max_inside, &objects[3],
                          &block.labels) ||
        read_block(objects, views, 4, max_inside, &block))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    below = collect(&block, low, high, views[3].buf, max_inside, &n_inside);
    Py_END_ALLOW_THREADS
    release_buffers(views, 4);
    return Py_BuildValue("nn", below, n_inside);
}

/* squared_distances(left, right, rows, others, columns, triangle, out, labels = 0) */
static PyObject *squared_distances(PyObject *self, PyObject *args)
{
    PyObject *objects[4];
    Py_buffer views[4];
    Block block = {.labels = 0};
    (void)self;
    objects[0] = Py_None;
    if (!PyArg_ParseTuple(args, "OOnnnpO|n", &objects[1], &objects[2], &block.rows, &block.others, &block.columns,
                          &block.triangle, &objects[3], &block.labels) ||
        read_block(objects, views, 4, pairs_of(block.rows, block.others, block.triangle), &block))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    fill(&block, views[3].buf);
    Py_END_ALLOW_THREADS
    release_buffers(views, 4);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"kernel_sum", kernel_sum, METH_VARARGS, "Sum of the kernel over pairs."},
    {"between", between, METH_VARARGS, "Squared distances in an interval, and how many are below it."},
    {"squared_distances", squared_distances, METH_VARARGS, "Squared distances of pairs."},
    {NULL, NULL, 0, NULL}};

KERNEL_MODULE(_mmd_pairs, methods)
