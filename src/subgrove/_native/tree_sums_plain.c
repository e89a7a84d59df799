/* The loops of `tree_sums_loops.h` for any processor. */

#define sum_node sum_node_plain
#include "tree_sums_loops.h"
