// Output elements that no thread writes.
#ifndef CHECKER_UNWRITTEN_H
#define CHECKER_UNWRITTEN_H

#include "launch.h"

namespace checker {

// Adds the elements with a byte in the unwritten cells [begin, end).
static void add_unwritten(
    const slot& s, uint64_t begin, uint64_t end, uint64_t& first, uint64_t& next, uint64_t& count) {
  const uint64_t low = (begin << s.shift) / s.element, high = ((end << s.shift) - 1) / s.element + 1;
  if (count == 0) {
    first = low;
  }
  count += high - (low < next ? next : low);
  next = high;
}

// Reports the outputs with unwritten elements after the first schedule.
static void report_unwritten() {
  for (uint32_t i = 0; i < now.buffers; ++i) {
    const slot& s = now.slots[i];
    if (!s.writable || s.initialized) {
      continue;
    }
    const uint64_t padding = buffer_headers()[i].padding;
    uint64_t first = 0, next = 0, count = 0;
    for (uint64_t c = 0; c < s.cells; ++c) {
      if (s.writers[c].segment >= schedule_begin) {
        continue;
      }
      const uint64_t begin = c;
      while (c < s.cells && s.writers[c].segment < schedule_begin) {
        ++c;
      }
      if ((c - begin) << s.shift > padding) {
        add_unwritten(s, begin, c, first, next, count);
      }
    }
    if (count == 0) {
      continue;
    }
    finding f = here(unwritten_output, 0);
    f.slot = int32_t(i);
    f.offset = int64_t(first * s.element);
    if (finding* g = report(f)) {
      g->count = count;
    }
  }
}

}  // namespace checker

#endif
