// Declarations shared by the C++ files of libmlxg.
#ifndef MLXG_INTERNAL_H
#define MLXG_INTERNAL_H

#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "mlx/array.h"
#include "mlxg_call.h"

namespace mlxg {

// take_error returns the message of this thread's last failed call. The caller frees it.
char* take_error();
// error_text returns a copy of a text as an error message. The caller frees it.
char* error_text(const char* what);
// install_error_handler makes mlx-c report errors to take_error.
void install_error_handler();
// open_device_streams opens the streams of the process. It returns an error message, which the caller frees, or NULL.
char* open_device_streams();
// depth returns the number of open mlxg_enter calls of this thread.
int depth();

// guard holds the graph lock during a C++ scope that calls no Go function.
struct guard {
  guard() { mlxg_lock(); }
  ~guard() { mlxg_unlock(); }
  guard(const guard&) = delete;
  guard& operator=(const guard&) = delete;
};

// The handle of an array is a pointer to a mlx::core::array.
inline mlx::core::array& array_of(void* ctx) {
  return *static_cast<mlx::core::array*>(ctx);
}
inline mlx::core::array& array_of(uintptr_t ctx) {
  return *reinterpret_cast<mlx::core::array*>(ctx);
}

// use_device_streams makes the streams of the process the default streams of this thread, at its first call there.
// mlxg_lock calls it. MLX would otherwise create streams for this thread, each with a worker thread that outlives it.
// Some of MLX's operations add nodes on the default stream, such as the casts of a quantized product, and nodes on a
// thread's own stream cannot be evaluated on another thread.
void use_device_streams();

// exporting reports whether this thread traces a function for Export or Trace. MLX cannot serialize libmlxg's own
// primitives, and an exported graph must not refer to files of this process.
bool exporting();

// restore_signal_stacks adds SA_ONSTACK to signal handlers that lack it. CUDA's compiler reinstalls Go's handlers
// without the flag. The compiler runs in evaluations, and before a kernel is made from compiled code.
void restore_signal_stacks();

// waiting_call counts the calls that wait for MLX without the graph lock. mlxg_shutdown waits until there are none.
struct waiting_call {
  waiting_call() { count++; }
  ~waiting_call() { count--; }
  waiting_call(const waiting_call&) = delete;
  waiting_call& operator=(const waiting_call&) = delete;
  static std::atomic<int> count;
};

// wait_for_shutdown blocks until mlxg_shutdown is called, and then ends MLX. It never returns.
[[noreturn]] void wait_for_shutdown();

// require_open throws if mlxg_shutdown was called. Evaluations call it with the graph lock held.
void require_open();

// has_ended reports whether mlxg_shutdown has ended MLX.
bool has_ended();

// set_up_allocator makes MLX's CPU allocator throw if the system is out of memory, and raises the limit of its cache.
void set_up_allocator();

// release_id queues the id of a Go function or of pinned memory for mlxg_take_released. Any thread may call it.
void release_id(uintptr_t id);

// sweep_views drops libmlxg's references to the views that nothing else refers to. A view is an array over Go memory.
void sweep_views();

// go holds the Go functions and variables that mlxg_init received.
extern mlxg_go go;

// add_releasable adds `more` to *go.releasable, the number of queued ids and of views. Go reads it.
inline void add_releasable(int more) {
  __atomic_fetch_add(go.releasable, more, __ATOMIC_ACQ_REL);
}

using arrays = std::vector<mlx::core::array>;
using function = std::function<arrays(const arrays&)>;

// argument_of follows Copy nodes to their operand. MLX's vjp traces a function with copies of its arguments. A copy and
// its operand have the same elements.
mlx::core::array argument_of(mlx::core::array a);

// repair replaces the nodes of a graph that MLX computes wrongly. Every evaluation calls it first, with the
// graph lock held. It returns whether a node runs on a CPU.
bool repair(arrays& roots);

// call_function calls the Go function with this id. It is for calls during which Go keeps the id registered.
arrays call_function(uintptr_t id, const arrays& args);
// function_of returns a C++ function that calls the Go function with this id. It owns the id: when the last copy is
// destroyed, the id is released.
function function_of(uintptr_t id);

// vmap_of returns f mapped over the given axes of its arguments, −1 for an argument without a mapped axis. The mapped
// axis is the first of every result.
function vmap_of(function f, std::vector<int> axes);

// sibling_cycles returns one output of every multi-output node in the graph of the results. The outputs of such a node
// refer to each other. Only the destructor of an array breaks this cycle. When MLX compiles or exports a function, it
// copies the graph and drops the original by overwriting references, so the cycle and its operands would leak (fault
// compile-keeps-operands). The caller destroys the returned arrays when MLX is done with the graph.
arrays sibling_cycles(const arrays& results);

// each_node calls f once for each node of a graph, from outputs to args.
template <typename F>
void each_node(const arrays& outputs, const arrays& args, F&& f) {
  std::unordered_set<uintptr_t> seen;
  for (auto& a : args) {
    seen.insert(a.id());
  }
  auto todo = outputs;
  while (!todo.empty()) {
    auto a = todo.back();
    todo.pop_back();
    if (a.has_primitive() && seen.insert(a.id()).second) {
      f(a);
      todo.insert(todo.end(), a.inputs().begin(), a.inputs().end());
    }
  }
}

// difference compares two graphs. It returns the name of a primitive that differs, "constant" for a different constant,
// or an empty string if both graphs compute the same. It may name a primitive although both compute the same, because
// MLX cannot compare all primitives. Arrays that both graphs share are equal. If there are arguments, those of a stand
// for those of b, and the shapes of nodes are not compared.
std::string difference(const arrays& a, const arrays& b, const arrays& a_args = {}, const arrays& b_args = {});
// refuse_difference throws if difference has returned a name.
void refuse_difference(const std::string& different);
// require_shapeless throws unless each operation between args and results accepts the shapes of its operands and has
// the shapes that MLX computes from these.
void require_shapeless(const arrays& results, const arrays& args);

// refuse_vmap throws the error of a node without a vmap rule.
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

// results_of returns new handles of one or two lists of arrays. The caller owns them.
mlxg_results results_of(arrays a, arrays b = {});
inline mlxg_results results_of(std::pair<arrays, arrays> both) {
  return results_of(std::move(both.first), std::move(both.second));
}

// no_results returns no arrays and the error message err, which the caller of the C function frees.
mlxg_results no_results(char* err);

// with_results runs f and returns its arrays, or the message of its exception.
template <typename F>
mlxg_results with_results(F&& f) {
  try {
    return results_of(f());
  } catch (std::exception& e) {
    return no_results(error_text(e.what()));
  }
}

// with_graph_lock calls mlxg_enter and then with_results. It is for calls that may run a Go function. The Go caller
// calls mlxg_leave.
template <typename F>
mlxg_results with_graph_lock(F&& f) {
  mlxg_enter();
  if (has_ended()) {
    return no_results(error_text(MLXG_SHUT_DOWN));
  }
  return with_results(f);
}

}  // namespace mlxg

#endif
