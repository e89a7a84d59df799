/* The best cut of a node of a regression tree, among columns drawn at random.
 *
 * What makes it fast on tables of some thousand rows:
 * - Columns are ranks (0, 1, ... in ascending order of their values; the last number is the rank of missing values), so
 *   rows of a node are sorted as integers: a bit is set for each rank that occurs, and bits are read in their order. Very
 *   few rows are sorted by comparing all with all; sparse ranks by radix sort.
 * - A row that the bootstrap drew three times is one row with weight 3.
 * - Several outputs are summed in one pass: with indicators of classes it is a classification forest, since the decrease
 *   of their summed squares is the decrease of the Gini impurity.
 */

#ifndef SUBGROVE_FOREST_SPLIT_H
#define SUBGROVE_FOREST_SPLIT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FEW_ROWS 32     /* nodes of at most so many rows are sorted by comparing all with all */
#define FEW_ROWS_BITS 5 /* bits of a position among them; with the rank, which is below 2^26, they fill 31 */
#define DENSE 96        /* a column with fewer ranks than this per row of a node is sorted by a bitmap */
#define TIE 1e-10       /* cuts that differ by less, relatively, are equal; the first one is selected */

/* splitmix64 (Steele, Lea and Flood 2014) */
static inline uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

/* A random integer in [0, n). */
static inline uint32_t below(uint64_t *state, uint32_t n)
{
    return (uint32_t)(((next_random(state) >> 32) * (uint64_t)n) >> 32);
}

typedef struct {
    const uint32_t *ranks;   /* p x n: column by column */
    const uint32_t *missing; /* p: the rank of missing values in each column */
    const double *values;    /* distinct values in ascending order, column after column */
    const int64_t *starts;   /* p: where the values of each column start */
    const double *outputs;   /* n x k; with codes k: the output of a class in rows of other classes */
    const int32_t *codes;    /* n: the class of each row, if the outputs are indicators of classes; otherwise null */
    size_t n, p, k;
    size_t n_drawn; /* rows that the bootstrap draws for a tree */
    size_t max_features;
    double min_node_weight;
} Task;

/* Columns of two values of which no row has the larger value in two of a group (`forest_indicators.h`). */
typedef struct {
    uint32_t *group; /* p: number of the group of a column, or NO_GROUP */
    uint16_t *place; /* p: from 1 on within the group */
    uint16_t *which; /* groups x n: place of the column with the larger value; 0 if there is none */
    size_t *sizes;   /* number of columns of a group */
    size_t *starts;  /* where the sums of a group are */
    uint64_t *nodes; /* the node that they are of */
    double *sums;    /* k + 1 per place */
} Indicators;

typedef struct {
    uint32_t *rows;    /* rows of the bootstrap sample; those of a node are contiguous */
    uint32_t *scratch; /* for partitioning them */
    uint32_t *columns; /* a permutation of the columns */
    double *weights;   /* n: how often the bootstrap drew a row */
    double *sums;      /* m x (k + 1): weight times centered outputs of each row of the current node, and the weight */
    uint64_t *keys, *other_keys;
    double *bins;                /* k + 1 per rank */
    uint64_t *bitmap;            /* one bit per rank */
    uint32_t *cut;               /* of the nodes of the current tree */
    uint8_t *any_missing;        /* p: whether a value of the column is missing */
    double *left, *missing_sums; /* k each */
    double *shares;              /* k: of the classes in the current node */
    int32_t *codes;              /* of the rows of the current node */
    uint32_t *heads;             /* first row of each rank */
    uint32_t *stack;             /* (node, first row, number of rows) */
    Indicators indicators;
    uint64_t node; /* number of the nodes that were cut so far */
} Workspace;

/* A cut decreases the sum of squares of a node by weight * square / product, product = left weight * right weight. Cuts
 * are compared without dividing. */
typedef struct {
    double square, product;
    int32_t feature;
    uint32_t low, high;
    uint8_t missing_left, has_missing;
} Cut;

/* A scan through the ranks of a column in ascending order. */
typedef struct {
    double all;    /* weight of the node */
    double weight; /* on the left so far */
    double missing_weight;
    uint32_t last; /* rank of the row before */
    uint32_t missing;
} Scan;

static inline void consider(const double *left, size_t k, double weight, const Scan *scan, uint32_t rank,
                            uint8_t missing_left, Cut *best)
{
    double square = 0.0, product = weight * (scan->all - weight);
    for (size_t j = 0; j < k; j++)
        square += left[j] * left[j];
    if (square * best->product > best->square * product * (1.0 + TIE)) {
        best->square = square, best->product = product;
        best->low = scan->last, best->high = rank;
        best->missing_left = missing_left;
    }
}

static inline uint32_t lowest_bit(uint64_t word)
{
#if defined(__GNUC__) || defined(__clang__)
    return (uint32_t)__builtin_ctzll(word);
#else
    uint32_t at = 0;
    while (!(word >> at & 1))
        at++;
    return at;
#endif
}

