// Transforms and the closures that they call. Go holds the graph lock through
// mlxg_enter around every function here that can reach Go.
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "mlx/mlx.h"
#include "mlx/primitives.h"
#include "mlxg_internal.h"

namespace mx = mlx::core;

// Exported by callback.go. They return 0, or 1 after having noted a Go error.
extern "C" int mlxgCallClosure(uintptr_t id, void* in, void* out);
extern "C" int mlxgCallCustom(
    uintptr_t id, void* primals, void* cotangents, void* outputs, void* out);

namespace {

// released collects the ids of closures that MLX no longer uses. MLX may drop a
// closure on any thread, so Go is not called from here; it asks.
std::mutex released_lock;
std::vector<uintptr_t> released;

void release_closure(void* payload) {
  std::lock_guard<std::mutex> g(released_lock);
  released.push_back(reinterpret_cast<uintptr_t>(payload));
}

int call_closure(mlx_vector_array* out, const mlx_vector_array in, void* payload) {
  return mlxgCallClosure(reinterpret_cast<uintptr_t>(payload), in.ctx, &out->ctx);
}

int call_custom(
    mlx_vector_array* out,
    const mlx_vector_array primals,
    const mlx_vector_array cotangents,
    const mlx_vector_array outputs,
    void* payload) {
  return mlxgCallCustom(
      reinterpret_cast<uintptr_t>(payload),
      primals.ctx,
      cotangents.ctx,
      outputs.ctx,
      &out->ctx);
}

} // namespace

