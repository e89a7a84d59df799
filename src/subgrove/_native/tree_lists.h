/* Steps of trees of any size. */

#ifndef SUBGROVE_TREE_LISTS_H
#define SUBGROVE_TREE_LISTS_H

#include "tree_steps.h"

#define LIST_ROWS 512 /* rows whose branches are followed together */

typedef struct {
    int32_t node, low, high;
    uint16_t row, column;
} Item;

typedef struct {
    void *items;
    int64_t count, room;
} List;

/* Memory that is used for block after block. */
typedef struct {
    List now, next, reached;     /* of Item */
    List events[LIST_ROWS];      /* of Event, by row */
    int32_t *doubled;            /* places of the rows, twice for each column: see `fill_doubled` */
    int32_t *low, *high;         /* interval of each column that follows the path of a row */
    uint8_t *follows;            /* whether a missing value, or a level, follows it: (slots) */
    int64_t *sums;               /* (outputs, total + 1) */
    uint64_t *changed;           /* one bit for each slot */
} ListMemory;

/* Steps of up to LIST_ROWS rows. For row i and column j, entries pointers[i * p + j] to the next pointer have the place
 * at which a step starts, and its sums, (entries, outputs); `missing` has the sums at the missing value, (rows, columns,
 * outputs). The first entry is number `entry`. Returns the number
 * of entries (more than `room` if they did not fit), or -1 without memory. */
int64_t list_steps(const Ensemble *e, const int32_t *places, int64_t rows, ListMemory *memory, int64_t *pointers,
                   int32_t *starts, double *steps, int64_t entry, int64_t room, double *missing, int64_t *own);
void walk_margins(const Ensemble *e, const int32_t *places, int64_t rows, int64_t *own);
int allocate_lists(const Ensemble *e, ListMemory *memory);
void free_lists(ListMemory *memory);

#endif
