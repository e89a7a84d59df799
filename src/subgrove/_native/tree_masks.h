/* Tables of bit masks of an ensemble. */

#ifndef SUBGROVE_TREE_MASKS_H
#define SUBGROVE_TREE_MASKS_H

#include "tree_steps.h"

/* Build the tables if every tree has at most MAX_MASK_LEAVES leaves; `tree` stays null otherwise. -1: no memory. */
int build_masks(Ensemble *e);

#endif
