/* Sums over the rows of many nodes: scores times the numbers of every candidate column, and squares of these numbers.
 *
 * That is a matrix product of the scores with rows that would have to be gathered first, column by column. Here a number
 * is taken from where it lies when it is multiplied, so nothing is copied, and a column's sums are formed in the same order
 * whatever columns stand beside it: a tree is the same, to the last digit, whether it grows alone or beside others.
 * `association.py` has the same in NumPy, which runs wherever this file could not be compiled.
 */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include "_lanes.h"

#define MOST 33     /* most lines: scores of a row, and its weight */
#define CHUNK 256   /* rows whose scores stay in the first cache while all columns pass */
#define TOGETHER 4  /* columns that share a look at a row's scores */

/* A table of numbers and what is wanted of it. */
typedef struct {
    const char *base;
    Py_ssize_t by_row, by_column; /* bytes from a number to the next */
    const int64_t *columns;
    const double *scale, *shift; /* a number counts as number * scale - shift; null where all are 1 and 0 */
    Py_ssize_t count;
} Numbers;

INLINED double number_at(const char *column, const Numbers *x, int64_t row, Py_ssize_t place, const int moved)
{
    double number;
    memcpy(&number, column + row * x->by_row, sizeof(double));
    return moved ? number * x->scale[place] - x->shift[place] : number;
}

/* Add to the sums of some columns what a chunk of rows gives. `packed` has `width` lanes of lines for each row. */
INLINED void add_chunk(const Numbers *x, const int64_t *rows, Py_ssize_t part, Py_ssize_t first, const int columns,
                       const lanes *packed, const int width, const double *weights, const int moved, lanes *sums,
                       double *squares)
{
    const char *at[TOGETHER];
    lanes total[TOGETHER * ((MOST + LANES - 1) / LANES)];
    double square[TOGETHER] = {0};
    for (int j = 0; j < columns; j++)
        at[j] = x->base + x->columns[first + j] * x->by_column;
    for (int j = 0; j < columns * width; j++)
        total[j] = packed[0] * 0.0;
    for (Py_ssize_t i = 0; i < part; i++)
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
INLINED void sum_node(const Numbers *x, const int64_t *rows, const double *stacked, size_t m, Py_ssize_t size, int lines,
                      const int width, const int moved, lanes *packed, lanes *sums, double *out, double *squares)
{
    memset(sums, 0, sizeof(lanes) * (size_t)(x->count * width));
    memset(squares, 0, sizeof(double) * (size_t)x->count);
    for (Py_ssize_t start = 0; start < size; start += CHUNK) {
        Py_ssize_t part = size - start < CHUNK ? size - start : CHUNK, column = 0;
        const double *weights = stacked + (size_t)(lines - 1) * m + start;
        double *flat = (double *)packed;
        memset(packed, 0, sizeof(lanes) * (size_t)(part * width));
        for (int k = 0; k < lines; k++)
            for (Py_ssize_t i = 0; i < part; i++)
                flat[i * width * LANES + k] = stacked[(size_t)k * m + start + i];
        for (; column + TOGETHER <= x->count; column += TOGETHER)
            add_chunk(x, rows + start, part, column, TOGETHER, packed, width, weights, moved, sums, squares);
        for (; column < x->count; column++)
            add_chunk(x, rows + start, part, column, 1, packed, width, weights, moved, sums, squares);
    }
    const double *flat = (const double *)sums;
    for (int k = 0; k < lines; k++)
        for (Py_ssize_t c = 0; c < x->count; c++)
            out[k * x->count + c] = flat[c * width * LANES + k];
}

typedef void node_sums(const Numbers *, const int64_t *, const double *, size_t, Py_ssize_t, int, lanes *, lanes *,
                       double *, double *);

/* The usual number of lines, 5 to 8, is compiled on its own, with its loops unrolled. */
#define NODE_SUMS(name, attributes)                                                                                    \
    attributes static void name(const Numbers *x, const int64_t *rows, const double *stacked, size_t m,                \
                                Py_ssize_t size, int lines, lanes *packed, lanes *sums, double *out, double *squares)  \
    {                                                                                                                  \
        int width = (lines + LANES - 1) / LANES;                                                                       \
        if (width == 2 && !x->scale)                                                                                   \
            sum_node(x, rows, stacked, m, size, lines, 2, 0, packed, sums, out, squares);                              \
        else if (width == 2)                                                                                           \
            sum_node(x, rows, stacked, m, size, lines, 2, 1, packed, sums, out, squares);                              \
        else                                                                                                           \
            sum_node(x, rows, stacked, m, size, lines, width, x->scale != NULL, packed, sums, out, squares);           \
    }

NODE_SUMS(sums_plain, )
NODE_SUMS(sums_wide, WIDE)

/* sums(numbers, rows, stacked, sizes, columns, scale, shift, nodes, lines, m, count, out, squares): the last two are
 * written to. */
static PyObject *sums(PyObject *self, PyObject *args)
{
    PyObject *table, *objects[8];
    Py_buffer numbers, views[8];
    Py_ssize_t nodes, m, count;
    int lines;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOOOOninnOO", &table, &objects[0], &objects[1], &objects[2], &objects[3], &objects[4],
                          &objects[5], &nodes, &lines, &m, &count, &objects[6], &objects[7]))
        return NULL;
    if (lines < 1 || lines > MOST) {
        PyErr_SetString(PyExc_ValueError, "the number of lines is out of range");
        return NULL;
    }
    const Py_ssize_t items[8] = {nodes * m, nodes * lines * m, nodes, count, count, count, nodes * lines * count,
                                 nodes * count};
    if (hold(objects, views, 8, 6, items))
        return NULL;
    if (PyObject_GetBuffer(table, &numbers, PyBUF_STRIDES)) {
        release(views, 8);
        return NULL;
    }
    const int64_t *rows = views[0].buf, *columns = views[3].buf;
    int fits = numbers.ndim == 2 && numbers.itemsize == sizeof(double);
    for (Py_ssize_t c = 0; fits && c < count; c++)
        fits = columns[c] >= 0 && columns[c] < numbers.shape[1];
    int width = (lines + LANES - 1) / LANES;
    void *memory = NULL;
    lanes *packed = fits ? room_for((size_t)((CHUNK + count) * width), &memory) : NULL;
    if (!packed) {
        PyBuffer_Release(&numbers);
        release(views, 8);
        if (fits)
            return PyErr_NoMemory();
        PyErr_SetString(PyExc_ValueError, "numbers have no such columns");
        return NULL;
    }
    const Numbers x = {numbers.buf, numbers.strides[0], numbers.strides[1], columns, views[4].buf, views[5].buf, count};
    const double *stacked = views[1].buf, *sizes = views[2].buf;
    double *out = views[6].buf, *squares = views[7].buf;
    node_sums *sum_one = has_wide() ? sums_wide : sums_plain;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t k = 0; k < nodes; k++)
        sum_one(&x, rows + k * m, stacked + k * lines * m, (size_t)m, (Py_ssize_t)sizes[k], lines, packed,
                packed + CHUNK * width, out + k * lines * count, squares + k * count);
    Py_END_ALLOW_THREADS
    free(memory);
    PyBuffer_Release(&numbers);
    release(views, 8);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"sums", sums, METH_VARARGS, "Sum scores times numbers in many nodes."},
                                {NULL, NULL, 0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_sums", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__sums(void) { return PyModule_Create(&module); }
