// Uninitialized reads whose values are used.
//
// Reading memory that no thread has written is harmless if the kernel discards the value. The caller runs the launch
// again, several times in one order of threads. In each run, the uninitialized reads at one place give another byte. If
// all runs make the same accesses and have the same outputs, then no address, branch or output depends on these reads.
#ifndef CHECKER_FILLED_H
#define CHECKER_FILLED_H

#include "state.h"

namespace checker {

// The byte of all other uninitialized reads. It makes small positive numbers, which hide no other value in a sum, a
// product or a maximum.
constexpr unsigned char ordinary = 0x3c;

// Sets the content of an uninitialized cell before the read at pc.
static void fill_read(const slot& s, uint64_t c, uint32_t pc) {
  const bool chosen = now.filled_read == every_read || now.filled_read == pc;
  void* cell = reinterpret_cast<void*>(s.start + (c << s.shift));
  __builtin_memset(cell, chosen ? now.fill : ordinary, uint64_t(1) << s.shift);
}

// Adds an access to the trace of the run.
static inline void trace(uintptr_t address, uint32_t pc) {
  now.trace = (now.trace ^ address ^ uint64_t(pc) << slot_shift) * 0x9e3779b97f4a7c15u;
}

// Sets the unwritten elements of outputs, which fill_read may have changed.
static void forget_filled_reads() {
  for (uint32_t i = 0; i < now.buffers; ++i) {
    const slot& s = now.slots[i];
    if (!s.writable || s.initialized) {
      continue;
    }
    for (uint64_t c = 0; c < s.cells; ++c) {
      if (s.writers[c].segment < s.first_segment) {
        __builtin_memset(reinterpret_cast<void*>(s.start + (c << s.shift)), ordinary, uint64_t(1) << s.shift);
      }
    }
  }
}

}  // namespace checker

#endif
