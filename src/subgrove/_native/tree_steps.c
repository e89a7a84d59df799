/* Step functions of tree ensembles: predictions of rows of which one column changes, for all columns in one pass.
 *
 * `ensemble` and `donors` check their arguments once and return capsules; the other functions take a block of rows, and
 * release the interpreter's lock. `_models/tree_ensemble/steps.py` is the caller. There is no fallback: without this
 * kernel the model predicts every row.
 */

#include "buffers.h"
#include "tree_donors.h"
#include "tree_lists.h"
#include "tree_masks.h"
#include "tree_steps.h"

dense_function dense_steps_plain;
margin_function mask_margins_plain;
loss_function loss_increase_plain;
mean_function mean_increase_plain;
#if defined(__GNUC__) && defined(__x86_64__)
dense_function dense_steps_wide;
margin_function mask_margins_wide;
loss_function loss_increase_wide;
mean_function mean_increase_wide;
#else
#define dense_steps_wide dense_steps_plain
#define mask_margins_wide mask_margins_plain
#define loss_increase_wide loss_increase_plain
#define mean_increase_wide mean_increase_plain
#endif

#define ENSEMBLE "subgrove.ensemble"
#define DONORS "subgrove.donors"

static void free_ensemble(Ensemble *e)
{
    if (!e)
        return;
    free(e->node), free(e->root), free(e->output), free(e->n_places), free(e->start), free(e->value), free(e->sets);
    free(e->is_level), free(e->tree), free(e->mask_node), free(e->parting), free(e->interval), free(e->run);
    free(e->missing), free(e->mask_value), free(e);
}

static void drop_ensemble(PyObject *capsule) { free_ensemble(PyCapsule_GetPointer(capsule, ENSEMBLE)); }

static void *copy_of(const void *source, size_t bytes)
{
    void *copy = malloc(bytes + 1);
    if (copy)
        memcpy(copy, source, bytes);
    return copy;
}

/* Every index must be within its array, and children follow their parents, so that every path ends. */
static int check_ensemble(Ensemble *e, const int32_t *column, const int32_t *cut, const int32_t *child, int64_t n_sets)
{
    for (int64_t j = 0; j < e->n_columns; j++) {
        if (e->n_places[j] < 1 || e->is_level[j] > 1 || (e->is_level[j] && e->n_places[j] > e->set_width)) {
            PyErr_SetString(PyExc_ValueError, "n_places must be positive, and at most the width of sets for levels.");
            return -1;
        }
        e->start[j + 1] = e->start[j] + e->n_places[j] + 2;
    }
    e->total = e->start[e->n_columns];
    if (e->total >= INT32_MAX / 2) {
        PyErr_SetString(PyExc_ValueError, "n_places must sum to less than 2^30.");
        return -1;
    }
    for (int64_t k = 0; k < e->n_nodes; k++) {
        const int leaf = column[k] == -1;
        int valid = leaf ? child[k] >= 0 && child[k] < e->n_values : column[k] >= 0 && column[k] < 2 * e->n_columns;
        if (valid && !leaf) {
            const int32_t j = column[k] >> 1;
            valid = child[k] > k && child[k] < e->n_nodes - 1 && cut[k] >= 0 &&
                    cut[k] < (e->is_level[j] ? n_sets : (int64_t)e->n_places[j] + 1);
        }
        if (!valid) {
            PyErr_Format(PyExc_ValueError, "node %zd has a column, cut or child out of range.", (Py_ssize_t)k);
            return -1;
        }
        e->node[k].column = column[k], e->node[k].cut = leaf ? 0 : cut[k], e->node[k].child = (uint32_t)child[k];
        if (!leaf && column[child[k]] == -1)
            e->node[k].child |= LEFT_LEAF;
        if (!leaf && column[child[k] + 1] == -1)
            e->node[k].child |= RIGHT_LEAF;
    }
    for (int64_t t = 0; t < e->n_trees; t++) {
        const int several = e->output[t] == -1;
        if (e->root[t] < 0 || e->root[t] >= e->n_nodes || e->output[t] >= e->n_outputs || e->output[t] < -1 ||
            e->width != (several ? e->n_outputs : 1)) {
            PyErr_Format(PyExc_ValueError, "tree %zd has a root or an output out of range.", (Py_ssize_t)t);
            return -1;
        }
    }
    return 0;
}

