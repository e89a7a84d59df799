/* Predictions of a forest: of rows, and of rows in which one column after the other is replaced.
 *
 * Replaced columns: a row meets few columns on its way down a tree, and only those can change its leaf. So a tree is
 * walked once for the row, and once more for each column whose other value goes another way at a node of it, from there
 * on; the other columns share the leaf. The work hardly grows with the number of columns, and sums are those of one
 * prediction for each column, bit for bit.
 */

#ifndef SUBGROVE_FOREST_PREDICT_H
#define SUBGROVE_FOREST_PREDICT_H

#include "buffers.h"
#include <math.h>
#include <stddef.h>

/* A node in 16 bytes, since the next one is mostly in another cache line. A leaf is its own left child and sends every
 * value there, so that several rows can walk down side by side until none moves. */
typedef struct {
    double threshold;
    int32_t column; /* 2 * column, plus 1 if missing values go left */
    int32_t child;
} PredictNode;

#define LANES 8 /* rows that walk down at once, while the processor waits for the nodes of others */

static inline int32_t next_node(const PredictNode *nodes, int32_t at, const double *row)
{
    const PredictNode *node = nodes + at;
    double value = row[node->column >> 1];
    int left = (value <= node->threshold) | ((value != value) & node->column & 1);
    return node->child + !left;
}

static void predict_tree(const PredictNode *nodes, int32_t root, const double *x, size_t n, size_t p,
                         const double *values, size_t k, double *sums)
{
    for (size_t first = 0; first < n; first += LANES) {
        int32_t at[LANES];
        const size_t count = n - first < LANES ? n - first : LANES;
        const double *rows = x + first * p;
        for (size_t i = 0; i < LANES; i++)
            at[i] = root;
        int moved = 1;
        while (moved) {
            moved = 0;
            for (size_t i = 0; i < LANES; i++) {
                int32_t next = next_node(nodes, at[i], rows + (i < count ? i : 0) * p);
                moved |= next != at[i];
                at[i] = next;
            }
        }
        for (size_t i = 0; i < count; i++)
            for (size_t j = 0; j < k; j++)
                sums[(first + i) * k + j] += values[(size_t)at[i] * k + j];
    }
}

/* Children come after their parents, so that every walk ends; leaves keep every value. */
static int check_nodes(const PredictNode *nodes, Py_ssize_t count, Py_ssize_t p)
{
    int valid = count <= INT32_MAX;
    const int32_t end = (int32_t)(valid ? count : 0);
    const uint32_t columns = p < INT32_MAX / 2 ? 2 * (uint32_t)p : INT32_MAX;
    for (int32_t i = 0; i < end; i++) { /* without branches */
        const PredictNode *node = nodes + i;
        const int leaf = (node->child == i) & (node->threshold == INFINITY) & node->column;
        const int inner = (node->child > i) & (node->child < end - 1);
        valid &= (leaf | inner) & ((uint32_t)node->column < columns);
    }
    if (!valid)
        PyErr_SetString(PyExc_ValueError, "nodes must have columns below p and children among the nodes after them.");
    return valid ? 0 : -1;
}

static int check_roots(const int32_t *roots, Py_ssize_t trees, Py_ssize_t count)
{
    for (Py_ssize_t t = 0; t < trees; t++)
        if (roots[t] < 0 || roots[t] >= count) {
            PyErr_Format(PyExc_ValueError, "roots must have entries from 0 to %zd.", count - 1);
            return -1;
        }
    return 0;
}

/* predict(n, p, k, trees, count, x, roots, nodes, values, sums): adds the predictions of the trees to sums, one after the
 * other; `count` is the number of nodes. */
