// The data structures that a compiled shader and the host runtime share.
//
// Different compilers compile the two. The text of this file is part of the cache key of a library and of libmlxg's
// interface (library.Interface), so the runtime never loads a library with another layout.
#ifndef MLXG_ABI_H
#define MLXG_ABI_H

#include <stddef.h>
#include <stdint.h>

#include "mlxg_positions.h"

namespace mlxg {

constexpr unsigned max_threads = 1024;  // of a threadgroup, as on Apple GPUs
constexpr unsigned max_simdgroups = max_threads / simd_width;
constexpr unsigned max_threadgroup_memory = 32768;
constexpr unsigned max_buffers = 64;  // Metal allows 31

// A suspended fiber. Its other registers are on its stack.
struct context {
  void* sp;
  void* fp;
  void* ip;
  void* unused;  // makes the size a power of two, so that indexing is a shift
};

// The state of one simdgroup.
//
// A lane is runnable, waits at a simdgroup operation, waits at a threadgroup barrier, or has ended. Three masks hold
// the lanes of the first three states. Only one fiber of a threadgroup runs at a time, so no access is atomic.
struct simdgroup {
  uint32_t runnable;
  uint32_t waiting;
  uint32_t at_barrier;
  uint32_t unused;
  // The operation of each waiting lane: the low 48 bits are the function that completes it, the others the line of the
  // call. Lanes with equal keys take part in the same operation.
  uint64_t key[simd_width];
  // Arguments: one array for each element size, so that lanes at operations of different types do not overwrite each
  // other.
  alignas(64) unsigned char in4[4 * simd_width];
  alignas(64) unsigned char in8[8 * simd_width];
  alignas(64) unsigned char in16[16 * simd_width];
  alignas(64) unsigned char in32[32 * simd_width];
  alignas(64) uint32_t index[simd_width];
  // Results of the last completed operation. A lane is runnable until it has read its result, and operations complete
  // only when no lane is runnable, so the next operation overwrites no unread result.
  alignas(64) unsigned char out[32 * simd_width];
};

// The fixed part of a workspace, in which one worker runs threadgroups. A workspace is aligned to workspace_size, and
// its upper half holds the fibers' stacks. So a fiber computes the address of its control block and its own number from
// its stack pointer. That is cheaper than thread-local storage, which a shared library accesses through a call.
struct control {
  // Returns the fiber to run next when no lane of the caller's simdgroup is runnable. It completes operations, moves to
  // the next simdgroup, or opens the threadgroup's barrier. It may return the caller's own context.
  context* (*advance)(control*, uint32_t thread);
  uint32_t runnable_simdgroups;  // mask of simdgroups with a runnable lane
  uint32_t simdgroups;           // of the current threadgroup
  const void* job;               // for the runtime
  uint64_t first_group, last_group;
  // Reports whether the threadgroup should pause, so that the system thread continues another one.
  bool (*should_pause)(const control*);
  uint32_t unfinished;  // 1 until the workspace's threadgroups have ended
  context main;         // of the system thread that runs the threadgroup
  alignas(64) context fiber[max_threads];
  alignas(64) simdgroup groups[max_simdgroups];
  alignas(4096) unsigned char threadgroup_memory[max_threadgroup_memory];
};

constexpr unsigned stack_shift = 17;  // 128 KiB for each fiber, which uses few of the pages
constexpr uintptr_t stack_size = uintptr_t(1) << stack_shift;
constexpr uintptr_t stacks_offset = stack_size * max_threads;
constexpr uintptr_t workspace_size = 2 * stacks_offset;
static_assert(sizeof(control) < stacks_offset / 2);

// Data of a shader library for the runtime.
struct module {
  // Static initializers set these while the library is loaded.
  const uint32_t* threadgroup_memory;
  const uint32_t* uses_fibers;
  // Runs threadgroups first to last - 1 of a kernel that does not synchronize.
  void (*run_plain)(void* const* buffers, const geometry*, uint64_t first, uint64_t last);
};

}  // namespace mlxg

#endif