/* Leaves of trees that add to one output have its number in `cut`. */
static void mark_outputs(Ensemble *e)
{
    for (int64_t t = 0; t < e->n_trees; t++) {
        const int64_t end = t + 1 < e->n_trees ? e->root[t + 1] : e->n_nodes;
        for (int64_t k = e->root[t]; k < end; k++)
            if (e->node[k].column < 0)
                e->node[k].cut = e->output[t] < 0 ? 0 : e->output[t];
    }
}

/* ensemble(column, cut, child, root, output, n_places, is_level, value, sets, nodes, trees, columns, leaves, width,
 * outputs, n_sets, set_width, scale, any_missing, masks): nodes of a tree follow its root, trees one after the other. */
static PyObject *ensemble(PyObject *self, PyObject *args)
{
    PyObject *objects[9];
    Py_buffer views[9];
    Py_ssize_t nodes, trees, columns, leaves, outputs, n_sets, set_width;
    int width, any_missing, masks;
    double scale;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOOOOOOnnnninnndpp", &objects[0], &objects[1], &objects[2], &objects[3], &objects[4],
                          &objects[5], &objects[6], &objects[7], &objects[8], &nodes, &trees, &columns, &leaves, &width,
                          &outputs, &n_sets, &set_width, &scale, &any_missing, &masks))
        return NULL;
    if (nodes < 1 || trees < 1 || columns < 1 || leaves < 1 || outputs < 1 || width < 1 || n_sets < 0 || set_width < 0 ||
        columns > UINT16_MAX || nodes >= 1 << 30 || leaves >= 1 << 30) {
        PyErr_SetString(PyExc_ValueError, "numbers of nodes, trees, columns, leaves and outputs must be positive, and not too large.");
        return NULL;
    }
    const ArraySpec specs[9] = {{"column", INT32, READ, nodes},     {"cut", INT32, READ, nodes},
                                {"child", INT32, READ, nodes},      {"root", INT32, READ, trees},
                                {"output", INT32, READ, trees},     {"n_places", INT32, READ, columns},
                                {"is_level", UINT8, READ, columns}, {"value", INT64, READ, product(leaves, width)},
                                {"sets", UINT8, READ, product(n_sets, set_width)}};
    if (acquire_buffers(objects, views, specs, 9))
        return NULL;
    Ensemble *e = calloc(1, sizeof(Ensemble));
    PyObject *capsule = NULL;
    if (e) {
        e->n_trees = trees, e->n_columns = columns, e->n_outputs = outputs, e->n_values = leaves, e->n_nodes = nodes;
        e->set_width = set_width, e->width = width, e->scale = scale, e->any_missing = any_missing;
        e->any_sets = n_sets > 0;
        e->node = malloc(sizeof(Node) * (size_t)nodes);
        e->root = copy_of(views[3].buf, (size_t)views[3].len);
        e->output = copy_of(views[4].buf, (size_t)views[4].len);
        e->n_places = copy_of(views[5].buf, (size_t)views[5].len);
        e->is_level = copy_of(views[6].buf, (size_t)views[6].len);
        e->value = copy_of(views[7].buf, (size_t)views[7].len);
        e->sets = copy_of(views[8].buf, (size_t)views[8].len);
        e->start = calloc((size_t)columns + 1, sizeof(int64_t));
    }
    if (!e || !e->node || !e->root || !e->output || !e->n_places || !e->is_level || !e->value || !e->sets || !e->start)
        PyErr_NoMemory();
    else if (!check_ensemble(e, views[0].buf, views[1].buf, views[2].buf, n_sets)) {
        mark_outputs(e);
        if (masks && build_masks(e))
            PyErr_NoMemory();
        else
            capsule = PyCapsule_New(e, ENSEMBLE, drop_ensemble);
    }
    if (!capsule)
        free_ensemble(e);
    release_buffers(views, 9);
    return capsule;
}

