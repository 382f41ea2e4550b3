// A launch: the buffers in the arena, the threadgroups, and the schedules.
#ifndef CHECKER_LAUNCH_H
#define CHECKER_LAUNCH_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "schedule.h"
#include "texture.h"
#include "undefined.h"

extern "C" {
void* mlxg_checked_address[checker::max_slots];
unsigned char mlxg_checked_fill;
}

namespace checker {

static launch_header header;
static const unsigned char* file;  // the launch file, mapped
static uint32_t groups[3];
static uint64_t group_count;

static const buffer_header* buffer_headers() {
  return reinterpret_cast<const buffer_header*>(file + sizeof header);
}

constexpr uintptr_t page = 4096;
constexpr uint64_t widest = 16;         // bytes of the widest single access
constexpr unsigned char poison = 0xff;  // a NaN in every type, and out of bounds as an index

static uintptr_t round_up(uintptr_t n) {
  return (n + page - 1) & ~(page - 1);
}

// ---- threadgroup variables, registered before main ----

static struct announced {
  uint32_t id, size, element, cell, zero;
} variables[max_slots - mlxg::max_buffers];
static uint32_t variable_count, threadgroup_bytes;
static bool too_many_variables;

}  // namespace checker

extern "C" uint32_t mlxg_checked_threadgroup(
    uint32_t id, uint32_t size, uint32_t element, uint32_t cell, uint32_t zero) {
  using namespace checker;
  if (variable_count == max_slots - mlxg::max_buffers) {
    too_many_variables = true;
    return 0;
  }
  variables[variable_count] = {id, size, element, cell, zero};
  threadgroup_bytes = ((threadgroup_bytes + 15) & ~15u) + size;
  return variable_count++;
}

namespace checker {

static void fail(const char* message);

static void* map(uint64_t size) {
  void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) {
    fail("no memory for the shadow records");
  }
#ifdef MADV_HUGEPAGE
  if (size >= 2u << 20) {
    madvise(p, size, MADV_HUGEPAGE);  // fewer page faults; failure is harmless
  }
#endif
  return p;
}

// Populates pages that will be written, which is cheaper than a page fault for each. A failure is harmless.
static void populate(void* p, uint64_t size) {
#ifdef MADV_POPULATE_WRITE
  madvise(p, round_up(size), MADV_POPULATE_WRITE);
#endif
}

static uint8_t log2_of(uint32_t n) {
  uint8_t shift = 0;
  while (shift < 3 && n % (2u << shift) == 0) {
    ++shift;
  }
  return shift;
}

static void make_slot(uint32_t i, uint64_t size, uint32_t cell, uint32_t element, space in, bool writable) {
  slot& s = now.slots[i];
  // Different offsets in the slots, so that equal indices of several buffers do not share a cache set.
  s.start = now.arena + i * slot_span + slot_span / 4 + i * 21 * page;
  s.size = size;
  s.shift = s.needed_shift = log2_of(cell);
  s.in = in;
  s.writable = writable;
  s.element = element;
  s.id = -1;
  s.tag = (in == threadgroup ? in_threadgroup : 0) | i << 24;
  s.first_segment = 1;
  if (!writable && size >= widest) {
    s.free = size - widest + 1;
  }
  if (size > 0 && mprotect(reinterpret_cast<void*>(s.start), round_up(size), PROT_READ | PROT_WRITE) != 0) {
    fail("no memory for the buffers");
  }
}

// Maps an input as private pages of the file. A page is copied if the shader writes to it.
static void map_input(const slot& s, uint64_t offset) {
  void* at = reinterpret_cast<void*>(s.start);
  if (mmap(at, s.size, PROT_READ, MAP_PRIVATE | MAP_FIXED | MAP_POPULATE, launch_file, off_t(offset)) != at ||
      mprotect(at, s.size, PROT_READ | PROT_WRITE) != 0) {
    fail("no memory for the buffers");
  }
}

// Stores the addresses of buffers and textures in the structures of a buffer.
static void place_pointers(uint32_t i) {
  const buffer_header& b = buffer_headers()[i];
  const auto* fields = reinterpret_cast<const pointer_field*>(file + b.pointers);
  for (uint64_t p = 0; p < b.pointer_count; ++p) {
    const uint32_t to = fields[p].to;
    const void* address = buffer_headers()[to].component ? static_cast<const void*>(&textures[to]) : bound[to];
    memcpy(static_cast<char*>(bound[i]) + fields[p].offset, &address, sizeof address);
  }
}

