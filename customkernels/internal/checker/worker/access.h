// The functions that the compiler's instrumentation calls before each access: our
// own definitions of what -fsanitize=thread expects from its runtime.
#ifndef CHECKED_ACCESS_H
#define CHECKED_ACCESS_H

#include "rule.h"
#include "traffic.h"

extern "C" char __executable_start[], _end[];

namespace checker {

[[gnu::noinline]] static void out_of_bounds_at(
    int32_t index, uintptr_t address, uint32_t size, bool write, uint32_t pc) {
  finding f = here(out_of_bounds, pc);
  f.slot = index;
  f.size = size;
  f.access = write ? is_write : 0;
  f.address = address;
  if (index >= 0) {
    const slot& s = now.slots[index];
    f.offset = int64_t(address - s.start);
    // The first byte that is outside, of an access that begins inside.
    if (f.offset >= 0 && uint64_t(f.offset) < s.size) {
      f.offset = int64_t(s.size);
    }
  }
  report(f);
}

// An access outside of the arena: to a thread's own memory, to constants, or astray.
[[gnu::noinline]] static void elsewhere(uintptr_t address, uint32_t size, bool write, uint32_t pc) {
  if (!now.running) {
    return;
  }
  if (address >= uintptr_t(__executable_start) && address < uintptr_t(_end)) {
    return;
  }
  out_of_bounds_at(-1, address, size, write, pc);
}

// A plain access of one cell that other threads have touched.
template <bool write>
[[gnu::noinline]] static void shared_cell(slot& s, uint64_t c, uint32_t pc) {
  now.pc = pc;
  if (write) {
    check_write(s, c, false, pc, s.start + (c << s.shift), s.unit);
  } else if (!enough_readers(s, c)) {
    check_read(s, c, c, c, false, pc, s.start + (c << s.shift), s.unit);
  }
}

template <bool write, bool atomic>
[[gnu::always_inline]] static inline void access_cells(
    slot& s, uint64_t offset, uint64_t size, uint32_t pc, uintptr_t address) {
  if (unlikely((offset | size) & (s.unit - 1u))) {
    const uint8_t needed = uint8_t(__builtin_ctzll(offset | size));
    if (needed < s.needed_shift) {
      s.needed_shift = needed;
    }
  }
  const uint64_t first = offset >> s.shift, last = (offset + size - 1) >> s.shift;
  for (uint64_t c = first; c <= last; ++c) {
    if (!atomic && (own_cell<write>(s, c, pc) || (!write && enough_readers(s, c)))) {
      continue;
    }
    if (write) {
      check_write(s, c, atomic, pc, address, uint32_t(size));
    } else {
      check_read(s, c, first, last, atomic, pc, address, uint32_t(size));
    }
  }
}

// An access with all that there may be to do.
template <bool write, bool atomic>
[[gnu::always_inline]] static inline void access(uintptr_t address, uint64_t size, uint32_t pc) {
  if (address - now.workspace < mlxg::workspace_size) {
    return;
  }
  const uintptr_t d = address - now.arena;
  if (unlikely(d >= arena_span)) {
    return elsewhere(address, uint32_t(size), write, pc);
  }
  slot& s = now.slots[d >> slot_shift];
  const uint64_t offset = address - s.start;
  now.pc = pc;
  if (unlikely(offset >= s.size || size > s.size - offset)) {
    const int32_t number = int32_t(&s - now.slots);
    if (size > 0) {
      out_of_bounds_at(uint32_t(number) < now.slot_count ? number : -1, address, uint32_t(size), write, pc);
    }
    return;
  }
  if (unlikely(now.attention & write_pending)) {
    settle();
  }
  if (now.attention & traffic_wanted) {
    count_traffic(s, offset, size, write, pc);
  }
  if (s.writers) {
    access_cells<write, atomic>(s, offset, size, pc, address);
  }
}

template <bool write, bool atomic>
[[gnu::noinline]] static void access_in_full(uintptr_t address, uint64_t size, uint32_t pc) {
  access<write, atomic>(address, size, pc);
}

// The number of the cell at an offset, or where none of this size begins a far greater one.
template <uint64_t size>
static inline uint64_t cell_at(uint64_t offset) {
  constexpr unsigned shift = __builtin_ctzll(size);
  return shift == 0 ? offset : offset >> shift | offset << (64 - shift) % 64;
}

// What is left of the plain accesses; the traffic of a cell is the frequent case among them.
template <bool write, uint64_t size>
[[gnu::noinline]] static void infrequent(uintptr_t address, uint32_t pc) {
  slot& s = now.slots[address >> slot_shift & max_slots];
  const uint64_t offset = address - s.start, c = cell_at<size>(offset);
  if (c < s.cells && size == uint64_t(1) << s.shift && now.attention == traffic_wanted &&
      log_cell(s, c, size, write, pc)) {
    if (s.writers && !own_cell<write>(s, c, pc)) {
      shared_cell<write>(s, c, pc);
    }
    return;
  }
  access_in_full<write, false>(address, size, pc);
}

// A plain access of a fixed size, with the frequent cases first, and in a few registers: memory
// of the thread itself, inputs, and cells that only this thread has touched since the last
// barrier.
template <bool write, uint64_t size>
[[gnu::always_inline]] static inline void plain(void* p, uint32_t pc) {
  const uintptr_t address = uintptr_t(p);
  slot& s = now.front[address >> slot_shift & max_slots];
  const uint64_t offset = address - s.start, c = cell_at<size>(offset);
  if (likely(offset < s.free)) {
    return;
  }
  if (unlikely(s.unit != size || c >= s.cells)) {
    return infrequent<write, size>(address, pc);
  }
  if (likely(own_cell<write>(s, c, pc))) {
    return;
  }
  shared_cell<write>(s, c, pc);
}

}  // namespace checker

