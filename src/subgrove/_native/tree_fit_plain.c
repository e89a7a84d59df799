/* The loops of `tree_fit_loops.h` for any processor. */

#define fit_node fit_node_plain
#include "tree_fit_loops.h"
