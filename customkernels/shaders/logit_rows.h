// Rows of logits from which a threadgroup computes sums first and the gradient then.
//
// A thread holds its last block of a row in registers from the sums to the gradient. Threadgroup memory may hold the
// first blocks (StagedBlocks). Blocks in between are loaded twice.

#include "cross_entropy.h"

// A thread's vectors of the first blocks of a row in threadgroup memory. When the thread has used a vector, it copies
// the vector of its next row there, so that the device's memory is busy while the threads of the group synchronize.
// Step is a block of VECS_PER_STEP vectors.
template <typename Step, typename Words, int VECS_PER_THREAD, int VECS_PER_STEP>
struct StagedBlocks {
  threadgroup Words* own;  // vector v of block b is own[(b * VECS_PER_THREAD + v) * threads]
  uint threads;
  uint count;  // of blocks

  // Returns the place of the step that begins with vector v of block b.
  threadgroup Words* place(uint b, int v) const { return own + (b * VECS_PER_THREAD + v) * threads; }

  // Begins to copy the vectors of a step.
  template <typename T>
  void copy_step(threadgroup Words* to, device const T* from) const {
    for (int v = 0; v < VECS_PER_STEP; v++) {
      copy_vec_ahead(to + v * threads, from + v * Step::VEC_STRIDE);
    }
  }

  // Begins to copy the blocks of a row.
  template <typename T>
  void copy(device const T* row, BlockColumns columns) const {
    for (uint b = 0; b < count; b++) {
      for (int v = 0; v < VECS_PER_THREAD; v += VECS_PER_STEP) {
        copy_step(place(b, v), row + (columns.first + b * columns.stride + v * Step::VEC_STRIDE));
      }
    }
  }

  // Returns the vectors of a step.
  Step step(threadgroup const Words* from) const {
    Step vecs;
    for (int v = 0; v < VECS_PER_STEP; v++) {
      vecs.held.vecs[v] = from[v * threads];
    }
    return vecs;
  }

  // Adds the blocks of a row to the sums of the thread.
  template <typename T>
  void add_to(thread RowSums& sums, device const T* row, LossOptions options) const {
    wait_for_copies_ahead();
    for (uint b = 0; b < count; b++) {
      for (int v = 0; v < VECS_PER_THREAD; v += VECS_PER_STEP) {
        const Step vecs = step(place(b, v));
        vecs.add_to(sums, row, VECS_PER_STEP * Step::VEC_STRIDE, options);
      }
    }
  }

  // Writes dx of the blocks of the row x. Begins to copy the blocks of the row `next`, unless it is null.
  template <typename T>
  void write_gradient(
      RowGradient gradient,
      device const T* x,
      device T* dx,
      device const T* next,
      BlockColumns columns,
      LossOptions options) const {
    for (uint b = 0; b < count; b++) {
      for (int v = 0; v < VECS_PER_THREAD; v += VECS_PER_STEP) {
        const size_t begin = columns.first + b * columns.stride + v * Step::VEC_STRIDE;
        const Step vecs = step(place(b, v));
        vecs.write_gradient(gradient, x, dx, begin, 0, true, options);
        if (next != nullptr) {
          copy_step(place(b, v), next + begin);
        }
      }
    }
  }
};

// One thread's access to rows of logits x and their gradient dx, which may be in the same memory. Without EXISTS there
// are no columns.
template <typename T, typename Block, typename Staged, bool EXISTS>
struct LogitRows {
  device const T* x;
  device T* dx;
  LossOptions options;
  BlockColumns columns;  // of all blocks
  BlockColumns loaded;   // of the blocks that are not staged
  bool is_aligned;
  Staged staged;

  device const T* x_row(uint row) const { return x + size_t(row) * options.width; }

  // Begins to copy the staged blocks of a row, if it is below `rows`.
  void stage(uint row, uint rows) const {
    if (EXISTS && row < rows) {
      staged.copy(x_row(row), columns);
    }
  }

