/* The cuts of a node if the outputs are indicators of classes: the same as for any outputs, at a cost that does not depend
 * on the number of classes.
 *
 * With the weight n_c of class c on the left, their sum w, and the share p_c of the class in the node, the summed squares
 * of the centered indicators on the left are sum n_c^2 - 2 w sum n_c p_c + w^2 sum p_c^2. A row that goes left changes
 * the terms of its own class only. Weights are whole numbers, so the sums of squares are exact.
 */

#ifndef SUBGROVE_FOREST_CLASSES_H
#define SUBGROVE_FOREST_CLASSES_H

#define NO_ROW UINT32_MAX

/* Sums over classes; `m_c` is the weight of class c in rows with a missing value. */
typedef struct {
    double weight;   /* w */
    double squares;  /* of n_c */
    double expected; /* of n_c p_c */
    double missing;  /* of n_c m_c */
} ClassSums;

/* What does not change during a scan. */
typedef struct {
    double shares_squared, missing_squared, missing_expected; /* sums of p_c^2, m_c^2 and m_c p_c */
} ClassConstants;

static double count_missing(Workspace *work, const Column *column, size_t k)
{
    double weight = 0.0;
    memset(work->missing_sums, 0, sizeof(double) * k);
    for (size_t i = 0; i < column->m; i++)
        if (column->ranks[column->rows[i]] == column->missing) {
            weight += work->sums[i];
            work->missing_sums[work->codes[i]] += work->sums[i];
        }
    return weight;
}

static inline void class_goes_left(Workspace *work, size_t class, double weight, int has_missing, ClassSums *sums)
{
    double *own = work->left + class;
    sums->weight += weight;
    sums->squares += weight * (2.0 * *own + weight);
    sums->expected += weight * work->shares[class];
    if (has_missing)
        sums->missing += weight * work->missing_sums[class];
    *own += weight;
}

static inline void consider_classes(double weight, double squares, double expected, const ClassConstants *constants,
                                    const Scan *scan, uint32_t rank, uint8_t missing_left, Cut *best)
{
    double square = squares - 2.0 * weight * expected + weight * weight * constants->shares_squared;
    double product = weight * (scan->all - weight);
    if (square * best->product > best->square * product * (1.0 + TIE)) {
        best->square = square, best->product = product;
        best->low = scan->last, best->high = rank;
        best->missing_left = missing_left;
    }
}

static inline void class_cut_before(const ClassSums *sums, const ClassConstants *constants, const Scan *scan,
                                    uint32_t rank, Cut *best)
{
    consider_classes(sums->weight, sums->squares, sums->expected, constants, scan, rank, 0, best);
    if (scan->missing_weight > 0.0 && rank != scan->missing)
        consider_classes(sums->weight + scan->missing_weight,
                         sums->squares + 2.0 * sums->missing + constants->missing_squared,
                         sums->expected + constants->missing_expected, constants, scan, rank, 1, best);
}

/* Cuts of a column with few ranks: weights are counted by rank and class. */
static int counted_class_cuts(Workspace *work, const Column *column, size_t k, const ClassConstants *constants, Scan scan,
                              Cut *best)
{
    ClassSums sums = {0.0, 0.0, 0.0, 0.0};
    const int has_missing = scan.missing_weight > 0.0;
    int varies = 0;
    memset(work->bins, 0, sizeof(double) * k * ((size_t)column->missing + 1));
    for (size_t i = 0; i < column->m; i++)
        work->bins[k * (size_t)column->ranks[column->rows[i]] + (size_t)work->codes[i]] += work->sums[i];
    for (uint32_t rank = 0; rank <= column->missing; rank++) {
        const double *bin = work->bins + k * (size_t)rank;
        int occurs = 0;
        for (size_t c = 0; c < k; c++)
            occurs |= bin[c] > 0.0;
        if (!occurs)
            continue;
        if (sums.weight > 0.0) {
            class_cut_before(&sums, constants, &scan, rank, best);
            varies = 1;
        }
        for (size_t c = 0; c < k; c++)
            if (bin[c] > 0.0)
                class_goes_left(work, c, bin[c], has_missing, &sums);
        scan.last = rank;
    }
    return varies;
}

