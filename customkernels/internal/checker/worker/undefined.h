// Operations with undefined behavior. Code with -fsanitize=bounds, alignment and shift-exponent calls the __ubsan
// functions. The library's vectors, matrices and arrays call mlxg_checked_index. Bounds are checked for arrays whose
// types have a size, in a thread's own memory or within a threadgroup variable.
#ifndef CHECKER_UNDEFINED_H
#define CHECKER_UNDEFINED_H

#include "access.h"

namespace checker {

// The compilers' descriptions of types and places.
struct described_type {
  uint16_t kind;  // 0 for an integer
  uint16_t info;  // for an integer: 2 * log2(bits), plus 1 if it is signed
  char name[];    // for example 'float [9][8]'
};
struct described_place {
  const char* file;
  uint32_t line, column;
};
struct described_index {
  described_place place;
  const described_type *array, *index;
};
struct described_pointer {
  described_place place;
  const described_type* type;
  uint8_t alignment;  // log2 of the alignment
};
struct described_shift {
  described_place place;
  const described_type *number, *count;
};

static uint32_t bits_of(const described_type& t) {
  return 1u << (t.info >> 1) % 7;
}

static int64_t integer(const described_type& t, uint64_t value) {
  const uint32_t unused = 64 - bits_of(t);
  return t.info & 1 ? int64_t(value << unused) >> unused : int64_t(value);
}

// Returns the first size in the name of an array type, such as 9 for 'float [9][8]'.
static uint32_t array_size(const char* name) {
  while (*name && *name != '[') {
    ++name;
  }
  uint32_t n = 0;
  while (*name && *++name >= '0' && *name <= '9') {
    n = 10 * n + uint32_t(*name - '0');
  }
  return n;
}

CHECKER_RARE void index_out_of_bounds(int64_t index, uint32_t size, uint32_t pc) {
  if (!now.running) {
    return;
  }
  finding f = here(out_of_bounds, pc);
  f.offset = index;
  f.detail = size;
  report(f);
}

CHECKER_RARE void pointer_misaligned(const described_pointer& d, uintptr_t address, uint32_t pc) {
  if (!now.running) {
    return;
  }
  finding f = here(misaligned, pc);
  f.address = address;
  f.detail = 1u << d.alignment % 32;
  const uintptr_t slot = (address - now.arena) >> slot_shift;
  if (slot < now.slot_count) {
    f.slot = int32_t(slot);
    f.offset = int64_t(address - now.slots[slot].start);
  }
  report(f);
}

CHECKER_RARE void shift_too_wide(const described_shift& d, uint64_t count, uint32_t pc) {
  if (!now.running) {
    return;
  }
  finding f = here(shift, pc);
  f.offset = integer(*d.count, count);
  f.detail = bits_of(*d.number);
  report(f);
}

}  // namespace checker

extern "C" {

void __ubsan_handle_out_of_bounds(void* described, void* index) {
  const auto& d = *static_cast<checker::described_index*>(described);
  checker::index_out_of_bounds(
      checker::integer(*d.index, uint64_t(index)), checker::array_size(d.array->name), CHECKER_PC);
}
void mlxg_checked_index(int64_t index, uint32_t size) {
  checker::index_out_of_bounds(index, size, CHECKER_PC);
}
void __ubsan_handle_type_mismatch_v1(void* described, void* pointer) {
  checker::pointer_misaligned(*static_cast<checker::described_pointer*>(described), uintptr_t(pointer), CHECKER_PC);
}
void __ubsan_handle_shift_out_of_bounds(void* described, void*, void* count) {
  checker::shift_too_wide(*static_cast<checker::described_shift*>(described), uint64_t(count), CHECKER_PC);
}
}

#endif
