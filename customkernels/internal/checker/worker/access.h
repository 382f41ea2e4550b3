// The functions that instrumented code calls before each access. They replace the runtime of -fsanitize=thread.
#ifndef CHECKER_ACCESS_H
#define CHECKER_ACCESS_H

#include "rule.h"
#include "traffic.h"

// The linker places the sections of the shader before the worker's, which begin at these labels.
extern "C" char __executable_start[], __bss_start[], _end[], checker_text[], checker_data[], checker_bss[];
extern "C" [[gnu::weak]] char __data_start[];
asm(".pushsection .text\nchecker_text:\n.popsection\n"
    ".pushsection .data\nchecker_data:\n.popsection\n"
    ".pushsection .bss\nchecker_bss:\n.popsection");

namespace checker {

CHECKER_RARE void out_of_bounds_at(int32_t index, uintptr_t address, uint32_t size, bool write, uint32_t pc) {
  finding f = here(out_of_bounds, pc);
  f.slot = index;
  f.size = size;
  f.access = write ? is_write : 0;
  f.address = address;
  if (index >= 0) {
    const slot& s = now.slots[index];
    f.offset = int64_t(address - s.start);
    // The access begins inside. Report the first byte outside.
    if (f.offset >= 0 && uint64_t(f.offset) < s.size) {
      f.offset = int64_t(s.size);
    }
  }
  report(f);
}

[[noreturn]] static void give_up(uint32_t status);

static bool within(uintptr_t address, const char* begin, const char* end) {
  return address >= uintptr_t(begin) && address < uintptr_t(end);
}

// An access outside of the arena: to constants and static variables of the shader, or out of bounds of any variable. A
// write out of bounds may change the worker's own data, so it ends the run.
CHECKER_RARE void outside_arena(uintptr_t address, uint32_t size, bool write, uint32_t pc) {
  if (!now.running) {
    return;
  }
  if (write ? within(address, __data_start, checker_data) || within(address, __bss_start, checker_bss)
            : within(address, __executable_start, _end)) {
    return;
  }
  out_of_bounds_at(-1, address, size, write, pc);
  if (write) {
    give_up(crashed);
  }
}

// Reports a write to an input, which has no shadow records.
CHECKER_RARE void input_written(const slot& s, uint64_t offset, uint64_t size, uint32_t pc) {
  finding f = here(write_to_input, pc);
  f.slot = int32_t(&s - now.slots);
  f.offset = int64_t(offset);
  f.size = uint32_t(size);
  f.access = is_write;
  report(f);
}

// A plain access of one cell that other threads may have accessed.
template <bool write>
CHECKER_RARE void shared_cell(slot& s, uint64_t c, uint32_t pc) {
  now.pc = pc;
  if (write) {
    check_write(s, c, false, pc, s.start + (c << s.shift), s.unit);
  } else if (!enough_readers(s, c)) {
    check_read(s, c, c, c, false, pc, s.start + (c << s.shift), s.unit);
  }
}

template <bool write, bool atomic>
CHECKER_FAST void access_cells(slot& s, uint64_t offset, uint64_t size, uint32_t pc, uintptr_t address) {
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

// The slow path: an access of any size, with traffic and pending writes.
template <bool write, bool atomic>
CHECKER_FAST void access(uintptr_t address, uint64_t size, uint32_t pc) {
  const slot& stacks = now.slots[max_slots];
  if (address - stacks.start < stacks.free) {
    return;
  }
  const uintptr_t d = address - now.arena;
  if (unlikely(d >= arena_span)) {
    return outside_arena(address, uint32_t(size), write, pc);
  }
  slot& s = now.slots[d >> slot_shift];
  const uint64_t offset = address - s.start;
  now.pc = pc;
  if (now.attention & trace_wanted) {
    trace(address, pc);
  }
  if (unlikely(offset >= s.size || size > s.size - offset)) {
    const int32_t number = int32_t(&s - now.slots);
    if (size > 0) {
      out_of_bounds_at(uint32_t(number) < now.slot_count ? number : -1, address, uint32_t(size), write, pc);
    }
    return;
  }
  if (unlikely(now.attention & write_pending)) {
    resolve_pending_write();
  }
  if (now.attention & traffic_wanted) {
    count_traffic(s, offset, size, write, pc);
  }
  if (s.writers) {
    access_cells<write, atomic>(s, offset, size, pc, address);
  } else if (write) {
    input_written(s, offset, size, pc);
  }
}

template <bool write, bool atomic>
CHECKER_RARE void access_in_full(uintptr_t address, uint64_t size, uint32_t pc) {
  access<write, atomic>(address, size, pc);
}

// The cell at an offset, or a number beyond all cells if no cell of this size begins there.
template <uint64_t size>
static inline uint64_t cell_at(uint64_t offset) {
  constexpr unsigned shift = __builtin_ctzll(size);
  return shift == 0 ? offset : offset >> shift | offset << (64 - shift) % 64;
}

// The plain accesses that the frequent path does not handle. The common case among them counts the traffic of one cell.
template <bool write, uint64_t size>
CHECKER_RARE void infrequent(uintptr_t address, uint32_t pc) {
  slot& s = now.slots[address >> slot_shift & max_slots];
  const uint64_t offset = address - s.start, c = cell_at<size>(offset);
  if (c < s.cells && size == uint64_t(1) << s.shift && now.attention == traffic_wanted && (s.writers || !write) &&
      log_cell(s, c, size, write, pc)) {
    if (s.writers && !own_cell<write>(s, c, pc)) {
      shared_cell<write>(s, c, pc);
    }
    return;
  }
  access_in_full<write, false>(address, size, pc);
}

// The frequent path: a plain access of a fixed size. The frequent cases come first and use few registers: the thread's
// own memory, inputs, and cells that only this thread has accessed since the last barrier.
template <bool write, uint64_t size>
CHECKER_FAST void plain(void* p, uint32_t pc) {
  const uintptr_t address = uintptr_t(p);
  slot& s = now.front[address >> slot_shift & max_slots];
  const uint64_t offset = address - s.start, c = cell_at<size>(offset);
  if (likely(offset < (write ? s.free_writes : s.free))) {
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
#define CHECKER_OF_SHADER (reinterpret_cast<uintptr_t>(__builtin_return_address(0)) < uintptr_t(checker_text))

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

#define CHECKER_PLAIN(NAME, SIZE)                       \
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
CHECKER_PLAIN(1, 1)
CHECKER_PLAIN(2, 2)
CHECKER_PLAIN(4, 4)
CHECKER_PLAIN(8, 8)
CHECKER_PLAIN(16, 16)
#undef CHECKER_PLAIN

void __tsan_read_range(void* p, uintptr_t size) {
  checker::access<false, false>(uintptr_t(p), size, CHECKER_PC);
}
void __tsan_write_range(void* p, uintptr_t size) {
  checker::access<true, false>(uintptr_t(p), size, CHECKER_PC);
}

// ---- copies, for which compilers call the C library ----
//
// The worker's own copies are not checked.

void* __real_memcpy(void*, const void*, size_t);
void* __real_memmove(void*, const void*, size_t);
void* __real_memset(void*, int, size_t);

#define CHECKER_COPY(NAME, REAL)                                        \
  void* NAME(void* to, const void* from, size_t size) {                 \
    if (checker::now.running && size && CHECKER_OF_SHADER) {            \
      checker::access<false, false>(uintptr_t(from), size, CHECKER_PC); \
      checker::access<true, false>(uintptr_t(to), size, CHECKER_PC);    \
    }                                                                   \
    return REAL(to, from, size);                                        \
  }
CHECKER_COPY(__wrap_memcpy, __real_memcpy)
CHECKER_COPY(__wrap_memmove, __real_memmove)
CHECKER_COPY(__tsan_memcpy, __real_memcpy)
CHECKER_COPY(__tsan_memmove, __real_memmove)
#undef CHECKER_COPY
#define CHECKER_SET(NAME)                                            \
  void* NAME(void* to, int value, size_t size) {                     \
    if (checker::now.running && size && CHECKER_OF_SHADER)           \
      checker::access<true, false>(uintptr_t(to), size, CHECKER_PC); \
    return __real_memset(to, value, size);                           \
  }
CHECKER_SET(__wrap_memset)
CHECKER_SET(__tsan_memset)
#undef CHECKER_SET

// ---- atomics ----
//
// Fibers share one OS thread. They switch only at barriers, in SIMD-group functions, and in access, which waits if a
// traffic log is full. None of these is between the load and the store of an update, so plain operations are atomic.

#define CHECKER_UPDATE(BITS, T, NAME, NEXT)                            \
  T __tsan_atomic##BITS##_##NAME(volatile T* p, T v, int) {            \
    checker::access<false, true>(uintptr_t(p), sizeof(T), CHECKER_PC); \
    checker::access<true, true>(uintptr_t(p), sizeof(T), CHECKER_PC);  \
    checker::fence_update(uintptr_t(p));                               \
    const T old = *p;                                                  \
    *p = NEXT;                                                         \
    return old;                                                        \
  }
#define CHECKER_EXCHANGE(BITS, T, NAME)                                         \
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
#define CHECKER_ATOMIC(BITS, T)                                                            \
  T __tsan_atomic##BITS##_load(const volatile T* p, int) {                                 \
    checker::access<false, true>(uintptr_t(p), sizeof(T), CHECKER_PC);                     \
    checker::fence_load(uintptr_t(p));                                                     \
    checker::spin(uintptr_t(p), CHECKER_PC);                                               \
    return *p;                                                                             \
  }                                                                                        \
  void __tsan_atomic##BITS##_store(volatile T* p, T v, int) {                              \
    checker::access<true, true>(uintptr_t(p), sizeof(T), CHECKER_PC);                      \
    checker::fence_store(uintptr_t(p));                                                    \
    *p = v;                                                                                \
  }                                                                                        \
  CHECKER_UPDATE(BITS, T, exchange, v)                                                     \
  CHECKER_UPDATE(BITS, T, fetch_add, T(old + v))                                           \
  CHECKER_UPDATE(BITS, T, fetch_sub, T(old - v))                                           \
  CHECKER_UPDATE(BITS, T, fetch_and, T(old& v))                                            \
  CHECKER_UPDATE(BITS, T, fetch_or, T(old | v))                                            \
  CHECKER_UPDATE(BITS, T, fetch_xor, T(old ^ v))                                           \
  CHECKER_UPDATE(BITS, T, fetch_nand, T(~(old & v)))                                       \
  CHECKER_EXCHANGE(BITS, T, compare_exchange_strong)                                       \
  CHECKER_EXCHANGE(BITS, T, compare_exchange_weak)                                         \
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
CHECKER_ATOMIC(8, uint8_t)
CHECKER_ATOMIC(16, uint16_t)
CHECKER_ATOMIC(32, uint32_t)
CHECKER_ATOMIC(64, uint64_t)
#undef CHECKER_ATOMIC
#undef CHECKER_EXCHANGE
#undef CHECKER_UPDATE

void __tsan_atomic_signal_fence(int) {}

}  // extern "C"

#endif
