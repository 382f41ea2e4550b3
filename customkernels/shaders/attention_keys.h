// The terms of one panel of queries in the gradients of keys and values. attention.h has the formulas.

#include "attention.h"

// PanelUses::AHEAD is IN_FLIGHT for the kernels of gradients whose panels have a third buffer: those of a warpgroup for
// heads of 64 columns. Wider panels leave no memory for it, a mask and a cap no registers. warpgroupGeometry in
// ops/attention_geometry.go has the same rule.
template <typename T, bool CAPPED, bool MASKED, int LANES, int HEAD_DIM, int VALUE_DIM>
struct PanelUses {
  static constexpr constant bool IS_NARROW = HEAD_DIM == 64 && VALUE_DIM == 64;
  static constexpr constant int AHEAD = LANES > 32 && sizeof(T) == 2 && !CAPPED && !MASKED && IS_NARROW ? IN_FLIGHT : 0;
};

// add_key_gradients adds the terms of the queries of the current panel to the gradients of the simdgroup's keys and
// values, and computes ds. TOGETHER overlaps the asynchronous products of s and dp, AHEAD those of dp and dv.
template <bool CAPPED, bool TOGETHER, typename BLOCK, typename KEYS, typename VALUES>
inline void add_key_gradients(
    thread BLOCK& block,
    int query,
    thread KEYS& keys,
    thread VALUES& values,
    thread typename BLOCK::Scores& ds,
    thread typename BLOCK::HeadTile& dk_sum,
    thread typename BLOCK::ValueTile& dv_sum,
    threadgroup Vec<float, 2>* partial_memory) {
  typename BLOCK::Scores s, products;
  multiply_transposed(s, keys, block.heads, block.lane);
  if (TOGETHER) {
    multiply_transposed(ds, values, block.values, block.lane);
  }
  block.template complete<TOGETHER ? 1 : 0, true>(s, partial_memory);
  block.probabilities(s, products);
  block.hide(s, 0, query);
  if (!TOGETHER) {
    multiply_transposed(ds, values, block.values, block.lane);
  }
  if (BLOCK::AHEAD) {
    multiply_add(dv_sum, s, block.values, block.lane);
  }
  block.template complete<BLOCK::AHEAD ? 1 : 0, false>(ds, partial_memory);
  block.mask_gradients(ds, s);
  uncap<CAPPED>(ds, products, block.scoring);
  if (!BLOCK::AHEAD) {
    multiply_add(dv_sum, s, block.values, block.lane);
  }
  multiply_add(dk_sum, ds, block.heads, block.lane);
  block.fetch_next(query);
  finish<1>(dv_sum);
  finish<0>(dk_sum);
}
