// The race rule, and the shadow cells to which it applies.
//
// Two accesses conflict if they touch the same cell, belong to different threads, at least one is a write, and not both
// are atomic. Source: the sections on synchronization functions and atomic functions of the Metal Shading Language
// Specification. A conflict is an error unless the accesses are ordered:
//
//  - within a threadgroup, by a threadgroup barrier between them whose flags cover the address space;
//  - within a simdgroup, also by a simdgroup barrier between them whose flags cover the address space;
//  - by fences around atomic operations (fence.h).
//
// Nothing else orders accesses. A barrier with mem_none orders nothing. SIMD-group functions and matrix operations
// order nothing, and matrix loads and stores are accesses of single lanes. Atomics alone order nothing. Between
// threadgroups of a launch only fences order accesses. Kinds of unordered conflicts:
//
//  - fence: a barrier separates the accesses, but its flags do not cover the address space;
//  - write_after_read: the same, for a read before the barrier and a write after it;
//  - lockstep: the accesses are of one simdgroup and are ordered only if its lanes run in lockstep. arms.go reports
//    those in the two arms of a branch as race;
//  - same_value_write: both accesses write the same value;
//  - race: every other conflict.
#ifndef CHECKER_RULE_H
#define CHECKER_RULE_H

#include "fence.h"
#include "filled.h"
#include "report.h"
#include "unread.h"