#define CHECKER_PC uint32_t(reinterpret_cast<uintptr_t>(__builtin_return_address(0)))

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

#define CHECKED_PLAIN(NAME, SIZE)                       \
  void __tsan_read##NAME(void* p) {                     \
    checker::plain<false, SIZE>(p, CHECKER_PC);         \
  }                                                     \
  void __tsan_write##NAME(void* p) {                    \
    checker::plain<true, SIZE>(p, CHECKER_PC);          \
  }                                                     \
  void __tsan_volatile_read##NAME(void* p) {            \
    checker::plain<false, SIZE>(p, CHECKER_PC);         \
  }                                                     \
  void __tsan_volatile_write##NAME(void* p) {           \
    checker::plain<true, SIZE>(p, CHECKER_PC);          \
  }                                                     \
  void __tsan_unaligned_volatile_read##NAME(void* p) {  \
    checker::plain<false, SIZE>(p, CHECKER_PC);         \
  }                                                     \
  void __tsan_unaligned_volatile_write##NAME(void* p) { \
    checker::plain<true, SIZE>(p, CHECKER_PC);          \
  }                                                     \
  void __tsan_unaligned_read##NAME(void* p) {           \
    checker::plain<false, SIZE>(p, CHECKER_PC);         \
  }                                                     \
  void __tsan_unaligned_write##NAME(void* p) {          \
    checker::plain<true, SIZE>(p, CHECKER_PC);          \
  }                                                     \
  void __tsan_read_write##NAME(void* p) {               \
    checker::plain<false, SIZE>(p, CHECKER_PC);         \
    checker::plain<true, SIZE>(p, CHECKER_PC);          \
  }                                                     \
  void __tsan_unaligned_read_write##NAME(void* p) {     \
    checker::plain<false, SIZE>(p, CHECKER_PC);         \
    checker::plain<true, SIZE>(p, CHECKER_PC);          \
  }
CHECKED_PLAIN(1, 1)
CHECKED_PLAIN(2, 2)
CHECKED_PLAIN(4, 4)
CHECKED_PLAIN(8, 8)
CHECKED_PLAIN(16, 16)
#undef CHECKED_PLAIN

void __tsan_read_range(void* p, uintptr_t size) {
  checker::access<false, false>(uintptr_t(p), size, CHECKER_PC);
}
void __tsan_write_range(void* p, uintptr_t size) {
  checker::access<true, false>(uintptr_t(p), size, CHECKER_PC);
}

// ---- copies, which compilers leave to the C library ----

void* __real_memcpy(void*, const void*, size_t);
void* __real_memmove(void*, const void*, size_t);
void* __real_memset(void*, int, size_t);

#define CHECKED_COPY(NAME, REAL)                                        \
  void* NAME(void* to, const void* from, size_t size) {                 \
    if (checker::now.running && size) {                                 \
      checker::access<false, false>(uintptr_t(from), size, CHECKER_PC); \
      checker::access<true, false>(uintptr_t(to), size, CHECKER_PC);    \
    }                                                                   \
    return REAL(to, from, size);                                        \
  }
