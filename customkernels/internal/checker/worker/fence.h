// The order that fences create. One thread executes a fence and then an atomic write (release). Another thread reads
// the written value atomically and then executes a fence (acquire). Accesses before the first fence are then ordered
// before accesses after the second. This holds for memory that the flags of both fences name, and between threads
// within the scopes of both.
//
// Each atomic variable keeps a list of releases: the thread, its segment at the fence, and the phases of its
// threadgroup, which represent everything that barriers had ordered by then. A thread that acquires from the variable
// is ordered after them, and after the next barrier its whole threadgroup is.
#ifndef CHECKER_FENCE_H
#define CHECKER_FENCE_H

#include <stdlib.h>

#include "report.h"

namespace checker {

// Metal's thread scopes from the simdgroup on: simdgroup, threadgroup, device.
constexpr uint32_t scopes = 3;
// Returns the smallest scope that contains both threads.
static uint32_t scope_between(uint32_t group, uint32_t thread, uint32_t here) {
  return group != now.group ? 2 : thread / simd_width != here / simd_width;
}

// The last releasing fence of a thread, per address space and scope.
struct release {
  uint32_t group, thread;
  uint32_t segment[spaces][scopes];  // last segment of the thread before the fence; 0 without a fence
  uint32_t phase[spaces][scopes];    // phase of the threadgroup
  bool any;
};

// An atomic variable with its releases. An atomic update appends to the list; a store replaces it.
struct atomic_variable {
  uintptr_t address;
  release* list;
  uint32_t count, room;
};

// An acquisition by a thread of the current threadgroup: the first `count` releases of an atomic variable.
struct acquisition {
  uint32_t atomic_variable, count;
  uint32_t thread;
  bool fenced[spaces][scopes];  // a fence followed the atomic operation
  uint32_t phase[spaces][scopes];
  bool open;  // no fence followed yet
};

static struct {
  atomic_variable places[256];
  uint32_t place_count;
  acquisition acquired[4096];
  uint32_t acquired_count;
  release pending[max_threads];  // last release of each thread
  bool used;
} fences;

static void fences_new_group() {
  fences.acquired_count = 0;
  if (fences.used) {
    __builtin_memset(fences.pending, 0, sizeof fences.pending);
  }
}
static void fences_new_schedule() {
  for (uint32_t i = 0; i < fences.place_count; ++i) {
    free(fences.places[i].list);
  }
  fences.place_count = 0;
  fences.used = false;
  fences_new_group();
  __builtin_memset(fences.pending, 0, sizeof fences.pending);
}

static uint32_t new_segment();

// Records a fence of the running thread for the address spaces in `flags` and the `covered` smallest scopes.
CHECKER_RARE void fence_here(uint32_t flags, uint32_t covered, bool releases, bool acquires) {
  fences.used = true;
  // A fence ends the segment.
  const uint32_t before = now.segment != none ? now.segment : new_segment();
  now.segment = now.threads[now.thread].segment = none;
  new_epoch();
  if (flags >> texture & 1) {
    now.threads[now.thread].fenced = before;
  }
  release& r = fences.pending[now.thread];
  r.group = now.group;
  r.thread = now.thread;
  for (uint32_t i = 0; i < spaces * covered; ++i) {
    const uint32_t in = i / covered, s = i % covered;
    if (!(flags >> in & 1)) {
      continue;
    }
    if (releases) {
      r.any = true;
      r.segment[in][s] = before;
      r.phase[in][s] = now.phase[in];
    }
    for (uint32_t k = 0; acquires && k < fences.acquired_count; ++k) {
      acquisition& a = fences.acquired[k];
      if (a.thread != now.thread || a.fenced[in][s]) {
        continue;
      }
      a.open = false;
      a.fenced[in][s] = true;
      a.phase[in][s] = now.phase[in];
    }
  }
}

// Returns the index of an atomic variable, and adds it if it is new. The last entry serves all further variables.
static uint32_t find_place(uintptr_t address) {
  for (uint32_t i = 0; i < fences.place_count; ++i) {
    if (fences.places[i].address == address) {
      return i;
    }
  }
  if (fences.place_count == 256) {
    return 255;
  }
  fences.places[fences.place_count] = {address, nullptr, 0, 0};
  return fences.place_count++;
}

// Records that the running thread has read an atomic variable with releases.
static void acquire(uint32_t p) {
  if (fences.places[p].count == 0) {
    return;
  }
  for (uint32_t i = 0; i < fences.acquired_count; ++i) {
    acquisition& a = fences.acquired[i];
    if (a.atomic_variable == p && a.thread == now.thread && a.open) {
      a.count = fences.places[p].count;
      return;
    }
  }
  if (fences.acquired_count < 4096) {
    fences.acquired[fences.acquired_count++] = {p, fences.places[p].count, now.thread, {}, {}, true};
  }
}

// Adds the running thread's last releasing fence to an atomic variable.
static void release_to(uint32_t at) {
  atomic_variable& p = fences.places[at];
  const release& r = fences.pending[now.thread];
  if (!r.any || r.group != now.group) {
    return;
  }
  if (p.count == p.room) {
    p.room = p.room ? 2 * p.room : 16;
    p.list = static_cast<release*>(realloc(p.list, p.room * sizeof(release)));
  }
  p.list[p.count++] = r;
}

CHECKER_RARE void fence_update_slow(uintptr_t address) {
  const uint32_t p = find_place(address);
  acquire(p);
  release_to(p);
}
static inline void fence_update(uintptr_t address) {
  if (unlikely(fences.used)) {
    fence_update_slow(address);
  }
}
static inline void fence_load(uintptr_t address) {
  if (unlikely(fences.used)) {
    acquire(find_place(address));
  }
}
static inline void fence_store(uintptr_t address) {
  if (unlikely(fences.used)) {
    const uint32_t p = find_place(address);
    fences.places[p].count = 0;
    release_to(p);
  }
}

// Returns whether fences order an earlier access, in segment `number` with the state `p`, before the running thread.
CHECKER_RARE bool fence_orders(const segment_info& p, uint32_t number, uint32_t in) {
  for (uint32_t i = 0; i < fences.acquired_count; ++i) {
    const acquisition& a = fences.acquired[i];
    const atomic_variable& at = fences.places[a.atomic_variable];
    for (uint32_t j = 0; j < a.count && j < at.count; ++j) {
      const release& r = at.list[j];
      if (r.group != p.group) {
        continue;
      }
      const uint32_t s = scope_between(r.group, r.thread, a.thread);
      if (!a.fenced[in][s] || (a.thread != now.thread && a.phase[in][s] == now.phase[in])) {
        continue;
      }
      const uint32_t before = r.segment[in][s];
      if (before && (r.thread == p.thread ? number <= before : p.phase[in] < r.phase[in][s])) {
        return true;
      }
    }
  }
  return false;
}

[[noreturn]] static void give_up(uint32_t status);

// Counts an atomic load. 2^16 successive loads of one address by one thread at one place are a loop that waits for a
// thread that cannot run. Lanes may alternate, because the traffic of a simdgroup is counted together.
static inline void spin(uintptr_t address, uint32_t pc) {
  static struct {
    uintptr_t address;
    uint32_t pc, group, count;
  } loads[max_threads];
  auto& last = loads[now.thread];
  if (last.pc != pc || last.address != address || last.group != now.group) {
    last = {address, pc, now.group, 0};
  } else if (unlikely(++last.count == 1u << 16)) {
    report(here(deadlock, pc));
    give_up(finished);
  }
}

}  // namespace checker

#endif
