// What the worker knows: the arena that buffers and threadgroup variables lie in,
// who runs, and how far each has come.
#ifndef CHECKED_STATE_H
#define CHECKED_STATE_H

#include "mlxg_abi.h"
#include "protocol.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

namespace checked {
using mlxg::max_simdgroups;
using mlxg::max_threads;
using mlxg::simd_width;

// ---- the arena ----

// Every buffer and every threadgroup variable has a slot of address space to
// itself, far wider than any index of 32 bits reaches, so that an address tells by a
// shift what was meant. The pages around the content are not mapped.
constexpr unsigned slot_shift = 36;
constexpr uint64_t slot_span = uint64_t(1) << slot_shift;
constexpr unsigned max_slots = 128;
constexpr uint64_t arena_span = slot_span * max_slots;

enum space : uint8_t { device, threadgroup };

// Who touched a cell last: a segment, and the return address of the call that
// announced the access. Its top bit tells an atomic access.
struct record {
  uint32_t segment;
  uint32_t pc;
};
constexpr uint32_t atomic_bit = 0x80000000u;
constexpr uint32_t more_bit = 0x40000000u;  // in a first reader: there are others
constexpr uint32_t read_bit = 0x20000000u;  // in a writer: there are readers
constexpr uint32_t pc_mask = read_bit - 1;

// The shadow of one element is the record of who wrote it last, and if it was read since,
// those of up to three readers: two lanes of one simdgroup and one of another. No
// writer can then be in conflict with a reader and meet none. They lie apart, for most
// elements are not read where they are written, and what is not touched costs nothing.
struct other_readers {
  record same, other;  // of the first reader's simdgroup, and of another
};

struct alignas(128) slot {
  uintptr_t start;
  uint64_t size;
  record* writers;  // none: the kernel cannot write here
  record* readers;
  other_readers* others;
  uint8_t* seen;  // one a cell: bit 0 read, bit 1 written, for the traffic
  uint32_t first_segment;  // records of earlier ones are void
  uint8_t shift;           // of a cell
  uint8_t needed_shift;    // what the accesses so far would have wanted
  uint8_t in;              // space
  bool initialised;
  uint64_t read, written;
  uint32_t tag;  // the number and the space, for the traffic
  uint32_t element;
  int32_t id;
  uint64_t file_offset;
  bool writable;
};

// ---- time ----

// A stretch of a thread between two barriers. Barriers of other flags are counted as
// well, to tell a missing flag from a missing barrier.
struct stretch {
  uint32_t group, thread;
  uint32_t phase[2];    // threadgroup barriers that cover the space
  uint32_t any;         // threadgroup barriers
  uint32_t simd[2];     // simdgroup barriers that cover the space
  uint32_t simd_any;
};

struct simdgroup_state {
  uint32_t simd[2];
  uint32_t simd_any;
  uint32_t all, ended;          // lanes
  uint32_t runnable, waiting, at_barrier, paused;
};

struct thread_state {
  uint32_t segment;  // 0: none yet in this stretch
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
  uintptr_t arena;
  uintptr_t workspace;
  uint32_t segment;  // of the running thread, 0: none yet
  uint32_t pc;       // of the last access
  uint32_t attention;  // the bits below
  uint32_t thread, group;
  uint32_t phase[2], any;
  bool running;
  bool diverged;  // in this group: what follows at its barriers is no news

  slot slots[max_slots];
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

static state now;

}  // namespace checked

#endif
