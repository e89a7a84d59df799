/* The two inner loops of growing a transformation tree, compiled: the exact fit of the density likelihood in many nodes
 * (`fit`: what `likelihood.Density` and `newton.maximise` do) and the search of the best cut in sorted rows (`scan`:
 * what `cuts.cut_numbers` does).
 *
 * The NumPy code is the reference, and runs wherever this file could not be compiled; `tests/trees/test_compiled.py`
 * holds the two together. Coefficients are steps gamma, the first free and the others >= 0; see `newton.py` for the
 * method. Here each node is a loop over its rows, so that a small node costs microseconds. The mean of h in a node is 0
 * at the maximum whatever the other steps are, so only these are sought, with what h gains by each step centred.
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
#define TIE 1e-10         /* statistics that differ by less are equal */

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

/* Step d to the minimum of g'd + d'Hd/2 with gamma + d >= 0: an active set method that starts at
 * the current point and lowers the model in every turn (Lawson and Hanson 1974). Returns 0 on success. */
static int bounded_step(const double *hessian, const double *gradient, const double *gamma, int q, double *d)
{
    /* In terms of d and not of gamma + d, whose digits would be lost where the model is flat. */
    double pull[MOST], x[MOST], target[MOST];
    int free_[MOST], index[MOST];
    for (int i = 0; i < q; i++) {
        x[i] = 0.0;
        free_[i] = gamma[i] > 0.0;
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
        for (int i = 0; i < q; i++)
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
        for (int i = 0; i < q; i++)
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

/* What h gains by each step at a row: sums of the basis from each polynomial on, without the first, which is 1. */
static inline void gains(double u, const int p, const double *slope, double *gain)
{
    double lower[MOST], values[MOST];
    for (int k = 0; k < p; k++)
        lower[k] = slope[k] / p;
    raise_order(u, p, lower, values);
    double total = 0.0;
    for (int k = p; k > 0; k--) {
        total += values[k];
        gain[k - 1] = total;
    }
}

/* One node. `u` and `roots` have m rows; `gamma` holds the start and then the maximum. Returns whether it was reached. */
static int fit_node(const double *u, const double *roots, size_t m, int p, const double *binomial, double *gamma,
                    double *log_likelihood, double *scores, size_t stride, double *slope, double *inverse)
{
    double quadratic[MOST * MOST] = {0}, means[MOST] = {0}, gain[MOST], *steps = gamma + 1, n = 0.0, variance = 0.0;
    int done = 0;
    *log_likelihood = NAN;
    for (size_t i = 0; i < m; i++) {
        double v = u[i] < 0.0 ? 0.0 : u[i] > 1.0 ? 1.0 : u[i], w = roots ? roots[i] * roots[i] : 1.0;
        bernstein(v, p - 1, binomial, slope + i * p);
        for (int k = 0; k < p; k++)
            slope[i * p + k] *= p;
        gains(v, p, slope + i * p, gain);
        n += w;
        for (int k = 0; k < p; k++)
            means[k] += w * gain[k];
    }
    for (int k = 0; k < p; k++)
        means[k] /= n;
    for (size_t i = 0; i < m; i++) {
        double v = u[i] < 0.0 ? 0.0 : u[i] > 1.0 ? 1.0 : u[i], w = roots ? roots[i] * roots[i] : 1.0;
        gains(v, p, slope + i * p, gain);
        for (int k = 0; k < p; k++)
            gain[k] -= means[k];
        for (int k = 0; k < p; k++)
            for (int l = k; l < p; l++)
                quadratic[k * p + l] += w * gain[k] * gain[l];
    }
    for (int k = 0; k < p; k++)
        for (int l = 0; l < k; l++)
            quadratic[k * p + l] = quadratic[l * p + k];
    /* The best start among a + b h: h stretched to variance 1. */
    for (int k = 0; k < p; k++)
        for (int l = 0; l < p; l++)
            variance += steps[k] * quadratic[k * p + l] * steps[l] / n;
    if (variance > 0.0)
        for (int k = 0; k < p; k++)
            steps[k] /= sqrt(variance);
    for (int step = 0; step < MAX_STEPS && !done; step++) {
        double gradient[MOST] = {0}, hessian[MOST * MOST] = {0}, d[MOST], decrement = 0.0, shrinkage = SHRINKAGE;
        if (p == 5)
            slope_terms(slope, roots, m, 5, steps, gradient, hessian, inverse);
        else
            slope_terms(slope, roots, m, p, steps, gradient, hessian, inverse);
        for (int k = 0; k < p; k++) {
            for (int l = 0; l < k; l++)
                hessian[k * p + l] = hessian[l * p + k];
            for (int l = k; l < p; l++)
                hessian[k * p + l] += quadratic[k * p + l];
            for (int l = 0; l < p; l++)
                gradient[k] += quadratic[k * p + l] * steps[l];
            hessian[k * p + k] *= 1.0 + RIDGE;
        }
        if (bounded_step(hessian, gradient, steps, p, d))
            return 0;
        for (int k = 0; k < p; k++)
            for (int l = 0; l < p; l++)
                decrement += d[k] * hessian[k * p + l] * d[l];
        for (size_t i = 0; i < m; i++) {
            double change = 0.0;
            for (int k = 0; k < p; k++)
                change -= slope[i * p + k] * d[k];
            change *= inverse[i];
            if (change > shrinkage && (!roots || roots[i] > 0.0))
                shrinkage = change;
        }
        double length = SHRINKAGE / shrinkage;
        for (int k = 0; k < p; k++)
            steps[k] += length * d[k];
        done = decrement <= DECREMENT && length >= 1.0;
    }
    double total = 0.0;
    gamma[0] = 0.0;
    for (int k = 0; k < p; k++)
        gamma[0] -= steps[k] * means[k];
    for (size_t i = 0; i < m; i++) {
        double v = u[i] < 0.0 ? 0.0 : u[i] > 1.0 ? 1.0 : u[i], h = 0.0, rise = 0.0, w = roots ? roots[i] : 1.0;
        const double *b = slope + i * p;
        gains(v, p, b, gain);
        for (int k = 0; k < p; k++) {
            h += (gain[k] - means[k]) * steps[k];
            rise += b[k] * steps[k];
        }
        total += w * w * (log(rise) - h * h / 2);
        double r = w / rise;
        h *= w;
        for (int k = 0; k <= p; k++) {
            double value = (k ? gain[k - 1] : 1.0) - (k < p ? gain[k] : 0.0);
            scores[k * stride + i] = -value * h + ((k ? b[k - 1] : 0.0) - (k < p ? b[k] : 0.0)) * r;
        }
    }
    *log_likelihood = total;
    return done && isfinite(total);
}

static void release(Py_buffer *views, int count)
{
    for (int i = 0; i < count; i++)
        if (views[i].obj)
            PyBuffer_Release(&views[i]);
}

/* Buffers of arrays of doubles (or 64-bit integers) of given sizes, those from `written` on to be written to; None gives
 * a null pointer. Returns 0, or -1 with an exception and nothing held. */
static int hold(PyObject **objects, Py_buffer *views, int count, int written, const Py_ssize_t *items)
{
    for (int i = 0; i < count; i++) {
        int flags = PyBUF_C_CONTIGUOUS | (i >= written ? PyBUF_WRITABLE : 0);
        views[i].obj = NULL;
        views[i].buf = NULL;
        if (objects[i] == Py_None)
            continue;
        if (PyObject_GetBuffer(objects[i], &views[i], flags)) {
            release(views, i);
            return -1;
        }
        if (views[i].len != items[i] * (Py_ssize_t)sizeof(double)) {
            release(views, i + 1);
            PyErr_SetString(PyExc_ValueError, "an array has the wrong size");
            return -1;
        }
    }
    return 0;
}

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
    double *slope = malloc(sizeof(double) * (size_t)(m * (p + 1)) + 1);
    if (!slope) {
        release(views, 7);
        return PyErr_NoMemory();
    }
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
        if (done[k] == 0.0)
            memset(own, 0, sizeof(double) * (size_t)(m * (p + 1)));
    }
    Py_END_ALLOW_THREADS
    free(slope);
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
