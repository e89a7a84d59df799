/* Steps of trees of any size: the path of each row, and the branches that part from it where one column changes.
 *
 * At each node of the path the other branch is followed with the column of the node free within the places that lead
 * there; at further nodes of the same column it parts again, elsewhere it goes as the row does. Branches of many rows go
 * down level by level, so that the processor need not wait for one node before it reads the next.
 */

#include "tree_lists.h"

#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__)
#define UNLIKELY(condition) __builtin_expect(condition, 0)
#define LOWEST_BIT(bits) __builtin_ctzll(bits)
#else
#define UNLIKELY(condition) (condition)
static int LOWEST_BIT(uint64_t bits)
{
    int count = 0;
    for (; !(bits & 1); bits >>= 1)
        count++;
    return count;
}
#endif

static int grow(List *list, int64_t needed, size_t size)
{
    if (needed <= list->room)
        return 0;
    int64_t room = list->room ? list->room : 256;
    while (room < needed)
        room *= 2;
    void *grown = realloc(list->items, size * (size_t)room);
    if (!grown)
        return -1;
    list->items = grown, list->room = room;
    return 0;
}

int allocate_lists(const Ensemble *e, ListMemory *memory)
{
    const size_t p = (size_t)e->n_columns + 1, total = (size_t)e->total + 1;
    memset(memory, 0, sizeof *memory);
    memory->doubled = malloc(sizeof(int32_t) * 2 * p * LIST_ROWS);
    memory->low = malloc(sizeof(int32_t) * p);
    memory->high = malloc(sizeof(int32_t) * p);
    memory->follows = malloc(total);
    memory->sums = calloc(total * (size_t)e->n_outputs, sizeof(int64_t));
    memory->changed = calloc(total / 64 + 2, sizeof(uint64_t));
    if (!memory->doubled || !memory->low || !memory->high || !memory->follows || !memory->sums ||
        !memory->changed)
        return -1;
    for (int64_t j = 0; j < e->n_columns; j++)
        memory->low[j] = 0, memory->high[j] = e->n_places[j];
    memset(memory->follows, 1, total);
    return 0;
}

void free_lists(ListMemory *memory)
{
    free(memory->now.items), free(memory->next.items), free(memory->reached.items);
    for (int r = 0; r < LIST_ROWS; r++)
        free(memory->events[r].items);
    free(memory->doubled), free(memory->low), free(memory->high), free(memory->follows);
    free(memory->sums), free(memory->changed);
}

/* Places of rows, twice for each column: a missing value is below, or above, every cut. */
static void fill_doubled(const Ensemble *e, const int32_t *places, int64_t rows, int32_t *doubled)
{
    const int64_t p = e->n_columns;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < p; j++) {
            const int32_t place = places[i * p + j];
            const int missing = place > e->n_places[j];
            doubled[2 * (i * p + j)] = missing ? INT32_MAX : place;
            doubled[2 * (i * p + j) + 1] = missing ? -1 : place;
        }
}

static inline int goes_right(const Ensemble *e, const Node *node, const int32_t *row)
{
    if (UNLIKELY(e->any_sets) && e->is_level[node->column >> 1])
        return !e->sets[node->cut * e->set_width + row[node->column]];
    return row[node->column] >= node->cut;
}

/* Put a branch into the list of those that go on, or of those that have arrived at a leaf; there is room for it. */
static inline void put(ListMemory *memory, List *list, int32_t node, int leaf, uint16_t row, uint16_t column, int32_t low,
                       int32_t high)
{
    const Item item = {node, low, high, row, column};
    ((Item *)list->items)[list->count] = item;
    ((Item *)memory->reached.items)[memory->reached.count] = item;
    list->count += !leaf, memory->reached.count += leaf;
}

static int reserve(ListMemory *memory, List *list, int64_t more)
{
    return grow(list, list->count + more, sizeof(Item)) ||
           grow(&memory->reached, memory->reached.count + more, sizeof(Item));
}

static inline int leaf_on(const Node *node, int right) { return (node->child & (right ? RIGHT_LEAF : LEFT_LEAF)) != 0; }

