// Counter-based random numbers: Philox 4×32 with 10 rounds (Salmon et al., 2011).
//
//   y[i] = philox((i, 0, 0, 0), key)
//
// A round multiplies two of the four words by constants to 64 bits, mixes halves and keys, and permutes the words.
//
// Launch: one thread per four words.

#include <metal_stdlib>
using namespace metal;

inline uint4 philox(uint4 counter, uint2 key) {
  for (int round = 0; round < 10; round++) {
    const uint high0 = mulhi(0xD2511F53u, counter.x);
    const uint low0 = 0xD2511F53u * counter.x;
    const uint high1 = mulhi(0xCD9E8D57u, counter.z);
    const uint low1 = 0xCD9E8D57u * counter.z;
    counter = uint4(high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0);
    key += uint2(0x9E3779B9u, 0xBB67AE85u);
  }
  return counter;
}

kernel void philox_words(
    constant uint& seed_low [[buffer(0)]],
    constant uint& seed_high [[buffer(1)]],
    device uint4* y [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  y[i] = philox(uint4(i, 0, 0, 0), uint2(seed_low, seed_high));
}