namespace checker {

// Begins a segment of the running thread and returns its number.
CHECKER_RARE uint32_t new_segment() {
  if (now.segment_count + 1 >= max_segments) {
    now.segment_count = 1;  // no practical launch needs so many; records of reused numbers become wrong
  }
  const uint32_t id = ++now.segment_count;
  const simdgroup_state& g = now.simdgroups[now.thread / simd_width];
  segment_info& s = now.segments[id];
  s.group = now.group;
  s.thread = now.thread;
  __builtin_memcpy(s.phase, now.phase, sizeof s.phase);
  s.any = now.any;
  __builtin_memcpy(s.simd, g.simd, sizeof s.simd);
  s.simd_any = g.simd_any;
  s.exchanges = false;
  now.threads[now.thread].segment = now.segment = id;
  return id;
}

// A conflicting write whose value is unknown until the store runs. The next event compares the memory with the old
// value: if it is equal, the finding is a same-value write.
static struct {
  finding f;
  uintptr_t address;
  uint32_t size;
  unsigned char old[16];
} pending;

// Reports the pending write, after its store.
CHECKER_RARE void resolve_pending_write() {
  set_attention(now.attention & ~write_pending);
  if (__builtin_memcmp(pending.old, reinterpret_cast<void*>(pending.address), pending.size) == 0) {
    pending.f.kind = same_value_write;
  }
  report(pending.f);
}

// Reports an access that conflicts with the recorded access `before`, unless the rule orders them.
CHECKER_RARE void conflict(
    const slot& s,
    uint64_t c,
    record before,
    bool before_write,
    bool write,
    bool atomic,
    uint32_t pc,
    uintptr_t address,
    uint32_t size) {
  const segment_info& p = now.segments[before.segment];
  const uint32_t in = s.in;
  uint32_t kind;
  if (p.group != now.group) {
    if (fence_orders(p, before.segment, in)) {
      return;
    }
    kind = race;
  } else {
    if (p.thread == now.thread) {
      return;
    }
    if (p.phase[in] != now.phase[in]) {
      return;
    }
    const simdgroup_state& g = now.simdgroups[now.thread / simd_width];
    const bool same = p.thread / simd_width == now.thread / simd_width;
    if (same && p.simd[in] != g.simd[in]) {
      return;
    }
    if (fence_orders(p, before.segment, in)) {
      return;
    }
    if (p.any != now.any || (same && p.simd_any != g.simd_any)) {
      kind = write && !before_write ? write_after_read : fence;
    } else if (same && !(before_write && write && (before.pc & pc_mask) == pc)) {
      kind = lockstep;  // ordered if the lanes run in lockstep
    } else {
      kind = race;
    }
  }
  finding f = here(kind, pc);
  f.slot = int32_t(&s - now.slots);
  f.other_pc = before.pc & pc_mask;
  f.offset = int64_t(c << s.shift);
  f.size = size;
  f.access = (write ? is_write : 0) | (before_write ? other_is_write : 0) | (atomic ? is_atomic : 0) |
             (before.pc & atomic_bit ? other_is_atomic : 0);
  f.other_group = p.group;
  f.other_thread = p.thread;
  if (write && before_write && size <= sizeof pending.old && kind != fence) {
    pending.f = f;
    pending.address = address;
    pending.size = size;
    __real_memcpy(pending.old, reinterpret_cast<void*>(address), size);
    set_attention(now.attention | write_pending);
    return;
  }
  report(f);
}

// Records an access if only the running thread has accessed the cell since the last barrier. Returns false if the
// rule must be checked.
template <bool write>
CHECKER_FAST bool own_cell(const slot& s, uint64_t c, uint32_t pc) {
  const uint32_t segment = now.segment;
  record& writer = s.writers[c];
  const record w = writer;
  const auto read_only_here = [&] { return s.readers[c].segment == segment && !(s.readers[c].pc & more_bit); };
  if (write) {
    __builtin_prefetch(&writer + 16, 1);  // for the threads that run next
    if (w.segment != segment && (w.segment >= s.first_segment || segment == none)) {
      return false;
    }
    if ((w.pc & read_bit) && (s.in == threadgroup || !read_only_here())) {
      return false;
    }
    writer = {segment, pc};
    now.pc = pc;
    return true;
  }
  if (w.segment != segment) {
    return false;
  }
  if (w.pc & read_bit) {
    return s.readers[c].segment == segment;
  }
  writer.pc = w.pc | read_bit;
  s.readers[c] = {segment, pc};
  return true;
}

// Returns whether the recorded readers make a record of the running thread unnecessary.
CHECKER_FAST bool enough_readers(const slot& s, uint64_t c) {
  if (!(s.writers[c].pc & read_bit)) {
    return false;
  }
  const record r = s.readers[c];
  if (r.segment < now.epoch) {
    return false;
  }
  return (r.pc & group_bit) ||
         ((r.pc & simdgroup_bit) && now.segments[r.segment].thread / simd_width == now.thread / simd_width);
}

CHECKER_RARE void uninitialized(const slot& s, uint64_t c, uint32_t size, uint32_t pc) {
  if (now.filled_read) {
    fill_read(s, c, pc);
  }
  finding f = here(uninitialized_read, pc);
  f.slot = int32_t(&s - now.slots);
  f.offset = int64_t(c << s.shift);
  f.size = size;
  report(f);
}

static bool both_atomic(record r, bool atomic) {
  return atomic && (r.pc & atomic_bit);
}

// Returns whether the running thread may replace a recorded reader: every later writer that conflicts with `old` also
// conflicts with the running thread.
static bool replaces(const slot& s, record old) {
  if (old.segment < s.first_segment) {
    return true;
  }
  const segment_info& p = now.segments[old.segment];
  if (p.group != now.group) {
    return false;
  }
  if (p.phase[s.in] != now.phase[s.in] || p.thread == now.thread) {
    return true;
  }
  const uint32_t simdgroup = now.thread / simd_width;
  return p.thread / simd_width == simdgroup && p.simd[s.in] != now.simdgroups[simdgroup].simd[s.in];
}

// Sets simdgroup_bit and group_bit of a cell whose writer is ordered before all threads of the group. Two plain readers
// of one simdgroup since the last barrier make records of its other lanes unnecessary. A third reader, of another
// simdgroup, makes all further records unnecessary.
static void mark_readers(const slot& s, uint64_t c) {
  record& first = s.readers[c];
  const auto holds = [](record r) { return r.segment >= now.epoch && !(r.pc & atomic_bit); };
  if (!(first.pc & more_bit) || !holds(first) || !holds(s.others[c].same)) {
    return;
  }
  first.pc |= simdgroup_bit;
  if (holds(s.others[c].other)) {
    first.pc |= group_bit;
  }
}

CHECKER_RARE void add_reader(const slot& s, uint64_t c, uint32_t segment, uint32_t pc) {
  const record mine = {segment, pc};
  record& first = s.readers[c];
  if (!(s.writers[c].pc & read_bit)) {
    s.writers[c].pc |= read_bit;
    first = mine;
    return;
  }
  const uint32_t more = first.pc & more_bit;
  if (first.segment < s.first_segment) {
    first = mine;
    return;
  }
  if (first.segment == segment) {
    if (!(pc & atomic_bit)) {
      first.pc &= ~atomic_bit;
    }
    return;
  }
  if (replaces(s, first)) {
    first = {segment, pc | more};
    return;
  }
  other_readers& o = s.others[c];
  if (!more) {
    o = {};
    first.pc |= more_bit;
  }
  const segment_info& p = now.segments[first.segment];
  record& at = p.group == now.group && p.thread / simd_width == now.thread / simd_width ? o.same : o.other;
  if (at.segment == segment) {
    if (!(pc & atomic_bit)) {
      at.pc &= ~atomic_bit;
    }
  } else if (replaces(s, at)) {
    at = mine;
  }
}

// Returns whether an uninitialized cell may be padding: its element is a structure, and the access covers an
// initialized cell of it.
static bool may_be_padding(const slot& s, uint64_t c, uint64_t first, uint64_t last) {
  const uint64_t cells = s.element >> s.shift;
  if (cells < 2) {
    return false;
  }
  const uint64_t begin = c / cells * cells, end = begin + cells - 1;
  for (uint64_t i = first > begin ? first : begin; i <= last && i <= end; ++i) {
    if (s.writers[i].segment >= s.first_segment) {
      return true;
    }
  }
  return false;
}

// Checks the read of cell c by an access of the cells first to last.
static void check_read(
    slot& s, uint64_t c, uint64_t first, uint64_t last, bool atomic, uint32_t pc, uintptr_t address, uint32_t size) {
  const uint32_t segment = likely(now.segment != none) ? now.segment : new_segment();
  const record w = s.writers[c];
  bool ordered = false;  // the write is ordered before all threads of the group
  if (w.segment < s.first_segment) {
    ordered = s.initialized;
    if (!ordered && !may_be_padding(s, c, first, last)) {
      uninitialized(s, c, size, pc);
    }
  } else if (w.segment != segment) {
    const segment_info& p = now.segments[w.segment];
    ordered = p.group == now.group && p.phase[s.in] != now.phase[s.in];
    if (!ordered && !both_atomic(w, atomic)) {
      conflict(s, c, w, true, false, atomic, pc, address, size);
    }
  }
  add_reader(s, c, segment, pc | (atomic ? atomic_bit : 0));
  if (ordered && !atomic) {
    mark_readers(s, c);
  }
}

static void check_write(slot& s, uint64_t c, bool atomic, uint32_t pc, uintptr_t address, uint32_t size) {
  const uint32_t segment = likely(now.segment != none) ? now.segment : new_segment();
  const record w = s.writers[c];
  if (w.segment != segment && w.segment >= s.first_segment && !both_atomic(w, atomic)) {
    conflict(s, c, w, true, true, atomic, pc, address, size);
  }
  if (w.pc & read_bit) {
    const record first = s.readers[c];
    const other_readers o = first.pc & more_bit ? s.others[c] : other_readers{};
    const record readers[] = {first, o.same, o.other};
    for (const record r : readers) {
      if (r.segment != segment && r.segment >= s.first_segment && !both_atomic(r, atomic)) {
        conflict(s, c, r, false, true, atomic, pc, address, size);
      }
    }
    if (s.in == threadgroup) {
      count_read(s, c);
    }
  }
  s.writers[c] = {segment, pc | (atomic ? atomic_bit : 0)};
}

}  // namespace checker

#endif
