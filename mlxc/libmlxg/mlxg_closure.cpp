// Go functions that MLX calls, and their ids.
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "mlx/mlx.h"
#include "mlxg_closure.h"
#include "mlxg_immortal.h"

namespace mx = mlx::core;

using mlxg::arrays;

namespace {

// released holds the ids that MLX no longer uses. MLX may destroy a closure on any thread, so release_id cannot call
// Go; Go calls mlxg_take_released.
mlxg::immortal<std::mutex> releasing;
auto& released_lock = releasing.value;
mlxg::immortal<std::vector<uintptr_t>> all_released;
auto& released = all_released.value;

}  // namespace

namespace mlxg {

members::members(const arrays& a) {
  for (auto& member : a) {
    handles_.push_back(new mx::array(member));
  }
  go_ = {handles_.data(), handles_.size(), mlxg_current_scope()};
}

members::members(const mlx_vector_array v) : members(*static_cast<arrays*>(v.ctx)) {}

void release_closure(void* payload) {
  release_id(reinterpret_cast<uintptr_t>(payload));
}

void release_id(uintptr_t id) {
  std::lock_guard<std::mutex> g(released_lock);
  released.push_back(id);
  add_releasable(1);
}

arrays call_function(uintptr_t id, const arrays& args) {
  arrays results;
  if (go.call_closure(id, members(args), &results) != 0) {
    throw std::runtime_error("the Go function failed");
  }
  return results;
}

function function_of(uintptr_t id) {
  auto last = std::shared_ptr<void>(reinterpret_cast<void*>(id), release_closure);
  return [id, last = std::move(last)](const arrays& args) { return call_function(id, args); };
}

}  // namespace mlxg

extern "C" {

void mlxg_return(void* results, const uintptr_t* handles, size_t n) {
  auto& out = *static_cast<arrays*>(results);
  out.reserve(n);
  for (size_t i = 0; i < n; i++) {
    out.push_back(mlxg::array_of(handles[i]));
  }
}

size_t mlxg_take_released(uintptr_t* ids, size_t cap) {
  mlxg::sweep_views();
  std::lock_guard<std::mutex> g(released_lock);
  size_t n = released.size() < cap ? released.size() : cap;
  for (size_t i = 0; i < n; i++) {
    ids[i] = released.back();
    released.pop_back();
  }
  mlxg::add_releasable(-static_cast<int>(n));
  return n;
}

}  // extern "C"
