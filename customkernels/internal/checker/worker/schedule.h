// Fibers, one per thread of a threadgroup, and their scheduling.
//
// A thread runs until it blocks or ends. Then the next runnable thread in the schedule's order runs. A SIMD-group
// function completes when no lane of the simdgroup is runnable. A threadgroup barrier opens when no thread is runnable.
#ifndef CHECKER_SCHEDULE_H
#define CHECKER_SCHEDULE_H

#include "access.h"
#include "calls.h"
#include "mlxg_calls.h"
#include "mlxg_fiber.h"

namespace mlxg {
struct entry {
  const char* name;
  uint32_t buffers;
  void (*invoke)(void* const* buffers, const ::checker::position&);
};
}  // namespace mlxg
extern "C" const mlxg::entry mlxgrad_entry;

namespace checker {

static mlxg::control* fibers;
static void* bound[mlxg::max_buffers];
static position positions[max_threads];

// The order of threads, and the runnable ones as bits in that order.
static uint16_t order[max_threads], place_of[max_threads];
static uint64_t can_run[max_threads / 64];

static void make_runnable(uint32_t thread) {
  now.simdgroups[thread / simd_width].runnable |= 1u << thread % simd_width;
  can_run[place_of[thread] / 64] |= uint64_t(1) << place_of[thread] % 64;
}
static void block(uint32_t thread) {
  now.simdgroups[thread / simd_width].runnable &= ~(1u << thread % simd_width);
  can_run[place_of[thread] / 64] &= ~(uint64_t(1) << place_of[thread] % 64);
}

// Returns a finding at the place where a thread waits, with another thread or none.
static finding at_wait(uint32_t kind, uint32_t thread, uint32_t other) {
  finding f = here(kind, now.threads[thread].pc);
  f.thread = thread;
  copy_calls(f.calls, now.threads[thread]);
  if (other != none) {
    copy_calls(f.other_calls, now.threads[other]);
    f.other_pc = now.threads[other].pc;
    f.other_group = now.group;
    f.other_thread = other;
  }
  return f;
}

static uint32_t first_of(uint32_t mask) {
  return uint32_t(__builtin_ctz(mask));
}

// Records that lanes of a simdgroup exchange values, in the segments of their last accesses.
static void note_exchange(uint32_t base, uint32_t lanes) {
  for (; lanes; lanes &= lanes - 1) {
    const uint32_t segment = now.threads[base + first_of(lanes)].segment;
    if (segment != none) {
      now.segments[segment].exchanges = true;
    }
  }
}

// Reports the first lane whose argument differs from the one of the first active lane of its group, and forgets the
// arguments. Only a watched program knows the lanes of a call.
static void compare_arguments(uint32_t base, uint32_t active) {
  const uint32_t width = now.threads[base + first_of(active)].width;
  bool done = !now.watched || width == 0;
  for (uint32_t rest = active; rest; rest &= rest - 1) {
    thread_state& t = now.threads[base + first_of(rest)];
    t.width = 0;
    if (done) {
      continue;
    }
    const uint32_t group = first_of(rest) / width * width;
    const uint32_t first = base + first_of(active >> group << group);
    if (t.argument != now.threads[first].argument) {
      finding f = at_wait(divergent_argument, first, base + first_of(rest));
      f.detail = now.threads[first].argument;
      f.offset = t.argument;
      f.size = width;
      report(f);
      done = true;
    }
  }
}

// Completes the SIMD-group function that comes first in the text among those at which lanes of the simdgroup wait.
static void complete_one(uint32_t number) {
  simdgroup_state& g = now.simdgroups[number];
  const uint32_t base = number * simd_width;
  uint32_t best = 0;
  bool found = false;
  for (uint32_t rest = g.waiting; rest; rest &= rest - 1) {
    const uint32_t lane = first_of(rest);
    if (!found || before(now.threads[base + lane], now.threads[base + best])) {
      best = lane;
    }
    found = true;
  }
  const thread_state& chosen = now.threads[base + best];
  uint32_t active = 0;
  for (uint32_t rest = g.waiting; rest; rest &= rest - 1) {
    const thread_state& t = now.threads[base + first_of(rest)];
    if (t.complete == chosen.complete && t.place == chosen.place && t.kind == chosen.kind) {
      active |= 1u << first_of(rest);
    }
  }
  const uint32_t alive = g.all & ~g.ended, missing = alive & ~active;
  mlxg::simdgroup& data = fibers->groups[number];
  ++now.simd_operations;
  switch (chosen.kind) {
    case mlxg::checker::is_reduction:
      // Ended lanes are missing too.
      if (g.all & ~active) {
        report(at_wait(divergent_reduction, base + first_of(active), base + first_of(g.all & ~active)));
      }
      break;
    case mlxg::checker::is_quad_reduction:
      for (uint32_t q = 0; q < simd_width; q += 4) {
        const uint32_t part = 15u << q;
        const uint32_t absent = g.all & ~active & part;
        if ((active & part) && absent) {
          report(at_wait(divergent_reduction, base + first_of(active & part), base + first_of(absent)));
          break;
        }
      }
      break;
    case mlxg::checker::is_matrix:
      if (active != ~0u) {
        finding f = at_wait(divergent_matrix, base + first_of(active), missing ? base + first_of(missing) : none);
        f.detail = uint32_t(__builtin_popcount(active));
        report(f);
      }
      break;
    case mlxg::checker::is_shuffle:
      compare_arguments(base, active);
      for (uint32_t rest = active; rest; rest &= rest - 1) {
        const uint32_t lane = first_of(rest), from = data.index[lane];
        const bool there = from < simd_width;
        if (there && active >> from & 1u) {
          continue;
        }
        finding f = at_wait(shuffle_inactive, base + lane, there && missing >> from & 1u ? base + from : none);
        f.detail = from;
        report(f);
        break;
      }
      break;
    case mlxg::checker::is_barrier:
      --now.simd_operations;
      ++now.barriers;
      if (missing) {
        if (!now.diverged) {
          report(at_wait(divergent_barrier, base + first_of(active), base + first_of(missing)));
        }
        now.diverged = true;
      } else if (g.ended && !now.diverged) {
        report(at_wait(barrier_after_exit, base + first_of(active), base + first_of(g.ended)));
      }
      uint32_t flags = every_space;
      for (uint32_t rest = active; rest; rest &= rest - 1) {
        flags &= now.threads[base + first_of(rest)].flags;
      }
      for (uint32_t in = 0; in < spaces; ++in) {
        g.simd[in] += flags >> in & 1;
      }
      ++g.simd_any;
      for (uint32_t rest = active; rest; rest &= rest - 1) {
        now.threads[base + first_of(rest)].segment = none;
      }
      new_epoch();
      break;
  }
  if (chosen.kind != mlxg::checker::is_barrier) {
    note_exchange(base, active);
  }
  if (chosen.complete) {
    chosen.complete(data, active);
  }
  g.waiting &= ~active;
  for (uint32_t rest = active; rest; rest &= rest - 1) {
    make_runnable(base + first_of(rest));
  }
}

// Opens the threadgroup barrier. All threads have ended or wait at a barrier. Returns false if all have ended.
static bool open_barrier() {
  uint32_t first = none, flags = every_space, ended = none;
  bool other = false;
  for (uint32_t i = 0; i < now.thread_count; ++i) {
    const simdgroup_state& g = now.simdgroups[i / simd_width];
    if (!(g.at_barrier >> i % simd_width & 1u)) {
      // Report the ended thread that came farthest. Its last access shows whether it returned before the barrier or
      // skipped it.
      if (ended == none || now.threads[i].pc > now.threads[ended].pc) {
        ended = i;
      }
      continue;
    }
    flags &= now.threads[i].flags;
    if (first == none) {
      first = i;
    } else if (now.threads[i].pc != now.threads[first].pc || now.threads[i].place != now.threads[first].place) {
      // The compiler may have duplicated one barrier. findings.go drops the finding if both places have the same line.
      if (!now.diverged) {
        report(at_wait(divergent_barrier, first, i));
      }
      other |= now.threads[i].place != now.threads[first].place;
    }
  }
  if (first == none) {
    return false;
  }
  if (ended != none && !now.diverged && !other) {
    report(at_wait(barrier_after_exit, first, ended));
  }
  now.diverged |= other;
  ++now.barriers;
  for (uint32_t in = 0; in < spaces; ++in) {
    now.phase[in] += flags >> in & 1;
  }
  ++now.any;
  new_epoch();
  for (uint32_t i = 0; i < now.thread_count; ++i) {
    simdgroup_state& g = now.simdgroups[i / simd_width];
    if (!(g.at_barrier >> i % simd_width & 1u)) {
      continue;
    }
    now.threads[i].segment = none;
    make_runnable(i);
  }
  for (uint32_t s = 0; s < now.simdgroup_count; ++s) {
    now.simdgroups[s].at_barrier = 0;
  }
  return true;
}

// Returns the next runnable thread after index `at` of the order, or none.
static uint32_t next_runnable(uint32_t at) {
  const uint32_t words = (now.thread_count + 63) / 64;
  uint32_t w = at / 64;
  uint64_t bits = can_run[w] & (at % 64 == 63 ? 0 : ~uint64_t(0) << (at % 64 + 1));
  for (uint32_t i = 0; i <= words; ++i) {
    if (bits) {
      return order[w * 64 + uint32_t(__builtin_ctzll(bits))];
    }
    w = w + 1 == words ? 0 : w + 1;
    bits = can_run[w];
  }
  return none;
}

// Returns the next thread to run after the running thread blocked, or none if all have ended.
static uint32_t choose_next() {
  const uint32_t thread = now.thread, s = thread / simd_width;
  simdgroup_state& g = now.simdgroups[s];
  if (unlikely(now.attention & write_pending)) {
    resolve_pending_write();
  }
  if (g.runnable == 0) {
    if (now.attention & traffic_wanted) {
      flush_log();
    }
    if (g.paused) {
      for (uint32_t rest = g.paused; rest; rest &= rest - 1) {
        make_runnable(s * simd_width + first_of(rest));
      }
      g.paused = 0;
    } else if (g.waiting) {
      complete_one(s);
    }
  }
  uint32_t next = next_runnable(place_of[thread]);
  if (next == none && open_barrier()) {
    next = next_runnable(now.thread_count - 1);
  }
  return next;
}

// Switches to the next thread, and returns when this thread runs again.
static void run_next() {
  const uint32_t thread = now.thread;
  const uint32_t next = choose_next();
  now.thread = next == none ? 0 : next;
  now.segment = next == none ? none : now.threads[next].segment;
  if (next == thread) {
    return;
  }
  mlxg::switch_context(&fibers->fiber[thread], next == none ? &fibers->main : &fibers->fiber[next]);
}

static void pause_for_log() {
  block(now.thread);
  now.simdgroups[now.thread / simd_width].paused |= 1u << now.thread % simd_width;
  run_next();
}

static void wait_simd(void (*complete)(mlxg::simdgroup&, uint32_t), uint32_t kind, uint32_t flags, uint32_t pc) {
  thread_state& t = now.threads[now.thread];
  t.complete = complete;
  t.kind = kind;
  t.flags = flags;
  t.pc = pc;
  block(now.thread);
  now.simdgroups[now.thread / simd_width].waiting |= 1u << now.thread % simd_width;
  run_next();
}

}  // namespace checker