extern "C" {

mlx_closure mlxg_closure_new(uintptr_t id) {
  return mlx_closure_new_func_payload(
      call_closure, reinterpret_cast<void*>(id), release_closure);
}

mlx_closure_custom mlxg_closure_custom_new(uintptr_t id) {
  return mlx_closure_custom_new_func_payload(
      call_custom, reinterpret_cast<void*>(id), release_closure);
}

size_t mlxg_take_released(uintptr_t* ids, size_t cap) {
  std::lock_guard<std::mutex> g(released_lock);
  size_t n = released.size() < cap ? released.size() : cap;
  for (size_t i = 0; i < n; i++) {
    ids[i] = released.back();
    released.pop_back();
  }
  return n;
}

// join puts two vectors of results one after the other.
static mlxg_results join(int rc, mlx_vector_array a, mlx_vector_array b, size_t* na) {
  *na = 0;
  if (rc == 0) {
    *na = mlx_vector_array_size(a);
    for (size_t i = 0, n = mlx_vector_array_size(b); i < n; i++) {
      mlx_array x = {nullptr};
      mlx_vector_array_get(&x, b, i);
      mlx_vector_array_append_value(a, x);
      mlx_array_free(x);
    }
  }
  mlx_vector_array_free(b);
  return mlxg_end_vector(rc, a);
}

// distinct makes every output a node of its own that takes a cotangent: MLX gives
// none to what stop_gradient returned, and one to an array that is there twice,
// and would pair the cotangents with the wrong outputs.
static std::vector<mx::array> distinct(std::vector<mx::array> outputs) {
  std::unordered_set<std::uintptr_t> seen;
  for (auto& o : outputs) {
    bool stopped =
        o.has_primitive() && std::strcmp(o.primitive().name(), "StopGradient") == 0;
    if (!seen.insert(o.id()).second || stopped) {
      auto s = o.has_primitive()
          ? o.primitive().stream()
          : *static_cast<mx::Stream*>(mlxg_real_stream());
      o = mx::copy(o, s);
    }
  }
  return outputs;
}

mlxg_results mlxg_vjp(
    uintptr_t id,
    void** primals,
    size_t np,
    void** cotangents,
    size_t nc,
    size_t* n_outputs) {
  using arrays = std::vector<mx::array>;
  *n_outputs = 0;
  mlx_closure f = mlxg_closure_new(id);
  mlxg_results r = {nullptr, 0, nullptr, mlxg_current_scope()};
  try {
    auto& fun = *static_cast<std::function<arrays(const arrays&)>*>(f.ctx);
    auto [outputs, vjps] = mx::vjp(
        [&](const arrays& args) {
          auto out = distinct(fun(args));
          if (out.size() != nc) {
            throw std::invalid_argument(
                "the function has " + std::to_string(out.size()) +
                " outputs, but there are " + std::to_string(nc) + " cotangents");
          }
          return out;
        },
        mlxg::arrays_of(primals, np),
        mlxg::arrays_of(cotangents, nc));
    *n_outputs = outputs.size();
    outputs.insert(outputs.end(), vjps.begin(), vjps.end());
    r = mlxg::results_of(outputs);
  } catch (std::exception& e) {
    r.err = mlxg::error_text(e.what());
  }
  mlx_closure_free(f);
  return r;
}

mlxg_results mlxg_value_and_grad(
    uintptr_t id,
    const int* argnums,
    size_t n,
    void** args,
    size_t na,
    size_t* n_outputs) {
  mlx_closure f = mlxg_closure_new(id);
  mlx_closure_value_and_grad vg = {nullptr};
  mlx_vector_array in = mlxg::vector_of(args, na);
  mlx_vector_array values = mlx_vector_array_new();
  mlx_vector_array grads = mlx_vector_array_new();
  int rc = mlx_value_and_grad(&vg, f, argnums, n);
  if (rc == 0) {
    rc = mlx_closure_value_and_grad_apply(&values, &grads, vg, in);
  }
  mlx_vector_array_free(in);
  if (vg.ctx) {
    mlx_closure_value_and_grad_free(vg);
  }
  mlx_closure_free(f);
  return join(rc, values, grads, n_outputs);
}

// apply calls a closure and frees it.
static mlxg_results apply(int rc, mlx_closure f, void** args, size_t n) {
  mlx_vector_array out = mlx_vector_array_new();
  if (rc == 0) {
    mlx_vector_array in = mlxg::vector_of(args, n);
    rc = mlx_closure_apply(&out, f, in);
    mlx_vector_array_free(in);
  }
  if (f.ctx) {
    mlx_closure_free(f);
  }
  return mlxg_end_vector(rc, out);
}

mlxg_results mlxg_custom_vjp(uintptr_t fun, uintptr_t vjp, void** args, size_t n) {
  mlx_closure f = mlxg_closure_new(fun);
  mlx_closure_custom v = mlxg_closure_custom_new(vjp);
  mlx_closure res = {nullptr};
  int rc = mlx_custom_vjp(&res, f, v);
  mlx_closure_free(f);
  mlx_closure_custom_free(v);
  return apply(rc, res, args, n);
}

mlxg_results mlxg_checkpoint(uintptr_t fun, void** args, size_t n) {
  mlx_closure f = mlxg_closure_new(fun);
  mlx_closure res = {nullptr};
  int rc = mlx_checkpoint(&res, f);
  mlx_closure_free(f);
  return apply(rc, res, args, n);
}

char* mlxg_compile_new(uintptr_t id, bool shapeless, void** closure) {
  mlx_closure f = mlxg_closure_new(id);
  mlx_closure res = {nullptr};
  int rc = mlx_detail_compile(&res, f, id, shapeless, nullptr, 0);
  mlx_closure_free(f);
  *closure = res.ctx;
  return mlxg_end_status(rc);
}

mlxg_results mlxg_compiled_call(void* closure, void** args, size_t n) {
  mlx_vector_array out = mlx_vector_array_new();
  mlx_vector_array in = mlxg::vector_of(args, n);
  int rc = mlx_closure_apply(&out, mlx_closure{closure}, in);
  mlx_vector_array_free(in);
  return mlxg_end_vector(rc, out);
}

void mlxg_compiled_free(void* closure, uintptr_t id) {
  mlx_compile_cache cache = {nullptr};
  if (mlx_detail_compile_cache(&cache) == 0) {
    mlx_detail_compile_erase(cache, id);
    mlx_compile_cache_free(cache);
  }
  mlx_closure_free(mlx_closure{closure});
}

} // extern "C"
