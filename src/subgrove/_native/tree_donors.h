/* Distributions of the values that rows receive, by column: what expectations are taken over.
 *
 * - table: weights of the places of a column in each subgroup, cumulated: (subgroups, places + 2), the last entry being
 *   the weight of the missing value;
 * - pool: sorted keys of the members of each subgroup, all with the same probability. A row receives the place below
 *   the first cut that is not below `base + spread * key`, between the bounds of the row.
 */

#ifndef SUBGROVE_TREE_DONORS_H
#define SUBGROVE_TREE_DONORS_H

#include <stddef.h>
#include <stdint.h>

enum { NO_DONORS, TABLE, POOL };

typedef struct {
    const double *key;
    int64_t size, first; /* first: number of its first key among all keys */
    double low, inverse; /* keys are found by their bucket */
    int32_t *bucket;
    int64_t n_buckets;
} Pool;

typedef struct {
    int64_t n_columns, total, n_keys, n_cumulated;
    const int32_t *n_places;
    const int64_t *start;
    const uint8_t *kind;
    const int64_t *n_groups, *first; /* first: of the table, or of the pools, of a column */
    const double *cumulated, *cut, *bound; /* cut, bound: (total + 1), on the scale of the keys and of the bounds */
    Pool *pool;
    int64_t n_pools;
    int32_t *buckets;
} Donors;

/* Arrays of a block of rows. */
typedef struct {
    int64_t rows;
    const int32_t *group;                      /* (rows, columns) */
    const double *base, *spread, *low, *high;  /* (rows, columns), or null */
    const double *weight;                      /* (rows), or null */
    const int64_t *pointers;                   /* null: all places of all columns, one after the other */
    const int32_t *starts;
    const double *increase, *shift, *missing_increase, *missing_shift;
    double *mean, *mean_shift;                 /* (rows, columns) */
    double *received, *pool_received;          /* like `cumulated` and the keys, or null */
} Block;

typedef void mean_function(const Donors *d, const Block *block);

#endif
