// The calls that lead to a barrier or a SIMD-group function.
#ifndef CHECKER_CALLS_H
#define CHECKER_CALLS_H

#include "state.h"

namespace checker {

// Stores the place at which the running thread will wait. frame is the frame of the worker's function that the shader
// called. It must not have ended in a tail call, which overwrites it.
//
// A watched program is not optimized, so every call of the text is one call instruction, and the call path identifies
// the place: calls of one function at two places differ, as do two calls on one line. The optimizer merges and
// duplicates calls, so in other programs the line identifies the place.
static void set_place(uint32_t line, const void* frame) {
  thread_state& t = now.threads[now.thread];
  t.line = line;
  t.place = line;
  t.call_count = 0;
  if (!now.watched) {
    return;
  }
  for (const auto* f = static_cast<const uintptr_t*>(frame); f < t.frame;) {
    const uint32_t call = uint32_t(f[1]);  // without the signature of arm64, which differs between stacks
    if (t.call_count < max_calls) {
      t.calls[t.call_count++] = call;
    }
    t.place = (t.place ^ call) * 0x9e3779b97f4a7c15u;
    t.place ^= t.place >> 32;
    const auto* caller = reinterpret_cast<const uintptr_t*>(f[0]);
    if (caller <= f) {
      break;  // the kernel has overwritten its stack
    }
    f = caller;
  }
}

// Returns whether thread a waits at an earlier place of the text than thread b.
static bool before(const thread_state& a, const thread_state& b) {
  for (uint32_t i = 1; i <= a.call_count && i <= b.call_count; ++i) {
    const uint32_t call = a.calls[a.call_count - i], other = b.calls[b.call_count - i];
    if (call != other) {
      return call < other;
    }
  }
  return a.line < b.line;
}

static void copy_calls(uint32_t* to, const thread_state& t) {
  for (uint32_t i = 0; i < t.call_count; ++i) {
    to[i] = t.calls[i];
  }
}

}  // namespace checker

#endif
