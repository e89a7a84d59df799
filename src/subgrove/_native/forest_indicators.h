/* Cuts of indicators, such as those of the levels of a nominal column.
 *
 * Neighbouring columns of two values without missing ones are a group if no row has the larger value in two of them. One
 * pass over the rows of a node then sums the outputs for all columns of the group, instead of one pass for each. The
 * outputs of a node are centered, so the sums of the left side are those of the right side with the other sign.
 */

#ifndef SUBGROVE_FOREST_INDICATORS_H
#define SUBGROVE_FOREST_INDICATORS_H

#define NO_GROUP UINT32_MAX
#define MOST_PLACES 65535
#define ROOM 16 /* sums for each row of a node, up to which all columns of a group are summed at once */

static void free_indicators(Indicators *all)
{
    void *memory[] = {all->group, all->place, all->which, all->sizes, all->starts, all->nodes, all->sums};
    for (size_t i = 0; i < sizeof(memory) / sizeof(*memory); i++)
        free(memory[i]);
}

/* Whether a column can join the rows that the columns of a group mark; if so, its rows are marked too. */
static int join_group(const Task *task, size_t column, uint16_t *which, uint16_t place)
{
    const uint32_t *ranks = task->ranks + column * task->n;
    int taken = 0;
    for (size_t i = 0; i < task->n; i++)
        taken |= ranks[i] && which[i];
    for (size_t i = 0; i < task->n && !taken; i++)
        which[i] = ranks[i] ? place : which[i];
    return !taken;
}

/* Find the groups; returns -1 if memory is lacking. Ranks have been checked. */
static int find_indicators(const Task *task, const uint8_t *any_missing, Indicators *all)
{
    size_t count = 0, groups = 0, sums = 0;
    for (size_t c = 0; c < task->p; c++)
        count += task->missing[c] == 2 && !any_missing[c];
    all->group = malloc(sizeof(uint32_t) * task->p), all->place = malloc(sizeof(uint16_t) * task->p);
    all->which = calloc(count * task->n + 1, sizeof(uint16_t)), all->sizes = calloc(count + 1, sizeof(size_t));
    all->starts = malloc(sizeof(size_t) * (count + 1)), all->nodes = calloc(count + 1, sizeof(uint64_t));
    if (!all->group || !all->place || !all->which || !all->sizes || !all->starts || !all->nodes)
        return -1;
    for (size_t c = 0; c < task->p; c++) {
        all->group[c] = NO_GROUP;
        if (task->missing[c] != 2 || any_missing[c])
            continue;
        int follows = c && all->group[c - 1] != NO_GROUP && all->sizes[groups - 1] < MOST_PLACES;
        if (!follows || !join_group(task, c, all->which + (groups - 1) * task->n, (uint16_t)(all->sizes[groups - 1] + 1)))
            join_group(task, c, all->which + groups++ * task->n, 1);
        all->group[c] = (uint32_t)groups - 1;
        all->place[c] = (uint16_t)++all->sizes[groups - 1];
    }
    for (size_t g = 0; g < groups; g++) {
        all->starts[g] = sums;
        sums += (all->sizes[g] + 1) * (task->k + 1);
    }
    all->sums = malloc(sizeof(double) * (sums + 1));
    return all->sums ? 0 : -1;
}

/* Add the weight and the outputs of a row; for classes, its weight to the sum of its class. */
static inline void add_row(const Workspace *work, size_t i, const size_t k, const int classes, double *sums)
{
    if (classes)
        sums[work->codes[i]] += work->sums[i];
    else
        for (size_t j = 0; j <= k; j++)
            sums[j] += work->sums[i * (k + 1) + j];
}

/* Sums over the rows of a node with the larger value of a column. */
static inline const double *indicator_sums(Workspace *work, const Column *column, const uint16_t *which, uint32_t number,
                                           const size_t k, const int classes)
{
    Indicators *all = &work->indicators;
    const uint32_t group = all->group[number];
    const uint16_t place = all->place[number];
    const size_t width = k + 1, size = (all->sizes[group] + 1) * width;
    double *sums = all->sums + all->starts[group];
    if (all->nodes[group] == work->node)
        return sums + place * width;
    if (size > ROOM * column->m) {
        memset(sums, 0, sizeof(double) * width);
        for (size_t i = 0; i < column->m; i++)
            if (which[column->rows[i]] == place)
                add_row(work, i, k, classes, sums);
        return sums;
    }
    memset(sums, 0, sizeof(double) * size);
    for (size_t i = 0; i < column->m; i++)
        add_row(work, i, k, classes, sums + which[column->rows[i]] * width);
    all->nodes[group] = work->node;
    return sums + place * width;
}

/* Evaluate the cut of an indicator. Returns whether it varies in the node. */
static inline int cut_of_indicator(const Task *task, Workspace *work, const Column *column, uint32_t number,
                                   const size_t k, const int classes, const Scan *scan, Cut *best)
{
    const uint16_t *which = work->indicators.which + work->indicators.group[number] * task->n;
    const double *sums = indicator_sums(work, column, which, number, k, classes);
    double weight = classes ? 0.0 : sums[k], square = 0.0;
    if (classes) {
        double squares = 0.0, expected = 0.0, shares_squared = 0.0;
        for (size_t c = 0; c < k; c++) {
            weight += sums[c];
            squares += sums[c] * sums[c];
            expected += sums[c] * work->shares[c];
            shares_squared += work->shares[c] * work->shares[c];
        }
        square = squares - 2.0 * weight * expected + weight * weight * shares_squared;
    } else
        for (size_t j = 0; j < k; j++)
            square += sums[j] * sums[j];
    if (!(weight > 0.0 && weight < scan->all))
        return 0;
    double product = weight * (scan->all - weight);
    if (square * best->product > best->square * product * (1.0 + TIE)) {
        best->square = square, best->product = product;
        best->low = 0, best->high = 1;
        best->missing_left = 0;
    }
    return 1;
}

/* The same with loops for the usual numbers of outputs. */
static int indicator_cut(const Task *task, Workspace *work, const Column *column, uint32_t number, const Scan *scan,
                         Cut *best)
{
    if (task->codes)
        return cut_of_indicator(task, work, column, number, task->k, 1, scan, best);
    if (task->k == 1)
        return cut_of_indicator(task, work, column, number, 1, 0, scan, best);
    if (task->k == 2)
        return cut_of_indicator(task, work, column, number, 2, 0, scan, best);
    return cut_of_indicator(task, work, column, number, task->k, 0, scan, best);
}

#endif
