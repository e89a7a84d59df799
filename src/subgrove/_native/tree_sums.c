/* Sums over the rows of many nodes: scores times the numbers of every candidate column, and squares of these numbers.
 *
 * That is a matrix product of the scores with rows that would have to be gathered first, column by column. Here each
 * number is read from the table when it is multiplied, so nothing is copied, and the sums of a column are formed in the
 * same order whatever other columns there are: a tree is the same, to the last digit, if it grows alone or with others.
 * `trees/column_tests.py` has the same in NumPy, which is the reference and the fallback.
 */

#include "buffers.h"
#include "simd.h"
#include "tree_sums.h"

sum_function sum_node_plain;
#if defined(__GNUC__) && defined(__x86_64__)
sum_function sum_node_wide;
#else
#define sum_node_wide sum_node_plain
#endif

/* The table may have any strides, so it is held apart from the other arrays. */
static int acquire_table(PyObject *object, Py_buffer *table)
{
    memset(table, 0, sizeof(Py_buffer));
    if (PyObject_GetBuffer(object, table, PyBUF_FORMAT | PyBUF_STRIDES)) {
        PyErr_Clear();
        table->obj = NULL;
        PyErr_SetString(PyExc_TypeError, "numbers must be an array.");
        return -1;
    }
    if (table->ndim != 2 || !has_type(table, FLOAT64)) {
        PyErr_SetString(PyExc_TypeError, "numbers must be a 2-d array of float64.");
        PyBuffer_Release(table);
        return -1;
    }
    return 0;
}

/* sums(numbers, rows, stacked, sizes, columns, scale or None, shift or None, nodes, lines, m, count, out, squares): the
 * last two are written to. */
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
    if (lines < 1 || lines > MAX_LINES) {
        PyErr_Format(PyExc_ValueError, "lines must be from 1 to %d; got %d.", MAX_LINES, lines);
        return NULL;
    }
    if ((objects[4] == Py_None) != (objects[5] == Py_None)) {
        PyErr_SetString(PyExc_ValueError, "scale and shift must both be arrays, or both None.");
        return NULL;
    }
    const ArraySpec specs[8] = {{"rows", INT64, READ, product(nodes, m)},
                                {"stacked", FLOAT64, READ, product(nodes, product(lines, m))},
                                {"sizes", FLOAT64, READ, nodes},
                                {"columns", INT64, READ, count},
                                {"scale", FLOAT64, READ_OR_NONE, count},
                                {"shift", FLOAT64, READ_OR_NONE, count},
                                {"out", FLOAT64, WRITE, product(nodes, product(lines, count))},
                                {"squares", FLOAT64, WRITE, product(nodes, count)}};
    if (acquire_buffers(objects, views, specs, 8))
        return NULL;
    if (acquire_table(table, &numbers)) {
        release_buffers(views, 8);
        return NULL;
    }
    const int64_t *rows = views[0].buf, *columns = views[3].buf;
    const double *stacked = views[1].buf, *sizes = views[2].buf;
    double *out = views[6].buf, *squares = views[7].buf, *packed = NULL;
    const Py_ssize_t width = (lines + MAX_LANES - 1) / MAX_LANES * MAX_LANES;
    void *memory = NULL;
    if (!check_sizes(sizes, nodes, m) && !check_indices(columns, count, numbers.shape[1], "columns") &&
        !check_node_indices(rows, sizes, nodes, m, numbers.shape[0], "rows")) {
        packed = allocate_aligned((size_t)((CHUNK + count) * width), &memory);
        if (!packed)
            PyErr_NoMemory();
    }
    if (packed) {
        const Numbers x = {numbers.buf, numbers.strides[0], numbers.strides[1], columns, views[4].buf, views[5].buf,
                           count};
        sum_function *sum_node = has_avx2_and_fma() ? sum_node_wide : sum_node_plain;
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t k = 0; k < nodes; k++)
            sum_node(&x, rows + k * m, stacked + k * lines * m, (size_t)m, (ptrdiff_t)sizes[k], lines, packed,
                     packed + CHUNK * width, out + k * lines * count, squares + k * count);
        Py_END_ALLOW_THREADS
    }
    free(memory);
    PyBuffer_Release(&numbers);
    release_buffers(views, 8);
    if (!packed)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"sums", sums, METH_VARARGS, "Sum scores times numbers in many nodes."},
                                {NULL, NULL, 0, NULL}};

KERNEL_MODULE(_tree_sums, methods)