/* Runs of levels [low, high) that go to one side of a node; those that follow a path leave it. */
static int put_runs(const Ensemble *e, const Node *node, int left, ListMemory *memory, List *list, uint16_t row,
                    int32_t low, int32_t high, uint8_t *follows)
{
    const uint8_t *goes_left = e->sets + node->cut * e->set_width;
    int32_t from = low;
    if (reserve(memory, list, (high - low) / 2 + 3))
        return -1;
    for (int32_t b = low; b <= high; b++) {
        const int goes = b < high && goes_left[b] == left && (!follows || follows[b]);
        if (!goes) {
            if (from < b)
                put(memory, list, CHILD(node) + !left, leaf_on(node, !left), row, (uint16_t)(node->column >> 1), from, b);
            from = b + 1;
        } else if (follows)
            follows[b] = 0;
    }
    return 0;
}

/* The path of a row; returns its leaf, or -1 without memory. Branches that part from it are put into a list. */
static int32_t follow_path(const Ensemble *e, int32_t at, const int32_t *x, uint16_t row, ListMemory *memory)
{
    const Node *node = e->node + at;
    List *list = &memory->now;
    while (node->column >= 0) {
        const int32_t j = node->column >> 1, right = goes_right(e, node, x), child = CHILD(node);
        if (list->count + 2 > list->room || memory->reached.count + 2 > memory->reached.room)
            if (reserve(memory, list, 1024))
                return -1;
        if (UNLIKELY(e->any_sets) && e->is_level[j]) {
            if (put_runs(e, node, right, memory, list, row, 0, e->n_places[j], memory->follows + e->start[j]))
                return -1;
        } else {
            const int32_t low = memory->low[j], high = memory->high[j];
            const int32_t below = node->cut < high ? node->cut : high, above = node->cut > low ? node->cut : low;
            const int32_t from = right ? low : above, to = right ? below : high;
            memory->low[j] = right ? above : low, memory->high[j] = right ? high : below;
            if (from < to)
                put(memory, list, child + !right, leaf_on(node, !right), row, (uint16_t)j, from, to);
            if (UNLIKELY(e->any_missing)) {
                const int32_t missing = e->n_places[j] + 1;
                uint8_t *follows = memory->follows + e->start[j] + missing;
                if (*follows && (node->column & 1) == right) {
                    put(memory, list, child + !right, leaf_on(node, !right), row, (uint16_t)j, missing, missing + 1);
                    *follows = 0;
                }
            }
        }
        at = child + right;
        node = e->node + at;
    }
    return at;
}

static void reset_path(const Ensemble *e, int32_t root, int32_t leaf, const int32_t *x, ListMemory *memory)
{
    const Node *node = e->node + root;
    while (node - e->node != leaf) {
        const int32_t j = node->column >> 1;
        memory->low[j] = 0, memory->high[j] = e->n_places[j];
        if (UNLIKELY(e->any_missing || e->any_sets))
            memset(memory->follows + e->start[j], 1, (size_t)(e->n_places[j] + 2));
        node = e->node + CHILD(node) + goes_right(e, node, x);
    }
}

