/* Loops of the tree ensembles that gain from wide registers; compiled twice, see `simd.h`. */

#include "simd.h"
#include "tree_donors.h"
#include "tree_steps.h"

#if defined(__GNUC__)
#define WIDTH ROWS
typedef int32_t ints __attribute__((vector_size(4 * ROWS)));
FORCE_INLINE ints below(ints place, int32_t cut) { return place < cut; }
#define COUNT_ZEROS(bits) __builtin_ctzll(bits)
#else
#define WIDTH 1
typedef int32_t ints;
FORCE_INLINE ints below(ints place, int32_t cut) { return -(place < cut); }
static int COUNT_ZEROS(uint64_t bits)
{
    int count = 0;
    for (; !(bits & 1); bits >>= 1)
        count++;
    return count;
}
#endif

/* Whether WIDTH rows go left at a node, as 0 or -1. */
FORCE_INLINE ints goes_left(const Ensemble *e, const MaskNode *node, const int32_t *lanes)
{
    ints place;
    memcpy(&place, lanes + (int64_t)node->column * WIDTH, sizeof place);
    if (node->set >= 0) {
        const uint8_t *left = e->sets + (int64_t)node->set * e->set_width;
        int32_t each[WIDTH];
        for (int r = 0; r < WIDTH; r++)
            each[r] = -(int32_t)left[lanes[(int64_t)node->column * WIDTH + r]];
        memcpy(&place, each, sizeof place);
        return place;
    }
    return below(place, node->cut);
}

/* Leaves with a violated condition (`ones`), and with violated conditions on several columns (`twos`). */
#define DEFINE_VIOLATED(name, WORDS)                                                                                   \
    FORCE_INLINE void name(const Ensemble *e, const MaskNode *node, int count, const int32_t *lanes, uint32_t *one,    \
                           uint32_t *two)                                                                              \
    {                                                                                                                  \
        ints ones[WORDS], twos[WORDS], violated[WORDS];                                                                \
        memset(ones, 0, sizeof ones), memset(twos, 0, sizeof twos), memset(violated, 0, sizeof violated);              \
        for (int k = 0; k < count; k++, node++) {                                                                      \
            const ints left = goes_left(e, node, lanes);                                                               \
            for (int w = 0; w < WORDS; w++)                                                                            \
                violated[w] |= (int32_t)node->left[w] ^ (left & (int32_t)node->all[w]);                                \
            if (!node->last)                                                                                           \
                continue;                                                                                              \
            for (int w = 0; w < WORDS; w++) {                                                                          \
                twos[w] |= ones[w] & violated[w];                                                                      \
                ones[w] |= violated[w];                                                                                \
            }                                                                                                          \
            memset(violated, 0, sizeof violated);                                                                      \
        }                                                                                                              \
        memcpy(one, ones, sizeof ones), memcpy(two, twos, sizeof twos);                                                \
    }
DEFINE_VIOLATED(violated_1, 1)
DEFINE_VIOLATED(violated_2, 2)
DEFINE_VIOLATED(violated_4, 4)

/* 64 leaves of one of WIDTH rows. */
FORCE_INLINE uint64_t leaves_of(const uint32_t *words, int row, int half, int n_words)
{
    uint64_t bits = words[2 * half * WIDTH + row];
    if (n_words > 1)
        bits |= (uint64_t)words[(2 * half + 1) * WIDTH + row] << 32;
    return bits;
}

/* Add a difference to the slots of an interval. */
FORCE_INLINE void add_interval(const Ensemble *e, Interval interval, int64_t missing, int64_t difference, int64_t *steps)
{
    if (interval.low >= 0) {
        add_to(steps + interval.low, difference);
        take_from(steps + interval.high, difference);
        add_to(steps + missing, difference);
        return;
    }
    const Interval *run = e->run + ~interval.low;
    for (int32_t k = 0; k < interval.high; k++) {
        add_to(steps + run[k].low, difference);
        take_from(steps + run[k].high, difference);
    }
}

