// Metal's mathematics on scalars and vectors.
#ifndef METAL_MATH_H
#define METAL_MATH_H

#include "metal_common.h"
#include "metal_float.h"
#include "metal_geometric.h"
#include "metal_integer.h"
#include "metal_pack.h"
#include "metal_relational.h"

#endif
