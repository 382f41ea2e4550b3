// Arrays over Go memory.
#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "mlx/mlx.h"
#include "mlxg_buffer.h"
#include "mlxg_immortal.h"
#include "mlxg_primitive.h"

namespace mx = mlx::core;

namespace {

// views holds a reference to the buffer of every view. Without it, MLX would write the result of an operation into its
// operand's buffer if the operand holds the last reference.
mlxg::immortal<std::mutex> viewing;
auto& views_lock = viewing.value;
mlxg::immortal<std::vector<std::shared_ptr<mx::array::Data>>> all_views;
auto& views = all_views.value;

// array_over returns an array over foreign memory. On machines with a GPU, MLX decides whether it copies the memory.
// The CPU allocator cannot wrap foreign memory. Instead, the array gets a small dummy buffer and an offset from it to
// the foreign memory.
mx::array array_over(void* data, mx::Shape shape, mx::Dtype dtype, uintptr_t id) {
  // The deleter releases the id, even if no array is created.
  auto pin = std::shared_ptr<void>(nullptr, [id](void*) { mlxg::release_id(id); });
  if (mx::is_available(mx::Device::gpu)) {
    return mx::array(data, std::move(shape), dtype, [pin](void*) {});
  }
  mx::array a(std::move(shape), dtype, nullptr, {});
  auto dummy = mx::allocator::allocator().malloc(sizeof(void*));
  int64_t offset = static_cast<char*>(data) - static_cast<char*>(dummy.raw_ptr());
  auto longest = std::max_element(a.shape().begin(), a.shape().end());
  bool one_axis = a.size() <= 1 || a.size() == static_cast<size_t>(*longest);
  mlxg::set_foreign(
      a, dummy, offset, {true, true, one_axis}, [pin](mx::allocator::Buffer b) { mx::allocator::allocator().free(b); });
  a.set_status(mx::array::Status::available);
  return a;
}

}  // namespace

namespace mlxg {

void sweep_views() {
  std::vector<std::shared_ptr<mx::array::Data>> unused;
  std::lock_guard<std::mutex> g(views_lock);
  auto last = std::partition(views.begin(), views.end(), [](auto& v) { return v.use_count() > 1; });
  unused.assign(std::make_move_iterator(last), std::make_move_iterator(views.end()));
  views.erase(last, views.end());
  add_releasable(-static_cast<int>(unused.size()));
}

}  // namespace mlxg

extern "C" {

mlxg_result mlxg_array_view(void* data, const int* shape, int ndim, int dtype, uintptr_t id) {
  try {
    auto a = array_over(data, mx::Shape(shape, shape + ndim), mlxg::dtype_of(dtype), id);
    if (a.data<char>() == data) {
      std::lock_guard<std::mutex> g(views_lock);
      views.push_back(a.data_shared_ptr());
      mlxg::add_releasable(1);
    }
    return {new mx::array(a), nullptr, mlxg_current_scope()};
  } catch (std::exception& e) {
    return {nullptr, mlxg::error_text(e.what()), mlxg_current_scope()};
  }
}

char* mlxg_strides(void* a, int64_t* strides) {
  auto handle = reinterpret_cast<uintptr_t>(a);
  if (char* err = mlxg_eval(&handle, 1)) {
    return err;
  }
  mlxg::guard g;
  auto& s = mlxg::array_of(a).strides();
  std::copy(s.begin(), s.end(), strides);
  return nullptr;
}

}  // extern "C"