static PyObject *predict(PyObject *self, PyObject *args)
{
    PyObject *o[5];
    Py_buffer v[5];
    Py_ssize_t n, p, k, trees, count;
    (void)self;
    if (!PyArg_ParseTuple(args, "nnnnnOOOOO", &n, &p, &k, &trees, &count, &o[0], &o[1], &o[2], &o[3], &o[4]))
        return NULL;
    const ArraySpec specs[5] = {{"x", FLOAT64, READ, product(n, p)},
                                {"roots", INT32, READ, trees},
                                {"nodes", RECORD16, READ, count},
                                {"values", FLOAT64, READ, product(count, k)},
                                {"sums", FLOAT64, WRITE, product(n, k)}};
    if (acquire_buffers(o, v, specs, 5))
        return NULL;
    const int32_t *roots = v[1].buf;
    if (check_nodes(v[2].buf, count, p) || check_roots(roots, trees, count)) {
        release_buffers(v, 5);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t t = 0; t < trees; t++)
        predict_tree(v[2].buf, roots[t], v[0].buf, (size_t)n, (size_t)p, v[3].buf, (size_t)k, v[4].buf);
    Py_END_ALLOW_THREADS
    release_buffers(v, 5);
    Py_RETURN_NONE;
}

/* Rows that walk down a tree side by side, and their columns whose other value goes another way than the row itself. */
#define SIDE_BY_SIDE 16
typedef struct {
    uint32_t *left;  /* for each row and column, the last walk that its other value left */
    int32_t *row;    /* rows and columns in the order in which they do; there is memory for one more than there can be */
    int32_t *column;
    int32_t *node;   /* where the other value goes first */
    double *saved;   /* sums of each, before the leaf is added that the other columns share */
} Detours;

/* Walk down with some rows, to `at`; write their columns whose other value goes another way, and return their number. */
static size_t walk(const PredictNode *nodes, int32_t root, const double *rows, const double *others, size_t count, size_t p,
                   uint32_t number, Detours *found, int32_t *at)
{
    size_t n = 0;
    int moved = 1;
    for (size_t i = 0; i < count; i++)
        at[i] = root;
    while (moved) {
        moved = 0;
        for (size_t i = 0; i < count; i++) {
            const int32_t column = nodes[at[i]].column >> 1;
            const int32_t next = next_node(nodes, at[i], rows + i * p), other = next_node(nodes, at[i], others + i * p);
            uint32_t *left = found->left + i * p + (size_t)column;
            /* Written in any case, since a branch would often be mispredicted. */
            const int leaves = (next != other) & (*left != number);
            *left = leaves ? number : *left;
            found->row[n] = (int32_t)i;
            found->column[n] = column;
            found->node[n] = other;
            n += (size_t)leaves;
            moved |= next != at[i];
            at[i] = next;
        }
    }
    return n;
}

/* The leaves of rows with one column replaced, from where the other value leaves the way of the row. */
static void leaves_of(const PredictNode *nodes, const double *rows, const double *others, size_t p, const Detours *found,
                      size_t first, size_t count, int32_t *at)
{
    const double *row[LANES];
    int32_t own[LANES];
    double other[LANES];
    for (size_t i = 0; i < LANES; i++) {
        const size_t t = first + (i < count ? i : 0);
        own[i] = found->column[t];
        row[i] = rows + (size_t)found->row[t] * p;
        other[i] = others[(size_t)found->row[t] * p + (size_t)own[i]];
        at[i] = found->node[t];
    }
    int moved = 1;
    while (moved) {
        moved = 0;
        for (size_t i = 0; i < LANES; i++) {
            const PredictNode *node = nodes + at[i];
            const double value = (node->column >> 1) == own[i] ? other[i] : row[i][node->column >> 1];
            const int32_t next = node->child + !((value <= node->threshold) | ((value != value) & node->column & 1));
            moved |= next != at[i];
            at[i] = next;
        }
    }
}

