/* Rows of which at most two columns keep them from a leaf, counted for all leaves of a tree ensemble.
 *
 * Partial dependence on a pair of columns is a sum over leaves: the value of the leaf times the share of rows that
 * satisfy its conditions on all other columns. `_models/tree_ensemble/pairs.py` is the caller. There is no fallback:
 * without this kernel the model predicts.
 */

#include "buffers.h"

typedef struct {
    const int32_t *column, *cut, *child, *root, *n_places, *places, *path;
    const uint8_t *is_level, *sets;
    const int64_t *path_start, *slot;
    Py_ssize_t nodes, trees, columns, leaves, n_sets, set_width, rows;
    int32_t *counts;
} Pairs;

typedef struct {
    int32_t node, first, second; /* columns whose conditions are violated, or -1 */
} Visit;

/* Every index must be within its array, and children follow their parents, so that every path ends. */
static int check_nodes(const Pairs *e)
{
    for (Py_ssize_t k = 0; k < e->nodes; k++) {
        int valid = e->column[k] == -1 ? e->child[k] >= 0 && e->child[k] < e->leaves
                                       : e->column[k] >= 0 && e->column[k] < 2 * e->columns && e->child[k] > k &&
                                             e->child[k] < e->nodes - 1 && e->cut[k] >= 0;
        if (valid && e->column[k] >= 0 && e->is_level[e->column[k] >> 1])
            valid = e->cut[k] < e->n_sets;
        if (!valid) {
            PyErr_Format(PyExc_ValueError, "node %zd has a column, cut or child out of range.", k);
            return -1;
        }
    }
    for (Py_ssize_t t = 0; t < e->trees; t++)
        if (e->root[t] < 0 || e->root[t] >= e->nodes) {
            PyErr_Format(PyExc_ValueError, "tree %zd has a root out of range.", t);
            return -1;
        }
    return 0;
}

static int check_pairs(const Pairs *e, Py_ssize_t entries, Py_ssize_t slots)
{
    int wrong = e->path_start[0] != 0 || e->path_start[e->leaves] != entries || e->slot[0] != 0 ||
                e->slot[e->leaves] != slots;
    for (Py_ssize_t l = 0; l < e->leaves && !wrong; l++) {
        const int64_t d = e->path_start[l + 1] - e->path_start[l];
        wrong = d < 0 || d > e->columns || e->slot[l + 1] - e->slot[l] != 1 + d + d * (d - 1) / 2;
    }
    if (wrong) {
        PyErr_SetString(PyExc_ValueError, "path_start and slot must fit the columns on the paths of leaves.");
        return -1;
    }
    for (Py_ssize_t i = 0; i < e->rows; i++)
        for (Py_ssize_t j = 0; j < e->columns; j++) {
            const int32_t place = e->places[i * e->columns + j], n = e->n_places[j];
            wrong |= place < 0 || place > n + 1 || (e->is_level[j] && (place >= n || place >= e->set_width));
        }
    if (wrong)
        PyErr_SetString(PyExc_ValueError, "places must be among those of their columns.");
    return wrong ? -1 : 0;
}

static inline int goes_left(const Pairs *e, const int32_t *place, int32_t node)
{
    const int32_t code = e->column[node], at = place[code >> 1];
    if (e->is_level[code >> 1])
        return e->sets[e->cut[node] * e->set_width + at];
    return at > e->n_places[code >> 1] ? code & 1 : at < e->cut[node];
}

/* Position of a column among those on the path of a leaf; -1 if it is not on it. */
static inline int64_t position(const Pairs *e, int32_t leaf, int32_t column)
{
    for (int64_t k = e->path_start[leaf]; k < e->path_start[leaf + 1]; k++)
        if (e->path[k] == column)
            return k - e->path_start[leaf];
    return -1;
}

/* Slots of a leaf: no violated column, one, two (the pairs of positions (0, 1), (0, 2), ..., (1, 2), ...). */
static inline int add_visit(const Pairs *e, int32_t leaf, const Visit *visit)
{
    const int64_t d = e->path_start[leaf + 1] - e->path_start[leaf];
    int32_t *counts = e->counts + e->slot[leaf];
    if (visit->first < 0) {
        counts[0]++;
        return 0;
    }
    int64_t a = position(e, leaf, visit->first), b = visit->second < 0 ? a : position(e, leaf, visit->second);
    if (a < 0 || b < 0)
        return -1;
    if (a > b) {
        const int64_t other = a;
        a = b, b = other;
    }
    counts[a == b ? 1 + a : 1 + d + a * d - a * (a + 1) / 2 + b - a - 1]++;
    return 0;
}

