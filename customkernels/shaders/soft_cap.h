// The derivative of a soft cap c·tanh(x/c).

#include <metal_stdlib>
using namespace metal;

// tanh_slope returns sech²(u), the derivative of tanh(u), within a few units in the last place for every u. The form
// 1 − tanh² would cancel where |tanh| is near 1.
inline float tanh_slope(float u) {
  const float e = exp(-2 * abs(u));
  const float sum = 1 + e;
  return 4 * e / (sum * sum);
}
