/* The two inner loops of growing a transformation tree: the exact fit of the density likelihood in many nodes (`fit`; its
 * loops are in `tree_fit_loops.h`) and the search for the best cut of sorted rows (`scan`).
 *
 * `trees/target_scores.py` and `trees/split_points.py` have the same in NumPy, which is the reference and the fallback;
 * `tests/trees/test_compiled.py` compares the two.
 */

#include "buffers.h"
#include "newton.h"
#include "simd.h"

#define TIE 1e-10 /* statistics that differ by less, relatively, are equal */

/* One node: u and roots have m rows; gamma holds the start and then the maximum. Returns whether it converged. */
typedef int fit_function(const double *u, const double *roots, size_t m, int p, const double *binomial, double *gamma,
                         double *log_likelihood, double *scores, size_t stride, double *packed);
fit_function fit_node_plain;
#if defined(__GNUC__) && defined(__x86_64__)
fit_function fit_node_wide;
#else
#define fit_node_wide fit_node_plain
#endif

/* fit(u, roots or None, sizes, order, nodes, m, gamma, log_likelihood, scores, converged): the last four are written to.
 * `converged` is 0 for nodes whose fit failed or did not converge; their scores are 0. */
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
    if (p < 1 || p >= MAX_COEF) {
        PyErr_Format(PyExc_ValueError, "order must be from 1 to %d; got %d.", MAX_COEF - 1, p);
        return NULL;
    }
    const Py_ssize_t coefficients = product(nodes, p + 1);
    const ArraySpec specs[7] = {{"u", FLOAT64, READ, product(nodes, m)},
                                {"roots", FLOAT64, READ_OR_NONE, product(nodes, m)},
                                {"sizes", FLOAT64, READ, nodes},
                                {"gamma", FLOAT64, WRITE, coefficients},
                                {"log_likelihood", FLOAT64, WRITE, nodes},
                                {"scores", FLOAT64, WRITE, product(coefficients, m)},
                                {"converged", FLOAT64, WRITE, nodes}};
    if (acquire_buffers(objects, views, specs, 7))
        return NULL;
    void *memory = NULL;
    const double *u = views[0].buf, *roots = views[1].buf, *sizes = views[2].buf;
    double *gamma = views[3].buf, *likelihood = views[4].buf, *scores = views[5].buf, *converged = views[6].buf;
    if (check_sizes(sizes, nodes, m)) {
        release_buffers(views, 7);
        return NULL;
    }
    double *packed = allocate_aligned((size_t)(m + MAX_LANES) * (size_t)(p + 2), &memory);
    if (!packed) {
        release_buffers(views, 7);
        return PyErr_NoMemory();
    }
    fit_function *fit_node = has_avx2_and_fma() ? fit_node_wide : fit_node_plain;
    double binomial[MAX_COEF];
    binomial[0] = 1.0;
    for (int k = 1; k < p; k++)
        binomial[k] = binomial[k - 1] * (p - k) / k;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t k = 0; k < nodes; k++) {
        size_t size = (size_t)sizes[k];
        double *own = scores + k * (p + 1) * m;
        for (int j = 0; j <= p; j++)
            memset(own + j * m + size, 0, sizeof(double) * ((size_t)m - size));
        converged[k] = fit_node(u + k * m, roots ? roots + k * m : NULL, size, p, binomial, gamma + k * (p + 1),
                                likelihood + k, own, (size_t)m, packed);
        if (converged[k] == 0.0)
            memset(own, 0, sizeof(double) * (size_t)(m * (p + 1)));
    }
    Py_END_ALLOW_THREADS
    free(memory);
    release_buffers(views, 7);
    Py_RETURN_NONE;
}

/* Best cut of one node whose rows come in ascending order of their values; -1 where none is admissible. */
static Py_ssize_t scan_node(const int64_t *order, const double *values, const double *stacked, size_t m, size_t size,
                            int q, double n, double min_weight, double *best)
{
    double sums[MAX_COEF] = {0}, left = 0.0;
    Py_ssize_t at = -1;
    *best = -1.0;
    for (size_t i = 0; i + 1 < size; i++) {
        size_t row = (size_t)order[i];
        double square = 0.0;
        for (int k = 0; k < q; k++)
            sums[k] += stacked[k * m + row];
        left += stacked[q * m + row];
        if (!(values[row] < values[order[i + 1]]) || left < min_weight)
            continue;
        if (n - left < min_weight)
            break;
        for (int k = 0; k < q; k++)
            square += sums[k] * sums[k];
        double statistic = square * (n - 1.0) / (left * (n - left));
        /* The first of equal statistics is selected, whatever the rounding errors. */
        if (statistic > *best * (1.0 + TIE) || at < 0) {
            *best = statistic;
            at = (Py_ssize_t)i;
        }
    }
    return at;
}

/* scan(order, values, stacked, sizes, n, min_weight, q, nodes, m, best, at): the last two are written to. */
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
    if (q < 1 || q >= MAX_COEF) {
        PyErr_Format(PyExc_ValueError, "q, the number of scores, must be from 1 to %d; got %d.", MAX_COEF - 1, q);
        return NULL;
    }
    const ArraySpec specs[8] = {{"order", INT64, READ, product(nodes, m)},
                                {"values", FLOAT64, READ, product(nodes, m)},
                                {"stacked", FLOAT64, READ, product(nodes, product(q + 1, m))},
                                {"sizes", FLOAT64, READ, nodes},
                                {"n", FLOAT64, READ, nodes},
                                {"min_weight", FLOAT64, READ, nodes},
                                {"best", FLOAT64, WRITE, nodes},
                                {"at", FLOAT64, WRITE, nodes}};
    if (acquire_buffers(objects, views, specs, 8))
        return NULL;
    const int64_t *order = views[0].buf;
    const double *values = views[1].buf, *stacked = views[2].buf, *sizes = views[3].buf, *n = views[4].buf;
    const double *min_weight = views[5].buf;
    double *best = views[6].buf, *at = views[7].buf;
    if (check_sizes(sizes, nodes, m) || check_node_indices(order, sizes, nodes, m, m, "order")) {
        release_buffers(views, 8);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t k = 0; k < nodes; k++)
        at[k] = (double)scan_node(order + k * m, values + k * m, stacked + k * (q + 1) * m, (size_t)m,
                                  (size_t)sizes[k], q, n[k], min_weight[k], best + k);
    Py_END_ALLOW_THREADS
    release_buffers(views, 8);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"fit", fit, METH_VARARGS, "Fit the density likelihood in many nodes."},
                                {"scan", scan, METH_VARARGS, "Find the best cut of many nodes in sorted rows."},
                                {NULL, NULL, 0, NULL}};

KERNEL_MODULE(_tree_fit, methods)
