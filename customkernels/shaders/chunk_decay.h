// Sums of the logarithms of decays within a chunk of consecutive steps.
//
// Let a_t be the logarithm of the decay of step t, and b_t the sum of a from the first step of the chunk to step t. The
// decay from step j to step t is exp(b_t − b_j). A float b of large magnitude would lose the last bits of the
// difference, so a DecaySum holds b as the sum of two floats.

// LEAST_LOG_DECAY replaces smaller logarithms, and −∞ for a decay of 0. Its exponential is 0 in float, and differences
// of sums are never NaN.
constant constexpr float LEAST_LOG_DECAY = -128;

struct DecaySum {
  float high, low;  // |low| is at most half of the last bit of high, except for rounding

  // add adds a term. The rounding error of high goes to low (Knuth, "The Art of Computer Programming", vol. 2, 4.2.2).
  void add(float term) {
    const float sum = high + term;
    const float added = sum - high;
    low += (high - (sum - added)) + (term - added);
    high = sum;
  }

  // add_sum adds another sum.
  void add_sum(DecaySum other) {
    add(other.high);
    low += other.low;
  }

  // add_product adds a product, rounded by fma so that a compiler does not fuse it with the additions.
  void add_product(float a, float b) { add(fma(a, b, 0.0f)); }

  // add_log_decay adds the logarithm of a decay. NaN stays NaN.
  void add_log_decay(float log_decay) { add(log_decay < LEAST_LOG_DECAY ? LEAST_LOG_DECAY : log_decay); }

  // total returns the sum in one float.
  float total() const { return high + low; }

  // since returns the decay from an earlier step of the chunk to this step.
  float since(DecaySum earlier) const { return exp((high - earlier.high) + (low - earlier.low)); }
};
