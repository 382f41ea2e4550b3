// A workspace holds a control block and stacks. A system thread runs the fibers of one threadgroup at a time on it.
// Another one may continue a threadgroup that has paused.
#ifndef MLXG_HOST_WORKSPACE_H
#define MLXG_HOST_WORKSPACE_H

#include "mlxg_abi.h"

namespace mlxg {

// Three integers with the layout of metal::uint3.
struct alignas(16) uint3_bytes {
  uint32_t x, y, z;
};
using position = thread_position_of<uint3_bytes>;

struct share;

struct workspace {
  control c;
  uint32_t stacks;       // fibers that have a stack and a context
  workspace* next;       // next free workspace, or next paused one of a share
  share* current;        // share of its threadgroups
  uint32_t shape[3];     // threadgroup size of positions
  const void* shape_of;  // job that positions belong to
  alignas(64) position positions[max_threads];
};
static_assert(sizeof(workspace) <= stacks_offset);

// Ensures that some workspace has `count` stacks, so that workspace_acquire(count) never waits forever. Returns false
// if there is no memory.
bool workspace_reserve(uint32_t count);
// Returns a free workspace with at least `count` stacks, and waits for one if necessary.
workspace* workspace_acquire(uint32_t count);
// Returns a free workspace with at least `count` stacks, or NULL if there is none.
workspace* workspace_try_acquire(uint32_t count);
// Returns a workspace to the list of free ones.
void workspace_release(workspace*);

// The first function of every fiber.
extern "C" void mlxg_host_fiber_main();

}  // namespace mlxg

#endif
