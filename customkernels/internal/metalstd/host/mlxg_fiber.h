// Switching between fibers, and a fiber's knowledge of itself.
#ifndef MLXG_FIBER_H
#define MLXG_FIBER_H

#include "mlxg_abi.h"

namespace mlxg {

// Suspends the running fiber in `from` and continues `to`.
//
// The statement declares every register clobbered, so the compiler saves
// exactly the values that are alive across it, and only the stack, the frame
// pointer and the place to continue are left to do. The jump is indirect
// rather than a return: lanes that wait at the same place continue at the
// same address, which an indirect-branch predictor learns and a
// return-address stack gets wrong.
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
#if defined(__AVX512F__)
        "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27",
        "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", "k7",
#endif
        "cc", "memory");
#elif defined(__aarch64__)
  register context* x0 asm("x0") = from;
  register context* x1 asm("x1") = to;
  // hint #36 is "bti j": a landing pad where the processor wants one.
  // x29 is saved by hand, and x18 belongs to the platform on some.
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
#error "the host executor knows x86-64 and arm64"
#endif
}

// The running fiber. Its value never changes within a function; yet the
// assembly is volatile, because a compiler that may reuse the value keeps all
// that follows from it on the stack across a switch, and three instructions
// on the stack pointer are quicker than loads that wait for it.
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

// The lane after `lane` in the ring of those in the mask, which is not empty.
[[gnu::always_inline]] static inline uint32_t next_lane(uint32_t mask, uint32_t lane) {
  const uint32_t above = mask & (uint32_t(-2) << lane);
  return uint32_t(__builtin_ctz(above ? above : mask));
}

// The fiber to run when it is not the next lane's turn.
[[gnu::noinline, gnu::unused]] static context* choose(control* c, uint32_t thread, uint32_t runnable) {
  if (runnable == 0) {
    return c->advance(c, thread);
  }
  return &c->fiber[(thread & ~(simd_width - 1)) + next_lane(runnable, thread % simd_width)];
}

// Hands the processor on after the caller has left the mask of runnable
// lanes, and returns when the caller may go on.
[[gnu::always_inline]] static inline void wait_turn(const self& me) {
  const uint32_t rest = me.group().runnable;
  context* const own = me.own();
  context* to = own + 1;
  // Usually it is the next lane's turn. To assume so, by a branch, takes the
  // mask off the path from one switch to the next, and half of its length.
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
