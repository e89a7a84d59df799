/* Tables of bit masks of an ensemble, one bit for each leaf of a tree.
 *
 * A leaf is reached with one column changed if no condition on another column is violated on its path. The column at
 * which its path parts from that of the row, and the places of that column that lead to the leaf, depend on the two
 * leaves only, so they are tables.
 */

#include "tree_masks.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    int32_t column, cut, first, middle, end, slot, set;
} Inner;

/* Nodes and leaves of a tree in depth-first order, left before right; returns the number of leaves, or -1 beyond 128. */
static int32_t unfold(const Ensemble *e, int32_t root, Inner *inner, int32_t *n_inner, int64_t *values)
{
    struct {
        int32_t node, inner, state;
    } stack[MAX_MASK_LEAVES + 2];
    int32_t top = 0, n_leaves = 0;
    *n_inner = 0;
    stack[top].node = root, stack[top].state = 0, stack[top++].inner = -1;
    while (top) {
        const Node *node = e->node + stack[top - 1].node;
        if (node->column < 0) {
            if (n_leaves == MAX_MASK_LEAVES)
                return -1;
            values[n_leaves++] = CHILD(node);
            top--;
            continue;
        }
        const int32_t state = stack[top - 1].state++;
        if (state == 0) {
            if (*n_inner == MAX_MASK_LEAVES - 1 || top == MAX_MASK_LEAVES + 1)
                return -1;
            Inner *one = inner + *n_inner;
            const int level = e->is_level[node->column >> 1];
            one->column = node->column, one->cut = node->cut, one->set = level ? node->cut : -1;
            one->first = n_leaves;
            stack[top - 1].inner = (*n_inner)++;
        } else if (state == 1)
            inner[stack[top - 1].inner].middle = n_leaves;
        else {
            inner[stack[top - 1].inner].end = n_leaves;
            top--;
            continue;
        }
        stack[top].node = CHILD(node) + state, stack[top].state = 0, stack[top++].inner = -1;
    }
    return n_leaves;
}

typedef struct {
    Interval *items;
    int64_t count, room;
} Runs;

static int add_run(Runs *runs, int32_t low, int32_t high)
{
    if (runs->count == runs->room) {
        const int64_t room = runs->room ? 2 * runs->room : 1024;
        Interval *grown = realloc(runs->items, sizeof(Interval) * (size_t)room);
        if (!grown)
            return -1;
        runs->items = grown, runs->room = room;
    }
    runs->items[runs->count].low = low, runs->items[runs->count++].high = high;
    return 0;
}

/* Places of one column that lead to each leaf of a tree: an interval for numbers, runs for levels. */
static int fill_intervals(const Ensemble *e, const Inner *inner, int32_t n_inner, int32_t n_leaves, int32_t column,
                          Interval *interval, int32_t *missing, Runs *runs, uint8_t *alive)
{
    const int32_t n = e->n_places[column], start = (int32_t)e->start[column];
    for (int32_t leaf = 0; leaf < n_leaves; leaf++) {
        int32_t low = 0, high = n, with_missing = e->any_missing;
        const int level = e->is_level[column];
        if (level)
            memset(alive, 1, (size_t)n);
        for (int32_t k = 0; k < n_inner; k++) {
            if (inner[k].column >> 1 != column || leaf < inner[k].first || leaf >= inner[k].end)
                continue;
            const int left = leaf < inner[k].middle;
            if (level) {
                const uint8_t *goes_left = e->sets + inner[k].set * e->set_width;
                for (int32_t b = 0; b < n; b++)
                    alive[b] &= goes_left[b] == left;
                continue;
            }
            if (left)
                high = inner[k].cut < high ? inner[k].cut : high;
            else
                low = inner[k].cut > low ? inner[k].cut : low;
            with_missing &= (inner[k].column & 1) == left;
        }
        if (!level) {
            high = high < low ? low : high; /* no place leads there */
            interval[leaf].low = start + low, interval[leaf].high = start + high;
            missing[leaf] = with_missing ? start + n + 1 : (int32_t)e->total;
            continue;
        }
        const int64_t first = runs->count;
        for (int32_t b = 0, from = 0; b <= n; b++)
            if (b == n || !alive[b]) {
                if (from < b && add_run(runs, start + from, start + b))
                    return -1;
                from = b + 1;
            }
        interval[leaf].low = ~(int32_t)first, interval[leaf].high = (int32_t)(runs->count - first);
        missing[leaf] = (int32_t)e->total;
    }
    return 0;
}

