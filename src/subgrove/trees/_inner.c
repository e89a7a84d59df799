/* The two inner loops of growing a transformation tree, compiled: the exact fit of the density likelihood in many nodes
 * (`fit`: what `likelihood.Density` and `newton.maximise` do) and the search of the best cut in sorted rows (`scan`:
 * what `cuts.cut_numbers` does).
 *
 * The NumPy code is the reference, and runs wherever this file could not be compiled; `tests/trees/test_compiled.py`
 * holds the two together. Coefficients are steps gamma, gamma_0 free and the others >= 0; see `newton.py` for the
 * method. Here each node is a loop over its rows, so that a small node costs microseconds.
 */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MOST 33           /* most coefficients: order + 1 */
#define RIDGE 1e-12       /* pull towards the current point, in units of the diagonal */
#define DECREMENT 1e-10   /* squared Newton decrement after which the step just taken was the last one needed */
#define SHRINKAGE 0.6     /* most that a slope may lose of itself in one step */
#define MAX_STEPS 200
#define NEGATIVE 1e-10
#define TIE 1e-12         /* statistics that differ by less are equal */

/* Bernstein polynomials of order p at u: b[0..p]. */
static void bernstein(double u, int p, const double *binomial, double *b)
{
    double power = 1.0;
    for (int k = 0; k <= p; k++) {
        b[k] = binomial[k] * power;
        power *= u;
    }
    power = 1.0;
    for (int k = p; k >= 0; k--) {
        b[k] *= power;
        power *= 1.0 - u;
    }
}

/* Basis of h from that of its slope (without its factor p): each from its two neighbours of the order below. */
static inline void raise_order(double u, const int p, const double *b, double *values)
{
    values[0] = (1.0 - u) * b[0];
    for (int k = 1; k < p; k++)
        values[k] = (1.0 - u) * b[k] + u * b[k - 1];
    values[p] = u * b[p - 1];
}

/* Gradient part and Hessian part of -sum log(slope): over rows, upper triangle only. */
static inline void slope_terms(const double *slope, const double *roots, size_t m, const int p, const double *steps,
                               double *gradient, double *hessian, double *inverse)
{
    for (size_t i = 0; i < m; i++) {
        const double *b = slope + i * p;
        double h = 0.0, g[MOST];
        for (int k = 0; k < p; k++)
            h += b[k] * steps[k];
        double r = 1.0 / h;
        inverse[i] = r;
        double w = roots ? roots[i] : 1.0;
        r *= w;
        for (int k = 0; k < p; k++) {
            g[k] = b[k] * r;
            gradient[k] -= g[k] * w;
        }
        for (int k = 0; k < p; k++)
            for (int l = k; l < p; l++)
                hessian[k * p + l] += g[k] * g[l];
    }
}

/* Solve the symmetric positive definite system of the coordinates in `index`, by Cholesky. Returns 0 on success. */
static int solve_some(const double *a, int q, const int *index, int count, const double *b, double *x)
{
    double l[MOST * MOST], y[MOST];
    for (int i = 0; i < count; i++) {
        for (int j = 0; j <= i; j++) {
            double s = a[index[i] * q + index[j]];
            for (int k = 0; k < j; k++)
                s -= l[i * MOST + k] * l[j * MOST + k];
            if (i == j) {
                if (!(s > 0.0))
                    return -1;
                l[i * MOST + i] = sqrt(s);
            } else
                l[i * MOST + j] = s / l[j * MOST + j];
        }
    }
    for (int i = 0; i < count; i++) {
        double s = b[index[i]];
        for (int k = 0; k < i; k++)
            s -= l[i * MOST + k] * y[k];
        y[i] = s / l[i * MOST + i];
    }
    for (int i = count - 1; i >= 0; i--) {
        double s = y[i];
        for (int k = i + 1; k < count; k++)
            s -= l[k * MOST + i] * x[index[k]];
        x[index[i]] = s / l[i * MOST + i];
    }
    return 0;
}

