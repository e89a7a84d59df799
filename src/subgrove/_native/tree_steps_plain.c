/* The loops of `tree_steps_loops.h` for any processor. */

#define dense_steps dense_steps_plain
#define mask_margins mask_margins_plain
#define loss_increase loss_increase_plain
#define mean_increase mean_increase_plain
#include "tree_steps_loops.h"
