// Runs threadgroups of a job on the fibers of a workspace.
#include <string.h>

#include "mlxg_fiber.h"
#include "host_job.h"

namespace mlxg {
namespace {

// Sets the positions of all threads of a threadgroup of the given size. run_threadgroup updates the two fields that
// differ between threadgroups of one size.
void set_positions(workspace* w, const job* j, const uint32_t size[3]) {
  const uint3_bytes extent = {size[0], size[1], size[2]};
  uint32_t i = 0;
  for (uint32_t z = 0; z < size[2]; ++z) {
    for (uint32_t y = 0; y < size[1]; ++y) {
      for (uint32_t x = 0; x < size[0]; ++x, ++i) {
        w->positions[i] = position_of<uint3_bytes>(j->l->geo, {0, 0, 0}, extent, {x, y, z}, i);
      }
    }
  }
  w->shape_of = j;
  memcpy(w->shape, size, sizeof w->shape);
}

// Runs a threadgroup on the fibers of a workspace.
void run_threadgroup(workspace* w, const job* j, uint64_t group) {
  const geometry& g = j->l->geo;
  const uint32_t at[3] = {
      uint32_t(group % g.groups[0]), uint32_t(group / g.groups[0] % g.groups[1]),
      uint32_t(group / g.groups[0] / g.groups[1])};
  uint32_t origin[3], size[3];
  for (int d = 0; d < 3; ++d) {
    origin[d] = at[d] * g.threadgroup[d];
    size[d] = minimum(g.threadgroup[d], g.grid[d] - origin[d]);
  }
  if (w->shape_of != j || memcmp(w->shape, size, sizeof size) != 0) {
    set_positions(w, j, size);
  }

  const uint32_t threads = size[0] * size[1] * size[2];
  for (uint32_t i = 0; i < threads; ++i) {
    position& p = w->positions[i];
    const uint3_bytes in = p.thread_position_in_threadgroup;
    p.threadgroup_position_in_grid = {at[0], at[1], at[2]};
    p.thread_position_in_grid = {origin[0] + in.x, origin[1] + in.y, origin[2] + in.z};
  }

  control& c = w->c;
  c.simdgroups = (threads + simd_width - 1) / simd_width;
  c.runnable_simdgroups = c.simdgroups == 32 ? ~0u : (1u << c.simdgroups) - 1;
  for (uint32_t s = 0; s < c.simdgroups; ++s) {
    const uint32_t lanes = minimum(simd_width, threads - s * simd_width);
    c.groups[s].runnable = lanes == 32 ? ~0u : (1u << lanes) - 1;
    c.groups[s].waiting = 0;
    c.groups[s].at_barrier = 0;
  }
  switch_context(&c.main, &c.fiber[0]);
}

// Completes one operation of a simdgroup, for the lanes that wait at it. If lanes wait at different operations, this is
// the one whose call has the lowest source line, because diverged lanes meet again further down in the source.
void complete_one(simdgroup& g) {
  uint64_t chosen = 0;
  for (uint32_t rest = g.waiting, best = ~0u; rest; rest &= rest - 1) {
    const uint64_t key = g.key[__builtin_ctz(rest)];
    const uint32_t line = uint32_t(key >> 48);
    if (line < best) {
      best = line;
      chosen = key;
    }
  }
  uint32_t active = 0;
  for (uint32_t rest = g.waiting; rest; rest &= rest - 1) {
    const uint32_t lane = uint32_t(__builtin_ctz(rest));
    if (g.key[lane] == chosen) {
      active |= 1u << lane;
    }
  }
  const uint64_t function = chosen & ((uint64_t(1) << 48) - 1);
  reinterpret_cast<void (*)(simdgroup&, uint32_t)>(function)(g, active);
  g.waiting &= ~active;
  g.runnable = active;
}

// Returns the fiber that runs after `thread`. No lane of the thread's simdgroup is runnable.
context* advance(control* c, uint32_t thread) {
  const uint32_t s = thread / simd_width;
  simdgroup& g = c->groups[s];
  if (g.waiting) {
    complete_one(g);
    const uint32_t lane = thread % simd_width;
    return &c->fiber[s * simd_width + (g.runnable >> lane & 1u ? lane : uint32_t(__builtin_ctz(g.runnable)))];
  }
  // All lanes of the simdgroup are at the barrier or have ended.
  c->runnable_simdgroups &= ~(1u << s);
  if (c->runnable_simdgroups) {
    const uint32_t next = next_lane(c->runnable_simdgroups, s);
    return &c->fiber[next * simd_width + uint32_t(__builtin_ctz(c->groups[next].runnable))];
  }
  // All simdgroups are at the barrier or have ended: open the barrier.
  for (uint32_t i = 0; i < c->simdgroups; ++i) {
    c->groups[i].runnable = c->groups[i].at_barrier;
    c->groups[i].at_barrier = 0;
    if (c->groups[i].runnable) {
      c->runnable_simdgroups |= 1u << i;
    }
  }
  if (!c->runnable_simdgroups) {
    return &c->main;
  }
  if (g.runnable >> thread % simd_width & 1u) {
    return &c->fiber[thread];
  }
  const uint32_t first = uint32_t(__builtin_ctz(c->runnable_simdgroups));
  return &c->fiber[first * simd_width + uint32_t(__builtin_ctz(c->groups[first].runnable))];
}

// Reports whether the threadgroup of c should pause: at most one chunk of its share has not begun, and this chunk or a
// paused threadgroup can run.
bool should_pause(const control* c) {
  const job* j = static_cast<const job*>(c->job);
  const share& s = *reinterpret_cast<const workspace*>(c)->current;
  const uint64_t left = groups_left(s);
  return j->max_helpers > 0 && !j->l->fibers && left <= j->chunk && (left > 0 || has_paused(s));
}

// Prepares a workspace for threadgroups of a job.
void begin(workspace* w, const job* j) {
  w->c.advance = advance;
  w->c.should_pause = should_pause;
  w->c.job = j;
  w->shape_of = nullptr;
}

// Removes the workspace that paused first from the list of a share, or returns NULL. The caller holds the lock.
workspace* next_paused(share* s) {
  workspace* w = s->paused;
  if (w) {
    __atomic_store_n(&s->paused, w->next, __ATOMIC_RELAXED);
  }
  return w;
}

// Appends a workspace to the paused ones of its share. Returns an idle one if a threadgroup of the share has not begun,
// and otherwise the one that paused first.
workspace* exchange(workspace* w, job* j) {
  share* s = w->current;
  pthread_mutex_lock(&j->lock);
  workspace** end = &s->paused;
  while (*end) {
    end = &(*end)->next;
  }
  w->next = nullptr;
  __atomic_store_n(end, w, __ATOMIC_RELAXED);
  workspace* other = groups_left(*s) > 0 ? workspace_try_acquire(1) : nullptr;
  if (other) {
    begin(other, j);
    other->current = s;
    other->c.unfinished = false;
  } else {
    other = next_paused(s);
  }
  pthread_mutex_unlock(&j->lock);
  return other;
}

// Runs the threadgroups of w, whose kernel has no fibers. When they pause, it runs other ones of the share. Returns an
// idle workspace.
//
// A kernel without fibers also runs on a fiber's stack: the stack's address locates the threadgroup variables, and a
// guard page catches overflows.
workspace* run_plain(workspace* w, job* j) {
  do {
    switch_context(&w->c.main, &w->c.fiber[0]);
    if (w->c.unfinished) {
      w = exchange(w, j);
    }
  } while (w->c.unfinished);
  return w;
}

// Runs the threadgroups from `first` to before `last`. Returns an idle workspace.
workspace* run_chunk(workspace* w, job* j, uint64_t first, uint64_t last) {
  if (j->l->fibers) {
    for (uint64_t group = first; group < last; ++group) {
      run_threadgroup(w, j, group);
    }
    return w;
  }
  w->c.first_group = first;
  w->c.last_group = last;
  w->c.unfinished = true;  // until its end
  return run_plain(w, j);
}

}  // namespace

workspace* run_groups(workspace* w, uint32_t index, job* j) {
  begin(w, j);
  for (uint32_t i = 0; i < j->share_count; ++i) {
    share& s = j->shares[(index + i) % j->share_count];
    w->current = &s;
    while (groups_left(s) > 0) {
      const uint64_t first = __atomic_fetch_add(&s.next, j->chunk, __ATOMIC_RELAXED);
      if (first < s.end) {
        w = run_chunk(w, j, first, first + j->chunk < s.end ? first + j->chunk : s.end);
      }
    }
    while (has_paused(s)) {
      pthread_mutex_lock(&j->lock);
      workspace* paused = next_paused(&s);
      pthread_mutex_unlock(&j->lock);
      if (paused) {
        workspace_release(w);
        w = run_plain(paused, j);
      }
    }
  }
  return w;
}

// The main function of a fiber, which runs as long as its workspace exists. Each iteration runs one thread of one
// threadgroup, or a range of threadgroups of a kernel without fibers.
extern "C" void mlxg_host_fiber_main() {
  const self me;
  workspace* w = reinterpret_cast<workspace*>(me.c);
  for (;;) {
    const job* j = static_cast<const job*>(me.c->job);
    if (j->l->fibers) {
      j->l->entry->invoke(j->buffers, w->positions[me.thread]);
      me.group().runnable &= ~me.bit();
      // The thread has ended. wait_turn returns when the fiber starts a thread of the next threadgroup.
      wait_turn(me);
    } else {
      j->l->module->run_plain(j->buffers, &j->l->geo, me.c->first_group, me.c->last_group);
      me.c->unfinished = false;
      switch_context(me.own(), &me.c->main);
    }
  }
}

}  // namespace mlxg