static Ensemble *ensemble_of(PyObject *capsule) { return PyCapsule_GetPointer(capsule, ENSEMBLE); }

static PyObject *has_masks(PyObject *self, PyObject *capsule)
{
    const Ensemble *e = ensemble_of(capsule);
    (void)self;
    return e ? PyBool_FromLong(e->tree != NULL) : NULL;
}

/* Places of rows must be among those of their columns; one beyond the unused slot is the missing value. */
static int check_places(const Ensemble *e, const int32_t *places, Py_ssize_t rows)
{
    int outside = 0;
    for (Py_ssize_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < e->n_columns; j++) {
            const int32_t place = places[i * e->n_columns + j], n = e->n_places[j];
            outside |= place < 0 || place == n || place > n + 1 || (place == n + 1 && e->is_level[j]);
        }
    if (outside)
        PyErr_SetString(PyExc_ValueError, "places must be among those of their columns.");
    return outside ? -1 : 0;
}

/* Sums of whole numbers as numbers, in the same memory. */
static void to_numbers(void *sums, int64_t count, double scale)
{
    for (int64_t k = 0; k < count; k++) {
        int64_t whole;
        memcpy(&whole, (char *)sums + 8 * k, sizeof whole);
        const double number = (double)whole * scale;
        memcpy((char *)sums + 8 * k, &number, sizeof number);
    }
}

/* Whole numbers while they are summed: as large as the array that they become numbers in. */
static int32_t *allocate_lanes(const Ensemble *e, Py_ssize_t rows)
{
    return malloc(sizeof(int32_t) * 2 * (size_t)e->n_columns * ((size_t)rows + ROWS));
}

/* dense(ensemble, places, rows, own, steps): sums of leaves, (rows, outputs), and their differences at all places,
 * (rows, outputs, total + 1). */
static PyObject *dense(PyObject *self, PyObject *args)
{
    PyObject *capsule, *objects[3];
    Py_buffer views[3];
    Py_ssize_t rows;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOnOO", &capsule, &objects[0], &rows, &objects[1], &objects[2]))
        return NULL;
    const Ensemble *e = ensemble_of(capsule);
    if (!e)
        return NULL;
    if (!e->tree) {
        PyErr_SetString(PyExc_ValueError, "trees have too many leaves for masks.");
        return NULL;
    }
    const Py_ssize_t lines = product(rows, e->n_outputs);
    const ArraySpec specs[3] = {{"places", INT32, READ, product(rows, e->n_columns)},
                                {"own", FLOAT64, WRITE, lines},
                                {"steps", FLOAT64, WRITE, product(lines, e->total + 1)}};
    if (acquire_buffers(objects, views, specs, 3))
        return NULL;
    int32_t *lanes = NULL;
    if (!check_places(e, views[0].buf, rows) && !(lanes = allocate_lanes(e, rows)))
        PyErr_NoMemory();
    if (lanes) {
        Py_BEGIN_ALLOW_THREADS
        if (rows)
            (has_avx2_and_fma() ? dense_steps_wide : dense_steps_plain)(e, views[0].buf, rows, lanes, views[2].buf,
                                                                        views[1].buf);
        to_numbers(views[1].buf, lines, e->scale);
        Py_END_ALLOW_THREADS
    }
    release_buffers(views, 3);
    if (!lanes)
        return NULL;
    free(lanes);
    Py_RETURN_NONE;
}

