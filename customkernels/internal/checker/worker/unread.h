// Threadgroup values that are written and never read.
//
// A store is reported as never_read if threads read at most half of its values in every phase. Scans, sorts and padded
// tiles leave fewer values unread, or not in every phase. Unread components of a vector count only if threads read no
// other component of it. A store is reported as dropped_element, an error, if a reduction leaves the unread values out
// of its result: a tree over an odd width, or the last step over the values of simdgroups.
#ifndef CHECKER_UNREAD_H
#define CHECKER_UNREAD_H

#include "report.h"

namespace checker {

// The values that one store instruction wrote to a slot in one phase.
struct batch {
  uint32_t pc, phase, slot;
  uint32_t read, unread;  // numbers of values
  uint32_t own;           // number of values that their own simdgroup read
  uint32_t simdgroups;    // mask of the simdgroups that wrote
  uint32_t reader;        // last thread that read a value, plus 1
  uint32_t exchanging;    // mask of the simdgroups that read a value and exchanged values between lanes
  bool combined;          // one thread read several values, or one such simdgroup did
  uint32_t relevant;      // number of unread values that are neutral in no reduction
  uint32_t thread;        // thread that wrote the value at `offset`
  int64_t offset;         // offset of an unread element
  bool dropped;
};

constexpr uint32_t max_batches = 1024;
static batch batches[max_batches];
static bool batches_used;

// For each store, whether threads read its values.
static struct {
  uint32_t pc, slot;
  bool read;  // threads read most of the values of a phase
  finding f;
} stores[256];

static batch* find_batch(uint32_t pc, uint32_t phase, uint32_t slot) {
  uint32_t h = (pc * 0x9e3779b1u ^ phase * 0x85ebca6bu ^ slot) >> 7;
  for (uint32_t tries = 0; tries < 16; ++tries, ++h) {
    batch& b = batches[h % max_batches];
    if (b.pc == 0) {
      b = {};
      b.pc = pc;
      b.phase = phase;
      b.slot = slot;
      batches_used = true;
      return &b;
    }
    if (b.pc == pc && b.phase == phase && b.slot == slot) {
      return &b;
    }
  }
  return nullptr;
}

// Returns whether a thread of this threadgroup has read the value of a cell.
static bool is_read(const slot& s, uint64_t c) {
  return (s.writers[c].pc & read_bit) && s.readers[c].segment >= s.first_segment;
}

// Counts the value of a cell as read if a thread of this threadgroup has read it. Callers call it before the value is
// overwritten, and at the end of the threadgroup.
static void count_read(const slot& s, uint64_t c) {
  const record w = s.writers[c];
  if (w.segment < s.first_segment || (w.pc & atomic_bit)) {
    return;
  }
  if (!is_read(s, c)) {
    return;
  }
  const segment_info& writer = now.segments[w.segment];
  const segment_info& reader = now.segments[s.readers[c].segment];
  if (batch* b = find_batch(w.pc & pc_mask, writer.any, uint32_t(&s - now.slots))) {
    ++b->read;
    b->simdgroups |= 1u << writer.thread / simd_width;
    b->own += reader.thread / simd_width == writer.thread / simd_width;
    const uint32_t exchanging = reader.exchanges ? 1u << reader.thread / simd_width : 0;
    b->combined |= b->reader == reader.thread + 1 || (b->exchanging & exchanging);
    b->reader = reader.thread + 1;
    b->exchanging |= exchanging;
  }
}

// Returns whether a number is neutral in a reduction, as a float, half, bfloat or integer: 0, 1, an infinity, or the
// least or greatest number.
static bool neutral(uint64_t v, uint32_t size) {
  constexpr uint64_t wide[] = {0,          1,          0x3f800000, 0x7f800000, 0xff800000,
                               0x7f7fffff, 0xff7fffff, 0x7fffffff, 0x80000000, ~0u};
  constexpr uint64_t narrow[] = {0,      1,      0x3c00, 0x7c00, 0xfc00, 0x7bff, 0xfbff, 0x3f80,
                                 0x7f80, 0xff80, 0x7f7f, 0xff7f, 0x7fff, 0x8000, 0xffff};
  const auto among = [v](const auto& list) {
    for (const uint64_t n : list) {
      if (v == n) {
        return true;
      }
    }
    return false;
  };
  return size == 4 ? among(wide) : size == 2 ? among(narrow) : v == 0;
}

// Returns the next batch of a slot after a phase, or null.
static const batch* next_batch(uint32_t slot, uint32_t phase) {
  const batch* next = nullptr;
  for (const batch& b : batches) {
    if (b.pc != 0 && b.slot == slot && b.phase > phase && (!next || b.phase < next->phase)) {
      next = &b;
    }
  }
  return next;
}

// Returns whether a tree reduction drops the unread values of a batch. A tree over an odd width w reads w - 1 values
// and stores half as many, and halves until one value is left. Several trees may run side by side. Other patterns with
// unread values lack this sequence of stores.
static bool dropped_by_tree(const batch& b) {
  const uint32_t trees = b.unread;
  if (b.read == 0 || trees == 0 || b.read % (2 * trees) != 0) {
    return false;
  }
  uint32_t width = b.read / trees / 2;
  for (const batch* next = &b; (next = next_batch(b.slot, next->phase)); width /= 2) {
    if (next->read + next->unread != width * trees) {
      return false;
    }
    if (width == 1) {
      return true;
    }
  }
  return false;
}

// Returns whether the last step of a reduction omits values of a batch, to which each simdgroup contributed one. The
// step combines the other values. In a scan, no simdgroup reads its own value.
static bool dropped_by_simdgroups(const batch& b) {
  const uint32_t count = uint32_t(__builtin_popcount(b.simdgroups));
  return count > 1 && count == now.simdgroup_count && b.read + b.unread == count && b.own > 0 && b.combined &&
         b.relevant > 0;
}

// Returns whether threads have read another part of the element of cell c, a vector or small structure, that the same
// thread wrote. Kernels leave components of such elements unused.
static bool is_part_read(const slot& s, uint64_t c) {
  const uint64_t cells = s.element >> s.shift, begin = cells ? c / cells * cells : 0;
  if (cells > 64) {
    return false;
  }
  for (uint64_t i = begin; i < begin + cells && i < s.cells; ++i) {
    if (s.writers[i].segment == s.writers[c].segment && is_read(s, i)) {
      return true;
    }
  }
  return false;
}

// Counts unread values after a threadgroup has ended.
static void count_unread() {
  for (uint32_t i = now.buffers; i < now.slot_count; ++i) {
    const slot& s = now.slots[i];
    const uint64_t cells = s.size >> s.shift;
    for (uint64_t c = 0; c < cells; ++c) {
      const record last = s.writers[c];
      if (last.segment < s.first_segment || (last.pc & atomic_bit)) {
        continue;
      }
      if (is_read(s, c)) {
        count_read(s, c);
        continue;
      }
      if (is_part_read(s, c)) {
        continue;
      }
      const segment_info& w = now.segments[last.segment];
      if (batch* b = find_batch(last.pc & pc_mask, w.any, i)) {
        if (b->unread++ == 0) {
          b->thread = w.thread;
          b->offset = int64_t(c << s.shift);
        }
        uint64_t value = 0;
        __real_memcpy(&value, reinterpret_cast<const void*>(s.start + (c << s.shift)), uint64_t(1) << s.shift);
        b->simdgroups |= 1u << w.thread / simd_width;
        b->relevant += !neutral(value, 1u << s.shift);
      }
    }
  }
  if (!batches_used) {
    return;
  }
  for (batch& b : batches) {
    b.dropped = b.pc != 0 && (dropped_by_tree(b) || dropped_by_simdgroups(b));
  }
  for (batch& b : batches) {
    if (b.pc == 0) {
      continue;
    }
    finding f = here(never_read, b.pc);
    f.slot = int32_t(b.slot);
    f.thread = b.thread;
    f.offset = b.offset;
    f.access = is_write;
    if (b.dropped) {
      f.kind = dropped_element;
      report(f);
    }
    f.kind = never_read;
    for (auto& s : stores) {
      if (now.thread_count == 1) {
        break;  // threadgroup memory serves no purpose in such a launch, so values without a reader mean nothing
      }
      if (s.pc != 0 && (s.pc != b.pc || s.slot != b.slot)) {
        continue;
      }
      if (s.pc == 0) {
        s.pc = b.pc;
        s.slot = b.slot;
      }
      s.read |= b.read > b.unread || b.dropped;
      if (b.unread && s.f.pc == 0) {
        s.f = f;
      }
      break;
    }
    b.pc = 0;
  }
  batches_used = false;
}

// Reports, at the end of a schedule, each store whose values were hardly read.
static void report_unread() {
  for (auto& s : stores) {
    if (s.pc && !s.read && s.f.pc) {
      report(s.f);
    }
    s = {};
  }
}

}  // namespace checker

#endif
