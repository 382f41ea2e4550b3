// Memory that is not there.
#include "mlxg_call.h"

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <typeinfo>

#include "mlx/allocator.h"
#include "mlxg_internal.h"

// MLX's allocator for a CPU gives a null buffer where the system has no memory, and the
// operations write to it: a shape with a wrong axis would end the process. So its malloc is
// replaced by one that throws. MLX has no other place for that: its allocator is one object
// of a class that it keeps to itself. The object gets a table of virtual functions that
// differs in this function alone.
//
// The allocators for GPUs throw themselves.

#ifdef __linux__

namespace {

using mlx::core::allocator::Allocator;
using mlx::core::allocator::Buffer;
using malloc_function = Buffer (*)(Allocator*, size_t);

constexpr const char* cpu_allocator = "N3mlx4core9allocator15CommonAllocatorE";

// What stands before the functions in a table, by the C++ ABI of Linux: the offset to the top
// and the type. The functions of mlx/allocator.h: malloc, free, size, make_buffer, release and
// two destructors.
constexpr size_t before = 2, functions = 7;

void* table[before + functions];
malloc_function mlx_malloc;

[[noreturn]] void refuse(size_t size) {
  throw std::runtime_error("out of memory: an array takes " + std::to_string(size) + " bytes");
}

Buffer checked_malloc(Allocator* self, size_t size) {
  // MLX counts as active what it did not get. So the system is asked before for what would
  // spoil the count.
  constexpr size_t large = size_t(1) << 30;
  if (size >= large) {
    void* volatile p = std::malloc(size);  // or the compiler would leave both out
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
