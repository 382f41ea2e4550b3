// Context switches between fibers.
#ifndef MLXG_FIBER_H
#define MLXG_FIBER_H

#include "mlxg_abi.h"

namespace mlxg {

// Suspends the running fiber in `from` and resumes `to`.
//
// The statement clobbers every register, so the compiler saves exactly the live values. Only the stack pointer, the
// frame pointer and the resume address remain. The jump is indirect instead of a return: lanes that wait at the same
// place resume at the same address, which an indirect-branch predictor learns and a return-address stack mispredicts.
[[gnu::always_inline]] static inline void switch_context(context* from, context* to) {
#if defined(__x86_64__)
  asm volatile(
      "leaq 1f(%%rip), %%rcx\n\t"
      "movq %%rsp, 0(%0)\n\t"
      "movq %%rbp, 8(%0)\n\t"
      "movq %%rcx, 16(%0)\n\t"
      "movq 0(%1), %%rsp\n\t"
      "movq 8(%1), %%rbp\n\t"
      "jmpq *16(%1)\n\t"
      ".p2align 2\n"
      "1:\n\t"
      : "+a"(from), "+d"(to)
      :
      : "rbx", "rcx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm2",
        "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",
        "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)",
#if defined(__AVX512F__)
        "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27",
        "xmm28", "xmm29", "xmm30", "xmm31", "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7",
#endif
        "cc", "memory");
#elif defined(__aarch64__)
  register context* x0 asm("x0") = from;
  register context* x1 asm("x1") = to;
  // hint #36 is "bti j", a landing pad that some processors require. x29 is saved by hand. x18 is reserved on some
  // platforms.
  asm volatile(
      "adr x2, 1f\n\t"
      "mov x3, sp\n\t"
      "stp x3, x29, [x0]\n\t"
      "str x2, [x0, #16]\n\t"
      "ldp x3, x29, [x1]\n\t"
      "ldr x2, [x1, #16]\n\t"
      "mov sp, x3\n\t"
      "br x2\n"
      "1:\n\t"
      "hint #36\n\t"
      : "+r"(x0), "+r"(x1)
      :
      : "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x19",
        "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x30", "v0", "v1", "v2", "v3", "v4", "v5", "v6",
        "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22",
        "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31",
#if !defined(__APPLE__) && !defined(__ANDROID__)
        "x18",
#endif
#if defined(__ARM_FEATURE_SVE)
        "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11", "p12", "p13", "p14", "p15",
#endif
        "cc", "memory");
#else
#error "unsupported processor; the host executor supports x86-64 and arm64"
#endif
}

// The running fiber. Its value is constant within a function, but the assembly is volatile to keep the compiler from
// reusing the value. A reused value and everything derived from it would be on the stack across a switch, and three
// instructions on the stack pointer are faster than the dependent loads.
struct self {
  control* c;
  uint32_t thread;

  [[gnu::always_inline]] self() {
    uintptr_t sp;
#if defined(__x86_64__)
    asm volatile("movq %%rsp, %0" : "=r"(sp));
#else
    asm volatile("mov %0, sp" : "=r"(sp));
#endif
    c = reinterpret_cast<control*>(sp & ~(workspace_size - 1));
    thread = uint32_t(sp >> stack_shift) & (max_threads - 1);
  }
  uint32_t lane() const { return thread % simd_width; }
  uint32_t bit() const { return uint32_t(1) << lane(); }
  simdgroup& group() const { return c->groups[thread / simd_width]; }
  context* own() const { return &c->fiber[thread]; }
};

// Returns the next lane of the mask after `lane`, cyclically. The mask is not empty.
[[gnu::always_inline]] static inline uint32_t next_lane(uint32_t mask, uint32_t lane) {
  const uint32_t above = mask & (uint32_t(-2) << lane);
  return uint32_t(__builtin_ctz(above ? above : mask));
}

// Returns the fiber to run if the next lane is not runnable.
[[gnu::noinline, gnu::unused]] static context* choose(control* c, uint32_t thread, uint32_t runnable) {
  if (runnable == 0) {
    return c->advance(c, thread);
  }
  return &c->fiber[(thread & ~(simd_width - 1)) + next_lane(runnable, thread % simd_width)];
}

// Yields after the caller has cleared its bit in the mask of runnable lanes. Returns when the caller is runnable again.
[[gnu::always_inline]] static inline void wait_turn(const self& me) {
  const uint32_t rest = me.group().runnable;
  context* const own = me.own();
  context* to = own + 1;
  // Usually the next lane runs next. This branch takes the mask off the critical path between two switches, which
  // halves the path.
  if (__builtin_expect((rest >> me.lane() & 2) == 0, 0)) {
    to = choose(me.c, me.thread, rest);
    if (to == own) {
      return;
    }
  }
  switch_context(own, to);
}

}  // namespace mlxg

#endif
