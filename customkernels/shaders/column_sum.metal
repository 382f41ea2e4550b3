// The sum of the rows of matrices. It is the second stage of a sum over rows. In the first stage each threadgroup sums
// a part of the rows and writes one row of a matrix `partial`.
//
//   sums[m][column] = Σ_row partial[m][row][column]
//
// Partial sums and all additions are float. The result is rounded to T. The order of the sums depends only on the
// launch geometry, so results have the same bits in every run.
//
// Launch:
//
//   parameter       meaning                                     constraint
//   VEC             columns per lane                            a power of two
//   ROWS_PER_STEP   rows that a simdgroup loads at a time       a power of two
//   MAX_SIMDGROUPS  simdgroups per group, at most
//   threads         per group, whose simdgroups share the rows  32·n, or below 32
//   groups along x  have VEC·min(threads, 32) columns each      cover the width
//   groups along y  have one matrix each
//
// Device traffic: every partial sum is read once.

#include "reductions.h"

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
  sum_rows<T, VEC, ROWS_PER_STEP>(
      partial, rows, width, sums + size_t(group.y) * width, scratch, group, threads, lane, simdgroup, simdgroups);
}

// Writes the sums of two matrices to arrays of their own.
template <typename T, int VEC, int ROWS_PER_STEP, int MAX_SIMDGROUPS>
[[kernel]] void column_sum_pair(
    device const float* partial [[buffer(0)]],
    constant uint& rows [[buffer(1)]],
    constant uint& width [[buffer(2)]],
    device T* first [[buffer(3)]],
    device T* second [[buffer(4)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint2 threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float scratch[MAX_SIMDGROUPS * VEC * 32];
  sum_rows<T, VEC, ROWS_PER_STEP>(
      partial, rows, width, group.y == 0 ? first : second, scratch, group, threads, lane, simdgroup, simdgroups);
}