static int count_row(const Pairs *e, const int32_t *place, int32_t root, Visit *stack)
{
    int64_t depth = 1;
    stack[0] = (Visit){root, -1, -1};
    while (depth) {
        Visit visit = stack[--depth];
        while (e->column[visit.node] >= 0) {
            const int32_t column = e->column[visit.node] >> 1, left = e->child[visit.node];
            const int own = !goes_left(e, place, visit.node);
            Visit other = {left + !own, visit.first, visit.second};
            int allowed = column == visit.first || column == visit.second;
            if (!allowed && visit.first < 0)
                other.first = column, allowed = 1;
            else if (!allowed && visit.second < 0)
                other.second = column, allowed = 1;
            if (allowed)
                stack[depth++] = other;
            visit.node = left + own;
        }
        if (add_visit(e, e->child[visit.node], &visit))
            return -1;
    }
    return 0;
}

/* count(column, cut, child, root, n_places, is_level, sets, places, path_start, path, slot, counts, nodes, trees,
 * columns, leaves, entries, slots, n_sets, set_width, rows): adds the rows to `counts`. */
static PyObject *count(PyObject *self, PyObject *args)
{
    PyObject *o[12];
    Py_buffer v[12];
    Py_ssize_t entries, slots;
    Pairs e;
    (void)self;
    memset(&e, 0, sizeof e);
    if (!PyArg_ParseTuple(args, "OOOOOOOOOOOOnnnnnnnnn", &o[0], &o[1], &o[2], &o[3], &o[4], &o[5], &o[6], &o[7], &o[8],
                          &o[9], &o[10], &o[11], &e.nodes, &e.trees, &e.columns, &e.leaves, &entries, &slots,
                          &e.n_sets, &e.set_width, &e.rows))
        return NULL;
    if (e.nodes < 1 || e.columns < 1 || e.leaves < 1 || e.columns > INT32_MAX / 4) {
        PyErr_SetString(PyExc_ValueError, "numbers of nodes, columns and leaves must be positive.");
        return NULL;
    }
    const ArraySpec specs[12] = {{"column", INT32, READ, e.nodes},
                                 {"cut", INT32, READ, e.nodes},
                                 {"child", INT32, READ, e.nodes},
                                 {"root", INT32, READ, e.trees},
                                 {"n_places", INT32, READ, e.columns},
                                 {"is_level", UINT8, READ, e.columns},
                                 {"sets", UINT8, READ, product(e.n_sets, e.set_width)},
                                 {"places", INT32, READ, product(e.rows, e.columns)},
                                 {"path_start", INT64, READ, e.leaves + 1},
                                 {"path", INT32, READ, entries},
                                 {"slot", INT64, READ, e.leaves + 1},
                                 {"counts", INT32, WRITE, slots}};
    if (acquire_buffers(o, v, specs, 12))
        return NULL;
    e.column = v[0].buf, e.cut = v[1].buf, e.child = v[2].buf, e.root = v[3].buf, e.n_places = v[4].buf;
    e.is_level = v[5].buf, e.sets = v[6].buf, e.places = v[7].buf, e.path_start = v[8].buf, e.path = v[9].buf;
    e.slot = v[10].buf, e.counts = v[11].buf;
    int failed = check_nodes(&e) || check_pairs(&e, entries, slots);
    Visit *stack = failed ? NULL : malloc(sizeof(Visit) * ((size_t)e.nodes + 1));
    if (!failed && !stack) {
        PyErr_NoMemory();
        failed = 1;
    }
    if (!failed) {
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t t = 0; t < e.trees && !failed; t++) /* a tree and its counts stay in the cache */
            for (Py_ssize_t i = 0; i < e.rows && !failed; i++)
                failed = count_row(&e, e.places + i * e.columns, e.root[t], stack);
        Py_END_ALLOW_THREADS
        if (failed)
            PyErr_SetString(PyExc_ValueError, "path lacks a column that is on the path of a leaf.");
    }
    free(stack);
    release_buffers(v, 12);
    if (failed)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"count", count, METH_VARARGS, "Count rows by leaf and by the columns whose conditions they violate."},
    {NULL, NULL, 0, NULL}};

KERNEL_MODULE(_tree_pairs, methods)
