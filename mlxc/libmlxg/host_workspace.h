// Workspaces: the control block and the stacks on which one thread of the
// operating system runs the fibers of one threadgroup at a time.
#ifndef MLXG_HOST_WORKSPACE_H
#define MLXG_HOST_WORKSPACE_H

#include "mlxg_abi.h"

namespace mlxg {

// A vector of three as the runtime sees it; laid out as metal::uint3.
struct alignas(16) uint3_bytes {
  uint32_t x, y, z;
};
using position = thread_position_of<uint3_bytes>;

// The control block with what only the runtime uses.
struct workspace {
  control c;
  uint32_t stacks;       // fibers that have a stack and a context
  bool exhausted;        // the system refused more
  workspace* next;       // in the list of free workspaces
  uint32_t shape[3];     // threadgroup size for which positions are laid out
  const void* shape_of;  // and the job
  alignas(64) position positions[max_threads];
};
static_assert(sizeof(workspace) <= stacks_offset);

// Reserves a workspace's addresses, without stacks; NULL when refused.
workspace* workspace_new();
// Gives back a workspace that is in no list.
void workspace_free(workspace*);
// Gives the first `count` fibers a stack; false when the system refuses.
bool workspace_grow(workspace*, uint32_t count);

// A free workspace with at least `count` stacks. The first is made sure of by
// workspace_reserve, so a caller that waits always gets one in the end.
bool workspace_reserve(uint32_t count);
workspace* workspace_acquire(uint32_t count);
void workspace_release(workspace*);

// The first function of every fiber.
extern "C" void mlxg_host_fiber_main();

}  // namespace mlxg

#endif