/* Steps of up to WIDTH rows in one tree: leaves that a single column keeps a row from. */
#define DEFINE_ADD_TREE(name, WORDS, SIMPLE)                                                                           \
    FORCE_INLINE void name(const Ensemble *e, const MaskTree *tree, const uint32_t *one, const uint32_t *two, int rows, \
                           int64_t stride, int64_t *steps, int64_t *own)                                               \
    {                                                                                                                  \
        const int32_t n = tree->n_leaves, width = SIMPLE ? 1 : e->width, outputs = (int32_t)e->n_outputs;              \
        const int64_t *value = e->mask_value + tree->values;                                                           \
        const Interval *interval = e->interval + tree->intervals;                                                      \
        const int32_t *missing = e->missing + tree->intervals;                                                         \
        const int64_t slots = e->total + 1;                                                                            \
        for (int r = 0; r < rows; r++) {                                                                               \
            uint64_t bits[2] = {leaves_of(one, r, 0, WORDS), WORDS > 2 ? leaves_of(one, r, 1, WORDS) : 0};             \
            const int32_t mine = ~bits[0] && COUNT_ZEROS(~bits[0]) < n ? COUNT_ZEROS(~bits[0])                         \
                                                                       : 64 + COUNT_ZEROS(~bits[1]);                   \
            bits[0] &= ~leaves_of(two, r, 0, WORDS);                                                                   \
            if (WORDS > 2)                                                                                             \
                bits[1] &= ~leaves_of(two, r, 1, WORDS);                                                               \
            const uint8_t *parting = e->parting + tree->parting + (int64_t)mine * n;                                   \
            int64_t *at = steps + r * stride + (tree->output < 0 ? 0 : tree->output * slots);                          \
            for (int32_t v = 0; v < width; v++)                                                                        \
                own[r * outputs + (tree->output < 0 ? v : tree->output)] += value[mine * width + v];                   \
            for (int half = 0; half < (WORDS > 2 ? 2 : 1); half++)                                                     \
                for (uint64_t left = bits[half]; left; left &= left - 1) {                                             \
                    const int32_t leaf = 64 * half + COUNT_ZEROS(left), k = parting[leaf] * n + leaf;                  \
                    if (SIMPLE) {                                                                                      \
                        const int64_t difference = value[leaf] - value[mine];                                          \
                        add_to(at + interval[k].low, difference);                                                      \
                        take_from(at + interval[k].high, difference);                                                  \
                    } else                                                                                             \
                        for (int32_t v = 0; v < width; v++)                                                            \
                            add_interval(e, interval[k], missing[k], value[leaf * width + v] - value[mine * width + v], \
                                         at + v * slots);                                                              \
                }                                                                                                      \
        }                                                                                                              \
    }
DEFINE_ADD_TREE(add_simple_1, 1, 1)
DEFINE_ADD_TREE(add_simple_2, 2, 1)
DEFINE_ADD_TREE(add_simple_4, 4, 1)
DEFINE_ADD_TREE(add_general_1, 1, 0)
DEFINE_ADD_TREE(add_general_2, 2, 0)
DEFINE_ADD_TREE(add_general_4, 4, 0)

/* Places of rows in groups of WIDTH: twice for each column, with missing values that go left and that go right. */
static void fill_lanes(const Ensemble *e, const int32_t *places, int64_t rows, int32_t *lanes)
{
    const int64_t p = e->n_columns;
    for (int64_t i = 0; i < (rows + WIDTH - 1) / WIDTH * WIDTH; i++) {
        const int32_t *row = places + (i < rows ? i : rows - 1) * p;
        int32_t *group = lanes + i / WIDTH * WIDTH * 2 * p + i % WIDTH;
        for (int64_t j = 0; j < p; j++) {
            const int missing = row[j] > e->n_places[j];
            group[2 * j * WIDTH] = missing ? INT32_MAX : row[j];
            group[(2 * j + 1) * WIDTH] = missing ? -1 : row[j];
        }
    }
}

void dense_steps(const Ensemble *e, const int32_t *places, int64_t rows, int32_t *lanes, int64_t *steps, int64_t *own)
{
    const int64_t slots = e->total + 1, stride = slots * e->n_outputs;
    const int simple = !e->any_missing && !e->any_sets && e->width == 1;
    uint32_t one[4 * WIDTH], two[4 * WIDTH];
    fill_lanes(e, places, rows, lanes);
    memset(steps, 0, sizeof(int64_t) * (size_t)(rows * stride));
    memset(own, 0, sizeof(int64_t) * (size_t)(rows * e->n_outputs));
    for (int64_t t = 0; t < e->n_trees; t++) {
        const MaskTree *tree = e->tree + t;
        const MaskNode *node = e->mask_node + tree->nodes;
        for (int64_t i = 0; i < rows; i += WIDTH) {
            const int32_t *group = lanes + i * 2 * e->n_columns;
            const int n = rows - i < WIDTH ? (int)(rows - i) : WIDTH;
            int64_t *at = steps + i * stride, *mine = own + i * e->n_outputs;
            if (e->mask_words == 1) {
                violated_1(e, node, tree->n_nodes, group, one, two);
                if (simple)
                    add_simple_1(e, tree, one, two, n, stride, at, mine);
                else
                    add_general_1(e, tree, one, two, n, stride, at, mine);
            } else if (e->mask_words == 2) {
                violated_2(e, node, tree->n_nodes, group, one, two);
                if (simple)
                    add_simple_2(e, tree, one, two, n, stride, at, mine);
                else
                    add_general_2(e, tree, one, two, n, stride, at, mine);
            } else {
                violated_4(e, node, tree->n_nodes, group, one, two);
                if (simple)
                    add_simple_4(e, tree, one, two, n, stride, at, mine);
                else
                    add_general_4(e, tree, one, two, n, stride, at, mine);
            }
        }
    }
    /* sums of differences, as numbers, in the same memory */
    for (int64_t i = 0; i < rows * e->n_outputs; i++) {
        steps[i * slots + e->total] = 0;
        for (int64_t j = 0; j < e->n_columns; j++) {
            int64_t *slot = steps + i * slots + e->start[j], sum = 0;
            const int32_t n = e->n_places[j];
            for (int32_t b = 0; b < n; b++) {
                sum += slot[b];
                slot[b] = sum;
            }
            slot[n] = 0;
            for (int32_t b = 0; b < n + 2; b++) {
                const double number = (double)slot[b] * e->scale;
                memcpy(slot + b, &number, sizeof number);
            }
        }
    }
}

