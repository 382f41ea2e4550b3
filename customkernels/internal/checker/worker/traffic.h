// Memory traffic of the first schedule: bytes, 32-byte segments and bank conflicts.
//
// The lanes of a simdgroup run one after another and log their accesses. When all lanes wait, the logs are compared:
// entries with the same instruction and the same occurrence are one access of the simdgroup.
#ifndef CHECKER_TRAFFIC_H
#define CHECKER_TRAFFIC_H

#include "state.h"

namespace checker {

constexpr uint32_t log_room = 256;  // entries per lane; a lane with a full log waits
constexpr uint32_t in_threadgroup = 0x80000000u;

// The logs of the lanes: the instruction, and the 32-byte segment of device memory or the word of threadgroup memory.
// The first schedule runs one simdgroup until all its lanes wait, so one set of logs suffices.
static uint32_t log_pc[simd_width][log_room], log_at[simd_width][log_room];
static uint32_t log_length[simd_width];

static void pause_for_log();

CHECKER_FAST void log_entry(uint32_t lane, uint32_t n, const slot& s, uint64_t at, uint32_t pc) {
  log_pc[lane][n] = pc;
  log_at[lane][n] = s.tag | (uint32_t(at) & 0xffffff);
  log_length[lane] = n + 1;
}

// Logs an access of one cell. Returns false if the log is full.
CHECKER_FAST bool log_cell(slot& s, uint64_t c, uint64_t size, bool write, uint32_t pc) {
  const uint32_t lane = now.thread % simd_width, n = log_length[lane];
  if (unlikely(n == log_room)) {
    return false;
  }
  (write ? s.written : s.read) += size;
  if (!write) {
    s.read_cells[c / 64] |= uint64_t(1) << c % 64;
  }
  log_entry(lane, n, s, s.in == device ? c * size >> 5 : c * size >> 2, pc);
  return true;
}

// Logs an access of any size.
static inline void count_traffic(slot& s, uint64_t offset, uint64_t size, bool write, uint32_t pc) {
  const uint64_t end = offset + size - 1;
  if (write) {
    s.written += size;
  } else {
    s.read += size;
    for (uint64_t c = offset >> s.shift; c <= end >> s.shift; ++c) {
      s.read_cells[c / 64] |= uint64_t(1) << c % 64;
    }
  }
  const unsigned grain = s.in == device ? 5 : 2;
  // A vector in threadgroup memory is one access.
  const uint64_t last = s.in == threadgroup && size <= 16 ? offset >> grain : end >> grain;
  const uint32_t lane = now.thread % simd_width;
  for (uint64_t at = offset >> grain; at <= last; ++at) {
    if (unlikely(log_length[lane] == log_room)) {
      pause_for_log();
    }
    log_entry(lane, log_length[lane], s, at, pc);
  }
}

// Counts one access of the simdgroup: n lanes with the segments or words `at`.
static void count_access(const uint32_t* at, uint32_t n) {
  if (at[0] & in_threadgroup) {
    uint8_t words[32] = {};
    uint32_t seen[32][4];
    uint32_t worst = 0;
    for (uint32_t i = 0; i < n; ++i) {
      const uint32_t bank = at[i] % 32;
      bool found = false;
      for (uint32_t k = 0; k < words[bank] && k < 4; ++k) {
        found |= seen[bank][k] == at[i];
      }
      if (found) {
        continue;
      }
      if (words[bank] < 4) {
        seen[bank][words[bank]] = at[i];
      }
      if (++words[bank] > worst) {
        worst = words[bank];
      }
    }
    if (worst > 1) {
      now.bank_conflicts += worst - 1;
    }
    return;
  }
  uint32_t distinct = 0;
  bool sorted = true;
  for (uint32_t i = 0; i < n; ++i) {
    if (i && at[i] < at[i - 1]) {
      sorted = false;
    }
    if (i == 0 || at[i] != at[i - 1]) {
      ++distinct;
    }
  }
  if (!sorted) {
    distinct = 0;
    for (uint32_t i = 0; i < n; ++i) {
      bool found = false;
      for (uint32_t k = 0; k < i; ++k) {
        found |= at[k] == at[i];
      }
      distinct += !found;
    }
  }
  now.segments32 += distinct;
}

// Counts the entries of lanes that diverged. The n-th occurrences of an instruction in the lanes are one access.
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
  // At most 64 entries of each lane at a time, so that the table suffices.
  uint32_t position[simd_width];
  for (uint32_t l = 0; l < simd_width; ++l) {
    position[l] = from[l];
  }
  for (bool more = true; more;) {
    more = false;
    for (uint32_t l = 0; l < simd_width; ++l) {
      // The occurrences of each instruction among these entries.
      static struct {
        uint32_t pc, n;
      } counts[64];
      for (auto& c : counts) {
        c = {};
      }
      const uint32_t stop = to[l] - position[l] > 64 ? position[l] + 64 : to[l];
      for (; position[l] < stop; ++position[l]) {
        const uint32_t pc = log_pc[l][position[l]];
        uint32_t k = pc / 4 % 64;
        while (counts[k].pc && counts[k].pc != pc) {
          k = (k + 1) % 64;
        }
        counts[k].pc = pc;
        const uint32_t occurrence = counts[k].n++;
        uint32_t h = (pc * 0x9e3779b1u ^ occurrence * 0x85ebca6bu) >> 12;
        for (;; ++h) {
          auto& g = groups[h % 4096];
          if (g.n == 0) {
            g.pc = pc;
            g.occurrence = occurrence;
            used[used_count++] = uint16_t(h % 4096);
          } else if (g.pc != pc || g.occurrence != occurrence) {
            continue;
          }
          if (g.n < simd_width) {
            g.at[g.n++] = log_at[l][position[l]];
          }
          break;
        }
      }
      more |= position[l] < to[l];
    }
    flush();
  }
}

