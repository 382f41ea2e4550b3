// Runs the threadgroups of a launch, over all cores.
#include "runtime.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mlxg_fiber.h"
#include "host_workspace.h"

namespace mlxg {
namespace {

// The head of a shader's mlxgrad_entry, whose last member has another type
// here: the positions are bytes to the runtime.
struct entry {
  const char* name;
  uint32_t buffers;
  uint32_t uses_fibers;
  void (*invoke)(void* const* buffers, const position&);
};

struct launch {
  const struct entry* entry;
  const struct module* module;
  geometry geo;
  uint64_t groups;
  uint32_t threads;  // of a full threadgroup
  bool fibers;
  uint32_t inputs, outputs;
  uint8_t metadata[64];
  uint32_t workers;
};

// A launch that is running. It lives on its caller's stack.
struct job {
  const launch* l;
  void* buffers[max_buffers];
  int32_t ndim[max_buffers];
  uint64_t chunk;
  alignas(64) uint64_t next_group;
  alignas(64) uint32_t helpers;  // workers that are in it; under the pool's lock
  uint32_t max_helpers;
  job* next;
};

// Stacks that a thread of the system needs to run l's threadgroups.
uint32_t stacks(const launch* l) {
  return l->fibers ? l->threads : 1;
}

uint32_t minimum(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

// ---- one threadgroup ----

// Lays out what does not change from one threadgroup of a size to the next.
void lay_out_positions(workspace* w, const job* j, const uint32_t size[3]) {
  const geometry& g = j->l->geo;
  const uint32_t threads = size[0] * size[1] * size[2];
  const uint32_t full = g.threadgroup[0] * g.threadgroup[1] * g.threadgroup[2];
  uint32_t i = 0;
  for (uint32_t z = 0; z < size[2]; ++z) {
    for (uint32_t y = 0; y < size[1]; ++y) {
      for (uint32_t x = 0; x < size[0]; ++x, ++i) {
        position& p = w->positions[i];
        p.thread_position_in_threadgroup = {x, y, z};
        p.threads_per_threadgroup = {size[0], size[1], size[2]};
        p.dispatch_threads_per_threadgroup = {g.threadgroup[0], g.threadgroup[1], g.threadgroup[2]};
        p.threads_per_grid = {g.grid[0], g.grid[1], g.grid[2]};
        p.threadgroups_per_grid = {g.groups[0], g.groups[1], g.groups[2]};
        p.grid_size = p.threads_per_grid;
        p.grid_origin = {0, 0, 0};
        p.thread_index_in_threadgroup = i;
        p.thread_index_in_simdgroup = i % simd_width;
        p.thread_index_in_quadgroup = i % 4;
        p.simdgroup_index_in_threadgroup = i / simd_width;
        p.quadgroup_index_in_threadgroup = i / 4;
        p.simdgroups_per_threadgroup = (threads + simd_width - 1) / simd_width;
        p.quadgroups_per_threadgroup = (threads + 3) / 4;
        p.dispatch_simdgroups_per_threadgroup = (full + simd_width - 1) / simd_width;
        p.dispatch_quadgroups_per_threadgroup = (full + 3) / 4;
        p.threads_per_simdgroup = simd_width;
        p.thread_execution_width = simd_width;
      }
    }
  }
  w->shape_of = j;
  memcpy(w->shape, size, sizeof w->shape);
}

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
    lay_out_positions(w, j, size);
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

// Completes one operation that lanes of a simdgroup wait at, of which they
// may have reached several: the one whose call stands first in the text,
// since diverged lanes meet again further down.
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

// Chooses the fiber that runs after `thread` when no lane of its simdgroup can.
context* advance(control* c, uint32_t thread) {
  const uint32_t s = thread / simd_width;
  simdgroup& g = c->groups[s];
  if (g.waiting) {
    complete_one(g);
    const uint32_t lane = thread % simd_width;
    return &c->fiber[s * simd_width + (g.runnable >> lane & 1u ? lane : uint32_t(__builtin_ctz(g.runnable)))];
  }
  // All lanes are at the barrier or have ended.
  c->runnable_simdgroups &= ~(1u << s);
  if (c->runnable_simdgroups) {
    const uint32_t next = next_lane(c->runnable_simdgroups, s);
    return &c->fiber[next * simd_width + uint32_t(__builtin_ctz(c->groups[next].runnable))];
  }
  // So are those of all simdgroups: the barrier opens for those who wait.
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

// ---- a worker's share ----

void run_share(workspace* w, job* j) {
  const launch* l = j->l;
  w->c.advance = advance;
  w->c.job = j;
  w->shape_of = nullptr;
  for (;;) {
    const uint64_t first = __atomic_fetch_add(&j->next_group, j->chunk, __ATOMIC_RELAXED);
    if (first >= l->groups) {
      return;
    }
    const uint64_t last = first + j->chunk < l->groups ? first + j->chunk : l->groups;
    if (l->fibers) {
      for (uint64_t group = first; group < last; ++group) {
        run_threadgroup(w, j, group);
      }
    } else {
      // On a fiber's stack too, where threadgroup variables are found and
      // an overflow meets a guard page.
      w->c.first_group = first;
      w->c.last_group = last;
      switch_context(&w->c.main, &w->c.fiber[0]);
    }
  }
}

}  // namespace

// A fiber lives as long as its workspace. Each round is one kernel thread of
// one threadgroup, or a range of threadgroups of a plain kernel.
extern "C" void mlxg_host_fiber_main() {
  const self me;
  workspace* w = reinterpret_cast<workspace*>(me.c);
  for (;;) {
    const job* j = static_cast<const job*>(me.c->job);
    if (j->l->fibers) {
      j->l->entry->invoke(j->buffers, w->positions[me.thread]);
      me.group().runnable &= ~me.bit();
      // The thread has ended: whoever is chosen, it is not this one.
      wait_turn(me);
    } else {
      j->l->module->run_plain(j->buffers, &j->l->geo, me.c->first_group, me.c->last_group);
      switch_context(me.own(), &me.c->main);
    }
  }
}

namespace {

// ---- the pool ----

struct {
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t work = PTHREAD_COND_INITIALIZER;
  pthread_cond_t done = PTHREAD_COND_INITIALIZER;
  job* jobs = nullptr;
  uint32_t workers = 0;
  uint32_t idle = 0;
} pool;

// Signals that come from outside would run their handler on a fiber's stack,
// where Go's does not know its way. Faults stay as they are.
void block_signals(sigset_t* old) {
  sigset_t all;
  sigfillset(&all);
  const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
  for (int s : faults) {
    sigdelset(&all, s);
  }
  pthread_sigmask(SIG_SETMASK, &all, old);
}

job* find_job(const workspace* w) {
  for (job* j = pool.jobs; j; j = j->next) {
    if (__atomic_load_n(&j->next_group, __ATOMIC_RELAXED) >= j->l->groups) {
      continue;
    }
    if (j->helpers >= j->max_helpers) {
      continue;
    }
    if (w->exhausted && w->stacks < stacks(j->l)) {
      continue;
    }
    return j;
  }
  return nullptr;
}

void* worker_main(void* arg) {
  workspace* w = static_cast<workspace*>(arg);
  pthread_mutex_lock(&pool.lock);
  for (;;) {
    job* j = find_job(w);
    if (!j) {
      ++pool.idle;
      pthread_cond_wait(&pool.work, &pool.lock);
      --pool.idle;
      continue;
    }
    ++j->helpers;
    pthread_mutex_unlock(&pool.lock);
    if (workspace_grow(w, stacks(j->l))) {
      run_share(w, j);
    }
    pthread_mutex_lock(&pool.lock);
    if (--j->helpers == 0) {
      pthread_cond_broadcast(&pool.done);
    }
  }
  return nullptr;
}

// Makes workers until there are `count`. Fewer are no failure: the calling
// thread alone can run any launch.
void start_workers(uint32_t count) {
  pthread_mutex_lock(&pool.lock);
  if (pool.workers < count) {
    sigset_t old;
    block_signals(&old);
    while (pool.workers < count) {
      workspace* w = workspace_new();
      if (!w) {
        break;
      }
      pthread_t thread;
      if (pthread_create(&thread, nullptr, worker_main, w) != 0) {
        workspace_free(w);
        break;
      }
      pthread_detach(thread);
      ++pool.workers;
    }
    pthread_sigmask(SIG_SETMASK, &old, nullptr);
  }
  pthread_mutex_unlock(&pool.lock);
}

}  // namespace
}  // namespace mlxg

using namespace mlxg;

int mlxg_host_load(const char* path, mlxg_host_library* out, char* err, size_t errlen) {
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* message = dlerror();
    snprintf(err, errlen, "%s", message ? message : "dlopen failed");
    return -1;
  }
  const auto* e = static_cast<const struct entry*>(dlsym(handle, "mlxgrad_entry"));
  const auto* m = static_cast<const struct module*>(dlsym(handle, "mlxgrad_module"));
  if (!e || !m || m->abi != abi_version) {
    snprintf(err, errlen, "not a shader library of this version");
    dlclose(handle);
    return -1;
  }
  *out = {handle, e, m, e->name, e->buffers, *m->threadgroup_memory, *m->uses_fibers};
  return 0;
}

void* mlxg_host_launch_new(const mlxg_host_launch_config* config) {
  auto* l = static_cast<launch*>(calloc(1, sizeof(launch)));
  if (!l) {
    return nullptr;
  }
  l->entry = static_cast<const struct entry*>(config->entry);
  l->module = static_cast<const struct module*>(config->module);
  l->groups = 1;
  l->threads = 1;
  for (int d = 0; d < 3; ++d) {
    l->geo.grid[d] = config->grid[d];
    l->geo.threadgroup[d] = minimum(config->threadgroup[d], config->grid[d]);
    l->geo.groups[d] = (config->grid[d] - 1) / l->geo.threadgroup[d] + 1;
    l->groups *= l->geo.groups[d];
    l->threads *= l->geo.threadgroup[d];
  }
  l->fibers = *l->module->uses_fibers != 0;
  l->inputs = config->inputs;
  l->outputs = config->outputs;
  memcpy(l->metadata, config->metadata, sizeof l->metadata);
  l->workers = config->workers ? config->workers : 1;
  return l;
}

int mlxg_host_launch_prepare(void* context, char* err, size_t errlen) {
  const auto* l = static_cast<const launch*>(context);
  if (!workspace_reserve(stacks(l))) {
    snprintf(
        err, errlen, "kernel %s: no memory for the stacks of a threadgroup of %u threads", l->entry->name, l->threads);
    return -1;
  }
  if (l->groups > 1) {
    start_workers(l->workers - 1);
  }
  return 0;
}

void mlxg_host_launch_run(void* context, const mlxg_view* inputs, const mlxg_view* outputs) {
  const auto* l = static_cast<const launch*>(context);
  job j;
  memset(&j, 0, sizeof j);
  j.l = l;
  uint32_t b = 0;
  for (uint32_t i = 0; i < l->inputs; ++i) {
    j.buffers[b++] = inputs[i].data;
    if (l->metadata[i] & 1) {
      j.buffers[b++] = const_cast<int32_t*>(inputs[i].shape);
    }
    if (l->metadata[i] & 2) {
      j.buffers[b++] = const_cast<int64_t*>(inputs[i].strides);
    }
    if (l->metadata[i] & 4) {
      j.ndim[b] = inputs[i].ndim;
      j.buffers[b] = &j.ndim[b];
      ++b;
    }
  }
  for (uint32_t i = 0; i < l->outputs; ++i) {
    j.buffers[b++] = outputs[i].data;
  }

  // Enough chunks to even out the ends, few enough to leave the counter alone.
  j.chunk = l->groups / (uint64_t(l->workers) * 16);
  if (j.chunk == 0) {
    j.chunk = 1;
  }
  const uint64_t chunks = (l->groups + j.chunk - 1) / j.chunk;
  j.max_helpers = l->workers - 1 < chunks - 1 ? l->workers - 1 : uint32_t(chunks - 1);

  sigset_t old;
  block_signals(&old);
  workspace* w = workspace_acquire(stacks(l));
  if (j.max_helpers > 0) {
    pthread_mutex_lock(&pool.lock);
    job** end = &pool.jobs;
    while (*end) {
      end = &(*end)->next;
    }
    *end = &j;
    const uint32_t wake = minimum(pool.idle, j.max_helpers);
    for (uint32_t i = 0; i < wake; ++i) {
      pthread_cond_signal(&pool.work);
    }
    pthread_mutex_unlock(&pool.lock);
  }
  run_share(w, &j);
  if (j.max_helpers > 0) {
    pthread_mutex_lock(&pool.lock);
    for (job** at = &pool.jobs; *at; at = &(*at)->next) {
      if (*at == &j) {
        *at = j.next;
        break;
      }
    }
    while (j.helpers > 0) {
      pthread_cond_wait(&pool.done, &pool.lock);
    }
    pthread_mutex_unlock(&pool.lock);
  }
  workspace_release(w);
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

void mlxg_host_launch_release(void* context) {
  free(context);
}