/* All branches one level down; those that arrive at a leaf go to another list. */
static int step_down(const Ensemble *e, const int32_t *doubled, ListMemory *memory)
{
    List *now = &memory->now, *next = &memory->next;
    const int64_t stride = 2 * e->n_columns;
    next->count = 0;
    if (reserve(memory, next, 2 * now->count + 2))
        return -1;
    const Item *item = now->items;
    Item *going = next->items, *arrived = (Item *)memory->reached.items + memory->reached.count;
    for (int64_t k = 0; k < now->count; k++, item++) {
        const Node *node = e->node + item->node;
        const int32_t j = node->column >> 1;
        if (!UNLIKELY(j == item->column)) {
            const int right = goes_right(e, node, doubled + item->row * stride);
            const int leaf = (int)((node->child << right) >> 31);
            Item one = *item;
            one.node = CHILD(node) + right;
            *going = one, *arrived = one;
            going += !leaf, arrived += leaf;
            continue;
        }
        next->count = going - (Item *)next->items;
        memory->reached.count = arrived - (Item *)memory->reached.items;
        if (UNLIKELY(e->any_sets) && e->is_level[j]) {
            if (put_runs(e, node, 1, memory, next, item->row, item->low, item->high, NULL) ||
                put_runs(e, node, 0, memory, next, item->row, item->low, item->high, NULL) ||
                reserve(memory, next, 2 * (now->count - k) + 2))
                return -1;
        } else if (item->low > e->n_places[j]) { /* the missing value */
            const int right = !(node->column & 1);
            put(memory, next, CHILD(node) + right, leaf_on(node, right), item->row, item->column, item->low, item->high);
        } else {
            const int32_t below = node->cut < item->high ? node->cut : item->high;
            const int32_t above = node->cut > item->low ? node->cut : item->low;
            if (item->low < below)
                put(memory, next, CHILD(node), leaf_on(node, 0), item->row, item->column, item->low, below);
            if (above < item->high)
                put(memory, next, CHILD(node) + 1, leaf_on(node, 1), item->row, item->column, above, item->high);
        }
        going = (Item *)next->items + next->count;
        arrived = (Item *)memory->reached.items + memory->reached.count;
    }
    next->count = going - (Item *)next->items;
    memory->reached.count = arrived - (Item *)memory->reached.items;
    const List done = *now;
    *now = *next, *next = done;
    return 0;
}

static int add_events(const Ensemble *e, ListMemory *memory, const int32_t *own_leaf)
{
    const Item *item = memory->reached.items;
    const int single = e->n_outputs == 1;
    for (int64_t k = 0; k < memory->reached.count; k++, item++) {
        List *events = memory->events + item->row;
        if (events->count == events->room && grow(events, events->count + 1, sizeof(Event)))
            return -1;
        const int32_t start = (int32_t)e->start[item->column], leaf = CHILD(e->node + item->node);
        const int32_t own = CHILD(e->node + own_leaf[item->row]);
        const int missing = item->low > e->n_places[item->column];
        Event *event = (Event *)events->items + events->count++;
        event->low = start + item->low;
        event->high = missing ? (int32_t)e->total : start + item->high;
        if (single)
            event->of.difference = e->value[leaf] - e->value[own];
        else
            event->of.values.leaf = item->node, event->of.values.own = own_leaf[item->row];
    }
    memory->reached.count = 0;
    return 0;
}

/* Sums of leaves at the places where they change. */
static void sum_events(const Ensemble *e, const List *events, ListMemory *memory)
{
    const int64_t slots = e->total + 1;
    const Event *event = events->items;
    for (int64_t k = 0; k < events->count; k++, event++) {
        if (e->n_outputs == 1) {
            add_to(memory->sums + event->low, event->of.difference);
            take_from(memory->sums + event->high, event->of.difference);
        } else {
            const Node *leaf = e->node + event->of.values.leaf;
            const int64_t *value = e->value + (int64_t)CHILD(leaf) * e->width;
            const int64_t *own = e->value + (int64_t)CHILD(e->node + event->of.values.own) * e->width;
            for (int32_t v = 0; v < e->width; v++) {
                int64_t *sums = memory->sums + (e->width == 1 ? leaf->cut : v) * slots;
                add_to(sums + event->low, value[v] - own[v]);
                take_from(sums + event->high, value[v] - own[v]);
            }
        }
        memory->changed[event->low >> 6] |= 1ull << (event->low & 63);
        memory->changed[event->high >> 6] |= 1ull << (event->high & 63);
    }
}

