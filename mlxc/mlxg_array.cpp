// Arrays: making, describing, freeing.
#include <mutex>

#include "mlxg_internal.h"

extern "C" {

mlxg_info mlxg_array_info(void* a) {
  // Shape and dtype never change after construction: no lock.
  mlx_array h{a};
  mlxg_info i;
  i.ndim = static_cast<int>(mlx_array_ndim(h));
  i.dtype = static_cast<int>(mlx_array_dtype(h));
  i.size = mlx_array_size(h);
  i.itemsize = mlx_array_itemsize(h);
  i.shape = mlx_array_shape(h);
  return i;
}

mlxg_result mlxg_array_new(
    const void* data, const int* shape, int ndim, int dtype) {
  // A new leaf is nobody else's yet: no lock, so large copies run side by side.
  mlx_array res = mlx_array_new_data(
      data, shape, ndim, static_cast<mlx_dtype>(dtype));
  return mlxg_end(res.ctx ? 0 : 1, res);
}

bool mlxg_array_free(const uintptr_t* handles, size_t n, bool wait) {
  if (!mlxg_try_lock(wait)) {
    return false;
  }
  for (size_t i = 0; i < n; i++) {
    mlx_array_free({reinterpret_cast<void*>(handles[i])});
  }
  mlxg_unlock();
  return true;
}

} // extern "C"
