// The list of findings. Findings of the same kind, slot and pair of program counters are one, with a count.
#ifndef CHECKER_REPORT_H
#define CHECKER_REPORT_H

#include "state.h"

namespace checker {

constexpr uint32_t max_findings = 512;

static struct {
  finding list[max_findings];
  uint32_t count;
  uint16_t table[4 * max_findings];  // hash table of index + 1
} findings;

static void forget_findings() {
  __builtin_memset(&findings, 0, sizeof findings);
}

// Adds a finding and returns the one in the list, or null if the list is full.
static finding* report(finding f) {
  uint64_t h = f.pc * 0x9e3779b97f4a7c15u ^ f.other_pc * 0xc2b2ae3d27d4eb4fu ^
               (uint64_t(f.kind) << 8 | uint32_t(f.slot + 1)) * 0x165667b19e3779f9u;
  h ^= h >> 29;
  for (uint32_t i = uint32_t(h) % (4 * max_findings);; i = (i + 1) % (4 * max_findings)) {
    uint16_t& entry = findings.table[i];
    if (entry == 0) {
      if (findings.count == max_findings) {
        return nullptr;
      }
      f.schedule = now.schedule;
      f.count = 1;
      findings.list[findings.count++] = f;
      entry = uint16_t(findings.count);
      return &findings.list[entry - 1];
    }
    finding& g = findings.list[entry - 1];
    if (g.pc == f.pc && g.other_pc == f.other_pc && g.kind == f.kind && g.slot == f.slot) {
      ++g.count;
      return &g;
    }
  }
}

// Returns a finding of the running thread at pc.
static finding here(uint32_t kind, uint32_t pc) {
  finding f;
  __builtin_memset(&f, 0, sizeof f);
  f.kind = kind;
  f.slot = -1;
  f.pc = pc;
  f.group = now.group;
  f.thread = now.thread;
  f.other_group = f.other_thread = none;
  return f;
}

}  // namespace checker

#endif
