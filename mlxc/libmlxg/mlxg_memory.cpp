// Out-of-memory errors of the CPU allocator.
#include "mlxg_call.h"

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <typeinfo>

#include "mlx/allocator.h"
#include "mlxg_internal.h"

// MLX's CPU allocator returns a null buffer if the system is out of memory, and operations write to it: a shape with
// one axis too long would crash the process (fault out-of-memory). check_allocations replaces its malloc by one that
// throws. MLX has no hook for that: the allocator is a single object of a private class. The object therefore gets a
// copy of its table of virtual functions in which malloc is replaced.
//
// The GPU allocators throw by themselves.

#ifdef __linux__

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

Buffer checked_malloc(Allocator* self, size_t size) {
  // MLX counts a failed allocation as active memory. So sizes that would distort the count are tried with malloc first.
  constexpr size_t large = size_t(1) << 30;
  if (size >= large) {
    void* volatile p = std::malloc(size);  // volatile keeps the compiler from removing malloc and free
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

}  // namespace

namespace mlxg {

void check_allocations() {
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
}

}  // namespace mlxg

#else

namespace mlxg {
void check_allocations() {}
}  // namespace mlxg

#endif
