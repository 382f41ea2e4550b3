// Shared by the C++ files of this package only.
#ifndef MLXG_INTERNAL_H
#define MLXG_INTERNAL_H

#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "mlx/array.h"
#include "mlxg_call.h"

namespace mlxg {

// take_error hands over the message of this thread's last failed call.
char* take_error();
// error_text makes an error message from a text.
char* error_text(const char* what);
// depth is the number of open mlxg_enter calls of this thread.
int depth();

// guard holds the graph lock for a C++ scope that cannot reach Go.
struct guard {
  guard() { mlxg_lock(); }
  ~guard() { mlxg_unlock(); }
  guard(const guard&) = delete;
  guard& operator=(const guard&) = delete;
};

// mlx-c's handle of an array is a pointer to MLX's array.
inline mlx::core::array& array_of(void* ctx) {
  return *static_cast<mlx::core::array*>(ctx);
}
inline mlx::core::array& array_of(uintptr_t ctx) {
  return *reinterpret_cast<mlx::core::array*>(ctx);
}

// use_device_streams has this thread's evaluations use the streams of the process. MLX would
// make a thread streams of its own, with a thread for each, which outlive it.
void use_device_streams();

// exporting tells that this thread traces a function whose graph leaves the process.
bool exporting();

// mend_signals has signals handled on Go's stack for them again, where a CUDA library, which
// compiles kernels during an evaluation, has put handlers back without that.
void mend_signals();

// inside counts a call that waits for MLX without the graph lock, while it runs. mlxg_shutdown waits for it.
struct inside {
  inside() { count++; }
  ~inside() { count--; }
  inside(const inside&) = delete;
  inside& operator=(const inside&) = delete;
  static std::atomic<int> count;
};

// serve_end waits until mlxg_shutdown is called, and ends MLX. It never returns.
[[noreturn]] void serve_end();

// refuse_if_closed throws if mlxg_shutdown was called. Evaluations call it with the graph lock held.
void refuse_if_closed();

// has_ended reports whether mlxg_shutdown has ended MLX.
bool has_ended();

// check_allocations makes MLX's allocator throw where there is no memory.
void check_allocations();

// release_id hands back the id of a function or a pin that MLX no longer uses.
void release_id(uintptr_t id);

// sweep_views gives up the views that nobody else uses.
void sweep_views();

// go is what mlxg_init was given.
extern mlxg_go go;

// releasable counts ids that wait for mlxg_take_released and views.
inline void releasable(int more) {
  __atomic_fetch_add(go.releasable, more, __ATOMIC_ACQ_REL);
}

using arrays = std::vector<mlx::core::array>;
using function = std::function<arrays(const arrays&)>;

// argument_of returns the array that a stand-in of a vjp copies. They share their elements.
mlx::core::array argument_of(mlx::core::array a);

// repair replaces the nodes of a graph that MLX computes wrongly. Call it, with the graph lock
// held, before every evaluation.
void repair(arrays& roots);

// call_function calls the Go function with this id, during a call that Go makes and for
// which it keeps the function.
arrays call_function(uintptr_t id, const arrays& args);
// function_of is a C++ function that does so at any time: once it is gone, and all copies
// of it, it hands the id back.
function function_of(uintptr_t id);

// vectorised is f over the given axes of its arguments, −1 where an argument has none.
// The new axis is the first of every result.
function vectorised(function f, std::vector<int> axes);

// rings gives one output of every operation with several that the results come from. Such
// outputs refer to each other. MLX copies the graph of a function that it compiles or exports,
// and lets the old one go by writing over its references, where no destructor of an array
// is run, which is what cuts a ring: what was only in a ring then would stay for ever, with
// all that it is computed from. So whoever has MLX do so keeps the rings until it is done.
arrays rings(const arrays& results);

// refuse_vmap throws the error of a node that has no rule for vmap.
[[noreturn]] void refuse_vmap(const std::string& name);

inline arrays arrays_of(const uintptr_t* ctx, size_t n) {
  arrays out;
  out.reserve(n);
  for (size_t i = 0; i < n; i++) {
    out.push_back(array_of(ctx[i]));
  }
  return out;
}

inline mlx_vector_array vector_of(const uintptr_t* ctx, size_t n) {
  // mlx_array is a struct with one pointer.
  static_assert(sizeof(mlx_array) == sizeof(void*));
  return mlx_vector_array_new_data(reinterpret_cast<const mlx_array*>(ctx), n);
}

// results_of hands arrays over as results, or two lists.
mlxg_results results_of(arrays a, arrays b = {});
inline mlxg_results results_of(std::pair<arrays, arrays> both) {
  return results_of(std::move(both.first), std::move(both.second));
}

// no_results hands over an error message instead.
mlxg_results no_results(char* err);

// with_results runs f and hands over the arrays it gives, or the message of its
// exception.
template <typename F>
mlxg_results with_results(F&& f) {
  try {
    return results_of(f());
  } catch (std::exception& e) {
    return no_results(error_text(e.what()));
  }
}

// entering is with_results for a call that can reach Go.
template <typename F>
mlxg_results entering(F&& f) {
  mlxg_enter();
  if (has_ended()) {
    return no_results(error_text(MLXG_SHUT_DOWN));
  }
  return with_results(f);
}

}  // namespace mlxg

#endif