/* margins(ensemble, places, rows, own) */
static PyObject *margins(PyObject *self, PyObject *args)
{
    PyObject *capsule, *objects[2];
    Py_buffer views[2];
    Py_ssize_t rows;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOnO", &capsule, &objects[0], &rows, &objects[1]))
        return NULL;
    const Ensemble *e = ensemble_of(capsule);
    if (!e)
        return NULL;
    const ArraySpec specs[2] = {{"places", INT32, READ, product(rows, e->n_columns)},
                                {"own", FLOAT64, WRITE, product(rows, e->n_outputs)}};
    if (acquire_buffers(objects, views, specs, 2))
        return NULL;
    const Py_ssize_t block = 512; /* rows for which a tree is in the first cache */
    int32_t *lanes = NULL;
    if (!check_places(e, views[0].buf, rows) && !(lanes = allocate_lanes(e, block)))
        PyErr_NoMemory();
    if (lanes) {
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t i = 0; i < rows; i += block) {
            const Py_ssize_t n = rows - i < block ? rows - i : block;
            const int32_t *places = (const int32_t *)views[0].buf + i * e->n_columns;
            int64_t *own = (int64_t *)views[1].buf + i * e->n_outputs;
            if (!e->tree)
                walk_margins(e, places, n, own);
            else
                (has_avx2_and_fma() ? mask_margins_wide : mask_margins_plain)(e, places, n, lanes, own);
        }
        to_numbers(views[1].buf, rows * e->n_outputs, e->scale);
        Py_END_ALLOW_THREADS
    }
    release_buffers(views, 2);
    if (!lanes)
        return NULL;
    free(lanes);
    Py_RETURN_NONE;
}

/* lists(ensemble, places, rows, room, own, pointers, starts, steps, missing): returns the number of
 * entries; if that is more than `room`, entries beyond it were not written. */
static PyObject *lists(PyObject *self, PyObject *args)
{
    PyObject *capsule, *objects[6];
    Py_buffer views[6];
    Py_ssize_t rows, room;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOnnOOOOO", &capsule, &objects[0], &rows, &room, &objects[1], &objects[2], &objects[3],
                          &objects[4], &objects[5]))
        return NULL;
    const Ensemble *e = ensemble_of(capsule);
    if (!e)
        return NULL;
    const Py_ssize_t outputs = (Py_ssize_t)e->n_outputs, p = (Py_ssize_t)e->n_columns, cells = product(rows, p);
    const ArraySpec specs[6] = {{"places", INT32, READ, cells},
                                {"own", FLOAT64, WRITE, product(rows, outputs)},
                                {"pointers", INT64, WRITE, cells < 0 ? -1 : cells + 1},
                                {"starts", INT32, WRITE, room},
                                {"steps", FLOAT64, WRITE, product(room, outputs)},
                                {"missing", FLOAT64, WRITE, product(cells, outputs)}};
    if (acquire_buffers(objects, views, specs, 6))
        return NULL;
    const int failed = check_places(e, views[0].buf, rows);
    int64_t entry = 0;
    if (!failed) {
        ListMemory memory;
        Py_BEGIN_ALLOW_THREADS
        entry = allocate_lists(e, &memory) ? -1 : 0;
        ((int64_t *)views[2].buf)[0] = 0;
        for (Py_ssize_t i = 0; i < rows && entry >= 0; i += LIST_ROWS) {
            const Py_ssize_t n = rows - i < LIST_ROWS ? rows - i : LIST_ROWS;
            entry = list_steps(e, (const int32_t *)views[0].buf + i * p, n, &memory, (int64_t *)views[2].buf + i * p,
                               views[3].buf, views[4].buf, entry, room, (double *)views[5].buf + i * p * outputs,
                               (int64_t *)views[1].buf + i * outputs);
        }
        free_lists(&memory);
        to_numbers(views[1].buf, rows * outputs, e->scale);
        Py_END_ALLOW_THREADS
        if (entry < 0)
            PyErr_NoMemory();
    }
    release_buffers(views, 6);
    return failed || entry < 0 ? NULL : PyLong_FromLongLong(entry);
}

/* Entries of rows must be ranges of an array. */
static int check_pointers(const int64_t *pointers, Py_ssize_t count, Py_ssize_t entries)
{
    int wrong = pointers[0] != 0 || pointers[count] > entries;
    for (Py_ssize_t k = 0; k < count; k++)
        wrong |= pointers[k + 1] < pointers[k];
    if (wrong)
        PyErr_SetString(PyExc_ValueError, "pointers must increase from 0 to at most the number of entries.");
    return wrong ? -1 : 0;
}