/* The cut before a rank, with missing values on the right, where their rank puts them, or on the left. */
static inline void cut_before(double *left, const size_t k, const double *missing_sums, const int has_missing,
                              const Scan *scan, uint32_t rank, Cut *best)
{
    consider(left, k, scan->weight, scan, rank, 0, best);
    if (has_missing && rank != scan->missing) {
        for (size_t j = 0; j < k; j++)
            left[j] += missing_sums[j];
        consider(left, k, scan->weight + scan->missing_weight, scan, rank, 1, best);
        for (size_t j = 0; j < k; j++)
            left[j] -= missing_sums[j];
    }
}

static inline void go_left(double *left, const size_t k, const double *sums, uint32_t rank, Scan *scan)
{
    for (size_t j = 0; j < k; j++)
        left[j] += sums[j];
    scan->weight += sums[k];
    scan->last = rank;
}

/* Radix sort by the ranks in the upper half of the keys, one byte per pass; the result is in `keys`. */
static void radix_sort(uint64_t **keys, uint64_t **other, size_t m, uint32_t largest)
{
    for (int shift = 32; largest; shift += 8, largest >>= 8) {
        uint32_t starts[257] = {0};
        uint64_t *from = *keys, *to = *other;
        for (size_t i = 0; i < m; i++)
            starts[((from[i] >> shift) & 255) + 1]++;
        for (int b = 0; b < 256; b++)
            starts[b + 1] += starts[b];
        for (size_t i = 0; i < m; i++)
            to[starts[(from[i] >> shift) & 255]++] = from[i];
        *keys = to;
        *other = from;
    }
}

typedef struct {
    const uint32_t *ranks; /* of all rows */
    const uint32_t *rows;  /* of the node */
    size_t m;
    uint32_t missing;
} Column;

/* Sums over the rows with a missing value in a column; returns their weight. */
static double sum_missing(Workspace *work, const Column *column, size_t k)
{
    double weight = 0.0;
    memset(work->missing_sums, 0, sizeof(double) * k);
    for (size_t i = 0; i < column->m; i++)
        if (column->ranks[column->rows[i]] == column->missing) {
            weight += work->sums[i * (k + 1) + k];
            for (size_t j = 0; j < k; j++)
                work->missing_sums[j] += work->sums[i * (k + 1) + j];
        }
    return weight;
}

/* Sums by rank, and a bit for each rank that occurs. */
static inline void fill_bins(Workspace *work, const Column *column, const size_t k)
{
    uint64_t *bitmap = work->bitmap;
    for (size_t i = 0; i < column->m; i++) {
        uint32_t rank = column->ranks[column->rows[i]];
        double *bin = work->bins + (k + 1) * (size_t)rank;
        const double *sums = work->sums + (k + 1) * i;
        uint64_t bit = (uint64_t)1 << (rank & 63), word = bitmap[rank >> 6];
        if (word & bit)
            for (size_t j = 0; j <= k; j++)
                bin[j] += sums[j];
        else {
            bitmap[rank >> 6] = word | bit;
            memcpy(bin, sums, sizeof(double) * (k + 1));
        }
    }
}

/* Cuts of a column of whose ranks many occur in the node. Returns whether it varies. */
static inline int dense_cuts(Workspace *work, const Column *column, const size_t k, const int has_missing, Scan scan,
                             Cut *best_so_far)
{
    Cut best = *best_so_far;
    double few[2] = {0.0, 0.0}, *left = k <= 2 ? few : work->left; /* where k is known, they stay in registers */
    const size_t words = (column->missing >> 6) + 1;
    memset(work->bitmap, 0, sizeof(uint64_t) * words);
    fill_bins(work, column, k);
    int any = 0, varies = 0;
    for (size_t w = 0; w < words; w++)
        for (uint64_t word = work->bitmap[w]; word; word &= word - 1) {
            uint32_t rank = (uint32_t)(w << 6) + lowest_bit(word);
            if (any) {
                cut_before(left, k, work->missing_sums, has_missing, &scan, rank, &best);
                varies = 1;
            }
            go_left(left, k, work->bins + (k + 1) * (size_t)rank, rank, &scan);
            any = 1;
        }
    *best_so_far = best;
    return varies;
}

