// The CPU allocator: errors if memory is exhausted, and the limit of its cache.
#include "mlxg_call.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <typeinfo>

#include "mlx/allocator.h"
#include "mlx/memory.h"
#include "mlxg_internal.h"

// MLX's CPU allocator returns a null buffer if the system is out of memory, and operations write to it: a shape with
// one axis too long would crash the process (fault out-of-memory). set_up_allocator replaces its malloc by one that
// throws. MLX has no hook for that: the allocator is a single object of a private class. The object therefore gets a
// copy of its table of virtual functions in which malloc is replaced.
//
// The GPU allocators throw by themselves.
//
// MLX caches at most 32 MiB of freed CPU memory. Larger arrays return to the system, which clears each of their pages
// when it is used again: half of the time of elementwise operations on arrays of 16 MiB. set_up_allocator raises the
// limit.

#ifdef __linux__
#include <sys/sysinfo.h>

namespace {

using mlx::core::allocator::Allocator;
using mlx::core::allocator::Buffer;
using malloc_function = Buffer (*)(Allocator*, size_t);

constexpr const char* cpu_allocator = "N3mlx4core9allocator15CommonAllocatorE";

// Layout of the table in the Itanium C++ ABI: the offset to top and the type_info, then the functions of
// mlx/allocator.h in order: malloc, free, size, make_buffer, release and two destructors.
constexpr size_t before = 2, functions = 7;

void* table[before + functions];
malloc_function mlx_malloc;

[[noreturn]] void refuse(size_t size) {
  throw std::runtime_error("out of memory: an array takes " + std::to_string(size) + " bytes");
}

// limit_of_group returns the memory limit of the process's control group, or the greatest number.
size_t limit_of_group() {
  size_t least = SIZE_MAX, limit;
  for (const char* file : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    if (std::ifstream(file) >> limit) {
      least = std::min(least, limit);
    }
  }
  return least;
}

// memory_and_swap returns the most memory that the process can use, including swap.
size_t memory_and_swap() {
  struct sysinfo machine;
  if (sysinfo(&machine) != 0) {
    return SIZE_MAX;
  }
  return std::min(machine.totalram * machine.mem_unit, limit_of_group()) + machine.totalswap * machine.mem_unit;
}

Buffer checked_malloc(Allocator* self, size_t size) {
  // Where the kernel overcommits memory, malloc succeeds for every size, and the kernel ends a process that uses more
  // than there is.
  static const size_t most = memory_and_swap();
  if (size > most) {
    refuse(size);
  }
  // MLX counts a failed allocation as active memory. So sizes that would distort the count are tried with malloc first.
  constexpr size_t large = size_t(1) << 30;
  if (size >= large) {
    void* volatile p = std::malloc(size);  // volatile keeps the compiler from removing malloc and free
    if (!p) {
      mlx::core::clear_cache();
      p = std::malloc(size);
    }
    if (!p) {
      refuse(size);
    }
    std::free(p);
  }
  Buffer b = mlx_malloc(self, size);
  if (!b.ptr() && size > 0) {
    refuse(size);
  }
  return b;
}

// cache_limit returns a quarter of the memory that the process may use: of MLX's limit, or of its control group's.
size_t cache_limit() {
  return std::min(mlx::core::get_memory_limit(), limit_of_group()) / 4;
}

}  // namespace

namespace mlxg {

void set_up_allocator() {
  Allocator& a = mlx::core::allocator::allocator();
  if (std::strcmp(typeid(a).name(), cpu_allocator) != 0) {
    return;
  }
  void** functions_of_a;
  std::memcpy(&functions_of_a, static_cast<void*>(&a), sizeof(functions_of_a));
  std::memcpy(table, functions_of_a - before, sizeof(table));
  mlx_malloc = reinterpret_cast<malloc_function>(functions_of_a[0]);
  table[before] = reinterpret_cast<void*>(checked_malloc);
  void** ours = table + before;
  std::memcpy(static_cast<void*>(&a), &ours, sizeof(ours));
  mlx::core::set_cache_limit(cache_limit());
}

}  // namespace mlxg

#else

namespace mlxg {
void set_up_allocator() {}
}  // namespace mlxg

#endif
