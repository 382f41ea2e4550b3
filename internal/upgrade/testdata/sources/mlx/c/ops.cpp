#include "mlx/mlx.h"

namespace {
template <typename F>
int call(F f) {
  f();
  return LIMIT;
}
} // namespace

extern "C" int mlx_product(bool sorted) {
  mlx::core::array x;
  mlx::core::product(x, std::nullopt, "affine", sorted);
  return x.size();
}

extern "C" int mlx_gone() {
  return call([] {
    mlx::core::array x;
    mlx::core::gone(x);
    mlx::core::sum(x, 1);
  });
}
