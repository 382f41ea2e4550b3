// The rule by which two accesses are ordered, and the shadow cells it is applied to.
//
// Two accesses of different threads to one cell, at least one of them a write and
// not both atomic, are ordered only by a barrier between them: one of the
// threadgroup, or for lanes of one simdgroup one of the simdgroup, whose flags cover the
// address space. Nothing orders threads of different groups but fences (fence.h).
#ifndef CHECKED_RULE_H
#define CHECKED_RULE_H

#include "fence.h"
#include "report.h"
#include "unread.h"

// The C library's, past the checker: what the checker reads is no access of the shader's.
extern "C" void* __real_memcpy(void*, const void*, size_t);

namespace checker {

[[gnu::noinline]] static uint32_t new_segment() {
  if (now.segment_count + 1 >= max_segments) {
    now.segment_count = 1;  // far beyond any test: old records become wrong, and are few
  }
  const uint32_t id = ++now.segment_count;
  const simdgroup_state& g = now.simdgroups[now.thread / simd_width];
  now.segments[id] = {now.group, now.thread, {now.phase[0], now.phase[1]}, now.any, {g.simd[0], g.simd[1]}, g.simd_any};
  now.threads[now.thread].segment = now.segment = id;
  return id;
}

// A write whose value is not there yet: what it replaces was written by another
// thread, and whether that is the same value shows at the next event.
static struct {
  finding f;
  uintptr_t address;
  uint32_t size;
  unsigned char old[16];
} pending;

[[gnu::noinline]] static void settle() {
  attend(now.attention & ~write_pending);
  if (__builtin_memcmp(pending.old, reinterpret_cast<void*>(pending.address), pending.size) == 0) {
    pending.f.kind = same_value_write;
  }
  report(pending.f);
}

[[gnu::noinline]] static void conflict(
    const slot& s,
    uint64_t c,
    record before,
    bool before_write,
    bool write,
    bool atomic,
    uint32_t pc,
    uintptr_t address,
    uint32_t size) {
  const stretch& p = now.segments[before.segment];
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
      kind = fence;
    } else if (same && !(before_write && write && (before.pc & pc_mask) == pc)) {
      kind = lockstep;  // one after the other if all lanes step together
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
    attend(now.attention | write_pending);
    return;
  }
  report(f);
}

// Whether only the running thread has touched a cell since the last barrier, or nobody has at
// all: the access is then recorded, and no more is to be said of it.
template <bool write>
[[gnu::always_inline]] static inline bool own_cell(const slot& s, uint64_t c, uint32_t pc) {
  const uint32_t segment = now.segment;
  record& writer = s.writers[c];
  const record w = writer;
  const auto read_only_here = [&] { return s.readers[c].segment == segment && !(s.readers[c].pc & more_bit); };
  if (write) {
    __builtin_prefetch(&writer + 16, 1);  // for the threads that come next
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

// Whether enough threads have read a cell since the last barrier, so that the running one need
// not be recorded.
[[gnu::always_inline]] static inline bool enough_readers(const slot& s, uint64_t c) {
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

[[gnu::noinline]] static void uninitialized(const slot& s, uint64_t c, uint32_t size, uint32_t pc) {
  finding f = here(uninitialized_read, pc);
  f.slot = int32_t(&s - now.slots);
  f.offset = int64_t(c << s.shift);
  f.size = size;
  report(f);
}

static bool both_atomic(record r, bool atomic) {
  return atomic && (r.pc & atomic_bit);
}

// Whether a later writer that is in conflict with `old` is so with the running
// thread too.
static bool replaces(const slot& s, record old) {
  if (old.segment < s.first_segment) {
    return true;
  }
  const stretch& p = now.segments[old.segment];
  if (p.group != now.group) {
    return false;
  }
  if (p.phase[s.in] != now.phase[s.in] || p.thread == now.thread) {
    return true;
  }
  const uint32_t simdgroup = now.thread / simd_width;
  return p.thread / simd_width == simdgroup && p.simd[s.in] != now.simdgroups[simdgroup].simd[s.in];
}

// Marks a cell whose writer is ordered before all threads of the group: once there are two
// plain readers of a simdgroup since the last barrier and one of another, those that come until
// the next would not be recorded.
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

[[gnu::noinline]] static void add_reader(const slot& s, uint64_t c, uint32_t segment, uint32_t pc) {
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
  const stretch& p = now.segments[first.segment];
  record& at = p.group == now.group && p.thread / simd_width == now.thread / simd_width ? o.same : o.other;
  if (at.segment == segment) {
    if (!(pc & atomic_bit)) {
      at.pc &= ~atomic_bit;
    }
  } else if (replaces(s, at)) {
    at = mine;
  }
}

// Whether the element that holds a cell is a structure some of which is initialized, as far as
// an access of the cells first to last covers it: what is not may be padding.
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

// The cell c of an access that covers first to last.
static void check_read(
    slot& s, uint64_t c, uint64_t first, uint64_t last, bool atomic, uint32_t pc, uintptr_t address, uint32_t size) {
  const uint32_t segment = likely(now.segment != none) ? now.segment : new_segment();
  const record w = s.writers[c];
  bool ordered = false;  // before all threads of the group
  if (w.segment < s.first_segment) {
    ordered = s.initialized;
    if (!ordered && !may_be_padding(s, c, first, last)) {
      uninitialized(s, c, size, pc);
    }
  } else if (w.segment != segment) {
    const stretch& p = now.segments[w.segment];
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
