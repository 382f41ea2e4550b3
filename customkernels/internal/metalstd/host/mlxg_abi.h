// The layout that a compiled shader and the runtime share.
//
// A shader library and the runtime are compiled apart, by different
// compilers, and meet only in the structures of this file. The text of this
// file is part of the key under which a library is cached, so a change of
// layout never meets an old library.
#ifndef MLXG_ABI_H
#define MLXG_ABI_H

#include <stddef.h>
#include <stdint.h>

namespace mlxg {

constexpr unsigned simd_width = 32;
constexpr unsigned max_threads = 1024;  // a threadgroup, as on Apple GPUs
constexpr unsigned max_simdgroups = max_threads / simd_width;
constexpr unsigned max_threadgroup_memory = 32768;
constexpr unsigned max_buffers = 64;  // Metal has 31; the rest is slack

// Every value that Metal can bind to an attribute of a kernel argument.
// V3 is metal::uint3 in a shader and a plain array in the runtime.
template <class V3>
struct thread_position_of {
  V3 thread_position_in_grid;
  V3 thread_position_in_threadgroup;
  V3 threadgroup_position_in_grid;
  V3 threads_per_threadgroup;  // of this threadgroup: a tail group is short
  V3 dispatch_threads_per_threadgroup;
  V3 threads_per_grid;
  V3 threadgroups_per_grid;
  V3 grid_size;
  V3 grid_origin;
  uint32_t thread_index_in_threadgroup;
  uint32_t thread_index_in_simdgroup;
  uint32_t thread_index_in_quadgroup;
  uint32_t simdgroup_index_in_threadgroup;
  uint32_t quadgroup_index_in_threadgroup;
  uint32_t simdgroups_per_threadgroup;
  uint32_t quadgroups_per_threadgroup;
  uint32_t dispatch_simdgroups_per_threadgroup;
  uint32_t dispatch_quadgroups_per_threadgroup;
  uint32_t threads_per_simdgroup;
  uint32_t thread_execution_width;
};

// Where a launch stands: the same for all its threadgroups.
struct geometry {
  uint32_t grid[3];         // threads
  uint32_t threadgroup[3];  // threads of a full threadgroup
  uint32_t groups[3];       // threadgroups, tail groups counted
};

// A suspended fiber: all other registers are on its stack.
struct context {
  void* sp;
  void* fp;
  void* ip;
  void* unused;  // to a power of two, so that indexing is a shift
};

// The meeting place of the lanes of one simdgroup.
//
// A lane is runnable, or waits at a simdgroup operation, or waits at a
// threadgroup barrier, or has ended; the three masks hold the first three.
// Only one fiber of a threadgroup runs at a time, so nothing here is atomic.
struct simdgroup {
  uint32_t runnable;
  uint32_t waiting;
  uint32_t at_barrier;
  uint32_t unused;
  // What a waiting lane waits for: the function that completes the operation
  // in the low 48 bits, the line of the call above. Lanes with equal keys
  // take part in the same operation.
  uint64_t key[simd_width];
  // Arguments, one array for each size of element, so that lanes that wait
  // at operations of different types cannot overwrite each other.
  alignas(64) unsigned char in4[4 * simd_width];
  alignas(64) unsigned char in8[8 * simd_width];
  alignas(64) unsigned char in16[16 * simd_width];
  alignas(64) unsigned char in32[32 * simd_width];
  alignas(64) uint32_t index[simd_width];
  // Results of the operation completed last. Nobody completes another before
  // every lane has taken its own, since a lane that has not is runnable.
  alignas(64) unsigned char out[32 * simd_width];
};

// The fixed part of a workspace: what one worker needs to run threadgroups.
// It lies at an address aligned to workspace_size, and the stacks of the
// fibers lie in the upper half of the same workspace, so a fiber finds its
// control block and its own number in its stack pointer. That is cheaper
// than thread-local storage, which a dlopened library reaches by a call.
struct control {
  // Chooses the fiber to run next when no lane of the caller's simdgroup is
  // runnable: completes operations, goes to the next simdgroup, opens the
  // threadgroup's barrier. May return the caller's own context.
  context* (*advance)(control*, uint32_t thread);
  uint32_t runnable_simdgroups;  // those with a runnable lane
  uint32_t simdgroups;           // of the current threadgroup
  const void* job;               // the runtime's
  uint64_t first_group, last_group;
  context main;  // of the thread that runs the threadgroup
  alignas(64) context fiber[max_threads];
  alignas(64) simdgroup groups[max_simdgroups];
  alignas(4096) unsigned char threadgroup_memory[max_threadgroup_memory];
};

constexpr unsigned stack_shift = 17;  // 128 KiB a fiber, mostly untouched
constexpr uintptr_t stack_size = uintptr_t(1) << stack_shift;
constexpr uintptr_t stacks_offset = stack_size * max_threads;
constexpr uintptr_t workspace_size = 2 * stacks_offset;
static_assert(sizeof(control) < stacks_offset / 2);

// What the generic part of a shader library tells the runtime.
struct module {
  uint32_t abi;
  // The library's static initialisers count these while it loads.
  const uint32_t* threadgroup_memory;
  const uint32_t* uses_fibers;
  // Runs threadgroups first..last of a shader that never waits.
  void (*run_plain)(void* const* buffers, const geometry*, uint64_t first, uint64_t last);
};
constexpr uint32_t abi_version = 1;

}  // namespace mlxg

#endif
