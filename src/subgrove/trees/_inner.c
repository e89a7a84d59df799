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
#include "_lanes.h"
#include <math.h>

#define MOST 33           /* most coefficients: order + 1 */
#define RIDGE 1e-12       /* pull towards the current point, in units of the diagonal */
#define DECREMENT 1e-10   /* squared Newton decrement after which the step just taken was the last one needed */
#define SHRINKAGE 0.6     /* most that a slope may lose of itself in one step */
#define MAX_STEPS 200
#define NEGATIVE 1e-10
#define TIE 1e-10         /* statistics that differ by less are equal */

/* Bernstein polynomials of order p at u: b[0..p]. */
INLINED void bernstein(lanes u, const int p, const double *binomial, lanes *b)
{
    lanes power = u * 0.0 + 1.0, rest = 1.0 - u;
    for (int k = 0; k <= p; k++) {
        b[k] = binomial[k] * power;
        power *= u;
    }
    power = u * 0.0 + 1.0;
    for (int k = p; k >= 0; k--) {
        b[k] *= power;
        power *= rest;
    }
}

/* What h gains by each step: sums of its basis from each polynomial on, without the first, which is 1. By the basis b of
 * the order below, the sum from the k-th on is b[k] + b[k + 1] + ... and u b[k - 1]. */
