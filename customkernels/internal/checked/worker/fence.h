// What fences order. Atomics alone order nothing, but a fence before one atomic
// operation, and another fence behind an atomic operation that sees the first, do.
//
// A place remembers who has released to it: the thread, how far it had come, and
// the phases of its group, which stand for all that barriers had ordered before.
// Who acquires from it is ordered behind those, and so, after the next barrier, is its group.
#ifndef CHECKED_FENCE_H
#define CHECKED_FENCE_H

#include <stdlib.h>

#include "report.h"

namespace checked {

struct release {
  uint32_t group, thread;
  uint32_t segment;   // the last of the thread before the fence
  uint32_t phase[2];  // of the group
};

// The releases that a place carries. An update adds to them; a store starts anew.
struct place {
  uintptr_t address;
  release* list;
  uint32_t count, room;
};

// What a thread of the current group has acquired: the first `count` of a place's list.
struct acquisition {
  uint32_t place, count;
  uint32_t thread;
  uint32_t phase[2];
  bool fenced;  // the fence behind the atomic operation has come
};

static struct {
  place places[256];
  uint32_t place_count;
  acquisition acquired[4096];
  uint32_t acquired_count;
  release pending[max_threads];  // the last fence of each thread; segment 0: none
  bool used;
} fences;

static void fences_new_group() {
  fences.acquired_count = 0;
  if (fences.used) __builtin_memset(fences.pending, 0, sizeof fences.pending);
}
static void fences_new_schedule() {
  for (uint32_t i = 0; i < fences.place_count; ++i) free(fences.places[i].list);
  fences.place_count = 0;
  fences.used = false;
  fences_new_group();
  __builtin_memset(fences.pending, 0, sizeof fences.pending);
}

static uint32_t new_segment();

[[gnu::noinline]] static void fence_here() {
  fences.used = true;
  // What comes behind the fence is another stretch than what came before.
  const uint32_t before = now.segment ? now.segment : new_segment();
  fences.pending[now.thread] = {now.group, now.thread, before, {now.phase[0], now.phase[1]}};
  now.segment = now.threads[now.thread].segment = 0;
  for (uint32_t i = 0; i < fences.acquired_count; ++i)
    if (fences.acquired[i].thread == now.thread && !fences.acquired[i].fenced) {
      fences.acquired[i].fenced = true;
      fences.acquired[i].phase[0] = now.phase[0];
      fences.acquired[i].phase[1] = now.phase[1];
    }
}

static uint32_t find_place(uintptr_t address) {
  for (uint32_t i = 0; i < fences.place_count; ++i)
    if (fences.places[i].address == address) return i;
  if (fences.place_count == 256) return 255;
  fences.places[fences.place_count] = {address, nullptr, 0, 0};
  return fences.place_count++;
}

static void acquire(uint32_t p) {
  if (fences.places[p].count == 0) return;
  for (uint32_t i = 0; i < fences.acquired_count; ++i) {
    acquisition& a = fences.acquired[i];
    if (a.place == p && a.thread == now.thread && !a.fenced) {
      a.count = fences.places[p].count;
      return;
    }
  }
  if (fences.acquired_count < 4096)
    fences.acquired[fences.acquired_count++] = {p, fences.places[p].count, now.thread, {0, 0}, false};
}

static void release_to(uint32_t at) {
  place& p = fences.places[at];
  const release& r = fences.pending[now.thread];
  if (r.segment == 0 || r.group != now.group) return;
  if (p.count == p.room) {
    p.room = p.room ? 2 * p.room : 16;
    p.list = static_cast<release*>(realloc(p.list, p.room * sizeof(release)));
  }
  p.list[p.count++] = r;
}

[[gnu::noinline]] static void fence_update_slow(uintptr_t address) {
  const uint32_t p = find_place(address);
  acquire(p);
  release_to(p);
}
static inline void fence_update(uintptr_t address) {
  if (unlikely(fences.used)) fence_update_slow(address);
}
static inline void fence_load(uintptr_t address) {
  if (unlikely(fences.used)) acquire(find_place(address));
}
static inline void fence_store(uintptr_t address) {
  if (unlikely(fences.used)) {
    const uint32_t p = find_place(address);
    fences.places[p].count = 0;
    release_to(p);
  }
}

// Whether fences order an earlier access, of the stretch `p`, before the running thread.
[[gnu::noinline]] static bool fence_orders(const stretch& p, uint32_t number, uint32_t in) {
  for (uint32_t i = 0; i < fences.acquired_count; ++i) {
    const acquisition& a = fences.acquired[i];
    if (!a.fenced) continue;
    if (a.thread != now.thread && a.phase[in] == now.phase[in]) continue;
    const place& at = fences.places[a.place];
    for (uint32_t j = 0; j < a.count && j < at.count; ++j) {
      const release& r = at.list[j];
      if (r.group != p.group) continue;
      if (r.thread == p.thread ? number <= r.segment : p.phase[in] < r.phase[in]) return true;
    }
  }
  return false;
}

// Loads of one place by one thread with nothing in between wait for another thread.
[[noreturn]] static void give_up(uint32_t status);

static inline void spin(uint32_t pc) {
  static uint32_t last_pc, last_thread, last_group, count;
  if (last_pc != pc || last_thread != now.thread || last_group != now.group) {
    last_pc = pc;
    last_thread = now.thread;
    last_group = now.group;
    count = 0;
  } else if (unlikely(++count == 1u << 22)) {
    report(here(deadlock, pc));
    give_up(finished);
  }
}

}  // namespace checked

#endif
