/* The two inner loops of growing a transformation tree, compiled: the exact fit of the density likelihood in many nodes
 * (`fit`; its loops are in `_loops/fit.h`) and the search of the best cut in sorted rows (`scan`: what
 * `cuts.cut_numbers` does).
 *
 * The NumPy code is the reference, and runs wherever this file could not be compiled; `tests/trees/test_compiled.py`
 * holds the two together.
 */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include "_loops/buffers.h"
#include "_loops/newton.h"
#include <string.h>

#define MOST_LANES 4 /* rows that are worked on at once */
#define TIE 1e-10    /* statistics that differ by less are equal */

/* One node: u and roots have m rows; gamma holds the start and then the maximum. Returns whether it was reached. */
typedef int fit_function(const double *u, const double *roots, size_t m, int p, const double *binomial, double *gamma,
                         double *log_likelihood, double *scores, size_t stride, double *packed);
fit_function fit_node_plain;
#if defined(__GNUC__) && defined(__x86_64__)
fit_function fit_node_wide;
#else
#define fit_node_wide fit_node_plain
#endif

/* fit(u, roots or None, sizes, order, gamma, log_likelihood, scores, done): the last four are written to. */
static PyObject *fit(PyObject *self, PyObject *args)
{
    PyObject *objects[7];
    Py_buffer views[7];
    Py_ssize_t nodes, m;
    int p;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOinnOOOO", &objects[0], &objects[1], &objects[2], &p, &nodes, &m, &objects[3],
                          &objects[4], &objects[5], &objects[6]))
        return NULL;
    if (p < 1 || p >= MOST) {
        PyErr_SetString(PyExc_ValueError, "order is out of range");
        return NULL;
    }
    const Py_ssize_t items[7] = {nodes * m, nodes * m, nodes, nodes * (p + 1), nodes, nodes * (p + 1) * m, nodes};
    if (hold(objects, views, 7, 3, items))
        return NULL;
    void *memory;
    double *packed = room_for((size_t)(m + MOST_LANES) * (size_t)(p + 2), &memory);
    if (!packed) {
        release(views, 7);
        return PyErr_NoMemory();
    }
    fit_function *fit_node = has_wide() ? fit_node_wide : fit_node_plain;
    double binomial[MOST];
    binomial[0] = 1.0;
    for (int k = 1; k < p; k++)
        binomial[k] = binomial[k - 1] * (p - k) / k;
    const double *u = views[0].buf, *roots = views[1].buf, *sizes = views[2].buf;
    double *gamma = views[3].buf, *likelihood = views[4].buf, *scores = views[5].buf, *done = views[6].buf;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t k = 0; k < nodes; k++) {
        size_t size = (size_t)sizes[k];
        double *own = scores + k * (p + 1) * m;
        for (int j = 0; j <= p; j++)
            memset(own + j * m + size, 0, sizeof(double) * ((size_t)m - size));
        done[k] = fit_node(u + k * m, roots ? roots + k * m : NULL, size, p, binomial, gamma + k * (p + 1),
                           likelihood + k, own, (size_t)m, packed);
        if (done[k] == 0.0)
            memset(own, 0, sizeof(double) * (size_t)(m * (p + 1)));
    }
    Py_END_ALLOW_THREADS
    free(memory);
    release(views, 7);
    Py_RETURN_NONE;
}

/* Best cut of one node whose rows come in ascending order of their values; -1 where none is admissible. */
static Py_ssize_t scan_node(const int64_t *order, const double *values, const double *stacked, size_t m, size_t size,
                            int q, double n, double least, double *best)
{
    double sums[MOST] = {0}, left = 0.0;
    Py_ssize_t at = -1;
    *best = -1.0;
    for (size_t i = 0; i + 1 < size; i++) {
        size_t row = (size_t)order[i];
        double square = 0.0;
        for (int k = 0; k < q; k++)
            sums[k] += stacked[k * m + row];
        left += stacked[q * m + row];
        if (!(values[row] < values[order[i + 1]]) || left < least)
            continue;
        if (n - left < least)
            break;
        for (int k = 0; k < q; k++)
            square += sums[k] * sums[k];
        double statistic = square * (n - 1.0) / (left * (n - left));
        /* The first of equal ones wins; rounding makes none larger. */
        if (statistic > *best * (1.0 + TIE) || at < 0) {
            *best = statistic;
            at = (Py_ssize_t)i;
        }
    }
    return at;
}

/* scan(order, values, stacked, sizes, n, least, q, nodes, m, best, at): the last two are written to. */
static PyObject *scan(PyObject *self, PyObject *args)
{
    PyObject *objects[8];
    Py_buffer views[8];
    Py_ssize_t nodes, m;
    int q;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOOOinnOO", &objects[0], &objects[1], &objects[2], &objects[3], &objects[4],
                          &objects[5], &q, &nodes, &m, &objects[6], &objects[7]))
        return NULL;
    if (q < 1 || q >= MOST) {
        PyErr_SetString(PyExc_ValueError, "the number of scores is out of range");
        return NULL;
    }
    const Py_ssize_t items[8] = {nodes * m, nodes * m, nodes * (q + 1) * m, nodes, nodes, nodes, nodes, nodes};
    if (hold(objects, views, 8, 6, items))
        return NULL;
    const int64_t *order = views[0].buf;
    const double *values = views[1].buf, *stacked = views[2].buf, *sizes = views[3].buf, *n = views[4].buf;
    const double *least = views[5].buf;
    double *best = views[6].buf, *at = views[7].buf;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t k = 0; k < nodes; k++)
        at[k] = (double)scan_node(order + k * m, values + k * m, stacked + k * (q + 1) * m, (size_t)m,
                                  (size_t)sizes[k], q, n[k], least[k], best + k);
    Py_END_ALLOW_THREADS
    release(views, 8);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"fit", fit, METH_VARARGS, "Fit the density likelihood in many nodes."},
                                {"scan", scan, METH_VARARGS, "Find the best cut of many nodes in sorted rows."},
                                {NULL, NULL, 0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_inner", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__inner(void) { return PyModule_Create(&module); }