#define DEFINE_REACHED(name, WORDS)                                                                                    \
    FORCE_INLINE void name(const Ensemble *e, const MaskNode *node, int count, const int32_t *lanes, uint32_t *one)    \
    {                                                                                                                  \
        ints ones[WORDS];                                                                                              \
        memset(ones, 0, sizeof ones);                                                                                  \
        for (int k = 0; k < count; k++, node++) {                                                                      \
            const ints left = goes_left(e, node, lanes);                                                               \
            for (int w = 0; w < WORDS; w++)                                                                            \
                ones[w] |= (int32_t)node->left[w] ^ (left & (int32_t)node->all[w]);                                    \
        }                                                                                                              \
        memcpy(one, ones, sizeof ones);                                                                                \
    }
DEFINE_REACHED(reached_1, 1)
DEFINE_REACHED(reached_2, 2)
DEFINE_REACHED(reached_4, 4)

void mask_margins(const Ensemble *e, const int32_t *places, int64_t rows, int32_t *lanes, int64_t *own)
{
    uint32_t one[4 * WIDTH];
    fill_lanes(e, places, rows, lanes);
    memset(own, 0, sizeof(int64_t) * (size_t)(rows * e->n_outputs));
    for (int64_t t = 0; t < e->n_trees; t++) {
        const MaskTree *tree = e->tree + t;
        const MaskNode *node = e->mask_node + tree->nodes;
        const int64_t *value = e->mask_value + tree->values;
        for (int64_t i = 0; i < rows; i += WIDTH) {
            const int32_t *group = lanes + i * 2 * e->n_columns;
            if (e->mask_words == 1)
                reached_1(e, node, tree->n_nodes, group, one);
            else if (e->mask_words == 2)
                reached_2(e, node, tree->n_nodes, group, one);
            else
                reached_4(e, node, tree->n_nodes, group, one);
            for (int r = 0; r < WIDTH && i + r < rows; r++) {
                const uint64_t low = ~leaves_of(one, r, 0, e->mask_words);
                const int32_t mine = low && COUNT_ZEROS(low) < tree->n_leaves
                                         ? COUNT_ZEROS(low)
                                         : 64 + COUNT_ZEROS(~leaves_of(one, r, 1, e->mask_words));
                int64_t *sums = own + (i + r) * e->n_outputs;
                if (tree->output >= 0)
                    sums[tree->output] += value[mine];
                else
                    for (int32_t v = 0; v < e->width; v++)
                        sums[v] += value[mine * e->width + v];
            }
        }
    }
}

/* exp(x) and log(x), written so that compilers make vector code of them; relative errors below 1e-15. */
FORCE_INLINE double exponential(double x)
{
    const double rounding = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to a whole number */
    double power = (x = x < -700.0 ? -700.0 : x > 700.0 ? 700.0 : x) * 1.4426950408889634 + rounding, factor, series;
    int64_t bits;
    memcpy(&bits, &power, sizeof bits);
    power -= rounding;
    const double rest = (x - power * 6.93147180369123816490e-01) - power * 1.90821492927058770002e-10;
    series = 1.0 / 479001600;
    series = series * rest + 1.0 / 39916800;
    series = series * rest + 1.0 / 3628800;
    series = series * rest + 1.0 / 362880;
    series = series * rest + 1.0 / 40320;
    series = series * rest + 1.0 / 5040;
    series = series * rest + 1.0 / 720;
    series = series * rest + 1.0 / 120;
    series = series * rest + 1.0 / 24;
    series = series * rest + 1.0 / 6;
    series = series * rest + 0.5;
    series = (series * rest + 1.0) * rest + 1.0;
    bits = (int64_t)((uint64_t)(bits - 0x4338000000000000ll + 1023) << 52);
    memcpy(&factor, &bits, sizeof factor);
    return series * factor;
}