/* Step d to the minimum of g'd + d'Hd/2 with gamma + d >= 0 but for the first: an active set method that starts at
 * the current point and lowers the model in every turn (Lawson and Hanson 1974). Returns 0 on success. */
static int bounded_step(const double *hessian, const double *gradient, const double *gamma, int q, double *d)
{
    /* In terms of d and not of gamma + d, whose digits would be lost where the model is flat. */
    double pull[MOST], x[MOST], target[MOST];
    int free_[MOST], index[MOST];
    for (int i = 0; i < q; i++) {
        x[i] = 0.0;
        free_[i] = i == 0 || gamma[i] > 0.0;
    }
    for (int turn = 0; turn < 60 * q; turn++) {
        int count = 0;
        for (int i = 0; i < q; i++)
            if (free_[i])
                index[count++] = i;
            else
                target[i] = -gamma[i];
        for (int i = 0; i < q; i++) {
            pull[i] = -gradient[i];
            for (int j = 0; j < q; j++)
                if (!free_[j])
                    pull[i] += hessian[i * q + j] * gamma[j];
        }
        if (solve_some(hessian, q, index, count, pull, target))
            return -1;
        double length = 1.0;
        int blocking = -1;
        for (int i = 1; i < q; i++)
            if (free_[i] && gamma[i] + target[i] <= 0.0) {
                double room = gamma[i] + x[i], t = room > 0.0 ? room / (x[i] - target[i]) : 0.0;
                if (t < length || blocking < 0) {
                    length = t;
                    blocking = i;
                }
            }
        for (int i = 0; i < q; i++)
            x[i] += length * (target[i] - x[i]);
        if (blocking >= 0) {
            free_[blocking] = 0;
            x[blocking] = -gamma[blocking];
            continue;
        }
        /* At the minimum over the free coordinates: is there one at 0 that would rather rise? */
        int rising = -1;
        double most = NEGATIVE;
        for (int i = 1; i < q; i++)
            if (!free_[i]) {
                double slack = gradient[i];
                for (int j = 0; j < q; j++)
                    slack += hessian[i * q + j] * x[j];
                slack /= -sqrt(hessian[i * q + i]);
                if (slack > most) {
                    most = slack;
                    rising = i;
                }
            }
        if (rising < 0)
            break;
        free_[rising] = 1;
    }
    memcpy(d, x, sizeof(double) * (size_t)q);
    return 0;
}

/* h moved and stretched to mean 0 and variance 1 in this node: the best start among a + b h. */
static void restart(const double *quadratic, const double *sums, double n, int q, double *gamma)
{
    double mean = 0.0, square = 0.0;
    for (int i = 0; i < q; i++) {
        mean += gamma[i] * sums[i] / n;
        for (int j = 0; j < q; j++)
            square += gamma[i] * quadratic[i * q + j] * gamma[j] / n;
    }
    double variance = square - mean * mean;
    if (variance > 1e-12 * square) {
        double stretch = 1.0 / sqrt(variance);
        for (int i = 0; i < q; i++)
            gamma[i] *= stretch;
        gamma[0] -= mean * stretch;
    }
}

