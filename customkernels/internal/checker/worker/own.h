// A thread's own variables. Code with -fsanitize=kernel-address places redzones around the arrays on a stack and marks
// them in shadow bytes, one for 8 bytes. It calls these functions before each access. Code with
// -fsanitize=signed-integer-overflow calls the __ubsan functions.
#ifndef CHECKER_OWN_H
#define CHECKER_OWN_H

#include "launch.h"

namespace checker {

constexpr uintptr_t own_shadow_offset = 0x7fff8000;  // watchedFlags passes it to the compiler
constexpr unsigned own_shadow_shift = 3;

static int8_t* own_shadow(uintptr_t address) {
  return reinterpret_cast<int8_t*>((address >> own_shadow_shift) + own_shadow_offset);
}

// Maps the shadow bytes of stacks.
static void make_own_shadow(uintptr_t stacks, uintptr_t bytes) {
  const uintptr_t page = 1 << 16;  // a multiple of the page size of every supported system
  void* begin = reinterpret_cast<void*>(uintptr_t(own_shadow(stacks)) & ~(page - 1));
  const uintptr_t size = uintptr_t(own_shadow(stacks + bytes)) - uintptr_t(begin);
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  if (mmap(begin, size, PROT_READ | PROT_WRITE, flags, -1, 0) != begin) {
    fail("no memory for the shadow of the stacks");
  }
}

// Returns whether a byte lies outside of every variable. A shadow byte from 1 to 7 is the number of valid bytes.
static bool in_redzone(uintptr_t address) {
  const int8_t valid = *own_shadow(address);
  return valid != 0 && int8_t(address & 7) >= valid;
}

// The variables of a frame, as the compiler describes them: "COUNT OFFSET SIZE LENGTH NAME:LINE ...".
struct frame {
  uintptr_t magic;
  const char* variables;
};
constexpr uintptr_t frame_magic = 0x41b58ab3;
constexpr int8_t frame_begin = -15;  // shadow of the first redzone

static uintptr_t number(const char*& p) {
  uintptr_t n = 0;
  while (*p >= '0' && *p <= '9') {
    n = 10 * n + uintptr_t(*p++ - '0');
  }
  ++p;  // the space
  return n;
}

// Sets the offset of the access from the nearest variable of its frame, and the size of that variable.
static void describe_variable(finding& f, uintptr_t address) {
  uintptr_t begin = address & ~uintptr_t(7);
  while (*own_shadow(begin) != frame_begin) {
    begin -= 8;
    if (begin < now.workspace) {
      return;
    }
  }
  while (begin > now.workspace && *own_shadow(begin - 8) == frame_begin) {
    begin -= 8;
  }
  const auto* at = reinterpret_cast<const frame*>(begin);
  if (at->magic != frame_magic) {
    return;
  }
  const char* p = at->variables;
  uintptr_t nearest = ~uintptr_t(0);
  for (uintptr_t count = number(p); count > 0; --count) {
    const uintptr_t start = begin + number(p), size = number(p), length = number(p);
    p += length + 1;
    const uintptr_t distance = address < start ? start - address : address - (start + size);
    if (distance < nearest) {
      nearest = distance;
      f.offset = int64_t(address - start);
      f.detail = uint32_t(size);
      f.address = uintptr_t(p - length - 1);
    }
  }
}

CHECKER_RARE void outside_own(uintptr_t address, uint32_t size, bool write, uint32_t pc) {
  finding f = here(out_of_own, pc);
  f.size = size;
  f.access = write ? is_write : 0;
  describe_variable(f, address);
  report(f);
}

template <bool write>
CHECKER_FAST void own_access(uintptr_t address, uintptr_t size, uint32_t pc) {
  if (address - now.workspace >= mlxg::workspace_size || !now.running) {
    return;
  }
  for (uintptr_t at = address; at < address + size; at = (at | 7) + 1) {
    const uintptr_t last = (at | 7) < address + size ? at | 7 : address + size - 1;
    if (unlikely(in_redzone(last))) {
      while (!in_redzone(at)) {
        ++at;
      }
      return outside_own(at, uint32_t(size), write, pc);
    }
  }
}

CHECKER_RARE void overflows(uint32_t pc, bool is_signed = true) {
  if (now.running) {
    finding f = here(overflow, pc);
    f.detail = is_signed;
    report(f);
  }
}

}  // namespace checker

extern "C" {

#define CHECKER_OWN(SIZE)                            \
  void __asan_load##SIZE##_noabort(uintptr_t p) {    \
    checker::own_access<false>(p, SIZE, CHECKER_PC); \
  }                                                  \
  void __asan_store##SIZE##_noabort(uintptr_t p) {   \
    checker::own_access<true>(p, SIZE, CHECKER_PC);  \
  }
CHECKER_OWN(1)
CHECKER_OWN(2)
CHECKER_OWN(4)
CHECKER_OWN(8)
CHECKER_OWN(16)
#undef CHECKER_OWN

void __asan_loadN_noabort(uintptr_t p, uintptr_t size) {
  checker::own_access<false>(p, size, CHECKER_PC);
}
void __asan_storeN_noabort(uintptr_t p, uintptr_t size) {
  checker::own_access<true>(p, size, CHECKER_PC);
}
// Clang calls these functions to mark the redzones of large stack frames.
#define CHECKER_MARK(BYTE)                                          \
  void __asan_set_shadow_##BYTE(uintptr_t shadow, uintptr_t size) { \
    __real_memset(reinterpret_cast<void*>(shadow), 0x##BYTE, size); \
  }
CHECKER_MARK(00)
CHECKER_MARK(f1)
CHECKER_MARK(f2)
CHECKER_MARK(f3)
CHECKER_MARK(f5)
CHECKER_MARK(f8)
#undef CHECKER_MARK

void __asan_handle_no_return() {}
void __asan_before_dynamic_init(const char*) {}
void __asan_after_dynamic_init() {}

void mlxg_checked_wrap() {
  checker::overflows(CHECKER_PC, false);
}
void __ubsan_handle_add_overflow(void*, void*, void*) {
  checker::overflows(CHECKER_PC);
}
void __ubsan_handle_sub_overflow(void*, void*, void*) {
  checker::overflows(CHECKER_PC);
}
void __ubsan_handle_mul_overflow(void*, void*, void*) {
  checker::overflows(CHECKER_PC);
}
void __ubsan_handle_negate_overflow(void*, void*) {
  checker::overflows(CHECKER_PC);
}
void __ubsan_handle_divrem_overflow(void*, void*, void*) {
  checker::overflows(CHECKER_PC);
}
}

#endif
