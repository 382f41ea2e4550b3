// The state of the worker: the arena of buffers and threadgroup variables, their shadow memory, and the progress of
// each thread.
#ifndef CHECKER_STATE_H
#define CHECKER_STATE_H

#include <stddef.h>

#include "mlxg_abi.h"
#include "protocol.h"

// The worker is one translation unit, so its functions are static. The frequent path of an access is inlined and uses
// few registers. Rare cases are separate functions, because their register use would slow the frequent path down.
#define CHECKER_FAST [[gnu::always_inline]] static inline
#define CHECKER_RARE [[gnu::noinline]] static

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

// The C library's function. The worker's own accesses must not reach the checker.
extern "C" void* __real_memcpy(void*, const void*, size_t);

namespace checker {
using mlxg::max_simdgroups;
using mlxg::max_threads;
using mlxg::simd_width;

// Every buffer and every threadgroup variable has its own slot of 2^36 bytes of address space, more than any 32-bit
// index reaches. A shift of an address gives the slot of the accessed variable, also if the access is out of bounds.
// Pages outside of the content are not mapped. The last slot holds the stacks.
constexpr unsigned slot_shift = 36;
constexpr uint64_t slot_span = uint64_t(1) << slot_shift;
constexpr unsigned max_slots = 127;
constexpr uint64_t arena_span = slot_span * max_slots;

// The address spaces that barriers order, in the order of the bits of mem_flags.
enum space : uint8_t { device, threadgroup, texture, spaces };
constexpr uint32_t every_space = (1u << spaces) - 1;

constexpr uint32_t none = ~0u;

// The last access of a cell: the segment of the thread, and the return address of the instrumentation call. The upper
// bits of pc are flags.
struct record {
  uint32_t segment;
  uint32_t pc;
};
constexpr uint32_t atomic_bit = 0x80000000u;  // the access was atomic
constexpr uint32_t more_bit = 0x40000000u;    // in a first reader: the cell has other readers
constexpr uint32_t read_bit = 0x20000000u;    // in a writer: the cell has readers
// Flags of a first reader that a barrier separates from the writer. Until the next barrier, further readers of the same
// simdgroup (simdgroup_bit) or of the threadgroup (group_bit) need no record.
constexpr uint32_t simdgroup_bit = 0x10000000u, group_bit = 0x08000000u;
constexpr uint32_t pc_mask = group_bit - 1;

// The shadow of a cell is the record of its last writer and up to three readers since then: two lanes of one
// simdgroup and one thread of another simdgroup. Every writer then conflicts with at least one recorded reader if it
// conflicts with any. Writers and readers have separate arrays, because most elements are not read where they are
// written, and untouched pages cost nothing.
struct other_readers {
  record same, other;  // in the simdgroup of the first reader, and in another
};

struct alignas(128) slot {
  // The fields of the frequent path share a cache line.
  uintptr_t start;
  uint64_t free;         // reads below this offset are not recorded
  uint64_t free_writes;  // writes below this offset are not recorded
  uint64_t cells;        // number of cells of `unit` bytes
  record* writers;       // null if the kernel cannot write to the slot
  record* readers;
  uint32_t first_segment;  // records of earlier segments are invalid
  uint8_t unit;
  uint8_t in;  // space

  alignas(64) uint64_t size;
  other_readers* others;
  uint64_t* read_cells;  // one bit per cell that was read, for the traffic
  uint64_t read, written;
  uint32_t tag;  // index and address space, for the traffic
  uint32_t element;
  int32_t id;
  uint8_t shift;         // log2 of the cell size
  uint8_t needed_shift;  // log2 of the cell size that the accesses so far need
  bool initialized, writable;
};
static_assert(sizeof(slot) == 128);

// A segment of a thread's execution, between two barriers or fences. Barriers with other flags are counted too, to
// distinguish a wrong flag from a missing barrier.
struct segment_info {
  uint32_t group, thread;
  uint32_t phase[spaces];  // threadgroup barriers whose flags cover the address space
  uint32_t any;            // threadgroup barriers
  uint32_t simd[spaces];   // simdgroup barriers whose flags cover the address space
  uint32_t simd_any;
  bool exchanges;  // the thread executes a SIMD-group function
};

struct simdgroup_state {
  uint32_t simd[spaces];
  uint32_t simd_any;
  uint32_t all, ended;  // lanes
  uint32_t runnable, waiting, at_barrier, paused;
};

struct thread_state {
  uint32_t segment;  // none before the first access of the segment
  uint32_t pc;       // place of the wait, or of the last access of an ended thread
  uint32_t line, kind, flags;
  // The call at which the thread waits: its line, or a hash of the call path in a watched program.
  uint64_t place;
  uint32_t calls[max_calls];  // of the call path, innermost first
  uint32_t call_count;
  uint32_t argument, width;  // of mlxg_checked_uniform; width is 0 without an argument
  const void* frame;         // of the fiber's main function
  uint32_t fenced;           // last segment before the thread's last fence of a texture
  void (*complete)(mlxg::simdgroup&, uint32_t);
};

// Metal's uint3, which has the size of a uint4.
struct alignas(16) triple {
  uint32_t x, y, z;
};
using position = mlxg::thread_position_of<triple>;

struct state {
  // The fields that every access reads.
  slot* front;       // the slots; blank slots while `attention` is set, so that every access takes the slow path
  uint32_t segment;  // segment of the running thread, or none
  uint32_t pc;       // place of the last recorded access
  uint32_t epoch;    // first segment after the last barrier or fence of any kind
  uintptr_t arena;
  uintptr_t workspace;
  uint32_t attention;  // traffic_wanted, write_pending, trace_wanted
  uint32_t thread, group;
  uint32_t phase[spaces], any;
  bool running;
  bool watched;   // launch_header::watched
  bool diverged;  // a barrier of this threadgroup diverged; later barriers are not reported

  slot slots[max_slots + 1];
  uint32_t buffers, slot_count;
  segment_info* segments;
  uint32_t segment_count;
  simdgroup_state simdgroups[max_simdgroups];
  thread_state threads[max_threads];
  uint32_t simdgroup_count, thread_count;
  uint32_t schedule;
  uint64_t barriers, simd_operations, segments32, bank_conflicts;
  uint64_t filled_read;  // of the launch_header
  uint64_t trace;        // hash of the accesses of the schedule
  unsigned char fill;
};

constexpr uint32_t traffic_wanted = 1, write_pending = 2, trace_wanted = 4;

constexpr uint32_t max_segments = 1u << 27;

static slot blank[max_slots + 1];
static state now = {blank};

// Sets the reasons why every access takes the slow path, or 0 for the frequent path.
static void set_attention(uint32_t attention) {
  now.attention = attention;
  now.front = attention ? blank : now.slots;
}

// Records that a barrier or fence separates later accesses from earlier ones.
static void new_epoch() {
  now.epoch = now.segment_count + 1;
}

}  // namespace checker

#endif
