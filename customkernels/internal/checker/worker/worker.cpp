// The worker runs one launch of one shader under the checker. It is a separate process, so that a crash or an endless
// loop of the shader does not affect the caller. It finds the launch and writes the result as open files, with the
// layout of protocol.h.
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>

#include "confine.h"
#include "expected.h"
#include "own.h"
#include "unwritten.h"

namespace checker {

static result_header result;
static slot_result slot_results[max_slots];
static unsigned char* first_outputs[max_slots];
static uint64_t began;

static uint64_t clock_now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}

static void put(const void* data, uint64_t size) {
  const char* p = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = write(result_file, p, size);
    if (n <= 0) {
      _exit(3);
    }
    p += n;
    size -= uint64_t(n);
  }
}

// Records the traffic of the first schedule.
[[gnu::optimize("O3")]] static void take_slots() {
  for (uint32_t i = 0; i < now.slot_count; ++i) {
    const slot& s = now.slots[i];
    slot_result& r = slot_results[i];
    r = {s.size, s.read, s.written, 0, 0, s.element, s.id};
    const uint64_t cells = s.size >> s.shift;
    for (uint64_t w = 0; w <= cells / 64 && s.read_cells; ++w) {
      r.unique_read += __builtin_popcountll(s.read_cells[w]);
    }
    for (uint64_t c = 0; c < cells && s.writers; ++c) {
      r.unique_written += s.writers[c].segment >= schedule_begin;
    }
    r.unique_read <<= s.shift;
    r.unique_written <<= s.shift;
  }
}

// Writes the result and ends the process. Signal handlers call it, so it allocates nothing.
[[noreturn]] static void end(uint32_t status) {
  result.magic = magic;
  result.version = version;
  result.status = status;
  result.slots = now.slot_count;
  result.findings = findings.count;
  result.nanoseconds = clock_now() - began;
  result.threadgroup_memory = threadgroup_bytes;
  put(&result, sizeof result);
  put(slot_results, now.slot_count * sizeof(slot_result));
  put(findings.list, findings.count * sizeof(finding));
  if (status == finished) {
    for (uint32_t i = 0; i < now.buffers; ++i) {
      if (now.slots[i].writable) {
        put(first_outputs[i], now.slots[i].size);
      }
    }
  }
  _exit(0);
}

// Ends the process without outputs. `finished` means that the reason is among the findings.
[[noreturn]] static void give_up(uint32_t status) {
  end(status == finished ? uint32_t(crashed) : status);
}

static void fail(const char* message) {
  snprintf(result.message, sizeof result.message, "%s", message);
  end(refused);
}

// ---- signals ----

static uint64_t place_of_signal(void* context) {
  const auto* u = static_cast<const ucontext_t*>(context);
#if defined(__x86_64__)
  return uint64_t(u->uc_mcontext.gregs[REG_RIP]);
#else
  return u->uc_mcontext.pc;
#endif
}

// Makes the page of a faulting out-of-bounds access accessible, filled with poison, so that the run continues.
static bool map_gap(uintptr_t address) {
  static uint32_t mapped;
  if (address - now.arena >= arena_span || ++mapped > 1u << 14) {
    return false;
  }
  const uintptr_t at = address & ~(page - 1);
  if (mprotect(reinterpret_cast<void*>(at), page, PROT_READ | PROT_WRITE) != 0) {
    return false;
  }
  __real_memset(reinterpret_cast<void*>(at), poison, page);
  return true;
}

// After a timeout, further samples 1.5 ms apart cover the whole loop.
static uint32_t timeout_samples;

static void sample() {
  const itimerval t = {{0, 1500}, {0, 1500}};
  setitimer(ITIMER_REAL, &t, nullptr);
}

static void on_signal(int number, siginfo_t* info, void* context) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(info->si_addr);
  if ((number == SIGSEGV || number == SIGBUS) && map_gap(address)) {
    return;
  }
  if (number == SIGALRM && timeout_samples++ == 0) {
    sample();
  }
  finding f = here(number == SIGALRM ? timeout : crash, uint32_t(place_of_signal(context)));
  f.other_pc = now.pc;
  f.detail = uint32_t(number);
  f.address = address;
  if (number == SIGSEGV && address - now.workspace < mlxg::workspace_size) {
    f.access = is_write;  // a stack overflow
  }
  report(f);
  if (number == SIGALRM && timeout_samples < 40) {
    return;
  }
  give_up(number == SIGALRM ? timed_out : crashed);
}

static void catch_signals() {
  static unsigned char room[65536];
  stack_t s = {};
  s.ss_sp = room;
  s.ss_size = sizeof room;
  sigaltstack(&s, nullptr);
  struct sigaction a = {};
  a.sa_sigaction = on_signal;
  a.sa_flags = SA_SIGINFO | SA_ONSTACK;
  const int caught[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGALRM};
  for (int n : caught) {
    sigaction(n, &a, nullptr);
  }
  const itimerval t = {{0, 0}, {time_t(header.timeout_ms / 1000), suseconds_t(header.timeout_ms % 1000 * 1000)}};
  setitimer(ITIMER_REAL, &t, nullptr);
}

// ---- all schedules ----

