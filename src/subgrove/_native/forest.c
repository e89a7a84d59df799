/* Growing a regression forest, and predicting with it.
 *
 * A node with a weight below `min_node_weight` is not split. At a split `max_features` columns are drawn; if all are
 * constant in the node, more. Outputs are centered by the caller. Every tree has its own seed, so trees can be grown in
 * any order. `forest_split.h` searches for the best cut of a node, `forest_predict.h` predicts. There is no fallback that
 * gives the same forest: without this file scikit-learn's is used.
 */

#include "buffers.h"
#include "forest_predict.h"
#include "forest_split.h"
#include <math.h>

#define MIN_DECREASE 1e-12 /* smallest decrease of a node's sum of squares by a split, relative to it */
#define MIN_SPREAD 1e-26   /* smallest variance of a node relative to its squared mean: below it is rounding */
#define MAX_ROWS (1 << 26)
#define ROWS_AT_ONCE 16 /* out-of-bag rows that are predicted in turn */

typedef struct {
    int32_t *feature;  /* -1 in leaves */
    int32_t *child;    /* left child; the right one is the next node */
    double *threshold; /* values up to it go left */
    uint32_t *cut;     /* ranks up to it go left */
    uint8_t *missing_left;
    double *values; /* k per node */
    int32_t count;
} Nodes;

/* Half-way between the values on both sides of a cut; infinite if only missing values are on the right. */
static double threshold_of(const Task *task, const Cut *cut)
{
    const double *values = task->values + task->starts[cut->feature];
    if (cut->high == task->missing[cut->feature])
        return INFINITY;
    double low = values[cut->low], high = values[cut->high], middle = low + (high - low) / 2.0;
    return middle < high ? middle : low; /* between neighbouring floats the middle may be the upper one */
}

/* Weights and centered outputs of the rows of a node. Writes their mean and sum of squares; returns their weight. */
static inline double center_outputs(const Task *task, Workspace *work, const uint32_t *rows, size_t m, const size_t k,
                                    double *mean, double *squares)
{
    double all = 0.0;
    memset(mean, 0, sizeof(double) * k);
    *squares = 0.0;
    for (size_t i = 0; i < m; i++) {
        const double *output = task->outputs + (size_t)rows[i] * k;
        double weight = work->weights[rows[i]];
        work->sums[i * (k + 1) + k] = weight;
        all += weight;
        for (size_t j = 0; j < k; j++)
            mean[j] += weight * output[j];
    }
    for (size_t j = 0; j < k; j++)
        mean[j] /= all;
    for (size_t i = 0; i < m; i++) {
        const double *output = task->outputs + (size_t)rows[i] * k;
        for (size_t j = 0; j < k; j++) {
            double away = output[j] - mean[j], sum = work->sums[i * (k + 1) + k] * away;
            work->sums[i * (k + 1) + j] = sum;
            *squares += sum * away;
        }
    }
    return all;
}