/* Cuts of a column with many ranks: a list of the rows of each rank, and a bit for each rank that occurs. */
static int listed_class_cuts(Workspace *work, const Column *column, const ClassConstants *constants, Scan scan, Cut *best)
{
    ClassSums sums = {0.0, 0.0, 0.0, 0.0};
    const int has_missing = scan.missing_weight > 0.0;
    const size_t words = (column->missing >> 6) + 1;
    uint32_t *next = work->scratch;
    int varies = 0;
    memset(work->bitmap, 0, sizeof(uint64_t) * words);
    for (size_t i = 0; i < column->m; i++) {
        uint32_t rank = column->ranks[column->rows[i]];
        uint64_t bit = (uint64_t)1 << (rank & 63), word = work->bitmap[rank >> 6];
        next[i] = word & bit ? work->heads[rank] : NO_ROW;
        work->bitmap[rank >> 6] = word | bit;
        work->heads[rank] = (uint32_t)i;
    }
    for (size_t w = 0; w < words; w++)
        for (uint64_t word = work->bitmap[w]; word; word &= word - 1) {
            uint32_t rank = (uint32_t)(w << 6) + lowest_bit(word);
            if (sums.weight > 0.0) {
                class_cut_before(&sums, constants, &scan, rank, best);
                varies = 1;
            }
            for (uint32_t i = work->heads[rank]; i != NO_ROW; i = next[i])
                class_goes_left(work, (size_t)work->codes[i], work->sums[i], has_missing, &sums);
            scan.last = rank;
        }
    return varies;
}

/* Cuts between rows in the order of their keys, as in `sorted_cuts`. */
static int sorted_class_cuts(Workspace *work, const uint64_t *keys, size_t m, int bits, const ClassConstants *constants,
                             Scan scan, Cut *best)
{
    ClassSums sums = {0.0, 0.0, 0.0, 0.0};
    const int has_missing = scan.missing_weight > 0.0;
    scan.last = (uint32_t)(keys[0] >> bits);
    if (scan.last == (uint32_t)(keys[m - 1] >> bits))
        return 0;
    for (size_t i = 0; i < m; i++) {
        uint32_t rank = (uint32_t)(keys[i] >> bits);
        size_t at = (size_t)(keys[i] & (((uint64_t)1 << bits) - 1));
        if (rank != scan.last)
            class_cut_before(&sums, constants, &scan, rank, best);
        class_goes_left(work, (size_t)work->codes[at], work->sums[at], has_missing, &sums);
        scan.last = rank;
    }
    return 1;
}

/* Evaluate the cuts of one column. Returns whether it varies in the node. */
static int class_cuts(Workspace *work, const Column *column, size_t k, const Scan *scan, Cut *best)
{
    ClassConstants constants = {0.0, 0.0, 0.0};
    for (size_t c = 0; c < k; c++)
        constants.shares_squared += work->shares[c] * work->shares[c];
    if (scan->missing_weight > 0.0)
        for (size_t c = 0; c < k; c++) {
            constants.missing_squared += work->missing_sums[c] * work->missing_sums[c];
            constants.missing_expected += work->missing_sums[c] * work->shares[c];
        }
    if (((size_t)column->missing + 1) * k <= column->m)
        return counted_class_cuts(work, column, k, &constants, *scan, best);
    if (column->m <= FEW_ROWS) {
        uint64_t keys[FEW_ROWS];
        few_row_keys(column, keys);
        return sorted_class_cuts(work, keys, column->m, FEW_ROWS_BITS, &constants, *scan, best);
    }
    if (column->missing < DENSE * column->m)
        return listed_class_cuts(work, column, &constants, *scan, best);
    return sorted_class_cuts(work, radix_keys(work, column), column->m, 32, &constants, *scan, best);
}

#endif