/* increase(loss, margins, y, rows, pointers, steps, entries, increase, shift): pointers has a range for each row. */
static PyObject *increase(PyObject *self, PyObject *args)
{
    PyObject *objects[6];
    Py_buffer views[6];
    Py_ssize_t rows, entries;
    int loss;
    (void)self;
    if (!PyArg_ParseTuple(args, "iOOnOOnOO", &loss, &objects[0], &objects[1], &rows, &objects[2], &objects[3], &entries,
                          &objects[4], &objects[5]))
        return NULL;
    if (loss < SQUARED_ERROR || loss > BRIER) {
        PyErr_SetString(PyExc_ValueError, "loss must be the number of a loss.");
        return NULL;
    }
    const ArraySpec specs[6] = {{"margins", FLOAT64, READ, rows},     {"y", FLOAT64, READ, rows},
                                {"pointers", INT64, READ, rows + 1},  {"steps", FLOAT64, READ, entries},
                                {"increase", FLOAT64, WRITE, entries}, {"shift", FLOAT64, WRITE, entries}};
    if (acquire_buffers(objects, views, specs, 6))
        return NULL;
    const int64_t *pointers = views[2].buf;
    const int failed = check_pointers(pointers, rows, entries);
    if (!failed) {
        Py_BEGIN_ALLOW_THREADS
        loss_function *function = has_avx2_and_fma() ? loss_increase_wide : loss_increase_plain;
        for (Py_ssize_t i = 0; i < rows; i++)
            function(loss, ((double *)views[0].buf)[i], ((double *)views[1].buf)[i], (double *)views[3].buf + pointers[i],
                     pointers[i + 1] - pointers[i], (double *)views[4].buf + pointers[i],
                     (double *)views[5].buf + pointers[i]);
        Py_END_ALLOW_THREADS
    }
    release_buffers(views, 6);
    if (failed)
        return NULL;
    Py_RETURN_NONE;
}

#define HELD 9

typedef struct {
    Donors donors;
    Py_buffer views[HELD];
    PyObject *ensemble;
} HeldDonors;

static void free_donors(HeldDonors *held)
{
    if (!held)
        return;
    release_buffers(held->views, HELD);
    Py_XDECREF(held->ensemble);
    free(held->donors.pool), free(held->donors.buckets), free(held);
}

static void drop_donors(PyObject *capsule) { free_donors(PyCapsule_GetPointer(capsule, DONORS)); }

/* Pools of sorted keys, with buckets of equal width in which keys are looked up. */
static int build_pools(Donors *d, const int64_t *pointers, const double *keys)
{
    d->pool = calloc((size_t)d->n_pools + 1, sizeof(Pool));
    d->buckets = malloc(sizeof(int32_t) * (size_t)(2 * d->n_keys + 2 * d->n_pools + 1));
    if (!d->pool || !d->buckets) {
        PyErr_NoMemory();
        return -1;
    }
    int32_t *bucket = d->buckets;
    for (int64_t g = 0; g < d->n_pools; g++) {
        Pool *pool = d->pool + g;
        pool->key = keys + pointers[g], pool->first = pointers[g], pool->size = pointers[g + 1] - pointers[g];
        pool->n_buckets = 2 * pool->size, pool->bucket = bucket;
        for (int64_t k = 1; k < pool->size; k++)
            if (!(pool->key[k - 1] <= pool->key[k])) {
                PyErr_SetString(PyExc_ValueError, "keys must be sorted within pools.");
                return -1;
            }
        if (!pool->size)
            continue;
        const double width = pool->key[pool->size - 1] - pool->key[0];
        pool->low = pool->key[0];
        pool->inverse = width > 1e-300 && width < 1e300 ? (double)pool->n_buckets / width : 0.0;
        int64_t at = 0;
        for (int64_t b = 0; b < pool->n_buckets; b++) {
            while (at < pool->size && (pool->key[at] - pool->low) * pool->inverse < (double)b)
                at++;
            bucket[b] = (int32_t)at;
        }
        bucket += pool->n_buckets;
    }
    return 0;
}

