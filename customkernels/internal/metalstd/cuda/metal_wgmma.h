// The instructions of a warpgroup, four warps, on Hopper GPUs (sm_90a): products of 64 rows whose right-hand operand
// lies in shared memory.
#ifndef METAL_WGMMA_H
#define METAL_WGMMA_H

#include "metal_mma.h"

namespace mlxg {

// begin_products orders the warpgroup's registers before the products that follow.
MLXG_INLINE void begin_products() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

// end_products makes a group of the products since begin_products. They run until wait_for_products.
MLXG_INLINE void end_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// wait_for_products blocks until all groups of products but the last PENDING are in their sums.
template <int PENDING>
MLXG_INLINE void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// read_again makes the compiler take a sum's value from here on, not from the product that it has begun before.
MLXG_INLINE void read_again(float (&f)[4]) {
  asm volatile("" : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3])::"memory");
}

// publish_copies makes the thread's writes to shared memory visible to products, after the next barrier.
MLXG_INLINE void publish_copies() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// A matrix_descriptor tells a product where its right-hand operand lies: rows of 128 bytes, eight rows after each
// other. The 16-byte piece p of row r lies at piece p ^ (r % 8). `start` is in units of 16 bytes.
struct matrix_descriptor {
  unsigned start, kind;  // the two halves of the 64 bits that the instruction reads

  MLXG_INLINE matrix_descriptor after(unsigned bytes) const { return {start + bytes / 16, kind}; }
  MLXG_INLINE unsigned long long bits() const { return (unsigned long long)kind << 32 | start; }
};

// describe returns the descriptor of a matrix at an address that is a multiple of 1024 and the same in all lanes of a
// warp. `apart` is the distance in bytes between its panels of 64 columns, for matrices whose columns are the product's
// columns. The shuffle tells the compiler that the address is uniform: products read descriptors from uniform
// registers, and a value of a lane would be moved there before each one.
MLXG_INLINE matrix_descriptor describe(shared_place at, unsigned apart) {
  return {__shfl_sync(0xffffffffu, (at & 0x3ffffu) >> 4 | apart >> 4 << 16, 0), 64u | 1u << 30};
}

#define MLXG_FRAGMENT(f, i) "+f"(f[i][0]), "+f"(f[i][1]), "+f"(f[i][2]), "+f"(f[i][3])
#define MLXG_FRAGMENTS_4(f, i) \
  MLXG_FRAGMENT(f, i), MLXG_FRAGMENT(f, i + 1), MLXG_FRAGMENT(f, i + 2), MLXG_FRAGMENT(f, i + 3)
#define MLXG_FRAGMENTS_8(f, i) MLXG_FRAGMENTS_4(f, i), MLXG_FRAGMENTS_4(f, i + 4)
#define MLXG_FRAGMENTS_16(f, i) MLXG_FRAGMENTS_8(f, i), MLXG_FRAGMENTS_8(f, i + 8)
#define MLXG_REGISTERS_16 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define MLXG_REGISTERS_32 MLXG_REGISTERS_16 ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define MLXG_REGISTERS_64                                                                    \
  MLXG_REGISTERS_32                                                                          \
  ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53" \
  ",%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define MLXG_PRODUCT(n, type, registers, a0, a1, a2, a3, b, transposed, add, fragments)                             \
  asm volatile("{ .reg .pred p; setp.ne.b32 p, " add ", 0; wgmma.mma_async.sync.aligned.m64n" n "k16.f32." type     \
               "." type " {" registers "}, {" a0 "," a1 "," a2 "," a3 "}, " b ", p, 1, 1, " transposed "; }"        \
               : fragments                                                                                          \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(right.bits()), "n"(int(TRANSPOSED)), "n"(int(ADD)) \
               : "memory")

// multiply_64 starts f = a·b, or += if ADD, with 16 terms and 64 or 128 columns, in fragments of 8 columns. A lane's
// part of a is that of mma with 16 rows. b has a row of terms for each column or, if TRANSPOSED, a row of columns for
// each term.
template <class T, bool TRANSPOSED, bool ADD, int N>
MLXG_INLINE void multiply_64(float (&f)[N][4], const unsigned (&a)[4], matrix_descriptor right) {
  static_assert(N == 8 || N == 16, "a product has 64 or 128 columns");
  constexpr bool is_half = metal::is_same_v<T, metal::half>;
  if constexpr (N == 8 && is_half) {
    MLXG_PRODUCT(
        "64", "f16", MLXG_REGISTERS_32, "%32", "%33", "%34", "%35", "%36", "%37", "%38", MLXG_FRAGMENTS_8(f, 0));
  } else if constexpr (N == 8) {
    MLXG_PRODUCT(
        "64", "bf16", MLXG_REGISTERS_32, "%32", "%33", "%34", "%35", "%36", "%37", "%38", MLXG_FRAGMENTS_8(f, 0));
  } else if constexpr (is_half) {
    MLXG_PRODUCT(
        "128", "f16", MLXG_REGISTERS_64, "%64", "%65", "%66", "%67", "%68", "%69", "%70", MLXG_FRAGMENTS_16(f, 0));
  } else {
    MLXG_PRODUCT(
        "128", "bf16", MLXG_REGISTERS_64, "%64", "%65", "%66", "%67", "%68", "%69", "%70", MLXG_FRAGMENTS_16(f, 0));
  }
}

#define MLXG_STORED_PRODUCT(n, type, registers, a, b, add, fragments)                                           \
  asm volatile("{ .reg .pred p; setp.ne.b32 p, " add ", 0; wgmma.mma_async.sync.aligned.m64n" n "k16.f32." type \
               "." type " {" registers "}, " a ", " b ", p, 1, 1, 0, 0; }"                                      \
               : fragments                                                                                      \
               : "l"(left.bits()), "l"(right.bits()), "n"(int(ADD))                                             \
               : "memory")

// multiply_64 starts f = a·bᵀ, or += if ADD, with a in shared memory too.
template <class T, bool ADD, int N>
MLXG_INLINE void multiply_64(float (&f)[N][4], matrix_descriptor left, matrix_descriptor right) {
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