static void make_shadow(slot& s) {
  const uint64_t cells = (s.size >> s.shift) + 1;
  s.read_cells = static_cast<uint64_t*>(map((cells / 64 + 1) * 8));
  s.cells = s.size >> s.shift;
  if (!s.writable) {
    return;
  }
  s.unit = uint8_t(1u << s.shift);
  s.writers = static_cast<record*>(map(cells * sizeof(record)));
  s.readers = static_cast<record*>(map(cells * sizeof(record)));
  s.others = static_cast<other_readers*>(map(cells * sizeof(other_readers)));
  populate(s.writers, cells * sizeof(record));
}

static void drop_shadow(slot& s) {
  const uint64_t cells = (s.size >> s.shift) + 1;
  munmap(s.read_cells, (cells / 64 + 1) * 8);
  if (!s.writers) {
    return;
  }
  munmap(s.writers, cells * sizeof(record));
  munmap(s.readers, cells * sizeof(record));
  munmap(s.others, cells * sizeof(other_readers));
}

// Places the buffers and threadgroup variables in the arena.
static void lay_out() {
  // Aligned to its size, so that the upper bits of an address are a slot's index.
  constexpr uint64_t span = arena_span + slot_span;
  void* raw = mmap(nullptr, 2 * span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) {
    fail("no address space for the buffers");
  }
  now.arena = (reinterpret_cast<uintptr_t>(raw) + span - 1) & ~(span - 1);
  now.buffers = header.buffers;
  now.slot_count = header.buffers + variable_count;
  const buffer_header* b = buffer_headers();
  for (uint32_t i = 0; i < header.buffers; ++i) {
    const bool pixels = b[i].component != 0;
    make_slot(i, b[i].size, b[i].cell, b[i].element, pixels ? texture : device, b[i].writable != 0);
    slot& s = now.slots[i];
    s.initialized = b[i].initialized != 0;
    bound[i] = reinterpret_cast<void*>(s.start);
    textures[i] = {i, {}, b[i].component, b[i].channels};
    memcpy(textures[i].extent, b[i].extent, sizeof b[i].extent);
    make_shadow(s);
    if (s.size == 0) {
      continue;
    }
    if (s.writable) {
      populate(bound[i], s.size);
    } else if (s.initialized) {
      map_input(s, b[i].offset);
    }
  }
  for (uint32_t i = 0; i < header.buffers; ++i) {
    if (!now.slots[i].writable) {
      place_pointers(i);
    }
  }
  for (uint32_t v = 0; v < variable_count; ++v) {
    const uint32_t i = header.buffers + v;
    make_slot(i, variables[v].size, variables[v].cell, variables[v].element, threadgroup, true);
    now.slots[i].id = int32_t(variables[v].id);
    now.slots[i].initialized = variables[v].zero != 0;
    make_shadow(now.slots[i]);
    mlxg_checked_address[v] = reinterpret_cast<void*>(now.slots[i].start);
  }
  now.segments = static_cast<segment_info*>(map(uint64_t(max_segments) * sizeof(segment_info)));
}

// ---- fibers ----

static uintptr_t stack_of(uint32_t thread) {
  return now.workspace + mlxg::stacks_offset + thread * mlxg::stack_size;
}

static void make_fibers(uint32_t threads) {
  using namespace mlxg;
  slot& s = now.slots[max_slots];
  now.workspace = now.arena + arena_span;
  s.start = now.workspace + offsetof(control, groups);
  s.free = s.free_writes = now.workspace + workspace_size - s.start - widest + 1;
  fibers = reinterpret_cast<control*>(now.workspace);
  if (mprotect(fibers, round_up(sizeof(control)), PROT_READ | PROT_WRITE) != 0) {
    fail("no memory for the stacks");
  }
  for (uint32_t i = 0; i < threads; ++i) {
    char* low = reinterpret_cast<char*>(stack_of(i));
    if (mprotect(low + page, stack_size - page, PROT_READ | PROT_WRITE) != 0) {
      fail("no memory for the stacks");
    }
    uintptr_t top = reinterpret_cast<uintptr_t>(low) + stack_size - 64 - (i * 192 & 4095);
#if defined(__x86_64__)
    top -= 8;  // as after a call
#endif
    fibers->fiber[i] = {
        reinterpret_cast<void*>(top), nullptr, reinterpret_cast<void*>(&mlxg_checked_fiber_main), nullptr};
  }
}

// ---- one threadgroup ----

