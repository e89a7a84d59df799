/* What the fit of a node asks of the rest: the step of Newton's method under the constraints. */

#ifndef SUBGROVE_NEWTON_H
#define SUBGROVE_NEWTON_H

#define MOST 33           /* most coefficients: order + 1 */

/* Step d to the minimum of g'd + d'Hd/2 with gamma + d >= 0. Returns 0 on success. */
int bounded_step(const double *hessian, const double *gradient, const double *gamma, int q, double *d);

#endif