static int check_donors(const Donors *d)
{
    for (int64_t j = 0; j < d->n_columns; j++) {
        const int64_t groups = d->n_groups[j], end = d->kind[j] == TABLE ? d->n_cumulated : d->n_pools;
        const int64_t size = d->kind[j] == TABLE ? (int64_t)d->n_places[j] + 2 : 1;
        if (d->kind[j] == NO_DONORS)
            continue;
        if (d->kind[j] > POOL || groups < 1 || d->first[j] < 0 || groups > end || d->first[j] > end - groups * size) {
            PyErr_Format(PyExc_ValueError, "the donors of column %zd are out of range.", (Py_ssize_t)j);
            return -1;
        }
    }
    return 0;
}

/* donors(ensemble, kind, n_groups, first, cumulated, n_cumulated, cut, bound, pointers, n_pools, keys, n_keys): the
 * arrays are held, and must not change. */
static PyObject *donors(PyObject *self, PyObject *args)
{
    PyObject *capsule, *objects[8], *made = NULL;
    Py_ssize_t n_cumulated, n_pools, n_keys;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOOnOOOnOn", &capsule, &objects[0], &objects[1], &objects[2], &objects[3], &n_cumulated,
                          &objects[4], &objects[5], &objects[6], &n_pools, &objects[7], &n_keys))
        return NULL;
    const Ensemble *e = ensemble_of(capsule);
    if (!e)
        return NULL;
    const Py_ssize_t p = (Py_ssize_t)e->n_columns, slots = (Py_ssize_t)e->total + 1;
    const ArraySpec specs[8] = {{"kind", UINT8, READ, p},
                                {"n_groups", INT64, READ, p},
                                {"first", INT64, READ, p},
                                {"cumulated", FLOAT64, READ, n_cumulated},
                                {"cut", FLOAT64, READ, slots},
                                {"bound", FLOAT64, READ, slots},
                                {"pointers", INT64, READ, n_pools < 0 || n_pools > INT32_MAX ? -1 : n_pools + 1},
                                {"keys", FLOAT64, READ, n_keys > INT32_MAX / 2 ? -1 : n_keys}};
    HeldDonors *held = calloc(1, sizeof(HeldDonors));
    if (!held)
        return PyErr_NoMemory();
    if (acquire_buffers(objects, held->views, specs, 8)) {
        memset(held->views, 0, sizeof held->views);
        free_donors(held);
        return NULL;
    }
    Donors *d = &held->donors;
    Py_INCREF(capsule);
    held->ensemble = capsule;
    d->n_columns = p, d->total = e->total, d->n_places = e->n_places, d->start = e->start;
    d->n_keys = n_keys, d->n_pools = n_pools, d->n_cumulated = n_cumulated;
    d->kind = held->views[0].buf, d->n_groups = held->views[1].buf, d->first = held->views[2].buf;
    d->cumulated = held->views[3].buf, d->cut = held->views[4].buf, d->bound = held->views[5].buf;
    if (!check_donors(d) && !check_pointers(held->views[6].buf, n_pools, n_keys) &&
        !build_pools(d, held->views[6].buf, held->views[7].buf))
        made = PyCapsule_New(held, DONORS, drop_donors);
    if (!made)
        free_donors(held);
    return made;
}

static int check_groups(const Donors *d, const int32_t *group, Py_ssize_t rows)
{
    int outside = 0;
    for (Py_ssize_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < d->n_columns; j++)
            outside |= d->kind[j] && (group[i * d->n_columns + j] < 0 || group[i * d->n_columns + j] >= d->n_groups[j]);
    if (outside)
        PyErr_SetString(PyExc_ValueError, "group must be a subgroup of each row.");
    return outside ? -1 : 0;
}

