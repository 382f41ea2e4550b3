// Creating, describing and freeing arrays.
#include <mutex>

#include "mlxg_buffer.h"
#include "mlxg_primitive.h"

namespace mx = mlx::core;

extern "C" {

mlxg_info mlxg_array_info(uintptr_t handle) {
  // No lock: shape and dtype never change after construction.
  auto& a = mlxg::array_of(handle);
  using val = mx::Dtype::Val;  // in the order of mlx_dtype
  static_assert(
      int(val::uint64) == MLX_UINT64 && int(val::float16) == MLX_FLOAT16 && int(val::complex64) == MLX_COMPLEX64);
  return {static_cast<int>(a.ndim()), static_cast<int>(a.dtype().val()), a.size(), a.itemsize(), a.shape().data()};
}

mlxg_result mlxg_array_new(const void* data, const int* shape, int ndim, int dtype) {
  // No lock: no other thread has the new array, and large copies can run in parallel.
  mlx_array res = mlx_array_new_data(data, shape, ndim, static_cast<mlx_dtype>(dtype));
  return mlxg_end(res.ctx ? 0 : 1, res);
}

mlxg_result mlxg_array_unfilled(const int* shape, int ndim, int dtype, void** data) {
  mlx_array res = mlx_array_new();
  try {
    mx::Shape dims(shape, shape + ndim);
    auto type = mlxg::dtype_of(dtype);
    size_t size = type.size();
    for (auto n : dims) {
      size *= static_cast<size_t>(n);
    }
    mx::array a(mlxg::new_memory(size, "the array"), std::move(dims), type);
    *data = a.data<char>();
    int rc = mlx_array_set(&res, mlx_array{&a});
    return mlxg_end(rc, res);
  } catch (std::exception& e) {
    mlx_array_free(res);
    return {nullptr, mlxg::error_text(e.what()), 0};
  }
}

bool mlxg_array_free(const uintptr_t* handles, size_t n, bool wait) {
  if (!mlxg_try_lock(wait)) {
    return false;
  }
  for (size_t i = 0; i < n && !mlxg::has_ended(); i++) {
    mlx_array_free({reinterpret_cast<void*>(handles[i])});
  }
  mlxg_unlock();
  return true;
}

}  // extern "C"