/* One node. `u` and `roots` have m rows; `gamma` holds the start and then the maximum. Returns whether it was reached. */
static int fit_node(const double *u, const double *roots, size_t m, int p, const double *binomial, double *gamma,
                    double *log_likelihood, double *scores, size_t stride, double *slope, double *inverse)
{
    const int q = p + 1;
    double gram[MOST * MOST] = {0}, sums[MOST] = {0}, quadratic[MOST * MOST], values[MOST], n = 0.0;
    for (size_t i = 0; i < m; i++) {
        double v = u[i] < 0.0 ? 0.0 : u[i] > 1.0 ? 1.0 : u[i];
        double w = roots ? roots[i] * roots[i] : 1.0, *b = slope + i * p;
        bernstein(v, p - 1, binomial, b);
        raise_order(v, p, b, values);
        for (int k = 0; k < q; k++) {
            double weighted = w * values[k];
            sums[k] += weighted;
            for (int l = k; l < q; l++)
                gram[k * q + l] += weighted * values[l];
        }
        n += w;
        for (int k = 0; k < p; k++)
            b[k] *= p;
    }
    for (int k = q - 1; k >= 0; k--) {
        if (k + 1 < q)
            sums[k] += sums[k + 1];
        for (int l = 0; l < k; l++)
            gram[k * q + l] = gram[l * q + k];
    }
    /* From theta to steps: sums of all entries below and to the right. */
    for (int k = q - 1; k >= 0; k--)
        for (int l = q - 1; l >= 0; l--) {
            double s = gram[k * q + l];
            if (k + 1 < q)
                s += quadratic[(k + 1) * q + l];
            if (l + 1 < q)
                s += quadratic[k * q + l + 1];
            if (k + 1 < q && l + 1 < q)
                s -= quadratic[(k + 1) * q + l + 1];
            quadratic[k * q + l] = s;
        }
    restart(quadratic, sums, n, q, gamma);
    int done = 0;
    for (int step = 0; step < MAX_STEPS && !done; step++) {
        double gradient[MOST], hessian[MOST * MOST], part[MOST] = {0}, square[MOST * MOST] = {0}, d[MOST];
        if (p == 5)
            slope_terms(slope, roots, m, 5, gamma + 1, part, square, inverse);
        else
            slope_terms(slope, roots, m, p, gamma + 1, part, square, inverse);
        for (int i = 0; i < q; i++) {
            gradient[i] = i ? part[i - 1] : 0.0;
            for (int j = 0; j < q; j++) {
                gradient[i] += quadratic[i * q + j] * gamma[j];
                double curvature = quadratic[i * q + j];
                if (i && j)
                    curvature += i <= j ? square[(i - 1) * p + j - 1] : square[(j - 1) * p + i - 1];
                hessian[i * q + j] = curvature;
            }
            hessian[i * q + i] *= 1.0 + RIDGE;
        }
        if (bounded_step(hessian, gradient, gamma, q, d))
            return 0;
        double decrement = 0.0, shrinkage = SHRINKAGE;
        for (int i = 0; i < q; i++)
            for (int j = 0; j < q; j++)
                decrement += d[i] * hessian[i * q + j] * d[j];
        for (size_t i = 0; i < m; i++) {
            double change = 0.0;
            for (int k = 0; k < p; k++)
                change -= slope[i * p + k] * d[k + 1];
            change *= inverse[i];
            if (change > shrinkage && (!roots || roots[i] > 0.0))
                shrinkage = change;
        }
        double length = SHRINKAGE / shrinkage;
        for (int i = 0; i < q; i++)
            gamma[i] += length * d[i];
        done = decrement <= DECREMENT && length >= 1.0;
    }
    double total = 0.0, theta[MOST];
    for (int k = 0; k < q; k++)
        theta[k] = gamma[k] + (k ? theta[k - 1] : 0.0);
    for (size_t i = 0; i < m; i++) {
        double v = u[i] < 0.0 ? 0.0 : u[i] > 1.0 ? 1.0 : u[i], h = 0.0, rise = 0.0, w = roots ? roots[i] : 1.0;
        const double *b = slope + i * p;
        double lower[MOST];
        for (int k = 0; k < p; k++) {
            lower[k] = b[k] / p;
            rise += b[k] * gamma[k + 1];
        }
        raise_order(v, p, lower, values);
        for (int k = 0; k < q; k++)
            h += values[k] * theta[k];
        total += w * w * (log(rise) - h * h / 2);
        double r = w / rise;
        h *= w;
        for (int k = 0; k < q; k++)
            scores[k * stride + i] = -values[k] * h + ((k ? b[k - 1] : 0.0) - (k < p ? b[k] : 0.0)) * r;
    }
    *log_likelihood = total;
    return done && isfinite(total);
}

