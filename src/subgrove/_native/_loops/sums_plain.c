/* The loops of `sums.h` for any processor. */

#define sum_node sum_node_plain
#include "sums.h"
