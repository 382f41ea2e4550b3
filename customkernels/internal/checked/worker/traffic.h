// Bytes, 32-byte segments and bank conflicts of the first schedule.
//
// The lanes of a simdgroup run one after another. What each accesses is written down, and
// when all of them wait, the entries are put side by side: those of one instruction
// and one occurrence are one access of the simdgroup.
#ifndef CHECKED_TRAFFIC_H
#define CHECKED_TRAFFIC_H

#include "state.h"

namespace checked {

struct log_entry {
  uint32_t pc;
  uint32_t at;  // a 32-byte segment of device memory, or a word of threadgroup memory
};

constexpr uint32_t log_room = 1024;  // entries a lane; one that fills them waits
constexpr uint32_t in_threadgroup = 0x80000000u;

// In order, a simdgroup runs until all its lanes wait: so one set of lists will do.
static log_entry logs[simd_width][log_room];
static uint32_t log_length[simd_width];

static void pause_for_log();

[[gnu::noinline]] static void count_traffic(slot& s, uint64_t offset, uint64_t size, bool write, uint32_t pc) {
  (write ? s.written : s.read) += size;
  const uint64_t last = (offset + size - 1) >> s.shift;
  for (uint64_t c = offset >> s.shift; c <= last; ++c) s.seen[c] |= write ? 2 : 1;
  const unsigned grain = s.in == device ? 5 : 2;
  uint64_t at = offset >> grain, end = (offset + size - 1) >> grain;
  if (s.in == threadgroup && size <= 16) end = at;  // a vector is one access of its lanes
  for (; at <= end; ++at) {
    const uint32_t lane = now.thread % simd_width;
    if (log_length[lane] == log_room) pause_for_log();
    logs[lane][log_length[lane]++] = {
        pc, s.tag | (uint32_t(at) & 0xffffff)};
  }
}

// The common case: an access of one element. False if it is not, or no room is left.
[[gnu::always_inline]] static inline bool log_access(slot& s, uint64_t offset, uint64_t size, bool write, uint32_t pc) {
  const uint32_t lane = now.thread % simd_width, n = log_length[lane];
  if (now.attention != traffic_wanted || n == log_room) return false;
  (write ? s.written : s.read) += size;
  s.seen[offset >> s.shift] |= write ? 2 : 1;
  const unsigned grain = s.in == device ? 5 : 2;
  logs[lane][n] = {pc, s.tag | (uint32_t(offset >> grain) & 0xffffff)};
  log_length[lane] = n + 1;
  return true;
}

// One access of several lanes.
static void count_access(const uint32_t* at, uint32_t n) {
  if (at[0] & in_threadgroup) {
    uint8_t words[32] = {};
    uint32_t seen[32][4];
    uint32_t worst = 0;
    for (uint32_t i = 0; i < n; ++i) {
      const uint32_t bank = at[i] % 32;
      bool found = false;
      for (uint32_t k = 0; k < words[bank] && k < 4; ++k) found |= seen[bank][k] == at[i];
      if (found) continue;
      if (words[bank] < 4) seen[bank][words[bank]] = at[i];
      if (++words[bank] > worst) worst = words[bank];
    }
    if (worst > 1) now.bank_conflicts += worst - 1;
    return;
  }
  uint32_t distinct = 0;
  bool sorted = true;
  for (uint32_t i = 0; i < n; ++i) {
    if (i && at[i] < at[i - 1]) sorted = false;
    if (i == 0 || at[i] != at[i - 1]) ++distinct;
  }
  if (!sorted) {
    distinct = 0;
    for (uint32_t i = 0; i < n; ++i) {
      bool found = false;
      for (uint32_t k = 0; k < i; ++k) found |= at[k] == at[i];
      distinct += !found;
    }
  }
  now.segments32 += distinct;
}

// Lanes that went different ways: entries of one instruction belong together by their
// number of occurrence.
static void count_diverged(const uint32_t* from, const uint32_t* to) {
  static struct {
    uint32_t pc, occurrence, n;
    uint32_t at[simd_width];
  } groups[4096];
  static uint16_t used[4096];
  uint32_t used_count = 0;
  auto flush = [&] {
    for (uint32_t i = 0; i < used_count; ++i) {
      count_access(groups[used[i]].at, groups[used[i]].n);
      groups[used[i]].n = 0;
    }
    used_count = 0;
  };
  // Lanes a stretch of their entries at a time, so that the table suffices.
  uint32_t position[simd_width];
  for (uint32_t l = 0; l < simd_width; ++l) position[l] = from[l];
  for (bool more = true; more;) {
    more = false;
    for (uint32_t l = 0; l < simd_width; ++l) {
      // The occurrences of this stretch, counted by a small table.
      static struct {
        uint32_t pc, n;
      } counts[64];
      for (auto& c : counts) c = {};
      const uint32_t stop = to[l] - position[l] > 64 ? position[l] + 64 : to[l];
      for (; position[l] < stop; ++position[l]) {
        const log_entry e = logs[l][position[l]];
        uint32_t k = e.pc / 4 % 64;
        while (counts[k].pc && counts[k].pc != e.pc) k = (k + 1) % 64;
        counts[k].pc = e.pc;
        const uint32_t occurrence = counts[k].n++;
        uint32_t h = (e.pc * 0x9e3779b1u ^ occurrence * 0x85ebca6bu) >> 12;
        for (;; ++h) {
          auto& g = groups[h % 4096];
          if (g.n == 0) {
            g.pc = e.pc;
            g.occurrence = occurrence;
            used[used_count++] = uint16_t(h % 4096);
          } else if (g.pc != e.pc || g.occurrence != occurrence) {
            continue;
          }
          if (g.n < simd_width) g.at[g.n++] = e.at;
          break;
        }
      }
      more |= position[l] < to[l];
    }
    flush();
  }
}

// All lanes of a simdgroup wait.
[[gnu::noinline]] static void flush_log() {
  uint32_t first = 0, lanes[simd_width], n = 0, shortest = ~0u;
  for (uint32_t l = 0; l < simd_width; ++l) {
    if (const uint32_t length = log_length[l]) {
      lanes[n++] = l;
      if (length < shortest) shortest = length;
    }
  }
  if (n == 0) return;
  uint32_t at[simd_width];
  for (; first < shortest; ++first) {
    const uint32_t pc = logs[lanes[0]][first].pc;
    bool same = true;
    for (uint32_t i = 0; i < n; ++i) {
      const log_entry e = logs[lanes[i]][first];
      same &= e.pc == pc;
      at[i] = e.at;
    }
    if (!same) break;
    count_access(at, n);
  }
  uint32_t from[simd_width], to[simd_width];
  bool rest = false;
  for (uint32_t l = 0; l < simd_width; ++l) {
    to[l] = log_length[l];
    from[l] = to[l] < first ? to[l] : first;
    rest |= from[l] < to[l];
    log_length[l] = 0;
  }
  if (rest) count_diverged(from, to);
}

}  // namespace checked

#endif