/* Cuts between rows in the order of their keys: rank and, in the lower `bits`, position. */
static inline int sorted_cuts(const Workspace *work, const uint64_t *keys, size_t m, const int bits, const size_t k,
                              const int has_missing, Scan scan, Cut *best_so_far)
{
    const uint32_t first = (uint32_t)(keys[0] >> bits);
    if (first == (uint32_t)(keys[m - 1] >> bits))
        return 0;
    Cut best = *best_so_far;
    double few[2] = {0.0, 0.0}, *left = k <= 2 ? few : work->left; /* where k is known, they stay in registers */
    scan.last = first;
    for (size_t i = 0; i < m; i++) {
        uint32_t rank = (uint32_t)(keys[i] >> bits);
        size_t at = (size_t)(keys[i] & (((uint64_t)1 << bits) - 1));
        if (rank != scan.last)
            cut_before(left, k, work->missing_sums, has_missing, &scan, rank, &best);
        go_left(left, k, work->sums + at * (k + 1), rank, &scan);
    }
    *best_so_far = best;
    return 1;
}

/* Keys of rows in ascending order, for a column of whose ranks few occur in the node. */
static inline const uint64_t *radix_keys(Workspace *work, const Column *column)
{
    for (size_t i = 0; i < column->m; i++)
        work->keys[i] = (uint64_t)column->ranks[column->rows[i]] << 32 | (uint32_t)i;
    radix_sort(&work->keys, &work->other_keys, column->m, column->missing);
    return work->keys;
}

/* The same for very few rows: the position of a row is the number of keys below its own. Comparing all with all has no
 * branch to mispredict, and compilers vectorize it. */
static inline void few_row_keys(const Column *column, uint64_t *keys)
{
    int32_t codes[FEW_ROWS];
    const size_t m = column->m;
    for (size_t i = 0; i < m; i++)
        codes[i] = (int32_t)(column->ranks[column->rows[i]] << FEW_ROWS_BITS | (uint32_t)i);
    for (size_t i = 0; i < m; i++) {
        const int32_t own = codes[i];
        int32_t place = 0;
        for (size_t j = 0; j < m; j++)
            place += codes[j] < own;
        keys[place] = (uint64_t)own;
    }
}

static inline int column_cuts(Workspace *work, const Column *column, const size_t k, const int has_missing, Scan scan,
                              Cut *best)
{
    if (column->m <= FEW_ROWS) {
        uint64_t keys[FEW_ROWS];
        few_row_keys(column, keys);
        return sorted_cuts(work, keys, column->m, FEW_ROWS_BITS, k, has_missing, scan, best);
    }
    if (column->missing < DENSE * column->m)
        return dense_cuts(work, column, k, has_missing, scan, best);
    return sorted_cuts(work, radix_keys(work, column), column->m, 32, k, has_missing, scan, best);
}

#include "forest_classes.h"
#include "forest_indicators.h"

/* The same with loops for the usual numbers of outputs. */
static int known_cuts(Workspace *work, const Column *column, size_t k, int has_missing, Scan scan, Cut *best)
{
    if (k == 1)
        return has_missing ? column_cuts(work, column, 1, 1, scan, best) : column_cuts(work, column, 1, 0, scan, best);
    if (k == 2)
        return has_missing ? column_cuts(work, column, 2, 1, scan, best) : column_cuts(work, column, 2, 0, scan, best);
    return has_missing ? column_cuts(work, column, k, 1, scan, best) : column_cuts(work, column, k, 0, scan, best);
}

/* Evaluate the cuts of one column. Returns whether it varies in the node. */
static int try_column(const Task *task, Workspace *work, const uint32_t *rows, size_t m, double all, uint32_t number,
                      Cut *best)
{
    const size_t k = task->k;
    const Column column = {task->ranks + (size_t)number * task->n, rows, m, task->missing[number]};
    const double square = best->square, product = best->product;
    Scan scan = {all, 0.0, 0.0, 0, column.missing};
    int varies;
    memset(work->left, 0, sizeof(double) * k);
    if (work->any_missing[number])
        scan.missing_weight = task->codes ? count_missing(work, &column, k) : sum_missing(work, &column, k);
    if (work->indicators.group[number] != NO_GROUP)
        varies = indicator_cut(task, work, &column, number, &scan, best);
    else if (task->codes)
        varies = class_cuts(work, &column, k, &scan, best);
    else
        varies = known_cuts(work, &column, k, scan.missing_weight > 0.0, scan, best);
    if (best->square != square || best->product != product) {
        best->feature = (int32_t)number;
        best->has_missing = scan.missing_weight > 0.0;
    }
    return varies;
}

/* The best cut among columns drawn at random; its feature is -1 if there is none. */
static Cut best_cut(const Task *task, Workspace *work, const uint32_t *rows, size_t m, double all, uint64_t *state)
{
    Cut best = {0.0, 1.0, -1, 0, 0, 0, 0};
    size_t n_tried = 0;
    work->node++;
    for (size_t c = 0; c < task->p && n_tried < task->max_features; c++) {
        size_t at = c + below(state, (uint32_t)(task->p - c));
        uint32_t column = work->columns[at];
        work->columns[at] = work->columns[c];
        work->columns[c] = column;
        n_tried += (size_t)try_column(task, work, rows, m, all, column, &best);
    }
    return best;
}

#endif