/* Add the predictions of a tree for some rows: p lines of k sums for each, line j with column j replaced. */
static void add_replaced(const PredictNode *nodes, int32_t root, const double *rows, const double *others, size_t count,
                         size_t p, const double *values, size_t k, uint32_t number, Detours *found, double *sums)
{
    int32_t leaves[SIDE_BY_SIDE], at[LANES];
    const size_t n = walk(nodes, root, rows, others, count, p, number, found, leaves);
    for (size_t t = 0; t < n; t++)
        memcpy(found->saved + t * k, sums + ((size_t)found->row[t] * p + (size_t)found->column[t]) * k, sizeof(double) * k);
    for (size_t r = 0; r < count; r++) {
        const double *shared = values + (size_t)leaves[r] * k;
        double *own = sums + r * p * k;
        if (k == 1)
            for (size_t j = 0; j < p; j++)
                own[j] += shared[0];
        else
            for (size_t j = 0; j < p; j++)
                for (size_t i = 0; i < k; i++)
                    own[j * k + i] += shared[i];
    }
    for (size_t first = 0; first < n; first += LANES) {
        const size_t some = n - first < LANES ? n - first : LANES;
        leaves_of(nodes, rows, others, p, found, first, some, at);
        for (size_t t = first; t < first + some; t++)
            for (size_t i = 0; i < k; i++)
                sums[((size_t)found->row[t] * p + (size_t)found->column[t]) * k + i] =
                    found->saved[t * k + i] + values[(size_t)at[t - first] * k + i];
    }
}

static int make_detours(size_t p, size_t k, Detours *found)
{
    const size_t most = SIDE_BY_SIDE * p;
    found->left = calloc(most, sizeof(uint32_t));
    found->row = malloc((most + 1) * sizeof(int32_t));
    found->column = malloc((most + 1) * sizeof(int32_t));
    found->node = malloc((most + 1) * sizeof(int32_t));
    found->saved = malloc(most * k * sizeof(double));
    return found->left && found->row && found->column && found->node && found->saved ? 0 : -1;
}

static void free_detours(Detours *found)
{
    free(found->left);
    free(found->row);
    free(found->column);
    free(found->node);
    free(found->saved);
}

/* predict_replaced(n, p, k, trees, count, x, others, roots, nodes, values, sums): adds the predictions of the trees for
 * each row of x and each column, whose value is that of the row in `others`; sums has n rows of p lines of k numbers. */
static PyObject *predict_replaced(PyObject *self, PyObject *args)
{
    PyObject *o[6];
    Py_buffer v[6];
    Py_ssize_t n, p, k, trees, count;
    (void)self;
    if (!PyArg_ParseTuple(args, "nnnnnOOOOOO", &n, &p, &k, &trees, &count, &o[0], &o[1], &o[2], &o[3], &o[4], &o[5]))
        return NULL;
    const ArraySpec specs[6] = {{"x", FLOAT64, READ, product(n, p)},
                                {"others", FLOAT64, READ, product(n, p)},
                                {"roots", INT32, READ, trees},
                                {"nodes", RECORD16, READ, count},
                                {"values", FLOAT64, READ, product(count, k)},
                                {"sums", FLOAT64, WRITE, product(product(n, p), k)}};
    if (acquire_buffers(o, v, specs, 6))
        return NULL;
    const int32_t *roots = v[2].buf;
    if (check_nodes(v[3].buf, count, p) || check_roots(roots, trees, count) || product(n, trees) >= UINT32_MAX) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "n times trees must be below 2^32.");
        release_buffers(v, 6);
        return NULL;
    }
    Detours found;
    if (make_detours((size_t)p, (size_t)k, &found)) {
        free_detours(&found);
        release_buffers(v, 6);
        return PyErr_NoMemory();
    }
    Py_BEGIN_ALLOW_THREADS
    uint32_t number = 0;
    for (size_t t = 0; t < (size_t)trees; t++)
        for (size_t i = 0; i < (size_t)n; i += SIDE_BY_SIDE) {
            const size_t count = (size_t)n - i < SIDE_BY_SIDE ? (size_t)n - i : SIDE_BY_SIDE, start = i * (size_t)p;
            add_replaced(v[3].buf, roots[t], (double *)v[0].buf + start, (double *)v[1].buf + start, count, (size_t)p,
                         v[4].buf, (size_t)k, ++number, &found, (double *)v[5].buf + start * (size_t)k);
        }
    Py_END_ALLOW_THREADS
    free_detours(&found);
    release_buffers(v, 6);
    Py_RETURN_NONE;
}

#endif
