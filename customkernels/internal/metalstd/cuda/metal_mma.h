// The PTX instructions of metal_tiles.h: products of a warp, loads of their operands, and asynchronous copies.
//
// A lane holds the columns 2·(lane % 4) and 2·(lane % 4) + 1 of the rows lane / 4 and lane / 4 + 8 of a result. In the
// left-hand operand it holds these positions in each group of 8 columns, and in the right-hand operand these positions
// of the transpose (PTX ISA, "Matrix fragments for mma").
#ifndef METAL_MMA_H
#define METAL_MMA_H

#include "metal_simd.h"

namespace mlxg {

// packed_pair rounds two floats to T and packs them into a word, the first in the lower half.
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

// multiply_16 computes c += a·b by mma.m16n8k16 for the 16-bit type T.
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

// multiply_8 computes c += a·b by mma.m16n8k8 for the 16-bit type T.
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

// multiply_tf32 computes c += a·b by mma.m16n8k8 for TF32.
MLXG_INLINE void multiply_tf32(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Shaders copy to threadgroup memory with copy_ahead, and use make_anew.
#define MLXG_COPIES_AHEAD 1

// A shared_place is an address in shared memory.
using shared_place = unsigned;
MLXG_INLINE shared_place shared_address(const void* p) {
  unsigned long long address;
  asm("cvta.to.shared.u64 %0, %1;" : "=l"(address) : "l"(p));
  return unsigned(address);
}

// load_shared and store_shared access an element of 16 or 32 bits.
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

// load_floats loads two or four neighboring floats, aligned to their size.
MLXG_INLINE void load_floats(float (&to)[2], shared_place at) {
  asm volatile("ld.shared.v2.f32 {%0,%1}, [%2];" : "=f"(to[0]), "=f"(to[1]) : "r"(at) : "memory");
}
MLXG_INLINE void load_floats(float (&to)[4], shared_place at) {
  asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];"
               : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3])
               : "r"(at)
               : "memory");
}

// load_matrices loads four or two matrices of 8 rows of 16 bytes from shared memory. Eight lanes give the addresses of
// the rows of a matrix. A lane gets 4 bytes of row lane / 4 of each matrix or, if TRANSPOSED, of column lane / 4.
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

// global_address returns an address in device memory in the form that instructions for global memory take.
MLXG_INLINE unsigned long long global_address(const void* p) {
  unsigned long long address;
  asm("cvta.to.global.u64 %0, %1;" : "=l"(address) : "l"(p));
  return address;
}

// copy_ahead starts to copy BYTES (16, 8 or 4) from device memory to shared memory. If `there` is false, it writes
// zeros and does not read.
template <int BYTES>
MLXG_INLINE void copy_ahead(shared_place at, const void* from, bool there) {
  const unsigned long long address = global_address(from);
  const int bytes = there ? BYTES : 0;
  if constexpr (BYTES == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(address), "r"(bytes) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(at), "l"(address), "r"(bytes), "n"(BYTES)
                 : "memory");
  }
}

// wait_for_own_copies blocks until the copies of this thread have arrived.
MLXG_INLINE void wait_for_own_copies() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}

// end_own_copies makes a group of this thread's copies since the previous call.
MLXG_INLINE void end_own_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// wait_for_own_copies<LATER> blocks until the copies of this thread have arrived, except its last LATER groups.
template <int LATER>
MLXG_INLINE void wait_for_own_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(LATER) : "memory");
}

// wait_for_copies blocks until the copies of all threads of the threadgroup have arrived.
MLXG_INLINE void wait_for_copies() {
  wait_for_own_copies();
  __syncthreads();
}

// make_anew hides from the compiler how a value was computed. The compiler then computes values derived from it again
// instead of keeping them in registers.
MLXG_INLINE void make_anew(unsigned& value) {
  asm volatile("" : "+r"(value));
}

}  // namespace mlxg

#endif
