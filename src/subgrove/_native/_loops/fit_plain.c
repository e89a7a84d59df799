/* The loops of `fit.h` for any processor. */

#define fit_node fit_node_plain
#include "fit.h"
