// Metal's standard library for the checker of a kernel with textures or samplers.
#ifndef METAL_TEXTURED_H
#define METAL_TEXTURED_H

#include "metal_native.h"
#include "metal_texture.h"

#endif
