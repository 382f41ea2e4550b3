// The restrictions that the worker sets for itself before any code of the shader runs. Afterwards it can compute,
// manage its memory and write the result, and nothing else. Its caller has restricted the access to files already.
#ifndef CHECKER_CONFINE_H
#define CHECKER_CONFINE_H

#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "launch.h"

namespace checker {

static void limit_to(int resource, uint64_t most) {
  const rlimit r = {rlim_t(most), rlim_t(most)};
  setrlimit(decltype(RLIMIT_DATA)(resource), &r);  // fails only if a lower limit is set
}

// Sets limits that the buffers of the launch need, with a margin. Shadow memory takes up to 36 bytes for each byte.
static void limit_resources() {
  uint64_t written = 0, all = mlxg::max_threadgroup_memory;
  for (uint32_t i = 0; i < header.buffers; ++i) {
    const buffer_header& b = buffer_headers()[i];
    all += b.size;
    written += b.writable ? b.size : 0;
  }
  limit_to(RLIMIT_DATA, max_segments * sizeof(segment_info) + mlxg::workspace_size + 40 * all + (uint64_t(1) << 30));
  limit_to(RLIMIT_FSIZE, written + (1u << 20));
  limit_to(RLIMIT_CPU, header.timeout_ms / 1000 + 10);
  limit_to(RLIMIT_CORE, 0);
}

// An instruction and a program of the kernel's seccomp. The C library of some systems lacks the kernel's headers.
struct instruction {
  uint16_t code;
  uint8_t yes, no;
  uint32_t k;
};
struct instructions {
  uint16_t count;
  const instruction* list;
};

constexpr uint16_t load = 0x20, jump_if_equal = 0x15, answer = 0x06;
constexpr uint32_t allow = 0x7fff0000u, refuse = 0x00050001u /* EPERM */, kill_process = 0x80000000u;
constexpr uint32_t call_number = 0, architecture = 4, first_argument = 16;  // offsets of the data
#if defined(__x86_64__)
constexpr uint32_t this_architecture = 0xc000003eu;
#else
constexpr uint32_t this_architecture = 0xc00000b7u;
#endif

// Refuses all system calls except a few, and except writing to the result. It does nothing without seccomp.
static void refuse_system_calls() {
  constexpr uint32_t allowed[] = {
      SYS_mmap,          SYS_munmap,       SYS_mprotect,       SYS_madvise,     SYS_brk,
      SYS_rt_sigaction,  SYS_rt_sigreturn, SYS_rt_sigprocmask, SYS_sigaltstack, SYS_setitimer,
      SYS_clock_gettime, SYS_futex,        SYS_exit,           SYS_exit_group,
  };
  constexpr unsigned n = sizeof allowed / sizeof *allowed;
  instruction list[n + 9];
  unsigned at = 0;
  list[at++] = {load, 0, 0, architecture};
  list[at++] = {jump_if_equal, 1, 0, this_architecture};
  list[at++] = {answer, 0, 0, kill_process};
  list[at++] = {load, 0, 0, call_number};
  for (unsigned i = 0; i < n; ++i) {
    list[at++] = {jump_if_equal, uint8_t(n - i + 3), 0, allowed[i]};
  }
  list[at++] = {jump_if_equal, 0, 2, SYS_write};
  list[at++] = {load, 0, 0, first_argument};
  list[at++] = {jump_if_equal, 1, 0, result_file};
  list[at++] = {answer, 0, 0, refuse};
  list[at++] = {answer, 0, 0, allow};
  const instructions program = {uint16_t(at), list};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  prctl(PR_SET_SECCOMP, 2 /* a filter */, &program);
}

}  // namespace checker

#endif