INLINED void gains(lanes u, const int p, const lanes *b, lanes *gain)
{
    lanes tail = u * 0.0;
    for (int k = p - 1; k >= 0; k--) {
        gain[k] = tail + u * b[k];
        tail += b[k];
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

/* Rows of a node in lanes: for each block of rows u within [0, 1], square roots of weights, and the Bernstein basis of the
 * order below. What is missing in the last block has a weight of 0. */
INLINED void pack(const double *u, const double *roots, size_t m, const int p, const double *binomial, lanes *packed)
{
    for (size_t i = 0; i < m; i += LANES, packed += p + 2) {
        double inside[LANES], root[LANES];
        for (size_t j = 0; j < LANES; j++) {
            double v = i + j < m ? u[i + j] : 0.5;
            inside[j] = v < 0.0 ? 0.0 : v > 1.0 ? 1.0 : v;
            root[j] = i + j < m ? (roots ? roots[i + j] : 1.0) : 0.0;
        }
        packed[0] = load(inside);
        packed[1] = load(root);
        bernstein(packed[0], p - 1, binomial, packed + 2);
    }
}

/* Mean of what h gains by each step, and n times its covariance, both triangles. Returns n. */
INLINED double moments(const lanes *packed, size_t blocks, const int p, double *means, double *quadratic)
{
    lanes gain[MOST], total[MOST], n = packed[1] * 0.0, product[MOST * MOST];
    for (int k = 0; k < p; k++)
        total[k] = packed[1] * 0.0;
    const lanes *at = packed;
    for (size_t b = 0; b < blocks; b++, at += p + 2) {
        lanes weight = at[1] * at[1];
        gains(at[0], p, at + 2, gain);
        n += weight;
        for (int k = 0; k < p; k++)
            total[k] += weight * gain[k];
    }
    for (int k = 0; k < p; k++) {
        means[k] = sum_of(total[k]) / sum_of(n);
        for (int l = k; l < p; l++)
            product[k * p + l] = packed[1] * 0.0;
    }
    at = packed;
    for (size_t b = 0; b < blocks; b++, at += p + 2) {
        gains(at[0], p, at + 2, gain);
        for (int k = 0; k < p; k++)
            gain[k] = (gain[k] - means[k]) * at[1];
        for (int k = 0; k < p; k++)
            for (int l = k; l < p; l++)
                product[k * p + l] += gain[k] * gain[l];
    }
    for (int k = 0; k < p; k++)
        for (int l = k; l < p; l++)
            quadratic[k * p + l] = quadratic[l * p + k] = sum_of(product[k * p + l]);
    return sum_of(n);
}

/* Slope of h in a block of rows; `rises` are the steps times the order. */
INLINED lanes slope_of(const lanes *basis, const int p, const double *rises)
{
    lanes slope = basis[0] * rises[0];
    for (int k = 1; k < p; k++)
        slope += basis[k] * rises[k];
    return slope;
}

/* Gradient and Hessian of -sum log(slope), both triangles. */
INLINED void slope_terms(const lanes *packed, size_t blocks, const int p, const double *rises, double *gradient,
                         double *hessian)
{
    lanes first[MOST], second[MOST * MOST], g[MOST];
    for (int k = 0; k < p; k++) {
        first[k] = packed[1] * 0.0;
        for (int l = k; l < p; l++)
            second[k * p + l] = packed[1] * 0.0;
    }
    const lanes *at = packed;
    for (size_t b = 0; b < blocks; b++, at += p + 2) {
        lanes root = at[1], r = p * root / slope_of(at + 2, p, rises);
        for (int k = 0; k < p; k++) {
            g[k] = at[2 + k] * r;
            first[k] -= g[k] * root;
        }
        for (int k = 0; k < p; k++)
            for (int l = k; l < p; l++)
                second[k * p + l] += g[k] * g[l];
    }
    for (int k = 0; k < p; k++) {
        gradient[k] = sum_of(first[k]);
        for (int l = k; l < p; l++)
            hessian[k * p + l] = hessian[l * p + k] = sum_of(second[k * p + l]);
    }
}

/* How far along a direction a node may go so that no slope loses more than SHRINKAGE of itself.
 * No slope loses a larger share than the step that loses most: the rows need to be asked only where that is too much. */
INLINED double step_length(const lanes *packed, size_t blocks, const int p, const double *steps, const double *d)
{
    double rises[MOST], falls[MOST], most = 0.0, one[LANES];
    for (int k = 0; k < p; k++) {
        rises[k] = p * steps[k];
        falls[k] = -p * d[k];
        if (d[k] < 0.0 && !(-d[k] / steps[k] <= most))
            most = -d[k] / steps[k];
    }
    if (most <= SHRINKAGE)
        return 1.0;
    lanes shrinkage = packed[1] * 0.0 + SHRINKAGE;
    const lanes *at = packed;
    for (size_t b = 0; b < blocks; b++, at += p + 2) {
        lanes change = slope_of(at + 2, p, falls) / slope_of(at + 2, p, rises);
        store(at[1], one);
        if (b + 1 == blocks) { /* rows that are not there lose nothing */
            double kept[LANES];
            store(change, kept);
            for (int j = 0; j < LANES; j++)
                kept[j] = one[j] > 0.0 ? kept[j] : 0.0;
            change = load(kept);
        }
        shrinkage = larger(change, shrinkage);
    }
    store(shrinkage, one);
    most = one[0];
    for (int j = 1; j < LANES; j++)
        most = one[j] > most ? one[j] : most;
    return SHRINKAGE / most;
}

/* Scores of the rows and their log-likelihood, without its constant. */
INLINED double scores_of(const lanes *packed, size_t m, const int p, const double *means, const double *steps,
                         double *scores, size_t stride)
{
    double rises[MOST], total = 0.0;
    for (int k = 0; k < p; k++)
        rises[k] = p * steps[k];
    const lanes *at = packed;
    for (size_t i = 0; i < m; i += LANES, at += p + 2) {
        lanes gain[MOST], h = at[1] * 0.0, rise = slope_of(at + 2, p, rises), root = at[1], r = p * root / rise;
        double squares[LANES], slopes[LANES], weights[LANES];
        size_t count = m - i < LANES ? m - i : LANES;
        gains(at[0], p, at + 2, gain);
        for (int k = 0; k < p; k++)
            h += (gain[k] - means[k]) * steps[k];
        store(h * h, squares);
        store(rise, slopes);
        store(root * root, weights);
        for (size_t j = 0; j < count; j++)
            total += weights[j] * (log(slopes[j]) - squares[j] / 2);
        h *= root;
        for (int k = 0; k <= p; k++) {
            lanes value = (k ? gain[k - 1] : 1.0 + 0.0 * h) - (k < p ? gain[k] : 0.0 * h);
            lanes score = ((k ? at[1 + k] : 0.0 * h) - (k < p ? at[2 + k] : 0.0 * h)) * r - value * h;
            if (count == LANES)
                store(score, scores + k * stride + i);
            else {
                double last[LANES];
                store(score, last);
                memcpy(scores + k * stride + i, last, sizeof(double) * count);
            }
        }
    }
    return total;
}

/* One node. `u` and `roots` have m rows; `gamma` holds the start and then the maximum. Returns whether it was reached. */
INLINED int fit_rows(const double *u, const double *roots, size_t m, const int p, const double *binomial, double *gamma,
                     double *log_likelihood, double *scores, size_t stride, lanes *packed)
{
    double quadratic[MOST * MOST], means[MOST], *steps = gamma + 1, variance = 0.0;
    size_t blocks = (m + LANES - 1) / LANES;
    int done = 0;
    *log_likelihood = NAN;
    pack(u, roots, m, p, binomial, packed);
    double n = moments(packed, blocks, p, means, quadratic);
    /* The best start among a + b h: h stretched to variance 1. */
    for (int k = 0; k < p; k++)
        for (int l = 0; l < p; l++)
            variance += steps[k] * quadratic[k * p + l] * steps[l] / n;
    if (variance > 0.0)
        for (int k = 0; k < p; k++)
            steps[k] /= sqrt(variance);
    for (int step = 0; step < MAX_STEPS && !done; step++) {
        double gradient[MOST], hessian[MOST * MOST], d[MOST], rises[MOST], decrement = 0.0;
        for (int k = 0; k < p; k++)
            rises[k] = p * steps[k];
        slope_terms(packed, blocks, p, rises, gradient, hessian);
        for (int k = 0; k < p; k++) {
            for (int l = 0; l < p; l++) {
                hessian[k * p + l] += quadratic[k * p + l];
                gradient[k] += quadratic[k * p + l] * steps[l];
            }
            hessian[k * p + k] *= 1.0 + RIDGE;
        }
        if (bounded_step(hessian, gradient, steps, p, d))
            return 0;
        for (int k = 0; k < p; k++)
            for (int l = 0; l < p; l++)
                decrement += d[k] * hessian[k * p + l] * d[l];
        double length = step_length(packed, blocks, p, steps, d);
        for (int k = 0; k < p; k++)
            steps[k] += length * d[k];
        done = decrement <= DECREMENT && length >= 1.0;
    }
    gamma[0] = 0.0;
    for (int k = 0; k < p; k++)
        gamma[0] -= steps[k] * means[k];
    *log_likelihood = scores_of(packed, m, p, means, steps, scores, stride);
    return done && isfinite(*log_likelihood);
}

typedef int fit_node(const double *, const double *, size_t, int, const double *, double *, double *, double *, size_t,
                     lanes *);

/* The usual order is compiled on its own, with its loops unrolled. */
#define FIT_NODE(name, attributes)                                                                                     \
    attributes static int name(const double *u, const double *roots, size_t m, int p, const double *binomial,          \
                               double *gamma, double *likelihood, double *scores, size_t stride, lanes *packed)        \
    {                                                                                                                  \
        if (p == 5)                                                                                                    \
            return fit_rows(u, roots, m, 5, binomial, gamma, likelihood, scores, stride, packed);                      \
        return fit_rows(u, roots, m, p, binomial, gamma, likelihood, scores, stride, packed);                          \
    }

FIT_NODE(fit_plain, )
FIT_NODE(fit_wide, WIDE)

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
    lanes *packed = room_for((size_t)(m + LANES) / LANES * (size_t)(p + 2), &memory);
    if (!packed) {
        release(views, 7);
        return PyErr_NoMemory();
    }
    fit_node *fit_one = has_wide() ? fit_wide : fit_plain;
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
        done[k] = fit_one(u + k * m, roots ? roots + k * m : NULL, size, p, binomial, gamma + k * (p + 1),
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
