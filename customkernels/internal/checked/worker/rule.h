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

namespace checked {

[[gnu::noinline]] static uint32_t new_segment() {
  if (now.segment_count + 1 >= max_segments) {
    now.segment_count = 1;  // far beyond any test: old records become wrong, and are few
  }
  const uint32_t id = ++now.segment_count;
  const simdgroup_state& g = now.simdgroups[now.thread / simd_width];
  now.segments[id] = {now.group, now.thread, {now.phase[0], now.phase[1]}, now.any,
                      {g.simd[0], g.simd[1]}, g.simd_any};
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
  now.attention &= ~write_pending;
  if (__builtin_memcmp(pending.old, reinterpret_cast<void*>(pending.address), pending.size) == 0)
    pending.f.kind = same_value_write;
  report(pending.f);
}

[[gnu::noinline]] static void conflict(const slot& s, uint64_t c, record before, bool before_write,
                                       bool write, bool atomic, uint32_t pc, uintptr_t address,
                                       uint32_t size) {
  const segment& p = now.segments[before.segment];
  const uint32_t in = s.in;
  uint32_t kind;
  if (p.group != now.group) {
    if (fence_orders(p, before.segment, in)) return;
    kind = race;
  } else {
    if (p.thread == now.thread) return;
    if (p.phase[in] != now.phase[in]) return;
    const simdgroup_state& g = now.simdgroups[now.thread / simd_width];
    const bool same = p.thread / simd_width == now.thread / simd_width;
    if (same && p.simd[in] != g.simd[in]) return;
    if (fence_orders(p, before.segment, in)) return;
    if (p.any != now.any || (same && p.simd_any != g.simd_any)) {
      kind = fence;
    } else if (same && !(before_write && write && (before.pc & ~atomic_bit) == pc)) {
      kind = lockstep;  // one after the other if all lanes step together
    } else {
      kind = race;
    }
  }
  finding f = here(kind, pc);
  f.slot = int32_t(&s - now.slots);
  f.other_pc = before.pc & ~atomic_bit;
  f.offset = int64_t(c << s.shift);
  f.size = size;
  f.access = (write ? is_write : 0) | (before_write ? other_is_write : 0) |
             (atomic ? is_atomic : 0) | (before.pc & atomic_bit ? other_is_atomic : 0);
  f.other_group = p.group;
  f.other_thread = p.thread;
  if (write && before_write && size <= sizeof pending.old && kind != fence) {
    pending.f = f;
    pending.address = address;
    pending.size = size;
    __builtin_memcpy(pending.old, reinterpret_cast<void*>(address), size);
    now.attention |= write_pending;
    return;
  }
  report(f);
}

[[gnu::noinline]] static void uninitialised(const slot& s, uint64_t c, uint32_t size, uint32_t pc) {
  finding f = here(uninitialised_read, pc);
  f.slot = int32_t(&s - now.slots);
  f.offset = int64_t(c << s.shift);
  f.size = size;
  report(f);
}

static bool both_atomic(record r, bool atomic) { return atomic && (r.pc & atomic_bit); }

// Whether a later writer that is in conflict with `old` is so with the running
// thread too.
static bool replaces(const slot& s, record old) {
  if (old.segment < s.first_segment) return true;
  const segment& p = now.segments[old.segment];
  if (p.group != now.group) return false;
  if (p.phase[s.in] != now.phase[s.in]) return true;
  return p.thread == now.thread;
}

[[gnu::noinline]] static void add_reader(const slot& s, cell& k, uint32_t segment, uint32_t pc) {
  const record mine = {segment, pc};
  record* r = k.reader;
  if (r[0].segment < s.first_segment) {
    r[0] = mine;
    r[1].segment = r[2].segment = 0;
    return;
  }
  for (int i = 0; i < 3; ++i) {
    if (r[i].segment == segment) {
      if (!(pc & atomic_bit)) r[i].pc &= ~atomic_bit;
      return;
    }
  }
  if (replaces(s, r[0])) {
    r[0] = mine;
    return;
  }
  const segment_pair both = {now.segments[r[0].segment].group, now.segments[r[0].segment].thread};
  const bool same = both.group == now.group && both.thread / simd_width == now.thread / simd_width;
  record& other = same ? r[1] : r[2];
  if (replaces(s, other)) other = mine;
}

[[gnu::always_inline]] static inline void check_read(slot& s, uint64_t c, bool atomic, uint32_t pc,
                                                     uintptr_t address, uint32_t size) {
  const uint32_t segment = likely(now.segment) ? now.segment : new_segment();
  cell& k = s.cells[c];
  const record w = k.writer;
  if (w.segment != segment) {
    if (w.segment < s.first_segment) {
      if (!s.initialised) uninitialised(s, c, size, pc);
    } else if (!both_atomic(w, atomic)) {
      conflict(s, c, w, true, false, atomic, pc, address, size);
    }
  }
  const record mine = {segment, pc | (atomic ? atomic_bit : 0)};
  if (k.reader[0].segment == segment && !atomic) {
    k.reader[0].pc &= ~atomic_bit;
    return;
  }
  if (k.reader[0].segment == 0) {
    k.reader[0] = mine;
    return;
  }
  add_reader(s, k, segment, mine.pc);
}

[[gnu::always_inline]] static inline void check_write(slot& s, uint64_t c, bool atomic, uint32_t pc,
                                                      uintptr_t address, uint32_t size) {
  const uint32_t segment = likely(now.segment) ? now.segment : new_segment();
  cell& k = s.cells[c];
  const record w = k.writer;
  if (w.segment != segment && w.segment >= s.first_segment && !both_atomic(w, atomic))
    conflict(s, c, w, true, true, atomic, pc, address, size);
  if (k.reader[0].segment) {
    for (const record r : k.reader)
      if (r.segment != segment && r.segment >= s.first_segment && !both_atomic(r, atomic))
        conflict(s, c, r, false, true, atomic, pc, address, size);
    if (s.in == threadgroup) count_read(s, k);
    k.reader[0].segment = k.reader[1].segment = k.reader[2].segment = 0;
  }
  k.writer = {segment, pc | (atomic ? atomic_bit : 0)};
}

}  // namespace checked

#endif
