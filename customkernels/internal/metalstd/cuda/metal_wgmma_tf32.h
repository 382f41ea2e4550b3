// The wgmma instructions for TF32. A product has 64 rows and K = 8. Operands are floats, of which the instruction
// ignores the last 13 bits. Operands in shared memory have rows along K.
#ifndef METAL_WGMMA_TF32_H
#define METAL_WGMMA_TF32_H

#include "metal_wgmma.h"

namespace mlxg {

// publish_stores blocks until wgmma can read what the threads of the threadgroup have stored in shared memory. Copies
// that are under way may continue.
MLXG_INLINE void publish_stores() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
}

// load_quad and store_quad access four words in shared memory, at a multiple of 16 bytes.
MLXG_INLINE void load_quad(unsigned (&words)[4], shared_place at) {
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(at)
               : "memory");
}
MLXG_INLINE void store_quad(shared_place at, const unsigned (&words)[4]) {
  asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(at), "r"(words[0]), "r"(words[1]), "r"(words[2]),
               "r"(words[3])
               : "memory");
}

#define MLXG_TF32_PRODUCT(n, registers, a0, a1, a2, a3, b, add, fragments)                                          \
  asm volatile("{ .reg .pred p; setp.ne.b32 p, " add ", 0; wgmma.mma_async.sync.aligned.m64n" n                     \
               "k8.f32.tf32.tf32"                                                                                   \
               " {" registers "}, {" a0 "," a1 "," a2 "," a3 "}, " b ", p, 1, 1; }"                                 \
               : fragments                                                                                          \
               : "r"(left.words[0]), "r"(left.words[1]), "r"(left.words[2]), "r"(left.words[3]), "l"(right.bits()), \
                 "n"(int(ADD))                                                                                      \
               : "memory")

#define MLXG_STORED_TF32_PRODUCT(n, registers, a, b, add, fragments)                            \
  asm volatile("{ .reg .pred p; setp.ne.b32 p, " add ", 0; wgmma.mma_async.sync.aligned.m64n" n \
               "k8.f32.tf32.tf32"                                                               \
               " {" registers "}, " a ", " b ", p, 1, 1; }"                                     \
               : fragments                                                                      \
               : "l"(left.bits()), "l"(right.bits()), "n"(int(ADD))                             \
               : "memory")

// multiply_64_tf32 starts f = left·rightᵀ, or f += left·rightᵀ if ADD, with K = 8 and 32, 64 or 128 columns, in
// fragments of 8 columns. A warp's registers have the layout of the left-hand operand of multiply_tf32.
template <bool ADD, int N>
MLXG_INLINE void multiply_64_tf32(float (&f)[N][4], const left_registers& left, matrix_descriptor right) {
  static_assert(N == 4 || N == 8 || N == 16, "a product has 32, 64 or 128 columns");
  if constexpr (N == 4) {
    MLXG_TF32_PRODUCT("32", MLXG_REGISTERS_16, "%16", "%17", "%18", "%19", "%20", "%21", MLXG_FRAGMENTS_4(f, 0));
  } else if constexpr (N == 8) {
    MLXG_TF32_PRODUCT("64", MLXG_REGISTERS_32, "%32", "%33", "%34", "%35", "%36", "%37", MLXG_FRAGMENTS_8(f, 0));
  } else {
    MLXG_TF32_PRODUCT("128", MLXG_REGISTERS_64, "%64", "%65", "%66", "%67", "%68", "%69", MLXG_FRAGMENTS_16(f, 0));
  }
}

template <bool ADD, int N>
MLXG_INLINE void multiply_64_tf32(float (&f)[N][4], matrix_descriptor left, matrix_descriptor right) {
  static_assert(N == 4 || N == 8 || N == 16, "a product has 32, 64 or 128 columns");
  if constexpr (N == 4) {
    MLXG_STORED_TF32_PRODUCT("32", MLXG_REGISTERS_16, "%16", "%17", "%18", MLXG_FRAGMENTS_4(f, 0));
  } else if constexpr (N == 8) {
    MLXG_STORED_TF32_PRODUCT("64", MLXG_REGISTERS_32, "%32", "%33", "%34", MLXG_FRAGMENTS_8(f, 0));
  } else {
    MLXG_STORED_TF32_PRODUCT("128", MLXG_REGISTERS_64, "%64", "%65", "%66", MLXG_FRAGMENTS_16(f, 0));
  }
}

}  // namespace mlxg

#endif
