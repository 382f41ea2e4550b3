// Metal's scalar types, type traits and numeric limits.
#ifndef METAL_SCALAR_H
#define METAL_SCALAR_H

#include "metal_limits.h"
#include "metal_small_float.h"
#include "metal_traits.h"

#endif