/* Read the sums of one row in the order of the slots, and clear them. */
static int64_t read_sums(const Ensemble *e, int64_t outputs, ListMemory *memory, int64_t *pointers, int32_t *starts,
                         double *steps, int64_t entry, int64_t room, double *missing)
{
    const int64_t slots = e->total + 1, words = slots / 64 + 1;
    int64_t column = 0, current[64], *now = current; /* now: sums of the column so far, for each output */
    int64_t *allocated = NULL;
    if (outputs > 64 && !(now = allocated = malloc(sizeof(int64_t) * (size_t)outputs)))
        return -1;
    memset(now, 0, sizeof(int64_t) * (size_t)outputs);
    memset(missing, 0, sizeof(double) * (size_t)(e->n_columns * outputs));
    pointers[0] = entry;
    for (int64_t w = 0; w < words; w++) {
        uint64_t bits = memory->changed[w];
        memory->changed[w] = 0;
        for (; bits; bits &= bits - 1) {
            const int64_t slot = 64 * w + LOWEST_BIT(bits);
            if (slot == e->total) {
                for (int64_t v = 0; v < outputs; v++)
                    memory->sums[v * slots + slot] = 0;
                continue;
            }
            while (slot >= e->start[column + 1]) {
                pointers[++column] = entry;
                memset(now, 0, sizeof(int64_t) * (size_t)outputs);
            }
            const int32_t place = (int32_t)(slot - e->start[column]);
            int differs = 0;
            for (int64_t v = 0; v < outputs; v++) {
                int64_t *sum = memory->sums + v * slots + slot;
                differs |= *sum != 0;
                if (place > e->n_places[column])
                    missing[column * outputs + v] = (double)*sum * e->scale;
                else
                    now[v] += *sum;
                *sum = 0;
            }
            if (place >= e->n_places[column] || !differs)
                continue;
            if (entry < room) {
                starts[entry] = place;
                for (int64_t v = 0; v < outputs; v++)
                    steps[entry * outputs + v] = (double)now[v] * e->scale;
            }
            entry++;
        }
    }
    while (column < e->n_columns)
        pointers[++column] = entry;
    free(allocated);
    return entry;
}

int64_t list_steps(const Ensemble *e, const int32_t *places, int64_t rows, ListMemory *memory, int64_t *pointers,
                   int32_t *starts, double *steps, int64_t entry, int64_t room, double *missing, int64_t *own)
{
    int32_t own_leaf[LIST_ROWS];
    const int64_t p = e->n_columns, outputs = e->n_outputs;
    fill_doubled(e, places, rows, memory->doubled);
    memset(own, 0, sizeof(int64_t) * (size_t)(rows * outputs));
    for (int64_t i = 0; i < rows; i++)
        memory->events[i].count = 0;
    for (int64_t t = 0; t < e->n_trees; t++) {
        memory->now.count = 0;
        for (int64_t i = 0; i < rows; i++) {
            const int32_t *x = memory->doubled + i * 2 * p;
            const int32_t leaf = follow_path(e, e->root[t], x, (uint16_t)i, memory);
            if (leaf < 0)
                return -1;
            reset_path(e, e->root[t], leaf, x, memory);
            own_leaf[i] = leaf;
            const int64_t *value = e->value + (int64_t)CHILD(e->node + leaf) * e->width;
            for (int32_t v = 0; v < e->width; v++)
                own[i * outputs + (e->output[t] < 0 ? v : e->output[t])] += value[v];
        }
        while (memory->now.count)
            if (step_down(e, memory->doubled, memory))
                return -1;
        if (add_events(e, memory, own_leaf))
            return -1;
    }
    for (int64_t i = 0; i < rows; i++) {
        sum_events(e, memory->events + i, memory);
        entry = read_sums(e, outputs, memory, pointers + i * p, starts, steps, entry, room, missing + i * p * outputs);
        if (entry < 0)
            return -1;
    }
    return entry;
}

void walk_margins(const Ensemble *e, const int32_t *places, int64_t rows, int64_t *own)
{
    const int64_t p = e->n_columns;
    memset(own, 0, sizeof(int64_t) * (size_t)(rows * e->n_outputs));
    for (int64_t t = 0; t < e->n_trees; t++)
        for (int64_t i = 0; i < rows; i++) {
            const Node *node = e->node + e->root[t];
            while (node->column >= 0) {
                const int32_t j = node->column >> 1, place = places[i * p + j];
                int left = place > e->n_places[j] ? node->column & 1 : place < node->cut;
                if (UNLIKELY(e->any_sets) && e->is_level[j])
                    left = e->sets[node->cut * e->set_width + place];
                node = e->node + CHILD(node) + !left;
            }
            const int64_t *value = e->value + (int64_t)CHILD(node) * e->width;
            if (e->output[t] >= 0)
                own[i * e->n_outputs + e->output[t]] += *value;
            else
                for (int32_t v = 0; v < e->width; v++)
                    own[i * e->n_outputs + v] += value[v];
        }
}
