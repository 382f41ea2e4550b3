// The sum of the rows of matrices, in an order that the launch decides: the second stage of
// gradients that threadgroups add up for their own share of rows first.
//
//   sums[m][column] = Σ_row partial[m][row][column]
//
// The partial sums are float, and so is every addition; the result is rounded to T.
//
// Launch (threads): groups along x for VEC columns a lane, 32 lanes wide at most, of at
// most MAX_SIMDGROUPS simdgroups, which share the rows and take ROWS_PER_STEP, a power of two, at a time; along y one
// group for each of the matrices.
//
// Device traffic: every partial sum is read once.

#include "rows.h"

template <typename T, int VEC, int ROWS_PER_STEP, int MAX_SIMDGROUPS>
[[kernel]] void column_sum(
    device const float* partial [[buffer(0)]],
    constant uint& rows [[buffer(1)]],
    constant uint& width [[buffer(2)]],
    device T* sums [[buffer(3)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint2 threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float scratch[MAX_SIMDGROUPS * VEC * 32];
  sum_rows<T, VEC, ROWS_PER_STEP>(partial, rows, width, sums, scratch, group, threads, lane, simdgroup, simdgroups);
}
