// The functions that the compiler's instrumentation calls before each access: our
// own definitions of what -fsanitize=thread expects from its runtime.
#ifndef CHECKED_ACCESS_H
#define CHECKED_ACCESS_H

#include "rule.h"
#include "traffic.h"

extern "C" char __executable_start[], _end[];

namespace checked {

[[gnu::noinline]] static void out_of_bounds_at(int32_t index, uintptr_t address, uint32_t size,
                                               bool write, uint32_t pc) {
  finding f = here(out_of_bounds, pc);
  f.slot = index;
  f.size = size;
  f.access = write ? is_write : 0;
  f.address = address;
  if (index >= 0) {
    const slot& s = now.slots[index];
    f.offset = int64_t(address - s.start);
    // The first byte that is outside, of an access that begins inside.
    if (f.offset >= 0 && uint64_t(f.offset) < s.size) f.offset = int64_t(s.size);
  }
  report(f);
}

// An access outside of the arena: to a thread's own memory, to constants, or astray.
[[gnu::noinline]] static void elsewhere(uintptr_t address, uint32_t size, bool write, uint32_t pc) {
  if (!now.running) return;
  if (address >= uintptr_t(__executable_start) && address < uintptr_t(_end)) return;
  out_of_bounds_at(-1, address, size, write, pc);
}

template <bool write, bool atomic>
[[gnu::noinline]] static void access_cells(slot& s, uint64_t offset, uint64_t size, uint32_t pc, uintptr_t address) {
  now.pc = pc;
  if (!s.writers) return;
  const uint64_t mask = (uint64_t(1) << s.shift) - 1;
  if (unlikely((offset | size) & mask)) {
    const uint8_t needed = uint8_t(__builtin_ctzll(offset | size));
    if (needed < s.needed_shift) s.needed_shift = needed;
  }
  uint64_t c = offset >> s.shift;
  const uint64_t last = (offset + size - 1) >> s.shift;
  bool padded = false;
  const uint64_t cells = s.element >> s.shift;
  for (bool first = true;; first = false) {
    if (!write && cells > 1 && (first || c % cells == 0)) padded = may_be_padding(s, c, last);
    if (write) check_write(s, c, atomic, pc, address, uint32_t(size));
    else check_read(s, c, padded, atomic, pc, address, uint32_t(size));
    if (c++ == last) return;
  }
}

// An access in the arena, with all that there may be to do.
template <bool write, bool atomic>
[[gnu::noinline]] static void access_in_full(uintptr_t address, uint64_t size, uint32_t pc) {
  const uint64_t number = (address - now.arena) >> slot_shift;
  slot& s = now.slots[number];
  const uint64_t offset = address - s.start;
  now.pc = pc;
  if (unlikely(offset >= s.size || size > s.size - offset)) {
    if (size > 0)
      out_of_bounds_at(number < now.slot_count ? int32_t(number) : -1, address, uint32_t(size), write, pc);
    return;
  }
  if (now.attention & write_pending) settle();
  if (now.attention & traffic_wanted) count_traffic(s, offset, size, write, pc);
  access_cells<write, atomic>(s, offset, size, pc, address);
}

static inline bool only_reader(record r, uint32_t segment) {
  return r.segment == segment && !(r.pc & more_bit);
}

// The same, with the frequent cases first, and in a few registers: memory of the thread
// itself, inputs, and elements that only this thread has touched since the last barrier.
template <bool write, bool atomic>
[[gnu::always_inline]] static inline void access(uintptr_t address, uint64_t size, uint32_t pc) {
  if (address - now.workspace < mlxg::workspace_size) return;
  const uintptr_t d = address - now.arena;
  if (unlikely(d >= arena_span)) return elsewhere(address, uint32_t(size), write, pc);
  slot& s = now.slots[d >> slot_shift];
  const uint64_t offset = address - s.start;
  const uint64_t unit = uint64_t(1) << s.shift;
  if (unlikely(offset >= s.size || size > s.size - offset || ((offset | size) & (unit - 1)) ||
               (now.attention && (size != unit || !log_access(s, offset, size, write, pc)))))
    return access_in_full<write, atomic>(address, size, pc);
  if (!s.writers) return;
  const uint32_t segment = now.segment;
  if (!atomic && size == unit && segment != 0) {
    record& k = s.writers[offset >> s.shift];
    const record w = k;
    if (write) {
      if ((w.segment == segment || w.segment < s.first_segment) &&
          (!(w.pc & read_bit) || (s.in == device && only_reader(s.readers[offset >> s.shift], segment)))) {
        k = {segment, pc};
        return;
      }
    } else if (w.segment == segment) {
      record& r = s.readers[offset >> s.shift];
      if (!(w.pc & read_bit)) {
        k.pc = w.pc | read_bit;
        r = {segment, pc};
        return;
      }
      if (r.segment == segment) return;
    }
  }
  access_cells<write, atomic>(s, offset, size, pc, address);
}

}  // namespace checked

