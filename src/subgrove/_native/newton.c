/* The minimum of a quadratic function of a few coefficients with lower bounds of 0. */

#include "newton.h"
#include <math.h>
#include <stddef.h>
#include <string.h>

#define DUAL_TOLERANCE 1e-10 /* multipliers below it count as 0 */
#define MAX_ITERATIONS 60    /* of the active set method, times the number of coefficients */

/* Solve the symmetric positive definite system of the coordinates in `index`, by Cholesky. Returns 0 on success. */
static int solve_subset(const double *a, int q, const int *index, int count, const double *b, double *x)
{
    double l[MAX_COEF * MAX_COEF], y[MAX_COEF];
    for (int i = 0; i < count; i++) {
        for (int j = 0; j <= i; j++) {
            double s = a[index[i] * q + index[j]];
            for (int k = 0; k < j; k++)
                s -= l[i * MAX_COEF + k] * l[j * MAX_COEF + k];
            if (i == j) {
                if (!(s > 0.0))
                    return -1;
                l[i * MAX_COEF + i] = sqrt(s);
            } else
                l[i * MAX_COEF + j] = s / l[j * MAX_COEF + j];
        }
    }
    for (int i = 0; i < count; i++) {
        double s = b[index[i]];
        for (int k = 0; k < i; k++)
            s -= l[i * MAX_COEF + k] * y[k];
        y[i] = s / l[i * MAX_COEF + i];
    }
    for (int i = count - 1; i >= 0; i--) {
        double s = y[i];
        for (int k = i + 1; k < count; k++)
            s -= l[k * MAX_COEF + i] * x[index[k]];
        x[index[i]] = s / l[i * MAX_COEF + i];
    }
    return 0;
}

/* Step d to the minimum of g'd + d'Hd/2 with gamma + d >= 0: an active set method that starts at
 * the current point and lowers the model in every iteration (Lawson and Hanson 1974). Returns 0 on success, -1 where the
 * Hessian is not positive definite or the active set does not settle. */
int bounded_step(const double *hessian, const double *gradient, const double *gamma, int q, double *d)
{
    /* In terms of d and not of gamma + d, whose digits would be lost where the model is flat. */
    double rhs[MAX_COEF], x[MAX_COEF], target[MAX_COEF];
    int is_free[MAX_COEF], index[MAX_COEF];
    for (int i = 0; i < q; i++) {
        x[i] = 0.0;
        is_free[i] = gamma[i] > 0.0;
    }
    for (int iteration = 0; iteration < MAX_ITERATIONS * q; iteration++) {
        int count = 0;
        for (int i = 0; i < q; i++)
            if (is_free[i])
                index[count++] = i;
            else
                target[i] = -gamma[i];
        for (int i = 0; i < q; i++) {
            rhs[i] = -gradient[i];
            for (int j = 0; j < q; j++)
                if (!is_free[j])
                    rhs[i] += hessian[i * q + j] * gamma[j];
        }
        if (solve_subset(hessian, q, index, count, rhs, target))
            return -1;
        double length = 1.0;
        int blocking = -1;
        for (int i = 0; i < q; i++)
            if (is_free[i] && gamma[i] + target[i] <= 0.0) {
                double slack = gamma[i] + x[i], t = slack > 0.0 ? slack / (x[i] - target[i]) : 0.0;
                if (t < length || blocking < 0) {
                    length = t;
                    blocking = i;
                }
            }
        for (int i = 0; i < q; i++)
            x[i] += length * (target[i] - x[i]);
        if (blocking >= 0) {
            is_free[blocking] = 0;
            x[blocking] = -gamma[blocking];
            continue;
        }
        /* At the minimum over the free coordinates: release the bound with the largest multiplier, if one is above 0. */
        int released = -1;
        double largest = DUAL_TOLERANCE;
        for (int i = 0; i < q; i++)
            if (!is_free[i]) {
                double multiplier = gradient[i];
                for (int j = 0; j < q; j++)
                    multiplier += hessian[i * q + j] * x[j];
                multiplier /= -sqrt(hessian[i * q + i]);
                if (multiplier > largest) {
                    largest = multiplier;
                    released = i;
                }
            }
        if (released < 0) {
            memcpy(d, x, sizeof(double) * (size_t)q);
            return 0;
        }
        is_free[released] = 1;
    }
    return -1;
}