/* log(1 + x) for x from 0 to 1. */
FORCE_INLINE double log_one_plus(double x)
{
    const double ratio = x / (2.0 + x), square = ratio * ratio;
    double series = 1.0 / 33;
    for (int k = 31; k > 0; k -= 2)
        series = series * square + 1.0 / k;
    return 2.0 * ratio * series;
}

FORCE_INLINE double magnitude(double x) { return x < 0.0 ? -x : x; }

#define LOWEST_LOG (-36.04365338911715) /* of the smallest probability that the log loss takes */

/* Log loss of a margin, with the sign of the class; it is clipped as `losses.named` does. */
FORCE_INLINE double log_loss_of(double signed_margin)
{
    const double z = -signed_margin, tail = exponential(-magnitude(z));
    const double loss = (z > 0.0 ? z : 0.0) + log_one_plus(tail);
    return loss > -LOWEST_LOG ? -LOWEST_LOG : loss;
}

FORCE_INLINE double logistic(double margin)
{
    const double tail = exponential(-magnitude(margin));
    return (margin < 0.0 ? tail : 1.0) / (1.0 + tail);
}

void loss_increase(int loss, double margin, double y, const double *steps, ptrdiff_t count, double *increase,
                   double *shift)
{
    const double residual = margin - y, size = magnitude(residual), sign = y > 0.5 ? 1.0 : -1.0;
    if (loss == SQUARED_ERROR) {
        for (ptrdiff_t k = 0; k < count; k++)
            increase[k] = steps[k] * (steps[k] + 2.0 * residual);
    } else if (loss == ABSOLUTE_ERROR) {
        for (ptrdiff_t k = 0; k < count; k++)
            increase[k] = magnitude(steps[k] + residual) - size;
    } else {
        const double before = logistic(margin), baseline = log_loss_of(sign * margin);
        const double error = before - y, squared = error * error;
        if (loss == LOG_LOSS)
            for (ptrdiff_t k = 0; k < count; k++) {
                shift[k] = logistic(margin + steps[k]) - before;
                increase[k] = log_loss_of(sign * (margin + steps[k])) - baseline;
            }
        else
            for (ptrdiff_t k = 0; k < count; k++) {
                shift[k] = logistic(margin + steps[k]) - before;
                increase[k] = (shift[k] + error) * (shift[k] + error) - squared;
            }
        return;
    }
    memcpy(shift, steps, sizeof(double) * (size_t)count);
}

/* Number of members of a pool with `base + spread * key <= cut`. */
FORCE_INLINE int64_t members_below(const Pool *pool, double cut, double base, double spread)
{
    if (!pool->size)
        return 0;
    if (!(spread > 0.0))
        return base <= cut ? pool->size : 0;
    const double key = (cut - base) / spread, place = (key - pool->low) * pool->inverse;
    int64_t at = place < 0.0 ? 0 : place >= (double)pool->n_buckets ? pool->size : pool->bucket[(int64_t)place];
    while (at < pool->size && base + spread * pool->key[at] <= cut)
        at++;
    while (at > 0 && base + spread * pool->key[at - 1] > cut)
        at--;
    return at;
}

FORCE_INLINE int64_t received_below(const Donors *d, const Pool *pool, int64_t slot, const Block *block, int64_t at)
{
    if (!block->base)
        return members_below(pool, d->cut[slot], 0.0, 1.0);
    if (d->bound[slot] < block->low[at])
        return 0;
    if (d->bound[slot] >= block->high[at])
        return pool->size;
    return members_below(pool, d->cut[slot], block->base[at], block->spread[at]);
}

/* Means over a table of weights, of all places. */
FORCE_INLINE void mean_of_places(const double *cumulated, int32_t n, const double *increase, const double *shift,
                                 double weight, double *mean, double *mean_shift, double *received)
{
    lanes sum = zero, shifted = zero;
    int32_t b = 0;
    for (; b + LANES <= n; b += LANES) {
        const lanes share = load(cumulated + b + 1) - load(cumulated + b);
        sum += share * load(increase + b);
        shifted += share * load(shift + b);
    }
    double total = sum_of(sum), total_shift = sum_of(shifted);
    for (; b < n; b++) {
        const double share = cumulated[b + 1] - cumulated[b];
        total += share * increase[b];
        total_shift += share * shift[b];
    }
    *mean = total + cumulated[n + 1] * increase[n + 1];
    *mean_shift = total_shift + cumulated[n + 1] * shift[n + 1];
    if (!received)
        return;
    for (b = 0; b < n + 2; b++)
        received[b] += weight * increase[b];
}