  // Begins to load a row: its first block that is not staged.
  void begin_row(uint row, thread Block& block) const {
    if (EXISTS && loaded.first < options.width) {
      block.load(x_row(row) + loaded.first, options.width - loaded.first, is_aligned);
    }
  }

  // Adds the thread's columns of a row to its sums.
  void add_to(thread RowSums& sums, uint row, thread Block& block) const {
    if (EXISTS) {
      staged.add_to(sums, x_row(row), options);
      block.add_blocks(sums, x_row(row), loaded, true, is_aligned, options);
    }
  }

  // Writes dx of a row, zeros if it is ignored. Stages the blocks of the row `next`, if it is below `rows`.
  void write_gradient(
      uint row, bool is_ignored, RowGradient gradient, uint next, uint rows, thread Block& block) const {
    if (!EXISTS) {
      return;
    }
    device T* to = dx + size_t(row) * options.width;
    if (is_ignored) {
      wait_for_copies_ahead();
      stage(next, rows);
      Block::write_zeros(to, columns, is_aligned, options.width);
      return;
    }
    gradient.target -= options.first_class;
    staged.write_gradient(gradient, x_row(row), to, next < rows ? x_row(next) : nullptr, columns, options);
    const long row_step = (long(next) - long(row)) * long(options.width);
    block.write_gradients_backward(gradient, x_row(row), to, row_step, loaded, is_aligned, options);
  }
};

// Returns the rows for blocks of VECS_PER_THREAD vectors, of which at most `staged` are in `memory`.
template <
    bool EXISTS,
    typename Block,
    typename Step,
    int VEC,
    int VECS_PER_THREAD,
    int VECS_PER_STEP,
    typename T,
    typename Words>
inline LogitRows<T, Block, StagedBlocks<Step, Words, VECS_PER_THREAD, VECS_PER_STEP>, EXISTS> logit_rows(
    device const T* x,
    device T* dx,
    LossOptions options,
    threadgroup Words* memory,
    uint staged,
    uint thread_index,
    uint threads) {
  const bool is_aligned = vec_aligned<VEC>(x, options.width) && vec_aligned<VEC>(dx, options.width);
  const size_t stride = size_t(threads) * (VECS_PER_THREAD * VEC);
  const BlockColumns columns = block_columns(Block::first_column(thread_index), stride, options.width);
  const uint count = is_aligned ? min(staged, uint((columns.last - columns.first) / stride)) : 0;
  const BlockColumns loaded = BlockColumns{columns.first + count * stride, stride, columns.last};
  return {x, dx, options, columns, loaded, is_aligned, {memory + thread_index, threads, count}};
}

// Returns, to every thread, the number of rows that are not ignored, at least 1. It is exact up to 2²⁴. scratch is
// as for threadgroup_sum.
template <typename INDEX_T>
inline float counted_rows(
    device const INDEX_T* targets,
    uint rows,
    threadgroup float* scratch,
    uint thread_index,
    uint threads,
    uint lane,
    uint simdgroup,
    uint simdgroups) {
  uint count = 0;
  for (size_t row = thread_index; row < rows; row += threads) {
    count += class_of(targets[row]) >= 0;
  }
  return max(threadgroup_sum(float(count), scratch, lane, simdgroup, simdgroups), 1.0f);
}

// Returns a thread's part of the sum of the losses in one threadgroup. It adds VEC neighboring losses at a time.
template <int VEC>
inline float added_losses(device const float* losses, uint rows, uint thread_index, uint threads) {
  const bool is_aligned = vec_aligned<VEC>(losses, rows);
  float sums[VEC] = {};
  for (size_t row = size_t(thread_index) * VEC; row < rows; row += size_t(threads) * VEC) {
    float values[VEC];
    load_vec<VEC>(losses, row, rows, is_aligned, values);
    add_values<VEC>(values, sums);
  }
  return Pairwise<VEC>::sum(sums);
}