/* Pointers and starts of steps: ranges within the arrays, and places of their columns, increasing. */
static int check_steps(const Donors *d, const Block *block, Py_ssize_t entries)
{
    if (check_pointers(block->pointers, block->rows * d->n_columns, entries))
        return -1;
    int outside = 0;
    for (int64_t at = 0; at < block->rows * d->n_columns; at++) {
        int32_t before = -1;
        for (int64_t k = block->pointers[at]; k < block->pointers[at + 1]; k++) {
            outside |= block->starts[k] <= before || block->starts[k] >= d->n_places[at % d->n_columns];
            before = block->starts[k];
        }
    }
    if (outside)
        PyErr_SetString(PyExc_ValueError, "starts must be increasing places of their columns.");
    return outside ? -1 : 0;
}

/* means(donors, rows, group, base, spread, low, high, weight, pointers, starts, entries, increase, shift,
 * missing_increase, missing_shift, mean, mean_shift, received, pool_received): base to high, weight, pointers to starts,
 * missing_increase and _shift, and what is received may be None. */
static PyObject *means(PyObject *self, PyObject *args)
{
    PyObject *capsule, *objects[16];
    Py_buffer views[16];
    Py_ssize_t rows, entries;
    (void)self;
    if (!PyArg_ParseTuple(args, "OnOOOOOOOOnOOOOOOOO", &capsule, &rows, &objects[0], &objects[1], &objects[2],
                          &objects[3], &objects[4], &objects[5], &objects[6], &objects[7], &entries, &objects[8],
                          &objects[9], &objects[10], &objects[11], &objects[12], &objects[13], &objects[14], &objects[15]))
        return NULL;
    HeldDonors *held = PyCapsule_GetPointer(capsule, DONORS);
    if (!held)
        return NULL;
    const Donors *d = &held->donors;
    const Py_ssize_t cells = product(rows, d->n_columns);
    const int listed = objects[6] != Py_None;
    const Access optional = READ_OR_NONE;
    if (!listed && entries != product(rows, d->total + 1)) {
        PyErr_SetString(PyExc_ValueError, "entries must be those of all places without pointers.");
        return NULL;
    }
    for (int k = 1; k < 5; k++)
        if ((objects[k] == Py_None) != (objects[1] == Py_None)) {
            PyErr_SetString(PyExc_ValueError, "base, spread, low and high must all be arrays, or all None.");
            return NULL;
        }
    for (int k = 7; k < 12; k++)
        if (k != 8 && k != 9 && (objects[k] != Py_None) != listed) {
            PyErr_SetString(PyExc_ValueError, "pointers, starts, missing_increase and missing_shift go together.");
            return NULL;
        }
    const ArraySpec specs[16] = {{"group", INT32, READ, cells},
                                 {"base", FLOAT64, optional, cells},
                                 {"spread", FLOAT64, optional, cells},
                                 {"low", FLOAT64, optional, cells},
                                 {"high", FLOAT64, optional, cells},
                                 {"weight", FLOAT64, optional, rows},
                                 {"pointers", INT64, optional, cells < 0 ? -1 : cells + 1},
                                 {"starts", INT32, optional, entries},
                                 {"increase", FLOAT64, READ, entries},
                                 {"shift", FLOAT64, READ, entries},
                                 {"missing_increase", FLOAT64, optional, cells},
                                 {"missing_shift", FLOAT64, optional, cells},
                                 {"mean", FLOAT64, WRITE, cells},
                                 {"mean_shift", FLOAT64, WRITE, cells},
                                 {"received", FLOAT64, objects[14] == Py_None ? optional : WRITE, d->n_cumulated},
                                 {"pool_received", FLOAT64, objects[15] == Py_None ? optional : WRITE, d->n_keys}};
    if (acquire_buffers(objects, views, specs, 16))
        return NULL;
    const Block block = {rows,          views[0].buf,  views[1].buf,  views[2].buf,  views[3].buf,  views[4].buf,
                         views[5].buf,  views[6].buf,  views[7].buf,  views[8].buf,  views[9].buf,  views[10].buf,
                         views[11].buf, views[12].buf, views[13].buf, views[14].buf, views[15].buf};
    const int failed = check_groups(d, block.group, rows) || (listed && check_steps(d, &block, entries));
    if (!failed) {
        Py_BEGIN_ALLOW_THREADS
        (has_avx2_and_fma() ? mean_increase_wide : mean_increase_plain)(d, &block);
        Py_END_ALLOW_THREADS
    }
    release_buffers(views, 16);
    if (failed)
        return NULL;
    Py_RETURN_NONE;
}

