// The worker threads of the host executor.
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "host_job.h"

namespace mlxg {
namespace {

struct {
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t work = PTHREAD_COND_INITIALIZER;
  pthread_cond_t done = PTHREAD_COND_INITIALIZER;
  job* jobs = nullptr;
  uint32_t workers = 0;
  uint32_t asleep = 0;  // workers that wait for `work`
  uint32_t posted = 0;  // number of jobs so far, modulo 2³²; read without the lock
} pool;

// A thread that waits polls for this time before it sleeps. Waking a thread takes some 50 µs, as long as a launch on
// small arrays, and the next launch of a model often follows within this time.
constexpr int64_t poll_ns = 100000;

// Polls until ready() is true, and reports false after poll_ns. It yields the processor, because the awaited thread may
// need it.
template <class F>
bool poll(F ready) {
  timespec start, now;
  clock_gettime(CLOCK_MONOTONIC, &start);
  do {
    for (int i = 0; i < 64; ++i) {
      if (ready()) {
        return true;
      }
#if defined(__x86_64__)
      __builtin_ia32_pause();
#elif defined(__aarch64__)
      __asm__ volatile("isb");
#endif
    }
    sched_yield();
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while ((now.tv_sec - start.tv_sec) * 1000000000 + (now.tv_nsec - start.tv_nsec) < poll_ns);
  return false;
}

// Returns the first job that needs a helper, or NULL. The caller holds the pool's lock.
job* find_job() {
  for (job* j = pool.jobs; j; j = j->next) {
    if (j->helpers < j->max_helpers && !j->lacks_stacks && has_groups(j)) {
      return j;
    }
  }
  return nullptr;
}

// The main function of a worker. It has a workspace only while it runs a job: an idle worker would keep one that
// workspace_reserve has promised to launches.
void* worker_main(void* arg) {
  const uint32_t index = uint32_t(reinterpret_cast<uintptr_t>(arg));
  const normal_arithmetic arithmetic;
  pthread_mutex_lock(&pool.lock);
  for (;;) {
    const uint32_t seen = pool.posted;
    if (job* j = find_job()) {
      ++j->helpers;
      pthread_mutex_unlock(&pool.lock);
      workspace* w = workspace_try_acquire(stacks(j->l));
      if (w) {
        workspace_release(run_groups(w, index, j));
      }
      pthread_mutex_lock(&pool.lock);
      if (!w) {
        j->lacks_stacks = true;
      } else {  // the stacks of w are free again
        for (job* k = pool.jobs; k; k = k->next) {
          k->lacks_stacks = false;
        }
      }
      // The job may end as soon as it has no helpers.
      if (__atomic_sub_fetch(&j->helpers, 1, __ATOMIC_RELEASE) == 0) {
        pthread_cond_broadcast(&pool.done);
      }
      continue;
    }
    // Wait for another job.
    pthread_mutex_unlock(&pool.lock);
    poll([seen] { return __atomic_load_n(&pool.posted, __ATOMIC_RELAXED) != seen; });
    pthread_mutex_lock(&pool.lock);
    if (pool.posted == seen) {
      ++pool.asleep;
      pthread_cond_wait(&pool.work, &pool.lock);
      --pool.asleep;
    }
  }
  return nullptr;
}

}  // namespace

void block_signals(sigset_t* old) {
  sigset_t all;
  sigfillset(&all);
  const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
  for (int s : faults) {
    sigdelset(&all, s);
  }
  pthread_sigmask(SIG_SETMASK, &all, old);
}

void start_workers(uint32_t count) {
  pthread_mutex_lock(&pool.lock);
  if (pool.workers < count) {
    sigset_t old;
    block_signals(&old);
    while (pool.workers < count) {
      pthread_t thread;
      const uintptr_t index = pool.workers + 1;
      if (pthread_create(&thread, nullptr, worker_main, reinterpret_cast<void*>(index)) != 0) {
        break;
      }
      pthread_detach(thread);
      ++pool.workers;
    }
    pthread_sigmask(SIG_SETMASK, &old, nullptr);
  }
  pthread_mutex_unlock(&pool.lock);
}

workspace* run_job(workspace* w, job* j) {
  if (j->max_helpers > 0) {
    pthread_mutex_lock(&pool.lock);
    job** end = &pool.jobs;
    while (*end) {
      end = &(*end)->next;
    }
    *end = j;
    __atomic_store_n(&pool.posted, pool.posted + 1, __ATOMIC_RELAXED);
    const uint32_t wake = minimum(pool.asleep, j->max_helpers);
    for (uint32_t i = 0; i < wake; ++i) {
      pthread_cond_signal(&pool.work);
    }
    pthread_mutex_unlock(&pool.lock);
  }
  w = run_groups(w, 0, j);
  if (j->max_helpers > 0) {
    pthread_mutex_lock(&pool.lock);
    for (job** at = &pool.jobs; *at; at = &(*at)->next) {
      if (*at == j) {
        *at = j->next;
        break;
      }
    }
    pthread_mutex_unlock(&pool.lock);
    if (poll([j] { return __atomic_load_n(&j->helpers, __ATOMIC_ACQUIRE) == 0; })) {
      return w;
    }
    pthread_mutex_lock(&pool.lock);
    while (j->helpers > 0) {
      pthread_cond_wait(&pool.done, &pool.lock);
    }
    pthread_mutex_unlock(&pool.lock);
  }
  return w;
}

}  // namespace mlxg
