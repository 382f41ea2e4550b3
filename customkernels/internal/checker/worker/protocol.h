// The layout of the two files that the worker exchanges with its caller. wire.go declares the same layout in Go.
#ifndef CHECKER_PROTOCOL_H
#define CHECKER_PROTOCOL_H

#include <stdint.h>

namespace checker {

constexpr uint32_t magic = 0x4b43474d;
constexpr uint32_t version = 7;

// The descriptors of the two files.
constexpr int launch_file = 3, result_file = 4;

// ---- the launch: this, the buffers, then their contents ----

struct launch_header {
  uint32_t magic, version;
  uint32_t buffers, schedules;
  uint32_t grid[3];
  uint32_t threadgroup[3];
  uint64_t seed;
  uint32_t timeout_ms;
  int32_t only_schedule;  // the order of all schedules; -1 if each has its own
  uint32_t watched;       // the program watches a thread's own variables
  uint32_t fills;  // the byte that variables begin with, or uninitialized reads give, of four schedules, the first
                   // in the lowest bits
  uint64_t filled_read;  // pc of the uninitialized reads that give this byte; 0 for none, every_read for all
};

constexpr uint64_t every_read = ~uint64_t(0);

struct buffer_header {
  uint64_t size, offset;  // offset of the content in the file
  uint64_t expected;      // offset of the expected output in the file; 0 if it is unknown
  uint32_t cell, element;
  uint32_t writable, initialized;
  uint64_t padding;              // an unwritten range of at most this size may be padding
  uint32_t extent[4];            // of a texture: width, height, depth, layers
  uint32_t component, channels;  // of its pixels; component is 0 for a buffer
  uint64_t pointers;             // offset in the file of the pointers within the buffer
  uint64_t pointer_count;
};

// A place in a buffer that holds the address of another buffer or a texture.
struct pointer_field {
  uint64_t offset;
  uint32_t to, unused;
};

// ---- the result: this, the slots, the findings, the outputs ----

enum status : uint32_t { finished, crashed, timed_out, refused };

struct result_header {
  uint32_t magic, version;
  uint32_t status, schedules;
  uint32_t slots, findings;
  uint32_t differs, differing_slot, differing_schedule, threadgroup_memory;
  uint64_t differing_offset;
  uint64_t barriers, simd_operations, segments, bank_conflicts;
  uint64_t nanoseconds;  // duration of all schedules
  char message[128];
};

// A buffer or a threadgroup variable. The buffers come first.
struct slot_result {
  uint64_t size;
  uint64_t read, written, unique_read, unique_written;
  uint32_t element;
  int32_t id;  // number of a threadgroup variable; -1 for a buffer
};

enum kind : uint32_t {
  race,
  fence,
  divergent_barrier,
  shuffle_inactive,
  divergent_matrix,
  out_of_bounds,
  uninitialized_read,
  deadlock,
  limit,
  crash,
  timeout,
  lockstep,
  same_value_write,
  barrier_after_exit,
  divergent_reduction,
  never_read,
  misaligned,
  shift,
  unwritten_output,
  dropped_element,
  out_of_own,
  overflow,
  write_after_read,
  texture_bounds,
  write_to_input,
  divergent_argument,
};

constexpr uint32_t is_write = 1, other_is_write = 2, is_atomic = 4, other_is_atomic = 8;

constexpr uint32_t max_calls = 16;

struct finding {
  uint32_t kind;
  int32_t slot;  // -1 for none
  uint64_t pc, other_pc;
  int64_t offset;  // from the start of the slot, in bytes
  uint32_t size, access;
  uint32_t group, thread;              // linear indices in the grid and in the threadgroup
  uint32_t other_group, other_thread;  // ~0 for none
  uint32_t schedule;
  uint32_t detail;  // depends on the kind, such as a signal, a lane, an array size, an alignment or a number of bits
  uint64_t address, count;
  // The return addresses of the calls that lead to pc and other_pc, innermost first, at waits of a watched program. 0
  // ends a list. The first one is pc.
  uint32_t calls[max_calls], other_calls[max_calls];
};

}  // namespace checker

#endif