extern "C" {

void mlxg_checked_threadgroup_barrier(uint32_t flags, uint32_t line) {
  using namespace checker;
  thread_state& t = now.threads[now.thread];
  t.pc = CHECKER_PC;
  t.flags = flags;
  set_place(line, __builtin_frame_address(0));
  block(now.thread);
  now.simdgroups[now.thread / simd_width].at_barrier |= 1u << now.thread % simd_width;
  run_next();
}

void mlxg_checked_simdgroup_barrier(uint32_t flags, uint32_t line) {
  checker::set_place(line, __builtin_frame_address(0));
  checker::wait_simd(nullptr, mlxg::checker::is_barrier, flags, CHECKER_PC);
}

void mlxg_checked_fence(uint32_t flags, uint32_t order, uint32_t scope) {
  constexpr uint32_t acquire = 2, release = 3;
  checker::fence_here(flags, scope, order != acquire, order != release);
}

void mlxg_checked_rendezvous(void (*complete)(mlxg::simdgroup&, uint32_t), uint32_t kind, uint32_t line) {
  checker::set_place(line, __builtin_frame_address(0));
  checker::wait_simd(complete, kind, 0, CHECKER_PC);
}

void mlxg_checked_uniform(uint32_t argument, uint32_t width) {
  checker::thread_state& t = checker::now.threads[checker::now.thread];
  t.argument = argument;
  t.width = width;
}

// The main function of a fiber, which lives as long as the process. Each iteration is one thread of one threadgroup.
void mlxg_checked_fiber_main() {
  using namespace checker;
  for (;;) {
    now.pc = 0;
    now.threads[now.thread].frame = __builtin_frame_address(0);
    mlxgrad_entry.invoke(bound, positions[now.thread]);
    now.threads[now.thread].pc = now.pc;
    now.threads[now.thread].call_count = 0;
    now.simdgroups[now.thread / simd_width].ended |= 1u << now.thread % simd_width;
    block(now.thread);
    run_next();
  }
}
}

#endif