#define CHECKED_PC uint32_t(reinterpret_cast<uintptr_t>(__builtin_return_address(0)))

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

#define CHECKED_PLAIN(NAME, SIZE)                                                              \
  void __tsan_read##NAME(void* p) { checked::access<false, false>(uintptr_t(p), SIZE, CHECKED_PC); } \
  void __tsan_write##NAME(void* p) { checked::access<true, false>(uintptr_t(p), SIZE, CHECKED_PC); } \
  void __tsan_volatile_read##NAME(void* p) { checked::access<false, false>(uintptr_t(p), SIZE, CHECKED_PC); } \
  void __tsan_volatile_write##NAME(void* p) { checked::access<true, false>(uintptr_t(p), SIZE, CHECKED_PC); } \
  void __tsan_unaligned_volatile_read##NAME(void* p) { checked::access<false, false>(uintptr_t(p), SIZE, CHECKED_PC); } \
  void __tsan_unaligned_volatile_write##NAME(void* p) { checked::access<true, false>(uintptr_t(p), SIZE, CHECKED_PC); } \
  void __tsan_unaligned_read##NAME(void* p) { checked::access<false, false>(uintptr_t(p), SIZE, CHECKED_PC); } \
  void __tsan_unaligned_write##NAME(void* p) { checked::access<true, false>(uintptr_t(p), SIZE, CHECKED_PC); } \
  void __tsan_read_write##NAME(void* p) {                                                      \
    checked::access<false, false>(uintptr_t(p), SIZE, CHECKED_PC);                             \
    checked::access<true, false>(uintptr_t(p), SIZE, CHECKED_PC);                              \
  }                                                                                            \
  void __tsan_unaligned_read_write##NAME(void* p) {                                            \
    checked::access<false, false>(uintptr_t(p), SIZE, CHECKED_PC);                             \
    checked::access<true, false>(uintptr_t(p), SIZE, CHECKED_PC);                              \
  }
CHECKED_PLAIN(1, 1)
CHECKED_PLAIN(2, 2)
CHECKED_PLAIN(4, 4)
CHECKED_PLAIN(8, 8)
CHECKED_PLAIN(16, 16)
#undef CHECKED_PLAIN

void __tsan_read_range(void* p, uintptr_t size) { checked::access<false, false>(uintptr_t(p), size, CHECKED_PC); }
void __tsan_write_range(void* p, uintptr_t size) { checked::access<true, false>(uintptr_t(p), size, CHECKED_PC); }

// ---- copies, which compilers leave to the C library ----

void* __real_memcpy(void*, const void*, size_t);
void* __real_memmove(void*, const void*, size_t);
void* __real_memset(void*, int, size_t);

#define CHECKED_COPY(NAME, REAL)                                        \
  void* NAME(void* to, const void* from, size_t size) {                 \
    if (checked::now.running && size) {                                 \
      checked::access<false, false>(uintptr_t(from), size, CHECKED_PC); \
      checked::access<true, false>(uintptr_t(to), size, CHECKED_PC);    \
    }                                                                   \
    return REAL(to, from, size);                                        \
  }
CHECKED_COPY(__wrap_memcpy, __real_memcpy)
CHECKED_COPY(__wrap_memmove, __real_memmove)
CHECKED_COPY(__tsan_memcpy, __real_memcpy)
CHECKED_COPY(__tsan_memmove, __real_memmove)
#undef CHECKED_COPY
#define CHECKED_SET(NAME)                                                                          \
  void* NAME(void* to, int value, size_t size) {                                                   \
    if (checked::now.running && size) checked::access<true, false>(uintptr_t(to), size, CHECKED_PC); \
    return __real_memset(to, value, size);                                                         \
  }