static int get(PyObject *object, Py_buffer *view, int writable, Py_ssize_t items)
{
    if (PyObject_GetBuffer(object, view, PyBUF_C_CONTIGUOUS | (writable ? PyBUF_WRITABLE : 0)))
        return -1;
    if (view->len == items * (Py_ssize_t)sizeof(double))
        return 0;
    PyBuffer_Release(view);
    PyErr_SetString(PyExc_ValueError, "an array has the wrong size");
    return -1;
}

/* fit(u, roots or None, sizes, order, gamma, log_likelihood, scores, done): the last four are written to. */
static PyObject *fit(PyObject *self, PyObject *args)
{
    PyObject *objects[7];
    Py_buffer views[7];
    Py_ssize_t nodes, m;
    int p, held = 0, failed = 0;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOinnOOOO", &objects[0], &objects[1], &objects[2], &p, &nodes, &m, &objects[3],
                          &objects[4], &objects[5], &objects[6]))
        return NULL;
    if (p < 1 || p >= MOST) {
        PyErr_SetString(PyExc_ValueError, "order is out of range");
        return NULL;
    }
    const Py_ssize_t items[7] = {nodes * m, nodes * m, nodes, nodes * (p + 1), nodes, nodes * (p + 1) * m, nodes};
    for (int i = 0; i < 7 && !failed; i++, held++) {
        views[i].obj = NULL;
        views[i].buf = NULL;
        if (i == 1 && objects[i] == Py_None)
            continue;
        if (get(objects[i], &views[i], i > 2, items[i])) {
            failed = 1;
            break;
        }
    }
    double *slope = failed ? NULL : malloc(sizeof(double) * (size_t)(m * (p + 1)));
    if (!failed && !slope) {
        PyErr_NoMemory();
        failed = 1;
    }
    if (!failed) {
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
                               likelihood + k, own, (size_t)m, slope, slope + m * p);
        }
        Py_END_ALLOW_THREADS
    }
    free(slope);
    for (int i = 0; i < held; i++)
        if (views[i].obj)
            PyBuffer_Release(&views[i]);
    if (failed)
        return NULL;
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
    int q, held = 0, failed = 0;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOOOinnOO", &objects[0], &objects[1], &objects[2], &objects[3], &objects[4],
                          &objects[5], &q, &nodes, &m, &objects[6], &objects[7]))
        return NULL;
    if (q < 1 || q >= MOST) {
        PyErr_SetString(PyExc_ValueError, "the number of scores is out of range");
        return NULL;
    }
    const Py_ssize_t items[8] = {nodes * m, nodes * m, nodes * (q + 1) * m, nodes, nodes, nodes, nodes, nodes};
    for (int i = 0; i < 8 && !failed; i++, held++) {
        views[i].obj = NULL;
        if (get(objects[i], &views[i], i > 5, items[i])) {
            failed = 1;
            break;
        }
    }
    if (!failed) {
        const int64_t *order = views[0].buf;
        const double *values = views[1].buf, *stacked = views[2].buf, *sizes = views[3].buf, *n = views[4].buf;
        const double *least = views[5].buf;
        double *best = views[6].buf, *at = views[7].buf;
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t k = 0; k < nodes; k++)
            at[k] = (double)scan_node(order + k * m, values + k * m, stacked + k * (q + 1) * m, (size_t)m,
                                      (size_t)sizes[k], q, n[k], least[k], best + k);
        Py_END_ALLOW_THREADS
    }
    for (int i = 0; i < held; i++)
        if (views[i].obj)
            PyBuffer_Release(&views[i]);
    if (failed)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"fit", fit, METH_VARARGS, "Fit the density likelihood in many nodes."},
                                {"scan", scan, METH_VARARGS, "Find the best cut of many nodes in sorted rows."},
                                {NULL, NULL, 0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_inner", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__inner(void) { return PyModule_Create(&module); }
