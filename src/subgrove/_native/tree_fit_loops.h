/* The exact fit of the density likelihood in one node; `trees/likelihood.py` and `trees/newton.py` are the reference.
 *
 * Coefficients are increments gamma, the first free and the others >= 0; see `newton.py` for the method. At the maximum
 * the mean of h in a node is 0 for any values of the other increments, so only these are optimized, with the basis of h
 * centred.
 */

#include "simd.h"
#include "newton.h"
#include <math.h>

#define RIDGE 1e-12       /* added to the diagonal of the Hessian, relative to it */
#define DECREMENT 1e-10   /* squared Newton decrement after which the step just taken was the last one needed */
#define SHRINKAGE 0.6     /* largest relative decrease of a slope in one step */
#define MAX_STEPS 200

/* Bernstein polynomials of order p at u: b[0..p]. */
FORCE_INLINE void bernstein(lanes u, const int p, const double *binomial, lanes *b)
{
    lanes power = zero + 1.0, rest = 1.0 - u;
    for (int k = 0; k <= p; k++) {
        b[k] = binomial[k] * power;
        power *= u;
    }
    power = zero + 1.0;
    for (int k = p; k >= 0; k--) {
        b[k] *= power;
        power *= rest;
    }
}

/* Derivative of h with respect to each increment: sums of its basis from each polynomial on, without the first, which is
 * 1. By the basis b of the order below, the sum from the k-th on is b[k] + b[k + 1] + ... and u b[k - 1]. */
FORCE_INLINE void gains(lanes u, const int p, const lanes *b, lanes *gain)
{
    lanes tail = zero;
    for (int k = p - 1; k >= 0; k--) {
        gain[k] = tail + u * b[k];
        tail += b[k];
    }
}

/* Rows of a node in lanes: for each block of rows u within [0, 1], square roots of weights, and the Bernstein basis of the
 * order below. Padding rows of the last block have a weight of 0. */
FORCE_INLINE void pack(const double *u, const double *roots, size_t m, const int p, const double *binomial, lanes *packed)
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

/* Mean of the derivatives of h, and n times their covariance, both triangles. Returns n. */
FORCE_INLINE double moments(const lanes *packed, size_t blocks, const int p, double *means, double *quadratic)
{
    lanes gain[MAX_COEF], total[MAX_COEF], n = zero, product[MAX_COEF * MAX_COEF];
    for (int k = 0; k < p; k++)
        total[k] = zero;
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
            product[k * p + l] = zero;
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

/* Slope of h in a block of rows; `rises` are the increments times the order. */
FORCE_INLINE lanes slope_of(const lanes *basis, const int p, const double *rises)
{
    lanes slope = basis[0] * rises[0];
    for (int k = 1; k < p; k++)
        slope += basis[k] * rises[k];
    return slope;
}

/* Gradient and Hessian of -sum log(slope), both triangles. */
FORCE_INLINE void slope_terms(const lanes *packed, size_t blocks, const int p, const double *rises, double *gradient,
                         double *hessian)
{
    lanes first[MAX_COEF], second[MAX_COEF * MAX_COEF], g[MAX_COEF];
    for (int k = 0; k < p; k++) {
        first[k] = zero;
        for (int l = k; l < p; l++)
            second[k * p + l] = zero;
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

/* Step length along a direction for which no slope decreases by more than SHRINKAGE of itself.
 * No slope decreases by a larger share than the increment with the largest decrease, so rows are only visited where that
 * is above SHRINKAGE. */
FORCE_INLINE double step_length(const lanes *packed, size_t blocks, const int p, const double *steps, const double *d)
{
    double rises[MAX_COEF], falls[MAX_COEF], largest = 0.0, one[LANES];
    for (int k = 0; k < p; k++) {
        rises[k] = p * steps[k];
        falls[k] = -p * d[k];
        if (d[k] < 0.0 && !(-d[k] / steps[k] <= largest))
            largest = -d[k] / steps[k];
    }
    if (largest <= SHRINKAGE)
        return 1.0;
    lanes shrinkage = zero + SHRINKAGE;
    const lanes *at = packed;
    for (size_t b = 0; b < blocks; b++, at += p + 2) {
        lanes change = slope_of(at + 2, p, falls) / slope_of(at + 2, p, rises);
        store(at[1], one);
        if (b + 1 == blocks) { /* padding rows are ignored */
            double changes[LANES];
            store(change, changes);
            for (int j = 0; j < LANES; j++)
                changes[j] = one[j] > 0.0 ? changes[j] : 0.0;
            change = load(changes);
        }
        shrinkage = larger(change, shrinkage);
    }
    store(shrinkage, one);
    largest = one[0];
    for (int j = 1; j < LANES; j++)
        largest = one[j] > largest ? one[j] : largest;
    return SHRINKAGE / largest;
}

/* Scores of the rows and their log-likelihood, without its constant. */
FORCE_INLINE double scores_of(const lanes *packed, size_t m, const int p, const double *means, const double *steps,
                         double *scores, size_t stride)
{
    double rises[MAX_COEF], total = 0.0;
    for (int k = 0; k < p; k++)
        rises[k] = p * steps[k];
    const lanes *at = packed;
    for (size_t i = 0; i < m; i += LANES, at += p + 2) {
        lanes gain[MAX_COEF], h = zero, rise = slope_of(at + 2, p, rises), root = at[1], r = p * root / rise;
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
            lanes value = (k ? gain[k - 1] : zero + 1.0) - (k < p ? gain[k] : zero);
            lanes score = ((k ? at[1 + k] : zero) - (k < p ? at[2 + k] : zero)) * r - value * h;
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

/* One node. `u` and `roots` have m rows; `gamma` holds the start and then the maximum. Returns whether it converged. */
FORCE_INLINE int fit_rows(const double *u, const double *roots, size_t m, const int p, const double *binomial, double *gamma,
                     double *log_likelihood, double *scores, size_t stride, lanes *packed)
{
    double quadratic[MAX_COEF * MAX_COEF], means[MAX_COEF], *steps = gamma + 1, variance = 0.0;
    size_t blocks = (m + LANES - 1) / LANES;
    int done = 0;
    *log_likelihood = NAN;
    pack(u, roots, m, p, binomial, packed);
    double n = moments(packed, blocks, p, means, quadratic);
    /* Start from h scaled to variance 1, the best among a + b h. */
    for (int k = 0; k < p; k++)
        for (int l = 0; l < p; l++)
            variance += steps[k] * quadratic[k * p + l] * steps[l] / n;
    if (variance > 0.0)
        for (int k = 0; k < p; k++)
            steps[k] /= sqrt(variance);
    for (int step = 0; step < MAX_STEPS && !done; step++) {
        double gradient[MAX_COEF], hessian[MAX_COEF * MAX_COEF], d[MAX_COEF], rises[MAX_COEF], decrement = 0.0;
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

/* The default order is compiled separately, with its loops unrolled. */
int fit_node(const double *u, const double *roots, size_t m, int p, const double *binomial, double *gamma,
             double *log_likelihood, double *scores, size_t stride, double *packed)
{
    lanes *rows = (lanes *)packed;
    if (p == 5)
        return fit_rows(u, roots, m, 5, binomial, gamma, log_likelihood, scores, stride, rows);
    return fit_rows(u, roots, m, p, binomial, gamma, log_likelihood, scores, stride, rows);
}
