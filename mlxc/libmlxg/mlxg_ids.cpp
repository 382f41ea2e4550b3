// Range checks of index arrays.
#include <cstdint>
#include <type_traits>

#include "mlx/backend/common/utils.h"
#include "mlx/dtype_utils.h"
#include "mlxg_evaluation.h"
#include "mlxg_internal.h"

namespace mx = mlx::core;

namespace {

// range holds the valid ids, first … last and `except`. wrap is added to negative ids.
struct range {
  int64_t wrap, first, last, except;

  template <typename T>
  bool holds(T id) const {
    auto i = static_cast<int64_t>(id);
    if constexpr (std::is_signed_v<T>) {
      i += i < 0 ? wrap : 0;
    }
    return ((first <= i) & (i <= last)) | (i == except);
  }
};

// find returns the row-major index of the first invalid id and stores the id in *id, or returns MLXG_NO_ID.
template <typename T>
int64_t find(const mx::array& ids, range r, int64_t* id) {
  auto* p = ids.data<T>();
  if (ids.flags().contiguous) {
    bool all = true;
    for (size_t i = 0; i < ids.data_size(); i++) {
      all &= r.holds(p[i]);
    }
    if (all) {
      return MLXG_NO_ID;
    }
  }
  for (size_t i = 0; i < ids.size(); i++) {
    T v = p[mx::elem_to_loc(static_cast<int>(i), ids)];
    if (!r.holds(v)) {
      *id = static_cast<int64_t>(v);
      return static_cast<int64_t>(i);
    }
  }
  return MLXG_NO_ID;
}

}  // namespace

extern "C" int64_t mlxg_find_id(void* a, int64_t wrap, int64_t first, int64_t last, int64_t except, int64_t* id) {
  mlxg::guard g;
  try {
    auto ids = mlxg::argument_of(mlxg::array_of(a));
    if (!mlxg::available(ids)) {
      return MLXG_NOT_COMPUTED;
    }
    int64_t at = MLXG_NO_ID;
    mx::dispatch_int_types(
        ids.dtype(), "ids", [&](auto tag) { at = find<MLX_GET_TYPE(tag)>(ids, {wrap, first, last, except}, id); });
    return at;
  } catch (std::exception&) {
    return MLXG_NOT_COMPUTED;  // evaluating the operation reports the error
  }
}
