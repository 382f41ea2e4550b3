// The wgmma instructions of a warpgroup, four warps, on Hopper GPUs (sm_90a). A product has 64 rows and K = 16. Its
// right-hand operand is in shared memory, its left-hand operand in registers or in shared memory.
#ifndef METAL_WGMMA_H
#define METAL_WGMMA_H

#include "metal_mma.h"

namespace mlxg {

// begin_products orders earlier accesses to the warpgroup's registers before the products that follow.
MLXG_INLINE void begin_products() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

// end_products commits the products since begin_products as one group, which runs asynchronously.
MLXG_INLINE void end_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// wait_for_products blocks until all groups of products but the last PENDING are complete.
template <int PENDING>
MLXG_INLINE void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// read_again marks f as changed. Without it the compiler may use values that it read before the asynchronous product
// was complete.
MLXG_INLINE void read_again(float (&f)[4]) {
  asm volatile("" : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3])::"memory");
}

// publish_copies blocks until the copies of all threads have arrived and wgmma can read them. It reads through the
// async proxy.
MLXG_INLINE void publish_copies() {
  asm volatile("cp.async.wait_all;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
}

// any_in_warpgroup reports whether `value` is true in any thread of the warpgroup. Barrier 0 belongs to __syncthreads.
MLXG_INLINE bool any_in_warpgroup(bool value) {
  unsigned any;
  asm volatile(
      "{\n"
      ".reg .pred own, all;\n"
      "setp.ne.u32 own, %1, 0;\n"
      "barrier.cta.red.or.pred all, %2, 128, own;\n"
      "selp.u32 %0, 1, 0, all;\n"
      "}"
      : "=r"(any)
      : "r"(unsigned(value)), "r"(1 + threadIdx.x / 128)
      : "memory");
  return any != 0;
}

// copy_piece starts to copy 16 bytes from device memory at from + FROM to shared memory at to + TO. If `there` is
// false, it writes zeros and does not read.
template <int TO, int FROM>
MLXG_INLINE void copy_piece(shared_place to, unsigned long long from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0+%3], [%1+%4], 16, %2;" ::"r"(to), "l"(from), "r"(there ? 16 : 0), "n"(TO),
               "n"(FROM)
               : "memory");
}

// store_words writes 16 bytes to device memory.
MLXG_INLINE void store_words(void* to, const unsigned (&words)[4]) {
  asm volatile("st.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(global_address(to)), "r"(words[0]), "r"(words[1]),
               "r"(words[2]), "r"(words[3])
               : "memory");
}

// keep makes the compiler hold a value in a register instead of computing it again at each use.
MLXG_INLINE void keep(unsigned& value) {
  asm("" : "+r"(value));
}

// A matrix_descriptor is wgmma's descriptor of an operand in shared memory, in the layout with the 128-byte swizzle:
// rows of 128 bytes follow each other, and the 16-byte piece p of row r is stored as piece p ^ (r % 8). The lower half
// of `start` is the address and the upper half `apart`, both in units of 16 bytes.
struct matrix_descriptor {
  unsigned start, kind;  // the two halves of the 64 bits that the instruction reads

  MLXG_INLINE matrix_descriptor after(unsigned bytes) const { return {start + bytes / 16, kind}; }
  MLXG_INLINE unsigned long long bits() const { return (unsigned long long)kind << 32 | start; }
};

// describe returns the descriptor of a matrix in shared memory. The address must be a multiple of 1024 and the same in
// all lanes of a warp. For a TRANSPOSED operand, `apart` is the distance in bytes between its parts of 64 columns. For
// others it is 0. The shuffle tells the compiler that the address is uniform. wgmma reads descriptors from uniform
// registers, and without the shuffle the compiler would move the value there before each product.
MLXG_INLINE matrix_descriptor describe(shared_place at, unsigned apart) {
  return {__shfl_sync(0xffffffffu, (at & 0x3ffffu) >> 4 | apart >> 4 << 16, 0), 64u | 1u << 30};
}

#define MLXG_FRAGMENT(f, i) "+f"(f[i][0]), "+f"(f[i][1]), "+f"(f[i][2]), "+f"(f[i][3])
#define MLXG_FRAGMENTS_4(f, i) \
  MLXG_FRAGMENT(f, i), MLXG_FRAGMENT(f, i + 1), MLXG_FRAGMENT(f, i + 2), MLXG_FRAGMENT(f, i + 3)