// Shrinks the shadow cells of slots that had accesses smaller than a cell, because conflicts within a cell are not
// visible. Returns whether a slot changed; the launch then starts again.
static bool refine() {
  bool any = false;
  for (uint32_t i = 0; i < now.slot_count; ++i) {
    slot& s = now.slots[i];
    if (s.needed_shift >= s.shift) {
      continue;
    }
    drop_shadow(s);
    s.shift = s.needed_shift;
    make_shadow(s);
    any = true;
  }
  return any;
}

// Records the first difference between the outputs of a schedule and the outputs of the first schedule.
static void compare(uint32_t schedule) {
  for (uint32_t i = 0; i < now.buffers && !result.differs; ++i) {
    const slot& s = now.slots[i];
    if (!s.writable || memcmp(first_outputs[i], bound[i], s.size) == 0) {
      continue;
    }
    const auto* a = static_cast<const unsigned char*>(bound[i]);
    uint64_t at = 0;
    while (first_outputs[i][at] == a[at]) {
      ++at;
    }
    result.differs = 1;
    result.differing_slot = i;
    result.differing_schedule = schedule;
    result.differing_offset = at;
  }
}

// Runs all schedules. A launch that needs finer shadow cells starts again.
static void run_all() {
  uint64_t first_trace = 0;
  for (uint32_t n = 0; n < header.schedules; ++n) {
    run_schedule(n);
    if (refine()) {
      forget_findings();
      for (uint32_t i = 0; i < now.slot_count; ++i) {
        slot& s = now.slots[i];
        s.read = s.written = 0;
        memset(s.read_cells, 0, ((s.size >> s.shift) / 64 + 1) * 8);
      }
      now.barriers = now.simd_operations = now.segments32 = now.bank_conflicts = 0;
      result.differs = 0;
      n = ~0u;
      continue;
    }
    result.schedules = n + 1;
    if (n > 0) {
      compare(n);
      result.differs |= now.trace != first_trace;
      continue;
    }
    first_trace = now.trace;
    take_slots();
    compare_expected();
    report_unwritten();
    result.barriers = now.barriers;
    result.simd_operations = now.simd_operations;
    result.segments = now.segments32;
    result.bank_conflicts = now.bank_conflicts;
    for (uint32_t i = 0; i < now.buffers; ++i) {
      const slot& s = now.slots[i];
      if (!s.writable) {
        continue;
      }
      first_outputs[i] = static_cast<unsigned char*>(map(round_up(s.size + 1)));
      populate(first_outputs[i], s.size);
      memcpy(first_outputs[i], bound[i], s.size);
    }
  }
}

// Reads the launch and confines the process. It runs before the initializers of the shader's variables.
[[gnu::constructor(101)]] static void begin() {
  struct stat s;
  if (fstat(launch_file, &s) != 0 || size_t(s.st_size) < sizeof header) {
    _exit(2);
  }
  void* p = mmap(nullptr, size_t(s.st_size), PROT_READ, MAP_PRIVATE, launch_file, 0);
  if (p == MAP_FAILED) {
    _exit(2);
  }
  file = static_cast<const unsigned char*>(p);
  memcpy(&header, file, sizeof header);
  if (header.magic != magic || header.version != version) {
    _exit(2);
  }
  now.slots[max_slots].free = ~uint64_t(0);  // before the launch, no access is checked
  if (header.watched) {                      // initializers run on this stack
    const uintptr_t size = 1 << 20;
    make_own_shadow(uintptr_t(__builtin_frame_address(0)) - size, size);
  }
  limit_resources();
  refuse_system_calls();
}

static int run() {
  began = clock_now();
  if (uintptr_t(_end) >= pc_mask) {
    fail("the program's addresses are too large for the shadow records");
  }
  if (header.buffers != mlxgrad_entry.buffers) {
    fail("the launch and the kernel have different numbers of buffers");
  }
  if (too_many_variables) {
    fail("the kernel has too many threadgroup variables; at most 63 are supported");
  }
  if (threadgroup_bytes > mlxg::max_threadgroup_memory) {
    finding f = here(limit, 0);
    f.detail = threadgroup_bytes;
    report(f);
    end(refused);
  }
  group_count = 1;
  uint32_t threads = 1;
  for (int d = 0; d < 3; ++d) {
    header.threadgroup[d] = min(header.threadgroup[d], header.grid[d]);
    groups[d] = (header.grid[d] - 1) / header.threadgroup[d] + 1;
    group_count *= groups[d];
    threads *= header.threadgroup[d];
  }
  lay_out();
  for (uint32_t i = 0; i < now.slot_count; ++i) {
    slot_results[i].size = now.slots[i].size;  // for findings of a launch that does not end
    slot_results[i].element = now.slots[i].element;
    slot_results[i].id = now.slots[i].id;
  }
  make_fibers(threads);
  now.watched = header.watched != 0;
  if (now.watched) {
    make_own_shadow(now.workspace, mlxg::workspace_size);
  }
  group_order = static_cast<uint32_t*>(map(group_count * sizeof(uint32_t)));
  catch_signals();
  run_all();
  end(finished);
}

}  // namespace checker

int main() {
  return checker::run();
}