/* Nodes of a tree column by column, with the masks of their leaves. */
static void fill_nodes(const Inner *inner, int32_t n_inner, int32_t n_slots, MaskNode *node)
{
    for (int32_t slot = 0; slot < n_slots; slot++)
        for (int32_t k = 0; k < n_inner; k++) {
            if (inner[k].slot != slot)
                continue;
            memset(node, 0, sizeof *node);
            node->column = inner[k].column, node->cut = inner[k].cut, node->set = inner[k].set, node->last = 1;
            for (int32_t leaf = inner[k].first; leaf < inner[k].end; leaf++) {
                node->all[leaf >> 5] |= 1u << (leaf & 31);
                if (leaf < inner[k].middle)
                    node->left[leaf >> 5] |= 1u << (leaf & 31);
            }
            for (int32_t later = k + 1; later < n_inner; later++)
                if (inner[later].slot == slot)
                    node->last = 0;
            node++;
        }
}

int build_masks(Ensemble *e)
{
    Inner inner[MAX_MASK_LEAVES];
    int64_t values[MAX_MASK_LEAVES], nodes = 0, partings = 0, intervals = 0, leaves = 0;
    int32_t n_inner, most = 0, widest = 1, columns[MAX_MASK_LEAVES];
    Runs runs = {NULL, 0, 0};
    for (int64_t j = 0; j < e->n_columns; j++)
        widest = e->n_places[j] > widest ? e->n_places[j] : widest;
    uint8_t *alive = malloc((size_t)widest);
    e->tree = calloc((size_t)e->n_trees + 1, sizeof(MaskTree));
    if (!alive || !e->tree)
        goto failed;
    for (int64_t t = 0; t < e->n_trees; t++) {
        const int32_t n = unfold(e, e->root[t], inner, &n_inner, values);
        if (n < 0) { /* too many leaves: no masks */
            free(alive);
            free(e->tree);
            e->tree = NULL;
            return 0;
        }
        MaskTree *tree = e->tree + t;
        int32_t n_slots = 0;
        for (int32_t k = 0; k < n_inner; k++) {
            int32_t slot = 0;
            while (slot < n_slots && columns[slot] != inner[k].column >> 1)
                slot++;
            columns[slot] = inner[k].column >> 1;
            n_slots = slot == n_slots ? n_slots + 1 : n_slots;
        }
        tree->n_leaves = n, tree->n_nodes = n_inner, tree->output = e->output[t];
        tree->nodes = nodes, tree->parting = partings, tree->intervals = intervals, tree->values = leaves * e->width;
        nodes += n_inner, partings += (int64_t)n * n, intervals += (int64_t)n_slots * n, leaves += n;
        most = n > most ? n : most;
    }
    e->mask_words = most <= 32 ? 1 : most <= 64 ? 2 : 4;
    e->mask_node = malloc(sizeof(MaskNode) * (size_t)(nodes + 1));
    e->parting = calloc((size_t)partings + 1, 1);
    e->interval = malloc(sizeof(Interval) * (size_t)(intervals + 1));
    e->missing = malloc(sizeof(int32_t) * (size_t)(intervals + 1));
    e->mask_value = malloc(sizeof(int64_t) * (size_t)(leaves * e->width + 1));
    if (!e->mask_node || !e->parting || !e->interval || !e->missing || !e->mask_value)
        goto failed;
    for (int64_t t = 0; t < e->n_trees; t++) {
        const MaskTree *tree = e->tree + t;
        const int32_t n = unfold(e, e->root[t], inner, &n_inner, values);
        int32_t n_slots = 0;
        uint8_t *parting = e->parting + tree->parting;
        for (int32_t leaf = 0; leaf < n; leaf++)
            memcpy(e->mask_value + tree->values + leaf * e->width, e->value + values[leaf] * e->width,
                   sizeof(int64_t) * (size_t)e->width);
        for (int32_t k = 0; k < n_inner; k++) {
            int32_t slot = 0;
            while (slot < n_slots && columns[slot] != inner[k].column >> 1)
                slot++;
            columns[slot] = inner[k].column >> 1, inner[k].slot = slot;
            n_slots = slot == n_slots ? n_slots + 1 : n_slots;
            for (int32_t a = inner[k].first; a < inner[k].middle; a++)
                for (int32_t b = inner[k].middle; b < inner[k].end; b++)
                    parting[a * n + b] = parting[b * n + a] = (uint8_t)slot;
        }
        fill_nodes(inner, n_inner, n_slots, e->mask_node + tree->nodes);
        for (int32_t slot = 0; slot < n_slots; slot++) {
            const int64_t at = tree->intervals + (int64_t)slot * n;
            if (fill_intervals(e, inner, n_inner, n, columns[slot], e->interval + at, e->missing + at, &runs, alive))
                goto failed;
        }
    }
    e->run = runs.items;
    free(alive);
    return 0;
failed:
    free(alive);
    free(runs.items);
    return -1;
}
