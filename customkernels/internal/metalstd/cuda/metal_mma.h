// The instructions of an NVIDIA GPU that metal_tiles.h is made of: products of a simdgroup,
// loads of their operands, and copies that a thread does not wait for.
//
// Of a product's result a lane has columns 2·(lane % 4) and the next, of row lane / 4 and of
// the row eight below; of the left operand the same places in 8 columns each; of the right
// one the same places of its transpose (PTX ISA, "Matrix fragments for mma").
#ifndef METAL_MMA_H
#define METAL_MMA_H

#include "metal_simd.h"

namespace mlxg {

// Two floats as neighbours of 16 bits.
template <class T>
MLXG_INLINE unsigned packed_pair(float first, float second) {
  unsigned pair;
  if constexpr (metal::is_same_v<T, metal::half>) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  } else {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  }
  return pair;
}

// c += a·b, with 16 terms of elements of 16 bits.
template <class T>
MLXG_INLINE void multiply_16(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  if constexpr (metal::is_same_v<T, metal::half>) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}

// The same with 8 terms.
template <class T>
MLXG_INLINE void multiply_8(float (&c)[4], const unsigned (&a)[2], unsigned b) {
  if constexpr (metal::is_same_v<T, metal::half>) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(b));
  } else {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(b));
  }
}

// The same with 8 terms of TF32.
MLXG_INLINE void multiply_tf32(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// A place in shared memory.
using shared_place = unsigned;
MLXG_INLINE shared_place shared_address(const void* p) {
  unsigned long long address;
  asm("cvta.to.shared.u64 %0, %1;" : "=l"(address) : "l"(p));
  return unsigned(address);
}

// An element there, of 16 or 32 bits.
template <class T>
MLXG_INLINE T load_shared(shared_place at) {
  if constexpr (sizeof(T) == 2) {
    unsigned short bits;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(bits) : "r"(at) : "memory");
    return __builtin_bit_cast(T, bits);
  } else {
    unsigned bits;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(bits) : "r"(at) : "memory");
    return __builtin_bit_cast(T, bits);
  }
}
template <class T>
MLXG_INLINE void store_shared(shared_place at, T value) {
  if constexpr (sizeof(T) == 2) {
    asm volatile("st.shared.u16 [%0], %1;" ::"r"(at), "h"(__builtin_bit_cast(unsigned short, value)) : "memory");
  } else {
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(__builtin_bit_cast(unsigned, value)) : "memory");
  }
}

// Loads four or two matrices of 8 rows of 16 bytes from shared memory, the rows' addresses from the
// lanes: 8 lanes for a matrix. A lane gets 4 bytes of row lane / 4 of each; TRANSPOSED: of its
// columns.
template <bool TRANSPOSED>
MLXG_INLINE void load_matrices(unsigned (&r)[4], shared_place at) {
  if constexpr (TRANSPOSED) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
  }
}
template <bool TRANSPOSED>
MLXG_INLINE void load_matrices(unsigned (&r)[2], shared_place at) {
  if constexpr (TRANSPOSED) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(at)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(at)
                 : "memory");
  }
}

// Begins to copy BYTES, 16, 8 or 4, from device memory to shared memory; zeros if it is not there.
template <int BYTES>
MLXG_INLINE void copy_ahead(shared_place at, const void* from, bool there) {
  unsigned long long address;
  asm("cvta.to.global.u64 %0, %1;" : "=l"(address) : "l"(from));
  const int bytes = there ? BYTES : 0;
  if constexpr (BYTES == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(address), "r"(bytes) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(at), "l"(address), "r"(bytes), "n"(BYTES)
                 : "memory");
  }
}

// Where all threads of the threadgroup are, and the copies of each have arrived.
MLXG_INLINE void wait_for_copies() {
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
}

// Lets the compiler not know a value that it would else keep for later.
MLXG_INLINE void make_anew(unsigned& value) {
  asm volatile("" : "+r"(value));
}

}  // namespace mlxg

#endif
