/* Paths of the lasso, compiled: coordinate descent on products of columns, for several tables at once.
 *
 * Each problem is: least of b' G b / 2 - c' b + penalty |b|, with G the mean products of the columns and c those with
 * the target, for falling penalties, each starting where the last one ended. The Python code in `path.py` is the
 * reference, and runs wherever this file could not be compiled; `tests/shift/test_path.py` holds the two together.
 */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* No two operations are fused: all processors give the same numbers. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif

#define MOST_SWEEPS 1000

/* One sweep over columns, all or those in use; gives the largest gain of a step. */
static double sweep(const double *products, Py_ssize_t p, double penalty, double *b, double *slope, int used_only)
{
    double largest = 0.0;
    for (Py_ssize_t j = 0; j < p; j++) {
        const double *row = products + j * p;
        const double own = row[j], old = b[j];
        if ((used_only && old == 0.0) || own <= 0.0)
            continue;
        const double pull = slope[j] + own * old;
        const double left = fabs(pull) - penalty;
        const double new = left > 0.0 ? copysign(left / own, pull) : 0.0;
        const double step = new - old;
        if (step == 0.0)
            continue;
        b[j] = new;
        for (Py_ssize_t k = 0; k < p; k++)
            slope[k] -= step * row[k];
        const double gain = step * step * own;
        if (gain > largest)
            largest = gain;
    }
    return largest;
}

static void follow(const double *products, const double *with_target, Py_ssize_t p, const double *penalties,
                   Py_ssize_t steps, double enough, double *out, double *slope)
{
    double *b = out;
    memcpy(slope, with_target, sizeof(double) * (size_t)p);
    memset(b, 0, sizeof(double) * (size_t)p);
    for (Py_ssize_t at = 0; at < steps; at++) {
        if (at) {
            memcpy(out + at * p, b, sizeof(double) * (size_t)p);
            b = out + at * p;
        }
        for (int n = 0; n < MOST_SWEEPS; n++) {
            if (sweep(products, p, penalties[at], b, slope, 0) <= enough)
                break;
            for (int inner = 0; inner < MOST_SWEEPS; inner++)
                if (sweep(products, p, penalties[at], b, slope, 1) <= enough)
                    break;
        }
    }
}

static PyObject *paths(PyObject *self, PyObject *args)
{
    PyObject *objects[4];
    Py_buffer views[4];
    Py_ssize_t problems, p, steps;
    double enough;
    int held = 0;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOnnnd", &objects[0], &objects[1], &objects[2], &objects[3], &problems, &p, &steps,
                          &enough))
        return NULL;
    const Py_ssize_t items[4] = {problems * p * p, problems * p, steps, problems * steps * p};
    double *slope = malloc(sizeof(double) * (size_t)p + 1);
    if (!slope)
        return PyErr_NoMemory();
    for (; held < 4; held++) {
        if (PyObject_GetBuffer(objects[held], &views[held], PyBUF_C_CONTIGUOUS | (held == 3 ? PyBUF_WRITABLE : 0)))
            break;
        if (views[held].len != items[held] * (Py_ssize_t)sizeof(double)) {
            PyErr_SetString(PyExc_ValueError, "an array has the wrong size");
            held++;
            break;
        }
    }
    if (!PyErr_Occurred()) {
        const double *products = views[0].buf, *with_target = views[1].buf, *penalties = views[2].buf;
        double *out = views[3].buf;
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t k = 0; k < problems; k++)
            follow(products + k * p * p, with_target + k * p, p, penalties, steps, enough, out + k * steps * p, slope);
        Py_END_ALLOW_THREADS
    }
    while (held--)
        PyBuffer_Release(&views[held]);
    free(slope);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"paths", paths, METH_VARARGS, "Follow the lasso over falling penalties."},
                                {NULL, NULL, 0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_path", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__path(void) { return PyModule_Create(&module); }