static uint64_t random_state;
static uint64_t random_next() {  // splitmix64
  uint64_t z = random_state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

// Sets the order of threads or threadgroups: ascending in schedule 0, descending in schedule 1, random in others.
template <class T>
static void order_by_schedule(T* list, uint64_t n) {
  for (uint64_t i = 0; i < n; ++i) {
    list[i] = T(now.schedule == 1 ? n - 1 - i : i);
  }
  if (now.schedule < 2) {
    return;
  }
  for (uint64_t i = n; i > 1; --i) {
    const uint64_t j = random_next() % i;
    const T t = list[i - 1];
    list[i - 1] = list[j];
    list[j] = t;
  }
}

static uint32_t min(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

// Sets the positions of the threads of the threadgroup at `at`, which has `size` threads per axis.
static void lay_out_positions(const uint32_t at[3], const uint32_t size[3]) {
  mlxg::geometry g;
  memcpy(g.grid, header.grid, sizeof g.grid);
  memcpy(g.threadgroup, header.threadgroup, sizeof g.threadgroup);
  memcpy(g.groups, groups, sizeof g.groups);
  const triple place{at[0], at[1], at[2]}, extent{size[0], size[1], size[2]};
  uint32_t i = 0;
  for (uint32_t z = 0; z < size[2]; ++z) {
    for (uint32_t y = 0; y < size[1]; ++y) {
      for (uint32_t x = 0; x < size[0]; ++x, ++i) {
        positions[i] = mlxg::position_of(g, place, extent, {x, y, z}, i);
      }
    }
  }
}

// Runs one threadgroup. Its threads share the fibers and the threadgroup variables with the other threadgroups.
static void run_group(uint32_t group) {
  const uint32_t at[3] = {group % groups[0], group / groups[0] % groups[1], group / groups[0] / groups[1]};
  uint32_t size[3];
  for (int d = 0; d < 3; ++d) {
    size[d] = min(header.threadgroup[d], header.grid[d] - at[d] * header.threadgroup[d]);
  }
  lay_out_positions(at, size);
  now.group = group;
  now.thread_count = size[0] * size[1] * size[2];
  now.simdgroup_count = (now.thread_count + simd_width - 1) / simd_width;
  memset(now.phase, 0, sizeof now.phase);
  now.any = 0;
  now.diverged = false;
  order_by_schedule(order, now.thread_count);
  memset(can_run, 0, sizeof can_run);
  for (uint32_t s = 0; s < now.simdgroup_count; ++s) {
    simdgroup_state& g = now.simdgroups[s];
    g = {};
    const uint32_t lanes = min(simd_width, now.thread_count - s * simd_width);
    g.all = lanes == simd_width ? ~0u : (1u << lanes) - 1;
  }
  for (uint32_t i = 0; i < now.thread_count; ++i) {
    place_of[order[i]] = uint16_t(i);
    now.threads[i].segment = none;
    now.threads[i].fenced = 0;
  }
  for (uint32_t i = 0; i < now.thread_count; ++i) {
    make_runnable(i);
  }
  for (uint32_t i = now.buffers; i < now.slot_count; ++i) {
    slot& s = now.slots[i];
    s.first_segment = now.segment_count + 1;
    memset(reinterpret_cast<void*>(s.start), s.initialized ? 0 : poison, s.size);
  }
  fences_new_group();
  new_epoch();
  now.thread = order[0];
  now.segment = none;
  now.running = true;
  mlxg::switch_context(&fibers->main, &fibers->fiber[now.thread]);
  now.running = false;
  if (now.attention & write_pending) {
    resolve_pending_write();
  }
  count_unread();
}

// ---- one schedule ----

static uint32_t* group_order;
static uint32_t schedule_begin;  // first segment of the schedule

// Runs all threadgroups in the order of the n-th schedule, with the initial content of the buffers.
static void run_schedule(uint32_t n) {
  now.schedule = header.only_schedule < 0 ? n : uint32_t(header.only_schedule);
  now.fill = mlxg_checked_fill = n < 4 ? uint8_t(header.fills >> 8 * n) : 0;
  now.filled_read = header.filled_read;
  now.trace = 0;
  random_state = header.seed + 0x632be59bd9b4e019u * now.schedule;
  // A new first_segment invalidates the records of earlier schedules. They are cleared when the segment numbers grow
  // large.
  bool clear = false;
  if (now.segment_count > 1u << 22) {
    clear = true;
    now.segment_count = 0;
  }
  schedule_begin = now.segment_count + 1;
  for (uint32_t i = 0; i < now.slot_count; ++i) {
    slot& s = now.slots[i];
    if (!s.writers) {
      continue;
    }
    if (clear) {
      drop_shadow(s);
      make_shadow(s);
    }
    s.first_segment = schedule_begin;
    if (i >= now.buffers) {
      continue;
    }
    if (s.initialized) {
      memcpy(bound[i], file + buffer_headers()[i].offset, s.size);
      place_pointers(i);
    } else {
      memset(bound[i], poison, s.size);
    }
  }
  fences_new_schedule();
  set_attention(now.filled_read ? trace_wanted : n == 0 ? traffic_wanted : 0);
  order_by_schedule(group_order, group_count);
  for (uint64_t g = 0; g < group_count; ++g) {
    run_group(group_order[g]);
  }
  report_unread();
  if (now.filled_read) {
    forget_filled_reads();
  }
  set_attention(0);
}

}  // namespace checker

#endif
