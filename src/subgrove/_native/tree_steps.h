/* Tree ensembles as step functions of one column: what the kernels of `tree_steps.c` share.
 *
 * With all columns but one fixed, a tree ensemble is a step function of that column. Values of a column are places: for
 * numbers the cells between the thresholds of all its nodes, for levels the levels. A column with B places has B + 2
 * slots in the arrays of steps: its places, one unused slot (the end of the last interval), and the missing value.
 */

#ifndef SUBGROVE_TREE_STEPS_H
#define SUBGROVE_TREE_STEPS_H

#include <stddef.h>
#include <stdint.h>

#define MAX_MASK_LEAVES 128 /* of trees that are evaluated by bit masks */
#define ROWS 8              /* evaluated together by masks */

/* A node; its children are next to each other. A leaf has column -1, and `child` is the number of its value. */
typedef struct {
    int32_t column;  /* 2 * column + (1 if missing values go left) */
    int32_t cut;     /* numbers: places below it go left; levels: the row of `sets` */
    uint32_t child;  /* the left one, and whether the children are leaves: LEFT_LEAF, RIGHT_LEAF */
} Node;

#define LEFT_LEAF 0x80000000u
#define RIGHT_LEAF 0x40000000u
#define CHILD(node) ((int32_t)((node)->child & 0x3fffffffu))

typedef struct {
    int32_t low, high; /* slots [low, high); low < 0: `high` runs of levels from ~low on */
} Interval;

/* One node in a mask table: nodes of a column are next to each other. */
typedef struct {
    int32_t column, cut, last, set; /* last: of the nodes of its column; set: -1 for numbers */
    uint32_t left[4], all[4];       /* leaves below its left child, and below it */
} MaskNode;

typedef struct {
    int32_t n_leaves, n_nodes, output;
    int64_t nodes, parting, intervals, values; /* where its entries start */
} MaskTree;

typedef struct {
    int64_t n_trees, n_columns, n_outputs, n_values, total, n_nodes, set_width;
    int32_t width; /* values of a leaf: 1, or n_outputs */
    int32_t mask_words, any_missing, any_sets;
    double scale; /* leaf values are whole numbers times this */
    Node *node;
    int32_t *root, *output, *n_places;
    int64_t *start; /* first slot of each column */
    int64_t *value;
    uint8_t *sets, *is_level; /* whether a level goes left: (sets, set_width) */
    /* masks, for trees of at most MAX_MASK_LEAVES leaves */
    MaskTree *tree;
    MaskNode *mask_node;
    uint8_t *parting; /* for two leaves the number, in its tree, of the column at which their paths part */
    Interval *interval, *run;
    int32_t *missing; /* slot of the missing value of each interval, or the slot beyond all */
    int64_t *mask_value;
} Ensemble;

/* A step: leaves with one value have its difference, others the numbers of their values. */
typedef struct {
    int32_t low, high;
    union {
        int64_t difference;
        struct {
            int32_t leaf, own;
        } values;
    } of;
} Event;

/* Steps of rows: differences of the sums of leaves to those of the row itself, (rows, outputs, total), and the latter. */
typedef void dense_function(const Ensemble *e, const int32_t *places, int64_t rows, int32_t *lanes, int64_t *steps,
                            int64_t *own);
/* Sums of leaves of rows, (rows, outputs). */
typedef void margin_function(const Ensemble *e, const int32_t *places, int64_t rows, int32_t *lanes, int64_t *own);
/* Increase of a loss, and shift of the prediction, at steps of the margin. */
typedef void loss_function(int loss, double margin, double y, const double *steps, ptrdiff_t count, double *increase,
                           double *shift);

/* Differences of whole numbers wrap around: slots that nothing reads may hold sums of many. */
static inline void add_to(int64_t *slot, int64_t difference)
{
    *slot = (int64_t)((uint64_t)*slot + (uint64_t)difference);
}

static inline void take_from(int64_t *slot, int64_t difference)
{
    *slot = (int64_t)((uint64_t)*slot - (uint64_t)difference);
}

enum { SQUARED_ERROR, ABSOLUTE_ERROR, LOG_LOSS, BRIER };

#endif
