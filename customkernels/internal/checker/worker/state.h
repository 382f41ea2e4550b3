// What the worker knows: the arena that buffers and threadgroup variables lie in,
// who runs, and how far each has come.
#ifndef CHECKED_STATE_H
#define CHECKED_STATE_H

#include "mlxg_abi.h"
#include "protocol.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

namespace checker {
using mlxg::max_simdgroups;
using mlxg::max_threads;
using mlxg::simd_width;

// ---- the arena ----

// Every buffer and every threadgroup variable has a slot of address space to
// itself, far wider than any index of 32 bits reaches, so that an address tells by a
// shift what was meant. The pages around the content are not mapped. The last slot is that
// of the stacks.
constexpr unsigned slot_shift = 36;
constexpr uint64_t slot_span = uint64_t(1) << slot_shift;
constexpr unsigned max_slots = 127;
constexpr uint64_t arena_span = slot_span * max_slots;

enum space : uint8_t { device, threadgroup };

constexpr uint32_t none = ~0u;

// Who touched a cell last: a segment, and the return address of the call that
// announced the access. Its top bit tells an atomic access.
struct record {
  uint32_t segment;
  uint32_t pc;
};
constexpr uint32_t atomic_bit = 0x80000000u;
constexpr uint32_t more_bit = 0x40000000u;  // in a first reader: there are others
constexpr uint32_t read_bit = 0x20000000u;  // in a writer: there are readers
// In a first reader whom nothing but barriers separates from the writer, until the next one:
// no more is to be recorded of readers in its simdgroup, or in the whole group.
constexpr uint32_t simdgroup_bit = 0x10000000u, group_bit = 0x08000000u;
constexpr uint32_t pc_mask = group_bit - 1;

// The shadow of one element is the record of who wrote it last, and if it was read since,
// those of up to three readers: two lanes of one simdgroup and one of another. No
// writer can then be in conflict with a reader and meet none. They lie apart, for most
// elements are not read where they are written, and what is not touched costs nothing.
struct other_readers {
  record same, other;  // of the first reader's simdgroup, and of another
};

struct alignas(128) slot {
  // What the frequent accesses ask, in one line of the cache.
  uintptr_t start;
  uint64_t free;    // accesses that begin below this offset are not recorded
  uint64_t cells;   // of `unit` bytes
  record* writers;  // none: the kernel cannot write here
  record* readers;
  uint32_t first_segment;  // records of earlier ones are void
  uint8_t unit;
  uint8_t in;  // space

  alignas(64) uint64_t size;
  other_readers* others;
  uint64_t* read_cells;  // a bit for each: whether it was read, for the traffic
  uint64_t read, written;
  uint32_t tag;  // the number and the space, for the traffic
  uint32_t element;
  int32_t id;
  uint8_t shift;         // of a cell
  uint8_t needed_shift;  // what the accesses so far would have wanted
  bool initialized, writable;
};
static_assert(sizeof(slot) == 128);

// ---- time ----

// A stretch of a thread between two barriers. Barriers of other flags are counted as
// well, to tell a missing flag from a missing barrier.
struct stretch {
  uint32_t group, thread;
  uint32_t phase[2];  // threadgroup barriers that cover the space
  uint32_t any;       // threadgroup barriers
  uint32_t simd[2];   // simdgroup barriers that cover the space
  uint32_t simd_any;
};

struct simdgroup_state {
  uint32_t simd[2];
  uint32_t simd_any;
  uint32_t all, ended;  // lanes
  uint32_t runnable, waiting, at_barrier, paused;
};

struct thread_state {
  uint32_t segment;  // none: not yet in this stretch
  uint32_t pc;       // where it waits, or what it accessed last before it ended
  uint32_t line, kind, flags;
  void (*complete)(mlxg::simdgroup&, uint32_t);
};

// Metal's uint3, which is as large as a uint4.
struct alignas(16) triple {
  uint32_t x, y, z;
};
using position = mlxg::thread_position_of<triple>;

struct state {
  // What every access reads.
  slot* front;       // the slots, or while something wants attention, blank ones
  uint32_t segment;  // of the running thread, none: not yet
  uint32_t pc;       // of the last access that was recorded
  uint32_t epoch;    // the first segment behind the last barrier or fence of any kind
  uintptr_t arena;
  uintptr_t workspace;
  uint32_t attention;  // the bits below
  uint32_t thread, group;
  uint32_t phase[2], any;
  bool running;
  bool diverged;  // in this group: what follows at its barriers is no news

  slot slots[max_slots + 1];
  uint32_t buffers, slot_count;
  stretch* segments;
  uint32_t segment_count;
  simdgroup_state simdgroups[max_simdgroups];
  thread_state threads[max_threads];
  uint32_t simdgroup_count, thread_count;
  uint32_t schedule;
  uint64_t barriers, simd_operations, segments32, bank_conflicts;
};

enum : uint32_t { traffic_wanted = 1, write_pending = 2 };

constexpr uint32_t max_segments = 1u << 27;

static slot blank[max_slots + 1];
static state now = {blank};

static void attend(uint32_t attention) {
  now.attention = attention;
  now.front = attention ? blank : now.slots;
}

static void new_epoch() {
  now.epoch = now.segment_count + 1;
}

}  // namespace checker

#endif