/* The same for classes: weights and classes of the rows, the shares of the classes, and the mean of their indicators. */
static double count_classes(const Task *task, Workspace *work, const uint32_t *rows, size_t m, double *mean,
                            double *squares)
{
    double all = 0.0, within = 0.0;
    memset(work->shares, 0, sizeof(double) * task->k);
    for (size_t i = 0; i < m; i++) {
        double weight = work->weights[rows[i]];
        work->sums[i] = weight;
        work->codes[i] = task->codes[rows[i]];
        work->shares[work->codes[i]] += weight;
        all += weight;
    }
    for (size_t c = 0; c < task->k; c++) {
        within += work->shares[c] * work->shares[c];
        work->shares[c] /= all;
        mean[c] = work->shares[c] + task->outputs[c];
    }
    *squares = all - within / all;
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

/* Move rows that go left to the front, keeping the order within each side; returns their number. */
static size_t partition_rows(const Task *task, Workspace *work, const Cut *cut, uint32_t *rows, size_t m)
{
    const uint32_t *ranks = task->ranks + (size_t)cut->feature * task->n;
    uint32_t missing = task->missing[cut->feature];
    size_t left = 0, right = 0;
    for (size_t i = 0; i < m; i++) {
        uint32_t row = rows[i], rank = ranks[row];
        /* Written to both sides, since a branch would be mispredicted half of the time. */
        size_t goes_left = rank == missing ? cut->missing_left : rank <= cut->low;
        rows[left] = row;
        work->scratch[right] = row;
        left += goes_left;
        right += 1 - goes_left;
    }
    memcpy(rows + left, work->scratch, sizeof(uint32_t) * right);
    return left;
}

/* Draw the bootstrap sample of a tree; returns the number of distinct rows. */
static size_t draw_bootstrap(const Task *task, Workspace *work, uint64_t *state)
{
    size_t m = 0;
    memset(work->weights, 0, sizeof(double) * task->n);
    for (size_t i = 0; i < task->n_drawn; i++)
        work->weights[below(state, (uint32_t)task->n)] += 1.0;
    for (size_t i = 0; i < task->n; i++)
        if (work->weights[i] > 0.0)
            work->rows[m++] = (uint32_t)i;
    return m;
}

static void grow_tree(const Task *task, Workspace *work, Nodes *nodes, uint64_t seed)
{
    const size_t k = task->k;
    uint64_t state = seed;
    size_t m = draw_bootstrap(task, work, &state), depth = 0;
    for (size_t c = 0; c < task->p; c++)
        work->columns[c] = (uint32_t)c;
    uint32_t *stack = work->stack; /* entries of (node, first row, number of rows) */
    stack[0] = 0, stack[1] = 0, stack[2] = (uint32_t)m;
    depth = 1, nodes->count = 1;
    while (depth) {
        uint32_t *top = stack + 3 * --depth;
        int32_t node = (int32_t)top[0];
        size_t first = top[1];
        m = top[2];
        uint32_t *rows = work->rows + first;
        double *mean = nodes->values + (size_t)node * k, squares;
        double all = task->codes ? count_classes(task, work, rows, m, mean, &squares)
                     : k == 2    ? center_outputs(task, work, rows, m, 2, mean, &squares)
                                 : center_outputs(task, work, rows, m, k, mean, &squares);
        nodes->feature[node] = -1;
        nodes->child[node] = -1;
        double level = 0.0;
        for (size_t j = 0; j < k; j++)
            level += mean[j] * mean[j];
        /* Equal outputs differ from their mean by rounding, which must not be split: it would grow chains of nodes. */
        if (all < task->min_node_weight || m < 2 || !(squares > MIN_SPREAD * all * level))
            continue;
        Cut cut = best_cut(task, work, rows, m, all, &state);
        if (cut.feature < 0 || !(cut.square * all > MIN_DECREASE * squares * cut.product))
            continue;
        nodes->feature[node] = cut.feature;
        nodes->threshold[node] = threshold_of(task, &cut);
        nodes->cut[node] = rank_below(task, &cut, nodes->threshold[node]);
        size_t left = partition_rows(task, work, &cut, rows, m);
        /* Without missing values in training, later ones go where more rows went. */
        nodes->missing_left[node] = cut.has_missing ? cut.missing_left : 2 * left > m;
        int32_t child = nodes->count;
        nodes->child[node] = child;
        nodes->count += 2;
        top[0] = (uint32_t)child + 1, top[1] = (uint32_t)(first + left), top[2] = (uint32_t)(m - left);
        top[3] = (uint32_t)child, top[4] = (uint32_t)first, top[5] = (uint32_t)left;
        depth += 2;
    }
}

/* The leaves of some rows. They take their steps in turn, so that the processor need not wait for each of them. */
static void find_leaves(const Task *task, const Nodes *nodes, const uint32_t *rows, size_t count, int32_t *leaves)
{
    int moved = 1;
    memset(leaves, 0, sizeof(int32_t) * count);
    while (moved) {
        moved = 0;
        for (size_t r = 0; r < count; r++) {
            const int32_t node = leaves[r];
            if (nodes->feature[node] < 0)
                continue;
            size_t column = (size_t)nodes->feature[node];
            uint32_t rank = task->ranks[column * task->n + rows[r]];
            int left = rank == task->missing[column] ? nodes->missing_left[node] : rank <= nodes->cut[node];
            leaves[r] = nodes->child[node] + !left;
            moved = 1;
        }
    }
}

/* Add the predictions of a tree for its out-of-bag rows. */
static void add_out_of_bag(const Task *task, const Workspace *work, const Nodes *nodes, double *oob_sum,
                           double *oob_count)
{
    uint32_t rows[ROWS_AT_ONCE];
    int32_t leaves[ROWS_AT_ONCE];
    for (size_t i = 0, count = 0; i < task->n; i++) {
        rows[count] = (uint32_t)i;
        count += !(work->weights[i] > 0.0);
        if (count < ROWS_AT_ONCE && i + 1 < task->n)
            continue;
        find_leaves(task, nodes, rows, count, leaves);
        for (size_t r = 0; r < count; r++) {
            for (size_t j = 0; j < task->k; j++)
                oob_sum[rows[r] * task->k + j] += nodes->values[(size_t)leaves[r] * task->k + j];
            oob_count[rows[r]] += 1.0;
        }
        count = 0;
    }
}

static void free_workspace(Workspace *work)
{
    void *memory[] = {work->rows, work->scratch, work->columns, work->weights, work->sums,  work->keys,   work->other_keys,
                      work->bins, work->left,    work->stack,   work->bitmap,  work->cut, work->any_missing,
                      work->missing_sums, work->shares, work->codes, work->heads};
    for (size_t i = 0; i < sizeof(memory) / sizeof(*memory); i++)
        free(memory[i]);
    free_indicators(&work->indicators);
}

static int make_workspace(const Task *task, Workspace *work)
{
    const size_t n = task->n, k = task->k;
    size_t ranks = 0;
    memset(&work->indicators, 0, sizeof(Indicators)), work->node = 0;
    for (size_t c = 0; c < task->p; c++)
        ranks = task->missing[c] > ranks ? task->missing[c] : ranks;
    ranks = ranks < DENSE * n ? ranks + 1 : DENSE * n;
    work->bitmap = malloc(sizeof(uint64_t) * (ranks / 64 + 1));
    work->rows = malloc(sizeof(uint32_t) * n), work->scratch = malloc(sizeof(uint32_t) * n);
    work->columns = malloc(sizeof(uint32_t) * task->p), work->weights = malloc(sizeof(double) * n);
    work->sums = malloc(sizeof(double) * n * (k + 1)), work->cut = malloc(sizeof(uint32_t) * 2 * n);
    work->keys = malloc(sizeof(uint64_t) * n), work->other_keys = malloc(sizeof(uint64_t) * n);
    work->bins = malloc(sizeof(double) * ranks * (k + 1));
    work->left = malloc(sizeof(double) * k), work->missing_sums = malloc(sizeof(double) * k);
    work->stack = malloc(sizeof(uint32_t) * 3 * (n + 2)), work->any_missing = malloc(task->p);
    work->shares = malloc(sizeof(double) * k), work->codes = malloc(sizeof(int32_t) * n);
    work->heads = malloc(sizeof(uint32_t) * ranks);
    if (work->rows && work->scratch && work->columns && work->weights && work->sums && work->cut && work->keys &&
        work->other_keys && work->bins && work->left && work->missing_sums && work->stack && work->bitmap &&
        work->any_missing && work->shares && work->codes && work->heads)
        return 0;
    free_workspace(work);
    return -1;
}

/* ---- entry points: arguments are checked here ---- */

/* Values of each column must lie in `values`, and ranks must not exceed that of missing values. */
static int check_ranks(const Task *task, Py_ssize_t distinct, uint8_t *any_missing)
{
    for (size_t c = 0; c < task->p; c++) {
        const uint32_t *ranks = task->ranks + c * task->n, missing = task->missing[c];
        const int64_t start = task->starts[c];
        int outside = 0, any = 0;
        if (missing > task->n || start < 0 || start > distinct - (int64_t)missing) {
            PyErr_Format(PyExc_ValueError, "starts and missing must address values; column %zd does not.", c);
            return -1;
        }
        for (size_t i = 0; i < task->n; i++) {
            any |= ranks[i] == missing;
            outside |= ranks[i] > missing;
        }
        if (outside) {
            PyErr_Format(PyExc_ValueError, "ranks must be from 0 to missing; those of column %zd are not.", c);
            return -1;
        }
        any_missing[c] = (uint8_t)any;
    }
    return 0;
}

static int check_grow_sizes(Py_ssize_t n, Py_ssize_t p, Py_ssize_t k, Py_ssize_t n_drawn, Py_ssize_t max_features,
                            Py_ssize_t trees)
{
    if (n >= 1 && n < MAX_ROWS && p >= 1 && p <= INT32_MAX && k >= 1 && k <= INT32_MAX && n_drawn >= 1 &&
        n_drawn <= n && max_features >= 1 && trees >= 0)
        return 0;
    PyErr_SetString(PyExc_ValueError, "n, p, k, n_drawn, max_features or trees is out of range.");
    return -1;
}

static int check_codes(const Task *task)
{
    int outside = 0;
    for (size_t i = 0; task->codes && i < task->n; i++)
        outside |= task->codes[i] < 0 || (size_t)task->codes[i] >= task->k;
    if (outside)
        PyErr_SetString(PyExc_ValueError, "codes must be from 0 to k - 1.");
    return outside ? -1 : 0;
}

/* grow(n, p, k, n_drawn, max_features, min_node_weight, trees, distinct, ranks, missing, values, starts, outputs, seeds, feature,
 *      child, threshold, missing_left, predictions, counts, oob_sum, oob_count, codes): what follows seeds, up to codes,
 * is written to. Each tree has memory for 2 n nodes; `distinct` is the number of values; `codes` may be None. */
static PyObject *grow(PyObject *self, PyObject *args)
{
    PyObject *o[15];
    Py_buffer v[15];
    Py_ssize_t n, p, k, n_drawn, max_features, trees, distinct;
    double min_node_weight;
    (void)self;
    if (!PyArg_ParseTuple(args, "nnnnndnnOOOOOOOOOOOOOOO", &n, &p, &k, &n_drawn, &max_features, &min_node_weight, &trees, &distinct,
                          &o[0], &o[1], &o[2], &o[3], &o[4], &o[5], &o[6], &o[7], &o[8], &o[9], &o[10], &o[11], &o[12],
                          &o[13], &o[14]) ||
        check_grow_sizes(n, p, k, n_drawn, max_features, trees))
        return NULL;
    const Py_ssize_t nodes_of_all = product(trees, 2 * n);
    const ArraySpec specs[15] = {{"ranks", UINT32, READ, product(n, p)},
                                 {"missing", UINT32, READ, p},
                                 {"values", FLOAT64, READ, distinct},
                                 {"starts", INT64, READ, p},
                                 {"outputs", FLOAT64, READ, o[14] == Py_None ? product(n, k) : k},
                                 {"seeds", UINT64, READ, trees},
                                 {"feature", INT32, WRITE, nodes_of_all},
                                 {"child", INT32, WRITE, nodes_of_all},
                                 {"threshold", FLOAT64, WRITE, nodes_of_all},
                                 {"missing_left", UINT8, WRITE, nodes_of_all},
                                 {"predictions", FLOAT64, WRITE, product(nodes_of_all, k)},
                                 {"counts", INT32, WRITE, trees},
                                 {"oob_sum", FLOAT64, WRITE, product(n, k)},
                                 {"oob_count", FLOAT64, WRITE, n},
                                 {"codes", INT32, READ_OR_NONE, n}};
    if (acquire_buffers(o, v, specs, 15))
        return NULL;
    Task task = {v[0].buf,  v[1].buf,  v[2].buf,  v[3].buf, v[4].buf, v[14].buf,
                 (size_t)n, (size_t)p, (size_t)k, (size_t)n_drawn, (size_t)max_features, min_node_weight};
    Workspace work;
    if (make_workspace(&task, &work)) {
        release_buffers(v, 15);
        return PyErr_NoMemory();
    }
    if (check_ranks(&task, distinct, work.any_missing) || check_codes(&task)) {
        free_workspace(&work);
        release_buffers(v, 15);
        return NULL;
    }
    if (find_indicators(&task, work.any_missing, &work.indicators)) {
        free_workspace(&work);
        release_buffers(v, 15);
        return PyErr_NoMemory();
    }
    const uint64_t *seeds = v[5].buf;
    int32_t *counts = v[11].buf;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t t = 0; t < trees; t++) {
        size_t at = (size_t)t * 2 * (size_t)n;
        Nodes nodes = {(int32_t *)v[6].buf + at, (int32_t *)v[7].buf + at, (double *)v[8].buf + at,
                       work.cut, (uint8_t *)v[9].buf + at, (double *)v[10].buf + at * (size_t)k, 0};
        grow_tree(&task, &work, &nodes, seeds[t]);
        add_out_of_bag(&task, &work, &nodes, v[12].buf, v[13].buf);
        counts[t] = nodes.count;
    }
    Py_END_ALLOW_THREADS
    free_workspace(&work);
    release_buffers(v, 15);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"grow", grow, METH_VARARGS, "Grow some trees of a forest."},
                                {"predict", predict, METH_VARARGS, "Add the predictions of the trees."},
                                {"predict_replaced", predict_replaced, METH_VARARGS,
                                 "Add the predictions of the trees with one column replaced, for each column."},
                                {NULL, NULL, 0, NULL}};

KERNEL_MODULE(_forest, methods)
