// Loops over mlx-c on the CPU. Each returns 0, or the status of the call that failed.
#ifndef OVERHEAD_LOOPS_H
#define OVERHEAD_LOOPS_H

#include <stdbool.h>
#include <stddef.h>

int overhead_add(size_t n);
int overhead_chain(size_t n, size_t ops);
int overhead_step(size_t n, bool eval);

#endif
