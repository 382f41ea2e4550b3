// The greatest float of each class by compare and exchange on its bits.
//
//   y[c] = max { x[i] : class[i] = c }
//
// Metal has no atomic maximum of floats. A thread repeats the exchange until the stored value is not smaller, or the
// exchange succeeds. The result does not depend on the order.
//
// Launch: one thread per element. The output holds the bits of floats and begins with 0, the bits of +0. Values must
// be at least 0.

#include <metal_stdlib>
using namespace metal;

inline void atomic_max_float(device atomic_uint* at, float value) {
  uint there = atomic_load_explicit(at, memory_order_relaxed);
  while (as_type<float>(there) < value) {
    if (atomic_compare_exchange_weak_explicit(
            at, &there, as_type<uint>(value), memory_order_relaxed, memory_order_relaxed)) {
      break;
    }
  }
}

template <typename T>
kernel void atomic_max_by_class(
    device const T* x [[buffer(0)]],
    device const uint* class_of [[buffer(1)]],
    device atomic_uint* y [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  atomic_max_float(&y[class_of[i]], float(x[i]));
}
