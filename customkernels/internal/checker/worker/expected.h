// Reads of uninitialized local variables.
//
// The caller has run the launch with a program whose local variables have other initial bits. An output that differs
// was computed from a variable that the kernel did not set.
#ifndef CHECKER_EXPECTED_H
#define CHECKER_EXPECTED_H

#include "launch.h"

namespace checker {

// Returns the content of cell c.
static uint64_t cell_of(const void* memory, uint64_t c, uint32_t unit) {
  uint64_t v = 0;
  __real_memcpy(&v, static_cast<const unsigned char*>(memory) + c * unit, unit);
  return v;
}

// Returns whether a cell of this size holds a NaN. Two NaNs count as equal: the compiler may choose which of two NaN
// operands an instruction returns.
static bool is_nan(uint64_t v, uint32_t unit) {
  switch (unit) {
    case 2:
      return (v & 0x7fff) > 0x7c00;  // NaN as a half; as a bfloat NaN or a very large number
    case 4:
      return (v & 0x7fffffff) > 0x7f800000;
    case 8:
      return (v & ~uint64_t(0) >> 1) > 0x7ff0000000000000;
  }
  return false;
}

// Returns the pc of a store of the same segment to a neighboring cell with the expected value, or 0. If both stores are
// the same line, the difference may be padding, because a store of a structure copies its padding too.
static uint32_t store_beside(const slot& s, const void* expected, uint64_t c) {
  const uint64_t cells = widest / s.unit, begin = c / cells * cells;
  const uint64_t beside[] = {c - 1, c + 1};
  for (const uint64_t i : beside) {
    if (i >= begin && i < begin + cells && i < s.cells && s.writers[i].segment == s.writers[c].segment &&
        cell_of(expected, i, s.unit) == cell_of(bound[&s - now.slots], i, s.unit)) {
      return s.writers[i].pc & pc_mask;
    }
  }
  return 0;
}

// Reports the stores of unexpected values after the first schedule.
static void compare_expected() {
  for (uint32_t i = 0; i < now.buffers; ++i) {
    const slot& s = now.slots[i];
    if (buffer_headers()[i].expected == 0) {
      continue;
    }
    const void* expected = file + buffer_headers()[i].expected;
    for (uint64_t c = 0; c < s.cells; ++c) {
      const uint64_t a = cell_of(expected, c, s.unit), b = cell_of(bound[i], c, s.unit);
      if (a == b || (is_nan(a, s.unit) && is_nan(b, s.unit))) {
        continue;
      }
      const record w = s.writers[c];
      if (w.segment < schedule_begin) {
        continue;
      }
      finding f = here(uninitialized_read, w.pc & pc_mask);
      f.other_pc = store_beside(s, expected, c);
      f.slot = int32_t(i);
      f.offset = int64_t(c * s.unit);
      f.size = s.unit;
      f.access = is_write;
      f.group = now.segments[w.segment].group;
      f.thread = now.segments[w.segment].thread;
      report(f);
    }
  }
}

}  // namespace checker

#endif
