/* Growing a regression forest, and asking it: the loops that decide its speed.
 *
 * What makes it quick on tables of some thousand rows:
 * - Columns come as ranks (0, 1, ... in ascending order of their values; the last number stands for missing), so that
 *   rows of a node are put in order by whole numbers: a bit is set for each rank that is there, and bits are read in
 *   their order. Very few rows are put in order by comparing all with all; ranks that lie far apart, by radix.
 * - A row that the bootstrap drew three times is one row with weight 3.
 * - Several outputs are summed together: indicators of classes make it a classification forest, for the drop of their
 *   summed squares is the drop of Gini's impurity.
 *
 * A node of fewer than `least` drawn rows is not split. At a split `tried` columns are drawn; if all are constant in
 * the node, more. Outputs are given around their mean. Every tree has its own seed, so trees can be grown in any order.
 */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SHORT 32         /* rows up to which comparing all with all is the quickest way to put them in order */
#define SHORT_BITS 5     /* that hold a place among them; with the rank, which is below 2^26, they fill 31 */
#define DENSE 96         /* a column with fewer ranks than this for each row of a node is put in order by marks */
#define TIE 1e-10        /* cuts that differ by less are equal; the first one wins, whatever rounding does */
#define LEAST_DROP 1e-12 /* share of a node's squares that a split must explain to be one */

/* ---- random numbers: splitmix64 (Steele, Lea and Flood 2014) ---- */

static inline uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

static inline uint32_t below(uint64_t *state, uint32_t n)
{
    return (uint32_t)(((next_random(state) >> 32) * (uint64_t)n) >> 32);
}

/* ---- what a forest is grown from, and the room that one tree needs while it grows ---- */

typedef struct {
    const uint32_t *ranks;   /* p x n: column by column */
    const uint32_t *missing; /* p: the rank that stands for missing in each column */
    const double *values;    /* what ranks stand for, column after column */
    const int64_t *starts;   /* p: where the values of each column start */
    const double *outputs;   /* n x k */
    size_t n, p, k;
    size_t tried;
    double least;
} Task;

typedef struct {
    uint32_t *rows;    /* rows in the bag; those of a node lie side by side */
    uint32_t *aside;   /* room to part them */
    uint32_t *columns; /* a permutation of the columns */
    double *weights;   /* n: how often the bootstrap drew a row */
    double *sums;      /* m x (k + 1): for each row of the node at hand its outputs around their mean, times its
                        * weight, and the weight */
    uint64_t *keys, *other;
    double *bins;      /* (k + 1) a rank */
    uint64_t *marks;   /* a bit a rank */
    uint32_t *cut;     /* of the nodes of the tree at hand */
    uint8_t *any_missing; /* p: whether a value of the column is missing */
    double *left, *lost; /* k each */
    uint32_t *stack;
} Room;

typedef struct {
    int32_t *feature;     /* -1 in leaves */
    int32_t *child;       /* left child; the right one is the next */
    double *threshold;    /* values up to it go left */
    uint32_t *cut;        /* ranks up to it do */
    uint8_t *missing_left;
    double *values;       /* k a node */
    int32_t count;
} Nodes;

/* A cut explains square / (left * right) of the node's squares, times its weight; compared without dividing. */
typedef struct {
    double square, product;
    int32_t feature;
    uint32_t low, high;
    uint8_t missing_left, any_lost;
} Cut;

/* A walk through the ranks of a column in ascending order. */
typedef struct {
    double all;    /* weight of the node */
    double weight; /* on the left so far */
    double lost;   /* weight of what is missing */
    uint32_t last; /* rank that was seen last */
    uint32_t missing;
} Walk;

