// Indices beyond an array whose type tells its size, of a thread's own arrays or within a
// threadgroup variable: the functions that the code of -fsanitize=bounds calls.
#ifndef CHECKED_BOUNDS_H
#define CHECKED_BOUNDS_H

#include "access.h"

namespace checked {

// The compilers' descriptions.
struct described_type {
  uint16_t kind;  // 0: an integer
  uint16_t info;  // of an integer: twice the logarithm of its bits, and 1 if it has a sign
  char name[];    // 'float [9][8]'
};
struct described_index {
  const char* file;
  uint32_t line, column;
  const described_type *array, *index;
};

static uint32_t array_size(const char* name) {
  while (*name && *name != '[') ++name;
  uint32_t n = 0;
  while (*name && *++name >= '0' && *name <= '9') n = 10 * n + uint32_t(*name - '0');
  return n;
}

[[gnu::noinline]] static void index_out_of_bounds(const described_index& d, uint64_t index, uint32_t pc) {
  if (!now.running) return;
  finding f = here(out_of_bounds, pc);
  const uint32_t unused = 64 - (1u << (d.index->info >> 1) % 7);
  f.offset = d.index->info & 1 ? int64_t(index << unused) >> unused : int64_t(index);
  f.detail = array_size(d.array->name);
  report(f);
}

}  // namespace checked

extern "C" {

void __ubsan_handle_out_of_bounds(void* described, void* index) {
  checked::index_out_of_bounds(*static_cast<checked::described_index*>(described), uint64_t(index), CHECKED_PC);
}
}

#endif