CHECKED_COPY(__wrap_memcpy, __real_memcpy)
CHECKED_COPY(__wrap_memmove, __real_memmove)
CHECKED_COPY(__tsan_memcpy, __real_memcpy)
CHECKED_COPY(__tsan_memmove, __real_memmove)
#undef CHECKED_COPY
#define CHECKED_SET(NAME)                                            \
  void* NAME(void* to, int value, size_t size) {                     \
    if (checker::now.running && size)                                \
      checker::access<true, false>(uintptr_t(to), size, CHECKER_PC); \
    return __real_memset(to, value, size);                           \
  }
CHECKED_SET(__wrap_memset)
CHECKED_SET(__tsan_memset)
#undef CHECKED_SET

// ---- atomics ----
//
// Fibers share one processor and give it up only at barriers and SIMD functions, so
// plain operations are atomic.

#define CHECKED_UPDATE(BITS, T, NAME, NEXT)                            \
  T __tsan_atomic##BITS##_##NAME(volatile T* p, T v, int) {            \
    checker::access<false, true>(uintptr_t(p), sizeof(T), CHECKER_PC); \
    checker::access<true, true>(uintptr_t(p), sizeof(T), CHECKER_PC);  \
    checker::fence_update(uintptr_t(p));                               \
    const T old = *p;                                                  \
    *p = NEXT;                                                         \
    return old;                                                        \
  }
#define CHECKED_EXCHANGE(BITS, T, NAME)                                         \
  int __tsan_atomic##BITS##_##NAME(volatile T* p, T* expected, T v, int, int) { \
    checker::access<false, true>(uintptr_t(p), sizeof(T), CHECKER_PC);          \
    const T old = *p;                                                           \
    if (old == *expected) {                                                     \
      checker::access<true, true>(uintptr_t(p), sizeof(T), CHECKER_PC);         \
      checker::fence_update(uintptr_t(p));                                      \
      *p = v;                                                                   \
      return 1;                                                                 \
    }                                                                           \
    checker::fence_load(uintptr_t(p));                                          \
    *expected = old;                                                            \
    return 0;                                                                   \
  }
#define CHECKED_ATOMIC(BITS, T)                                                            \
  T __tsan_atomic##BITS##_load(const volatile T* p, int) {                                 \
    checker::access<false, true>(uintptr_t(p), sizeof(T), CHECKER_PC);                     \
    checker::fence_load(uintptr_t(p));                                                     \
    checker::spin(CHECKER_PC);                                                             \
    return *p;                                                                             \
  }                                                                                        \
  void __tsan_atomic##BITS##_store(volatile T* p, T v, int) {                              \
    checker::access<true, true>(uintptr_t(p), sizeof(T), CHECKER_PC);                      \
    checker::fence_store(uintptr_t(p));                                                    \
    *p = v;                                                                                \
  }                                                                                        \
  CHECKED_UPDATE(BITS, T, exchange, v)                                                     \
  CHECKED_UPDATE(BITS, T, fetch_add, T(old + v))                                           \
  CHECKED_UPDATE(BITS, T, fetch_sub, T(old - v))                                           \
  CHECKED_UPDATE(BITS, T, fetch_and, T(old& v))                                            \
  CHECKED_UPDATE(BITS, T, fetch_or, T(old | v))                                            \
  CHECKED_UPDATE(BITS, T, fetch_xor, T(old ^ v))                                           \
  CHECKED_UPDATE(BITS, T, fetch_nand, T(~(old & v)))                                       \
  CHECKED_EXCHANGE(BITS, T, compare_exchange_strong)                                       \
  CHECKED_EXCHANGE(BITS, T, compare_exchange_weak)                                         \
  T __tsan_atomic##BITS##_compare_exchange_val(volatile T* p, T expected, T v, int, int) { \
    checker::access<false, true>(uintptr_t(p), sizeof(T), CHECKER_PC);                     \
    const T old = *p;                                                                      \
    if (old == expected) {                                                                 \
      checker::access<true, true>(uintptr_t(p), sizeof(T), CHECKER_PC);                    \
      checker::fence_update(uintptr_t(p));                                                 \
      *p = v;                                                                              \
    } else {                                                                               \
      checker::fence_load(uintptr_t(p));                                                   \
    }                                                                                      \
    return old;                                                                            \
  }
CHECKED_ATOMIC(8, uint8_t)
CHECKED_ATOMIC(16, uint16_t)
CHECKED_ATOMIC(32, uint32_t)
CHECKED_ATOMIC(64, uint64_t)
#undef CHECKED_ATOMIC
#undef CHECKED_EXCHANGE
#undef CHECKED_UPDATE

void __tsan_atomic_signal_fence(int) {}

}  // extern "C"

#endif
