/* Sums over the rows of many nodes: scores times the numbers of every candidate column, and squares of these numbers.
 *
 * That is a matrix product of the scores with rows that would have to be gathered first, column by column. Here a number
 * is taken from where it lies when it is multiplied, so nothing is copied, and a column's sums are formed in the same order
 * whatever columns stand beside it: a tree is the same, to the last digit, whether it grows alone or beside others.
 * `association.py` has the same in NumPy, which runs wherever this file could not be compiled.
 */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include "_loops/buffers.h"
#include "_loops/numbers.h"

#define MOST_LANES 4 /* lines that are worked on at once */

sum_function sum_node_plain;
#if defined(__GNUC__) && defined(__x86_64__)
sum_function sum_node_wide;
#else
#define sum_node_wide sum_node_plain
#endif

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
    int width = (lines + MOST_LANES - 1) / MOST_LANES * MOST_LANES;
    void *memory = NULL;
    double *packed = fits ? room_for((size_t)((CHUNK + count) * width), &memory) : NULL;
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
    sum_function *sum_node = has_wide() ? sum_node_wide : sum_node_plain;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t k = 0; k < nodes; k++)
        sum_node(&x, rows + k * m, stacked + k * lines * m, (size_t)m, (ptrdiff_t)sizes[k], lines, packed,
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