/* look_up(ensemble, rows, outputs, pointers, starts, entries, steps, missing, columns, n_columns, wanted, n_wanted,
 * found): steps at wanted places, (rows, columns, wanted), as (rows, columns, wanted, outputs). */
static PyObject *look_up(PyObject *self, PyObject *args)
{
    PyObject *capsule, *objects[7];
    Py_buffer views[7];
    Py_ssize_t rows, outputs, entries, count, n_wanted;
    (void)self;
    if (!PyArg_ParseTuple(args, "OnnOOnOOOnOnO", &capsule, &rows, &outputs, &objects[0], &objects[1], &entries,
                          &objects[2], &objects[3], &objects[4], &count, &objects[5], &n_wanted, &objects[6]))
        return NULL;
    const Ensemble *e = ensemble_of(capsule);
    if (!e)
        return NULL;
    const Py_ssize_t p = (Py_ssize_t)e->n_columns, cells = product(rows, p), cells_wanted = product(product(rows, count), n_wanted);
    const ArraySpec specs[7] = {{"pointers", INT64, READ, cells < 0 ? -1 : cells + 1},
                                {"starts", INT32, READ, entries},
                                {"steps", FLOAT64, READ, product(entries, outputs)},
                                {"missing", FLOAT64, READ, product(cells, outputs)},
                                {"columns", INT64, READ, count},
                                {"wanted", INT32, READ, cells_wanted},
                                {"found", FLOAT64, WRITE, product(cells_wanted, outputs)}};
    if (acquire_buffers(objects, views, specs, 7))
        return NULL;
    const int64_t *pointers = views[0].buf, *columns = views[4].buf;
    const int failed = check_pointers(pointers, cells, entries) || check_indices(columns, count, p, "columns");
    if (!failed) {
        const int32_t *starts = views[1].buf, *wanted = views[5].buf;
        const double *steps = views[2].buf, *missing = views[3].buf;
        double *found = views[6].buf;
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t i = 0; i < rows; i++)
            for (Py_ssize_t c = 0; c < count; c++) {
                const int64_t at = i * p + columns[c], from = pointers[at], n = pointers[at + 1] - from;
                for (Py_ssize_t k = 0; k < n_wanted; k++, wanted++, found += outputs) {
                    int64_t low = 0, high = n; /* number of steps that start at or before the place */
                    while (low < high) {
                        const int64_t middle = (low + high) / 2;
                        if (starts[from + middle] <= *wanted)
                            low = middle + 1;
                        else
                            high = middle;
                    }
                    const double *source = *wanted > e->n_places[columns[c]] ? missing + at * outputs
                                           : low                             ? steps + (from + low - 1) * outputs
                                                                             : NULL;
                    for (Py_ssize_t v = 0; v < outputs; v++)
                        found[v] = source ? source[v] : 0.0;
                }
            }
        Py_END_ALLOW_THREADS
    }
    release_buffers(views, 7);
    if (failed)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"ensemble", ensemble, METH_VARARGS, "Check and copy the nodes of an ensemble."},
    {"has_masks", has_masks, METH_O, "Whether trees are small enough for `dense`."},
    {"dense", dense, METH_VARARGS, "Steps of rows at all places, for small trees."},
    {"lists", lists, METH_VARARGS, "Steps of rows at the places where they change, for trees of any size."},
    {"margins", margins, METH_VARARGS, "Sums of the leaves of rows."},
    {"increase", increase, METH_VARARGS, "Increase of a loss at steps."},
    {"donors", donors, METH_VARARGS, "Check the distributions of received values."},
    {"means", means, METH_VARARGS, "Means of increases over received values."},
    {"look_up", look_up, METH_VARARGS, "Steps at wanted places."},
    {NULL, NULL, 0, NULL}};

KERNEL_MODULE(_tree_steps, methods)