CHECKED_SET(__wrap_memset)
CHECKED_SET(__tsan_memset)
#undef CHECKED_SET

// ---- atomics ----
//
// Fibers share one processor and give it up only at barriers and SIMD functions, so
// plain operations are atomic.

#define CHECKED_UPDATE(BITS, T, NAME, NEXT)                                           \
  T __tsan_atomic##BITS##_##NAME(volatile T* p, T v, int) {                           \
    checked::access<false, true>(uintptr_t(p), sizeof(T), CHECKED_PC);                \
    checked::access<true, true>(uintptr_t(p), sizeof(T), CHECKED_PC);                 \
    checked::fence_update(uintptr_t(p));                                              \
    const T old = *p;                                                                 \
    *p = NEXT;                                                                        \
    return old;                                                                       \
  }
#define CHECKED_EXCHANGE(BITS, T, NAME)                                               \
  int __tsan_atomic##BITS##_##NAME(volatile T* p, T* expected, T v, int, int) {       \
    checked::access<false, true>(uintptr_t(p), sizeof(T), CHECKED_PC);                \
    const T old = *p;                                                                 \
    if (old == *expected) {                                                           \
      checked::access<true, true>(uintptr_t(p), sizeof(T), CHECKED_PC);               \
      checked::fence_update(uintptr_t(p));                                            \
      *p = v;                                                                         \
      return 1;                                                                       \
    }                                                                                 \
    checked::fence_load(uintptr_t(p));                                                \
    *expected = old;                                                                  \
    return 0;                                                                         \
  }
#define CHECKED_ATOMIC(BITS, T)                                                       \
  T __tsan_atomic##BITS##_load(const volatile T* p, int) {                            \
    checked::access<false, true>(uintptr_t(p), sizeof(T), CHECKED_PC);                \
    checked::fence_load(uintptr_t(p));                                                \
    checked::spin(CHECKED_PC);                                                        \
    return *p;                                                                        \
  }                                                                                   \
  void __tsan_atomic##BITS##_store(volatile T* p, T v, int) {                         \
    checked::access<true, true>(uintptr_t(p), sizeof(T), CHECKED_PC);                 \
    checked::fence_store(uintptr_t(p));                                               \
    *p = v;                                                                           \
  }                                                                                   \
  CHECKED_UPDATE(BITS, T, exchange, v)                                                \
  CHECKED_UPDATE(BITS, T, fetch_add, T(old + v))                                      \
  CHECKED_UPDATE(BITS, T, fetch_sub, T(old - v))                                      \
  CHECKED_UPDATE(BITS, T, fetch_and, T(old & v))                                      \
  CHECKED_UPDATE(BITS, T, fetch_or, T(old | v))                                       \
  CHECKED_UPDATE(BITS, T, fetch_xor, T(old ^ v))                                      \
  CHECKED_UPDATE(BITS, T, fetch_nand, T(~(old & v)))                                  \
  CHECKED_EXCHANGE(BITS, T, compare_exchange_strong)                                  \
  CHECKED_EXCHANGE(BITS, T, compare_exchange_weak)                                    \
  T __tsan_atomic##BITS##_compare_exchange_val(volatile T* p, T expected, T v, int, int) { \
    checked::access<false, true>(uintptr_t(p), sizeof(T), CHECKED_PC);                \
    const T old = *p;                                                                 \
    if (old == expected) {                                                            \
      checked::access<true, true>(uintptr_t(p), sizeof(T), CHECKED_PC);               \
      checked::fence_update(uintptr_t(p));                                            \
      *p = v;                                                                         \
    } else {                                                                          \
      checked::fence_load(uintptr_t(p));                                              \
    }                                                                                 \
    return old;                                                                       \
  }
CHECKED_ATOMIC(8, uint8_t)
CHECKED_ATOMIC(16, uint16_t)
CHECKED_ATOMIC(32, uint32_t)
CHECKED_ATOMIC(64, uint64_t)
#undef CHECKED_ATOMIC
#undef CHECKED_EXCHANGE
#undef CHECKED_UPDATE

void __tsan_atomic_thread_fence(int) { checked::fence_here(); }
void __tsan_atomic_signal_fence(int) {}

}  // extern "C"

#endif
