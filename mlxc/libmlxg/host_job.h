// Launches of the host executor, and their distribution over threads.
#ifndef MLXG_HOST_JOB_H
#define MLXG_HOST_JOB_H

#include <pthread.h>
#include <signal.h>

#include "host_workspace.h"

namespace mlxg {

// The layout of mlxgrad_entry in a shader library. The library's invoke takes a position of metal::uint3. The runtime
// does not have this type and passes the same bytes as uint3_bytes.
struct entry {
  const char* name;
  uint32_t buffers;
  void (*invoke)(void* const* buffers, const position&);
};

// A launch, which may run several times and on several threads concurrently.
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

// Consecutive threadgroups of a job. A thread begins with the share of its index, so that it accesses consecutive rows,
// which the processor and the kernels prefetch. Then it helps with the other shares.
struct share {
  alignas(64) uint64_t next;  // first threadgroup that no thread has taken
  uint64_t end;
  // Workspaces whose threadgroups have paused, the first one first. A thread changes the list with the job's lock.
  workspace* paused;
};

// Returns the number of threadgroups of the share that no thread has taken.
inline uint64_t groups_left(const share& s) {
  const uint64_t next = __atomic_load_n(&s.next, __ATOMIC_RELAXED);
  return next < s.end ? s.end - next : 0;
}

inline bool has_paused(const share& s) {
  return __atomic_load_n(&s.paused, __ATOMIC_RELAXED) != nullptr;
}

// The maximum number of shares. Further threads begin with the share of another thread.
constexpr uint32_t max_shares = 16;

// One run of a launch. It lies on the stack of the calling thread.
struct job {
  const launch* l;
  void* buffers[max_buffers];
  int32_t ndim[max_buffers];
  uint64_t chunk;                // number of threadgroups that a thread takes at a time
  alignas(64) uint32_t helpers;  // workers that run the job; only changed with the pool's lock
  uint32_t max_helpers;
  bool lacks_stacks;  // a worker found no workspace for the job, and none has been returned since
  job* next;
  uint32_t share_count;
  share shares[max_shares];  // the first share_count
  pthread_mutex_t lock;
};

// Reports whether a threadgroup of the job can begin or continue.
inline bool has_groups(const job* j) {
  for (uint32_t i = 0; i < j->share_count; ++i) {
    if (groups_left(j->shares[i]) > 0 || has_paused(j->shares[i])) {
      return true;
    }
  }
  return false;
}

// Returns the number of stacks that a thread needs to run the threadgroups of l.
inline uint32_t stacks(const launch* l) {
  return l->fibers ? l->threads : 1;
}

inline uint32_t minimum(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

// Runs threadgroups of a job on this thread until none can begin or continue. The share of `index` comes first. The
// function takes w and returns an idle workspace, which may be another one.
workspace* run_groups(workspace* w, uint32_t index, job* j);

// Blocks asynchronous signals on this thread and stores the previous mask in *old. A signal handler would run on a
// fiber's stack, which Go's handler does not support. Signals of faults, such as SIGSEGV, stay unblocked.
void block_signals(sigset_t* old);

// A normal_arithmetic gives this thread the default floating-point environment: rounding to nearest, with subnormal
// numbers. Its destructor restores the environment of before. Otherwise results could depend on the thread that
// computes them, since a library may have changed the environment of some threads.
class normal_arithmetic {
 public:
#if defined(__x86_64__)
  normal_arithmetic() : before_(__builtin_ia32_stmxcsr()) { __builtin_ia32_ldmxcsr(0x1f80); }
  ~normal_arithmetic() { __builtin_ia32_ldmxcsr(before_); }

 private:
  uint32_t before_;
#elif defined(__aarch64__)
  normal_arithmetic() {
    __asm__ volatile("mrs %0, fpcr" : "=r"(before_));
    __asm__ volatile("msr fpcr, xzr");
  }
  ~normal_arithmetic() { __asm__ volatile("msr fpcr, %0" : : "r"(before_)); }

 private:
  uint64_t before_;
#endif
  normal_arithmetic(const normal_arithmetic&) = delete;
};

// Starts workers until there are `count`. Having fewer is not an error: the calling thread can run any launch alone.
void start_workers(uint32_t count);

// Runs a job on the calling thread and on up to j->max_helpers workers, and returns when it is complete. The function
// takes w and returns an idle workspace, which may be another one.
workspace* run_job(workspace* w, job* j);

}  // namespace mlxg

#endif
