/* Paths of the lasso by coordinate descent on Gram matrices, for several problems at once.
 *
 * Each problem minimizes b' G b / 2 - c' b + penalty |b|, with G the mean products of the columns and c those with the
 * target, for decreasing penalties; each solution is the start of the next. `_regress/gram.py` has the same in
 * NumPy, which is the reference and the fallback.
 */

#include "buffers.h"
#include <math.h>

#define MAX_SWEEPS 1000

/* One sweep of coordinate descent over all columns, or those with a nonzero coefficient. Returns the largest decrease of
 * the objective by one coordinate, times 2. */
static double sweep(const double *gram, Py_ssize_t p, double penalty, double *coef, double *gradient, int active_only)
{
    double largest = 0.0;
    for (Py_ssize_t j = 0; j < p; j++) {
        const double *row = gram + j * p;
        const double diagonal = row[j], old = coef[j];
        if ((active_only && old == 0.0) || diagonal <= 0.0)
            continue;
        const double unpenalized = gradient[j] + diagonal * old;
        const double excess = fabs(unpenalized) - penalty;
        const double new = excess > 0.0 ? copysign(excess / diagonal, unpenalized) : 0.0;
        const double step = new - old;
        if (step == 0.0)
            continue;
        coef[j] = new;
        for (Py_ssize_t k = 0; k < p; k++)
            gradient[k] -= step * row[k];
        const double decrease = step * step * diagonal;
        if (decrease > largest)
            largest = decrease;
    }
    return largest;
}

/* Coefficients for one penalty, from those in `coef`. Returns whether they converged. */
static int descend(const double *gram, Py_ssize_t p, double penalty, double tolerance, double *coef, double *gradient)
{
    for (int n = 0; n < MAX_SWEEPS; n++) {
        if (sweep(gram, p, penalty, coef, gradient, 0) <= tolerance)
            return 1;
        for (int inner = 0; inner < MAX_SWEEPS; inner++)
            if (sweep(gram, p, penalty, coef, gradient, 1) <= tolerance)
                break;
    }
    return 0;
}

/* One problem: coefficients for all penalties. Returns for how many they did not converge. */
static Py_ssize_t follow_path(const double *gram, const double *with_target, Py_ssize_t p, const double *penalties,
                              Py_ssize_t n_penalties, double tolerance, double *out, double *gradient)
{
    Py_ssize_t failures = 0;
    double *coef = out;
    memcpy(gradient, with_target, sizeof(double) * (size_t)p);
    memset(coef, 0, sizeof(double) * (size_t)p);
    for (Py_ssize_t at = 0; at < n_penalties; at++) {
        if (at) {
            memcpy(out + at * p, coef, sizeof(double) * (size_t)p);
            coef = out + at * p;
        }
        failures += !descend(gram, p, penalties[at], tolerance, coef, gradient);
    }
    return failures;
}

/* paths(gram, with_target, penalties, out, problems, p, n_penalties, tolerance): writes to out, and returns for how many
 * problems and penalties the coefficients did not converge. */
static PyObject *paths(PyObject *self, PyObject *args)
{
    PyObject *objects[4];
    Py_buffer views[4];
    Py_ssize_t problems, p, n_penalties, failures = 0;
    double tolerance;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOnnnd", &objects[0], &objects[1], &objects[2], &objects[3], &problems, &p,
                          &n_penalties, &tolerance))
        return NULL;
    const ArraySpec specs[4] = {{"gram", FLOAT64, READ, product(problems, product(p, p))},
                                {"with_target", FLOAT64, READ, product(problems, p)},
                                {"penalties", FLOAT64, READ, n_penalties},
                                {"out", FLOAT64, WRITE, product(problems, product(n_penalties, p))}};
    if (acquire_buffers(objects, views, specs, 4))
        return NULL;
    double *gradient = malloc(sizeof(double) * (size_t)(p + 1));
    if (!gradient) {
        release_buffers(views, 4);
        return PyErr_NoMemory();
    }
    const double *gram = views[0].buf, *with_target = views[1].buf, *penalties = views[2].buf;
    double *out = views[3].buf;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t k = 0; n_penalties && k < problems; k++)
        failures += follow_path(gram + k * p * p, with_target + k * p, p, penalties, n_penalties, tolerance,
                                out + k * n_penalties * p, gradient);
    Py_END_ALLOW_THREADS
    free(gradient);
    release_buffers(views, 4);
    return PyLong_FromSsize_t(failures);
}

static PyMethodDef methods[] = {{"paths", paths, METH_VARARGS, "Lasso coefficients for decreasing penalties."},
                                {NULL, NULL, 0, NULL}};

KERNEL_MODULE(_lasso_path, methods)