#define MLXG_FRAGMENTS_8(f, i) MLXG_FRAGMENTS_4(f, i), MLXG_FRAGMENTS_4(f, i + 4)
#define MLXG_FRAGMENTS_9(f, i) MLXG_FRAGMENTS_8(f, i), MLXG_FRAGMENT(f, i + 8)
#define MLXG_FRAGMENTS_10(f, i) MLXG_FRAGMENTS_9(f, i), MLXG_FRAGMENT(f, i + 9)
#define MLXG_FRAGMENTS_12(f, i) MLXG_FRAGMENTS_8(f, i), MLXG_FRAGMENTS_4(f, i + 8)
#define MLXG_FRAGMENTS_16(f, i) MLXG_FRAGMENTS_8(f, i), MLXG_FRAGMENTS_8(f, i + 8)
#define MLXG_FRAGMENTS_24(f, i) MLXG_FRAGMENTS_16(f, i), MLXG_FRAGMENTS_8(f, i + 16)
#define MLXG_REGISTERS_16 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define MLXG_REGISTERS_32 MLXG_REGISTERS_16 ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define MLXG_REGISTERS_36 MLXG_REGISTERS_32 ",%32,%33,%34,%35"
#define MLXG_REGISTERS_40 MLXG_REGISTERS_36 ",%36,%37,%38,%39"
#define MLXG_REGISTERS_48 MLXG_REGISTERS_40 ",%40,%41,%42,%43,%44,%45,%46,%47"
#define MLXG_REGISTERS_64 MLXG_REGISTERS_48 ",%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define MLXG_REGISTERS_80 MLXG_REGISTERS_64 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79"
#define MLXG_REGISTERS_96 MLXG_REGISTERS_80 ",%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define MLXG_PRODUCT(n, type, registers, a0, a1, a2, a3, b, transposed, add, fragments)                             \
  asm volatile("{ .reg .pred p; setp.ne.b32 p, " add ", 0; wgmma.mma_async.sync.aligned.m64n" n "k16.f32." type     \
               "." type " {" registers "}, {" a0 "," a1 "," a2 "," a3 "}, " b ", p, 1, 1, " transposed "; }"        \
               : fragments                                                                                          \
               : "r"(left.words[0]), "r"(left.words[1]), "r"(left.words[2]), "r"(left.words[3]), "l"(right.bits()), \
                 "n"(int(TRANSPOSED)), "n"(int(ADD))                                                                \
               : "memory")

// left_registers is a left-hand operand in registers: each warp holds 16 rows in the layout of mma's left-hand operand.
struct left_registers {
  unsigned words[4];
};

// MLXG_PRODUCTS is the product of 8·n columns. The operands of the instruction follow the 4·n registers of the result.
#define MLXG_PRODUCTS(n, columns, registers, a0, a1, a2, a3, b, transposed, add)                            \
  if constexpr (N == n && is_half) {                                                                        \
    MLXG_PRODUCT(columns, "f16", registers, a0, a1, a2, a3, b, transposed, add, MLXG_FRAGMENTS_##n(f, 0));  \
  } else if constexpr (N == n) {                                                                            \
    MLXG_PRODUCT(columns, "bf16", registers, a0, a1, a2, a3, b, transposed, add, MLXG_FRAGMENTS_##n(f, 0)); \
  }

// multiply_64 starts f = left·right, or f += left·right if ADD, with K = 16, in fragments of 8 columns. right is in
// shared memory, in rows along K (one per column) or, if TRANSPOSED, in rows along the columns (one per k).
template <class T, bool TRANSPOSED, bool ADD, int N>
MLXG_INLINE void multiply_64(float (&f)[N][4], const left_registers& left, matrix_descriptor right) {
  static_assert(
      N == 8 || N == 9 || N == 10 || N == 12 || N == 16 || N == 24, "a product has 64, 72, 80, 96, 128 or 192 columns");
  constexpr bool is_half = metal::is_same_v<T, metal::half>;
  MLXG_PRODUCTS(8, "64", MLXG_REGISTERS_32, "%32", "%33", "%34", "%35", "%36", "%37", "%38")
  MLXG_PRODUCTS(9, "72", MLXG_REGISTERS_36, "%36", "%37", "%38", "%39", "%40", "%41", "%42")
  MLXG_PRODUCTS(10, "80", MLXG_REGISTERS_40, "%40", "%41", "%42", "%43", "%44", "%45", "%46")
  MLXG_PRODUCTS(12, "96", MLXG_REGISTERS_48, "%48", "%49", "%50", "%51", "%52", "%53", "%54")
  MLXG_PRODUCTS(16, "128", MLXG_REGISTERS_64, "%64", "%65", "%66", "%67", "%68", "%69", "%70")
  MLXG_PRODUCTS(24, "192", MLXG_REGISTERS_96, "%96", "%97", "%98", "%99", "%100", "%101", "%102")
}

#define MLXG_STORED_PRODUCT(n, type, registers, a, b, add, fragments)                                           \
  asm volatile("{ .reg .pred p; setp.ne.b32 p, " add ", 0; wgmma.mma_async.sync.aligned.m64n" n "k16.f32." type \
               "." type " {" registers "}, " a ", " b ", p, 1, 1, 0, 0; }"                                      \
               : fragments                                                                                      \
               : "l"(left.bits()), "l"(right.bits()), "n"(int(ADD))                                             \
               : "memory")

// multiply_64 of two operands in shared memory requires rows along K of both, so TRANSPOSED must be false.
template <class T, bool TRANSPOSED, bool ADD, int N>
MLXG_INLINE void multiply_64(float (&f)[N][4], matrix_descriptor left, matrix_descriptor right) {
  static_assert(!TRANSPOSED, "both operands have rows along K");
  static_assert(N == 8 || N == 16, "a product has 64 or 128 columns");
  constexpr bool is_half = metal::is_same_v<T, metal::half>;
  if constexpr (N == 8 && is_half) {
    MLXG_STORED_PRODUCT("64", "f16", MLXG_REGISTERS_32, "%32", "%33", "%34", MLXG_FRAGMENTS_8(f, 0));
  } else if constexpr (N == 8) {
    MLXG_STORED_PRODUCT("64", "bf16", MLXG_REGISTERS_32, "%32", "%33", "%34", MLXG_FRAGMENTS_8(f, 0));
  } else if constexpr (is_half) {
    MLXG_STORED_PRODUCT("128", "f16", MLXG_REGISTERS_64, "%64", "%65", "%66", MLXG_FRAGMENTS_16(f, 0));
  } else {
    MLXG_STORED_PRODUCT("128", "bf16", MLXG_REGISTERS_64, "%64", "%65", "%66", MLXG_FRAGMENTS_16(f, 0));
  }
}

}  // namespace mlxg

#endif
