/* The minimum of a quadratic function of a few coefficients that must not fall below 0. */

#include "newton.h"
#include <math.h>
#include <stddef.h>
#include <string.h>

#define NEGATIVE 1e-10

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
int bounded_step(const double *hessian, const double *gradient, const double *gamma, int q, double *d)
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

