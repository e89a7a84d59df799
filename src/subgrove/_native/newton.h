/* One step of Newton's method for coefficients with lower bounds of 0. */

#ifndef SUBGROVE_NEWTON_H
#define SUBGROVE_NEWTON_H

#define MAX_COEF 33 /* coefficients of a node at most: order + 1 */

/* Step d to the minimum of g'd + d'Hd/2 with gamma + d >= 0. Returns 0 on success, -1 if there is none or
 * the active set does not settle. */
int bounded_step(const double *hessian, const double *gradient, const double *gamma, int q, double *d);

#endif