static inline void consider(const double *left, size_t k, double weight, const Walk *walk, uint32_t rank,
                            uint8_t missing_left, Cut *best)
{
    double square = 0.0, product = weight * (walk->all - weight);
    for (size_t j = 0; j < k; j++)
        square += left[j] * left[j];
    if (square * best->product > best->square * product * (1.0 + TIE)) {
        best->square = square, best->product = product;
        best->low = walk->last, best->high = rank;
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

/* The cut before a rank. Values that are missing go right, which they do as the last rank of all; or left. */
static inline void cut_before(double *left, const size_t k, const double *lost, const int any_lost, const Walk *walk,
                              uint32_t rank, Cut *best)
{
    consider(left, k, walk->weight, walk, rank, 0, best);
    if (any_lost && rank != walk->missing) {
        for (size_t j = 0; j < k; j++)
            left[j] += lost[j];
        consider(left, k, walk->weight + walk->lost, walk, rank, 1, best);
        for (size_t j = 0; j < k; j++)
            left[j] -= lost[j];
    }
}

static inline void go_left(double *left, const size_t k, const double *sums, uint32_t rank, Walk *walk)
{
    for (size_t j = 0; j < k; j++)
        left[j] += sums[j];
    walk->weight += sums[k];
    walk->last = rank;
}

/* By the ranks in the upper half, a byte a pass; the result is in `keys`. */
static void radix_sort(uint64_t **keys, uint64_t **other, size_t m, uint32_t most)
{
    for (int shift = 32; most; shift += 8, most >>= 8) {
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

/* What the search of cuts in one column needs. */
typedef struct {
    const uint32_t *ranks; /* of all rows */
    const uint32_t *rows;  /* of the node */
    size_t m;
    uint32_t missing;
} Column;

/* Sums of what is missing in a column; returns its weight. */
static double sum_lost(Room *room, const Column *column, size_t k)
{
    double weight = 0.0;
    memset(room->lost, 0, sizeof(double) * k);
    for (size_t i = 0; i < column->m; i++)
        if (column->ranks[column->rows[i]] == column->missing) {
            weight += room->sums[i * (k + 1) + k];
            for (size_t j = 0; j < k; j++)
                room->lost[j] += room->sums[i * (k + 1) + j];
        }
    return weight;
}

/* Sums by rank, and a bit for each rank that is there. */
static inline void mark(Room *room, const Column *column, const size_t k)
{
    uint64_t *marks = room->marks;
    for (size_t i = 0; i < column->m; i++) {
        uint32_t rank = column->ranks[column->rows[i]];
        double *bin = room->bins + (k + 1) * (size_t)rank;
        const double *sums = room->sums + (k + 1) * i;
        uint64_t bit = (uint64_t)1 << (rank & 63), word = marks[rank >> 6];
        if (word & bit)
            for (size_t j = 0; j <= k; j++)
                bin[j] += sums[j];
        else {
            marks[rank >> 6] = word | bit;
            memcpy(bin, sums, sizeof(double) * (k + 1));
        }
    }
}

/* Cuts of a column of which most ranks may be there. Returns whether it varies. */
static inline int mark_cuts(Room *room, const Column *column, const size_t k, const int any_lost, Walk walk, Cut *found)
{
    Cut best = *found;
    double left1 = 0.0, *left = k == 1 ? &left1 : room->left;
    const size_t words = (column->missing >> 6) + 1;
    memset(room->marks, 0, sizeof(uint64_t) * words);
    mark(room, column, k);
    int any = 0, varies = 0;
    for (size_t w = 0; w < words; w++)
        for (uint64_t word = room->marks[w]; word; word &= word - 1) {
            uint32_t rank = (uint32_t)(w << 6) + lowest_bit(word);
            if (any) {
                cut_before(left, k, room->lost, any_lost, &walk, rank, &best);
                varies = 1;
            }
            go_left(left, k, room->bins + (k + 1) * (size_t)rank, rank, &walk);
            any = 1;
        }
    *found = best;
    return varies;
}

/* Cuts between rows in the order of their keys: rank and, in the lower `bits`, position. */
static inline int cuts_in_order(const Room *room, const uint64_t *keys, size_t m, const int bits, const size_t k,
                                const int any_lost, Walk walk, Cut *found)
{
    const uint32_t first = (uint32_t)(keys[0] >> bits);
    if (first == (uint32_t)(keys[m - 1] >> bits))
        return 0;
    Cut best = *found;
    double left1 = 0.0, *left = k == 1 ? &left1 : room->left;
    walk.last = first;
    for (size_t i = 0; i < m; i++) {
        uint32_t rank = (uint32_t)(keys[i] >> bits);
        size_t at = (size_t)(keys[i] & (((uint64_t)1 << bits) - 1));
        if (rank != walk.last)
            cut_before(left, k, room->lost, any_lost, &walk, rank, &best);
        go_left(left, k, room->sums + at * (k + 1), rank, &walk);
    }
    *found = best;
    return 1;
}

/* Cuts of a column of which few ranks are there. Returns whether it varies. */
static inline int sort_cuts(Room *room, const Column *column, const size_t k, const int any_lost, Walk walk, Cut *best)
{
    for (size_t i = 0; i < column->m; i++)
        room->keys[i] = (uint64_t)column->ranks[column->rows[i]] << 32 | (uint32_t)i;
    radix_sort(&room->keys, &room->other, column->m, column->missing);
    return cuts_in_order(room, room->keys, column->m, 32, k, any_lost, walk, best);
}

/* The same for very few rows: the place of a row is the number of keys below its own. Comparing all with all has no
 * branch to foresee, and compilers do it several at a time. */
static inline int count_cuts(Room *room, const Column *column, const size_t k, const int any_lost, Walk walk, Cut *best)
{
    int32_t given[SHORT];
    uint64_t keys[SHORT];
    const size_t m = column->m;
    for (size_t i = 0; i < m; i++)
        given[i] = (int32_t)(column->ranks[column->rows[i]] << SHORT_BITS | (uint32_t)i);
    for (size_t i = 0; i < m; i++) {
        const int32_t own = given[i];
        int32_t place = 0;
        for (size_t j = 0; j < m; j++)
            place += given[j] < own;
        keys[place] = (uint64_t)own;
    }
    return cuts_in_order(room, keys, m, SHORT_BITS, k, any_lost, walk, best);
}

static inline int cuts_of(Room *room, const Column *column, const size_t k, const int any_lost, Walk walk, Cut *best)
{
    if (column->m <= SHORT)
        return count_cuts(room, column, k, any_lost, walk, best);
    if (column->missing < DENSE * column->m)
        return mark_cuts(room, column, k, any_lost, walk, best);
    return sort_cuts(room, column, k, any_lost, walk, best);
}

/* Try the cuts of one column. Returns whether it varies in the node. */
static int try_column(const Task *task, Room *room, const uint32_t *rows, size_t m, double all, uint32_t number,
                      Cut *best)
{
    const size_t k = task->k;
    const Column column = {task->ranks + (size_t)number * task->n, rows, m, task->missing[number]};
    const double square = best->square, product = best->product;
    Walk walk = {all, 0.0, 0.0, 0, column.missing};
    int varies;
    memset(room->left, 0, sizeof(double) * k);
    if (room->any_missing[number])
        walk.lost = sum_lost(room, &column, k);
    if (walk.lost > 0.0)
        varies = cuts_of(room, &column, k, 1, walk, best);
    else if (k == 1)
        varies = cuts_of(room, &column, 1, 0, walk, best);
    else
        varies = cuts_of(room, &column, k, 0, walk, best);
    if (best->square != square || best->product != product) {
        best->feature = (int32_t)number;
        best->any_lost = walk.lost > 0.0;
    }
    return varies;
}

/* The best cut among columns drawn at random; feature -1 if there is none. */
static Cut best_cut(const Task *task, Room *room, const uint32_t *rows, size_t m, double all, uint64_t *state)
{
    Cut best = {0.0, 1.0, -1, 0, 0, 0, 0};
    size_t seen = 0;
    for (size_t c = 0; c < task->p && seen < task->tried; c++) {
        size_t at = c + below(state, (uint32_t)(task->p - c));
        uint32_t column = room->columns[at];
        room->columns[at] = room->columns[c];
        room->columns[c] = column;
        seen += (size_t)try_column(task, room, rows, m, all, column, &best);
    }
    return best;
}

/* Half-way between the values on both sides of a cut; infinite if only missing values are on the right. */
static double threshold_of(const Task *task, const Cut *cut)
{
    const double *values = task->values + task->starts[cut->feature];
    if (cut->high == task->missing[cut->feature])
        return INFINITY;
    double low = values[cut->low], high = values[cut->high], middle = low + (high - low) / 2.0;
    return middle < high ? middle : low; /* between neighbouring floats the middle may be the upper one */
}

/* Weights and outputs of a node's rows around their mean, which is written to `mean`; returns the node's weight. */
static double gather(const Task *task, Room *room, const uint32_t *rows, size_t m, double *mean, double *squares)
{
    const size_t k = task->k;
    double all = 0.0;
    memset(mean, 0, sizeof(double) * k);
    *squares = 0.0;
    for (size_t i = 0; i < m; i++) {
        const double *output = task->outputs + (size_t)rows[i] * k;
        double weight = room->weights[rows[i]];
        room->sums[i * (k + 1) + k] = weight;
        all += weight;
        for (size_t j = 0; j < k; j++)
            mean[j] += weight * output[j];
    }
    for (size_t j = 0; j < k; j++)
        mean[j] /= all;
    for (size_t i = 0; i < m; i++) {
        const double *output = task->outputs + (size_t)rows[i] * k;
        for (size_t j = 0; j < k; j++) {
            double away = output[j] - mean[j], sum = room->sums[i * (k + 1) + k] * away;
            room->sums[i * (k + 1) + j] = sum;
            *squares += sum * away;
        }
    }
    return all;
}

/* The last rank whose value is not above a threshold that lies between the two ranks of a cut. */
static uint32_t rank_below(const Task *task, const Cut *cut, double threshold)
{
    const double *values = task->values + task->starts[cut->feature];
    uint32_t low = cut->low, high = cut->high;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (values[middle] <= threshold)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Rows that go left come first, each side in its order; returns how many they are. */
static size_t part(const Task *task, Room *room, const Cut *cut, uint32_t *rows, size_t m)
{
    const uint32_t *ranks = task->ranks + (size_t)cut->feature * task->n;
    uint32_t missing = task->missing[cut->feature];
    size_t left = 0, right = 0;
    for (size_t i = 0; i < m; i++) {
        uint32_t row = rows[i], rank = ranks[row];
        /* Written to both sides, for where it belongs is hard to foresee. */
        size_t goes = rank == missing ? cut->missing_left : rank <= cut->low;
        rows[left] = row;
        room->aside[right] = row;
        left += goes;
        right += 1 - goes;
    }
    memcpy(rows + left, room->aside, sizeof(uint32_t) * right);
    return left;
}

static size_t draw_bag(const Task *task, Room *room, uint64_t *state)
{
    size_t m = 0;
    memset(room->weights, 0, sizeof(double) * task->n);
    for (size_t i = 0; i < task->n; i++)
        room->weights[below(state, (uint32_t)task->n)] += 1.0;
    for (size_t i = 0; i < task->n; i++)
        if (room->weights[i] > 0.0)
            room->rows[m++] = (uint32_t)i;
    return m;
}

static void grow_tree(const Task *task, Room *room, Nodes *nodes, uint64_t seed)
{
    const size_t k = task->k;
    uint64_t state = seed;
    size_t m = draw_bag(task, room, &state), depth = 0;
    for (size_t c = 0; c < task->p; c++)
        room->columns[c] = (uint32_t)c;
    uint32_t *stack = room->stack; /* (node, first row, rows) */
    stack[0] = 0, stack[1] = 0, stack[2] = (uint32_t)m;
    depth = 1, nodes->count = 1;
    while (depth) {
        uint32_t *top = stack + 3 * --depth;
        int32_t node = (int32_t)top[0];
        size_t first = top[1];
        m = top[2];
        uint32_t *rows = room->rows + first;
        double *mean = nodes->values + (size_t)node * k, squares;
        double all = gather(task, room, rows, m, mean, &squares);
        nodes->feature[node] = -1;
        nodes->child[node] = -1;
        if (all < task->least || m < 2 || !(squares > 0.0))
            continue;
        Cut cut = best_cut(task, room, rows, m, all, &state);
        if (cut.feature < 0 || !(cut.square * all > LEAST_DROP * squares * cut.product))
            continue;
        nodes->feature[node] = cut.feature;
        nodes->threshold[node] = threshold_of(task, &cut);
        nodes->cut[node] = rank_below(task, &cut, nodes->threshold[node]);
        size_t left = part(task, room, &cut, rows, m);
        /* Where nothing was missing, what is missing later goes where more rows went. */
        nodes->missing_left[node] = cut.any_lost ? cut.missing_left : 2 * left > m;
        int32_t child = nodes->count;
        nodes->child[node] = child;
        nodes->count += 2;
        top[0] = (uint32_t)child + 1, top[1] = (uint32_t)(first + left), top[2] = (uint32_t)(m - left);
        top[3] = (uint32_t)child, top[4] = (uint32_t)first, top[5] = (uint32_t)left;
        depth += 2;
    }
}

/* Add what a tree foretells of the rows that it has not seen. */
static void add_unseen(const Task *task, const Room *room, const Nodes *nodes, double *unseen, double *times)
{
    for (size_t i = 0; i < task->n; i++) {
        if (room->weights[i] > 0.0)
            continue;
        int32_t node = 0;
        while (nodes->feature[node] >= 0) {
            size_t column = (size_t)nodes->feature[node];
            uint32_t rank = task->ranks[column * task->n + i];
            int left = rank == task->missing[column] ? nodes->missing_left[node] : rank <= nodes->cut[node];
            node = nodes->child[node] + !left;
        }
        for (size_t j = 0; j < task->k; j++)
            unseen[i * task->k + j] += nodes->values[(size_t)node * task->k + j];
        times[i] += 1.0;
    }
}

static void free_room(Room *room)
{
    free(room->rows), free(room->aside), free(room->columns), free(room->weights), free(room->sums);
    free(room->keys), free(room->other), free(room->bins);
    free(room->left), free(room->lost), free(room->stack), free(room->marks), free(room->cut), free(room->any_missing);
}

static void find_missing(const Task *task, uint8_t *any)
{
    for (size_t c = 0; c < task->p; c++) {
        const uint32_t *ranks = task->ranks + c * task->n;
        any[c] = 0;
        for (size_t i = 0; i < task->n; i++)
            any[c] |= ranks[i] == task->missing[c];
    }
}

static int make_room(const Task *task, Room *room)
{
    const size_t n = task->n, k = task->k;
    size_t most = 0;
    for (size_t c = 0; c < task->p; c++)
        most = task->missing[c] > most ? task->missing[c] : most;
    most = most < DENSE * n ? most + 1 : DENSE * n;
    room->marks = malloc(sizeof(uint64_t) * (most / 64 + 1));
    room->rows = malloc(sizeof(uint32_t) * n), room->aside = malloc(sizeof(uint32_t) * n);
    room->columns = malloc(sizeof(uint32_t) * task->p), room->weights = malloc(sizeof(double) * n);
    room->sums = malloc(sizeof(double) * n * (k + 1)), room->cut = malloc(sizeof(uint32_t) * 2 * n);
    room->keys = malloc(sizeof(uint64_t) * n), room->other = malloc(sizeof(uint64_t) * n);
    room->bins = malloc(sizeof(double) * most * (k + 1));
    room->left = malloc(sizeof(double) * k), room->lost = malloc(sizeof(double) * k);
    room->stack = malloc(sizeof(uint32_t) * 3 * (n + 2)), room->any_missing = malloc(task->p);
    if (room->rows && room->aside && room->columns && room->weights && room->sums && room->cut && room->keys &&
        room->other && room->bins && room->left && room->lost && room->stack && room->marks && room->any_missing) {
        find_missing(task, room->any_missing);
        return 0;
    }
    free_room(room);
    return -1;
}

/* ---- doors to Python: arrays are checked for their size in bytes, and nothing else ---- */

static void release(Py_buffer *views, int count)
{
    for (int i = 0; i < count; i++)
        if (views[i].obj)
            PyBuffer_Release(&views[i]);
}

static int hold(PyObject **objects, Py_buffer *views, int count, int written, const Py_ssize_t *bytes)
{
    for (int i = 0; i < count; i++) {
        int flags = PyBUF_C_CONTIGUOUS | (i >= written ? PyBUF_WRITABLE : 0);
        views[i].obj = NULL;
        if (PyObject_GetBuffer(objects[i], &views[i], flags)) {
            release(views, i);
            return -1;
        }
        if (views[i].len != bytes[i]) {
            release(views, i + 1);
            PyErr_SetString(PyExc_ValueError, "an array has the wrong size");
            return -1;
        }
    }
    return 0;
}

/* grow(n, p, k, tried, least, trees, distinct, ranks, missing, values, starts, outputs, seeds,
 *      feature, child, threshold, missing_left, foretold, counts, unseen, times): what follows seeds is written to.
 * Each tree has room for 2 n nodes; `distinct` is the number of values. */
static PyObject *grow(PyObject *self, PyObject *args)
{
    PyObject *o[14];
    Py_buffer v[14];
    Py_ssize_t n, p, k, tried, trees, distinct;
    double least;
    (void)self;
    if (!PyArg_ParseTuple(args, "nnnndnnOOOOOOOOOOOOOO", &n, &p, &k, &tried, &least, &trees, &distinct, &o[0], &o[1],
                          &o[2], &o[3], &o[4], &o[5], &o[6], &o[7], &o[8], &o[9], &o[10], &o[11], &o[12], &o[13]))
        return NULL;
    if (n < 1 || p < 1 || k < 1 || tried < 1 || n >= 1 << 26) {
        PyErr_SetString(PyExc_ValueError, "a number is out of range");
        return NULL;
    }
    const Py_ssize_t room_nodes = trees * 2 * n;
    const Py_ssize_t bytes[14] = {4 * n * p,      4 * p,          8 * distinct, 8 * p,
                                  8 * n * k,      8 * trees,      4 * room_nodes, 4 * room_nodes,
                                  8 * room_nodes, room_nodes,     8 * room_nodes * k, 4 * trees,
                                  8 * n * k,      8 * n};
    if (hold(o, v, 14, 6, bytes))
        return NULL;
    Task task = {v[0].buf,  v[1].buf,  v[2].buf,  v[3].buf,      v[4].buf, (size_t)n,
                 (size_t)p, (size_t)k, (size_t)tried, least};
    Room room;
    if (make_room(&task, &room)) {
        release(v, 14);
        return PyErr_NoMemory();
    }
    const uint64_t *seeds = v[5].buf;
    int32_t *counts = v[11].buf;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t t = 0; t < trees; t++) {
        size_t at = (size_t)t * 2 * (size_t)n;
        Nodes nodes = {(int32_t *)v[6].buf + at, (int32_t *)v[7].buf + at, (double *)v[8].buf + at,
                       room.cut, (uint8_t *)v[9].buf + at, (double *)v[10].buf + at * (size_t)k, 0};
        grow_tree(&task, &room, &nodes, seeds[t]);
        add_unseen(&task, &room, &nodes, v[12].buf, v[13].buf);
        counts[t] = nodes.count;
    }
    Py_END_ALLOW_THREADS
    free_room(&room);
    release(v, 14);
    Py_RETURN_NONE;
}

/* ---- asking ---- */

/* A node as it is asked: in one place, since the next one is mostly somewhere else in memory. A leaf is its own left
 * child and sends everything there, so that walks of several rows can go on side by side until none moves. */
typedef struct {
    double threshold;
    int32_t column; /* times 2, plus 1 if missing values go left */
    int32_t child;
} Step;

#define ABREAST 8 /* rows that walk at once, while the processor waits for the nodes of the others */

static inline int32_t next_node(const Step *steps, int32_t node, const double *row)
{
    const Step *step = steps + node;
    double value = row[step->column >> 1];
    int left = (value <= step->threshold) | ((value != value) & step->column & 1);
    return step->child + !left;
}

static void ask_tree(const Step *steps, int32_t root, const double *x, size_t n, size_t p, const double *values,
                     size_t k, double *sums)
{
    for (size_t first = 0; first < n; first += ABREAST) {
        int32_t at[ABREAST];
        const size_t count = n - first < ABREAST ? n - first : ABREAST;
        const double *rows = x + first * p;
        for (size_t i = 0; i < ABREAST; i++)
            at[i] = root;
        int moved = 1;
        while (moved) {
            moved = 0;
            for (size_t i = 0; i < ABREAST; i++) {
                int32_t next = next_node(steps, at[i], rows + (i < count ? i : 0) * p);
                moved |= next != at[i];
                at[i] = next;
            }
        }
        for (size_t i = 0; i < count; i++)
            for (size_t j = 0; j < k; j++)
                sums[(first + i) * k + j] += values[(size_t)at[i] * k + j];
    }
}

/* ask(n, p, k, trees, nodes, x, roots, steps, values, sums): adds what the trees foretell, one after the other. */
static PyObject *ask(PyObject *self, PyObject *args)
{
    PyObject *o[5];
    Py_buffer v[5];
    Py_ssize_t n, p, k, trees, count;
    (void)self;
    if (!PyArg_ParseTuple(args, "nnnnnOOOOO", &n, &p, &k, &trees, &count, &o[0], &o[1], &o[2], &o[3], &o[4]))
        return NULL;
    const Py_ssize_t bytes[5] = {8 * n * p, 4 * trees, (Py_ssize_t)sizeof(Step) * count, 8 * count * k, 8 * n * k};
    if (hold(o, v, 5, 4, bytes))
        return NULL;
    const int32_t *roots = v[1].buf;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t t = 0; t < trees; t++)
        ask_tree(v[2].buf, roots[t], v[0].buf, (size_t)n, (size_t)p, v[3].buf, (size_t)k, v[4].buf);
    Py_END_ALLOW_THREADS
    release(v, 5);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"grow", grow, METH_VARARGS, "Grow some trees of a forest."},
                                {"ask", ask, METH_VARARGS, "Sums over the trees of what they foretell."},
                                {NULL, NULL, 0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_grow", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__grow(void) { return PyModule_Create(&module); }