// The result of compare_lanes for each position in the logs. changes is the number of lanes whose entry differs from
// the entry of the lane before. steps combines all these differences with OR. others is 0 if all lanes executed the
// same instruction.
static struct {
  uint32_t changes[log_room], steps[log_room], others[log_room];
} compared;

[[gnu::optimize("O3")]] static void compare_lanes(const uint32_t* lanes, uint32_t n, uint32_t length) {
  __builtin_memset(&compared, 0, sizeof compared);
  for (uint32_t i = 1; i < n; ++i) {
    const uint32_t *pc = log_pc[lanes[i]], *first_pc = log_pc[lanes[0]];
    const uint32_t *at = log_at[lanes[i]], *before = log_at[lanes[i - 1]];
    for (uint32_t k = 0; k < length; ++k) {
      const uint32_t step = at[k] - before[k];
      compared.changes[k] += step != 0;
      compared.steps[k] |= step;
      compared.others[k] |= pc[k] ^ first_pc[k];
    }
  }
}

// Counts the logged accesses. All lanes of the simdgroup wait.
CHECKER_RARE void flush_log() {
  uint32_t lanes[simd_width], n = 0, shortest = log_room;
  for (uint32_t l = 0; l < simd_width; ++l) {
    if (const uint32_t length = log_length[l]) {
      lanes[n++] = l;
      if (length < shortest) {
        shortest = length;
      }
    }
  }
  if (n == 0) {
    return;
  }
  compare_lanes(lanes, n, shortest);
  uint32_t k = 0;
  for (; k < shortest && compared.others[k] == 0; ++k) {
    const bool words = log_at[lanes[0]][k] & in_threadgroup;
    // Steps of 0 or 1 word cause no bank conflict. If the segments do not descend, equal ones are neighbors.
    const uint32_t irregular = words ? ~1u : 0x80000000u;
    if (!(compared.steps[k] & irregular)) {
      if (!words) {
        now.segments32 += compared.changes[k] + 1;
      }
      continue;
    }
    uint32_t at[simd_width];
    for (uint32_t i = 0; i < n; ++i) {
      at[i] = log_at[lanes[i]][k];
    }
    count_access(at, n);
  }
  uint32_t from[simd_width], to[simd_width];
  bool rest = false;
  for (uint32_t l = 0; l < simd_width; ++l) {
    to[l] = log_length[l];
    from[l] = to[l] < k ? to[l] : k;
    rest |= from[l] < to[l];
    log_length[l] = 0;
  }
  if (rest) {
    count_diverged(from, to);
  }
}

}  // namespace checker

#endif