/* Means over a table of weights, of steps that start at some places. */
FORCE_INLINE void mean_of_steps(const double *cumulated, int32_t n, const int32_t *starts, int64_t count,
                                const double *increase, const double *shift, double weight, double *mean,
                                double *mean_shift, double *received)
{
    double total = 0.0, total_shift = 0.0, before = 0.0;
    for (int64_t k = 0; k < count; k++) {
        const double share = cumulated[k + 1 < count ? starts[k + 1] : n] - cumulated[starts[k]];
        total += share * increase[k];
        total_shift += share * shift[k];
        if (received)
            received[starts[k]] += weight * (increase[k] - before);
        before = increase[k];
    }
    *mean += total, *mean_shift += total_shift;
}

/* Means over a pool; `starts` may be null: all places. */
FORCE_INLINE void mean_of_pool(const Donors *d, const Pool *pool, int64_t j, const Block *block, int64_t at,
                               const int32_t *starts, int64_t count, const double *increase, const double *shift,
                               double missing_increase, double missing_shift, double weight)
{
    double total = 0.0, total_shift = 0.0, before = 0.0;
    double *received = block->pool_received ? block->pool_received + pool->first : NULL;
    int64_t from = count && (starts ? starts[0] : 0) ? received_below(d, pool, d->start[j] + starts[0], block, at) : 0;
    for (int64_t k = 0; k < count; k++) {
        const int64_t next = k + 1 < count ? (starts ? starts[k + 1] : k + 1) : d->n_places[j];
        const int64_t end = received_below(d, pool, d->start[j] + next, block, at);
        total += (double)(end - from) * increase[k];
        total_shift += (double)(end - from) * shift[k];
        if (received && from < pool->size)
            received[from] += weight * (increase[k] - before);
        before = increase[k], from = end;
    }
    if (!count)
        from = received_below(d, pool, d->start[j] + d->n_places[j], block, at);
    if (from < pool->size) { /* members without a value */
        total += (double)(pool->size - from) * missing_increase;
        total_shift += (double)(pool->size - from) * missing_shift;
        if (received)
            received[from] += weight * (missing_increase - before);
    }
    block->mean[at] = pool->size ? total / (double)pool->size : 0.0;
    block->mean_shift[at] = pool->size ? total_shift / (double)pool->size : 0.0;
}

void mean_increase(const Donors *d, const Block *block)
{
    const int64_t p = d->n_columns, slots = d->total + 1;
    for (int64_t i = 0; i < block->rows; i++) {
        const double weight = block->weight ? block->weight[i] : 1.0;
        for (int64_t j = 0; j < p; j++) {
            const int64_t at = i * p + j;
            const int32_t n = d->n_places[j];
            int64_t from = i * slots + d->start[j], count = n;
            double missing = 0.0, missing_shift = 0.0;
            block->mean[at] = block->mean_shift[at] = 0.0;
            if (d->kind[j] == NO_DONORS)
                continue;
            if (block->pointers) {
                from = block->pointers[at], count = block->pointers[at + 1] - from;
                missing = block->missing_increase[at], missing_shift = block->missing_shift[at];
            } else
                missing = block->increase[from + n + 1], missing_shift = block->shift[from + n + 1];
            const double *increase = block->increase + from, *shift = block->shift + from;
            const int32_t *starts = block->pointers ? block->starts + from : NULL;
            if (d->kind[j] == POOL) {
                mean_of_pool(d, d->pool + d->first[j] + block->group[at], j, block, at, starts, count, increase, shift,
                             missing, missing_shift, weight);
                continue;
            }
            const int64_t table = d->first[j] + (int64_t)block->group[at] * (n + 2);
            const double *cumulated = d->cumulated + table;
            double *received = block->received ? block->received + table : NULL;
            if (!block->pointers) {
                mean_of_places(cumulated, n, increase, shift, weight, block->mean + at, block->mean_shift + at, received);
                continue;
            }
            block->mean[at] = cumulated[n + 1] * missing, block->mean_shift[at] = cumulated[n + 1] * missing_shift;
            if (received)
                received[n + 1] += weight * missing;
            mean_of_steps(cumulated, n, starts, count, increase, shift, weight, block->mean + at,
                          block->mean_shift + at, received);
        }
    }
}
