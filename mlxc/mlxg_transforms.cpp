// Transforms, but for vmap, and the closures that they call. Go holds the graph lock
// through mlxg_enter around every function here that can reach Go.
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

using mlxg::arrays;
using mlxg::function;

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

using vjp_function = std::function<arrays(const arrays&, const arrays&, const arrays&)>;

// distinct makes every output a node of its own that takes a cotangent: MLX gives
// none to what stop_gradient returned, and one to an array that is there twice,
// and would pair the cotangents with the wrong outputs.
arrays distinct(arrays outputs) {
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

// joined puts lists one behind the other.
arrays joined(std::initializer_list<arrays> lists) {
  arrays all;
  for (auto& l : lists) {
    all.insert(all.end(), l.begin(), l.end());
  }
  return all;
}

// vectorised_vjp is the vjp of f vectorised, where vjp is that of f.
vjp_function vectorised_vjp(vjp_function vjp, std::vector<int> axes) {
  return [vjp = std::move(vjp), axes = std::move(axes)](
             const arrays& primals, const arrays& cotangents, const arrays& outputs) {
    auto np = primals.size(), nc = cotangents.size();
    auto all_axes = axes;
    all_axes.resize(np + nc + outputs.size(), 0);
    auto of_all = [&](const arrays& a) {
      auto p = a.begin() + np, c = p + nc;
      return vjp({a.begin(), p}, {p, c}, {c, a.end()});
    };
    auto grads = mlxg::vectorised(of_all, all_axes)(joined({primals, cotangents, outputs}));
    for (size_t i = 0; i < grads.size(); i++) {
      // An argument that all elements share has the sum of their gradients.
      grads[i] = axes[i] < 0 ? mx::astype(mx::sum(grads[i], 0), primals[i].dtype())
                             : mx::moveaxis(grads[i], 0, axes[i]);
    }
    return grads;
  };
}

using vmap_rule = std::function<
    std::pair<arrays, std::vector<int>>(const arrays&, const std::vector<int>&)>;

// keeping is the vmap rule of a function of np arguments that has a vjp of its own.
// again gives such a function of what the vectoriser has found the outputs to be, for
// the arguments' axes.
template <typename F>
vmap_rule keeping(size_t np, F again) {
  return [=](const arrays& all, const std::vector<int>& all_axes) {
    arrays args(all.begin(), all.begin() + np), outputs(all.begin() + np, all.end());
    std::vector<int> axes(all_axes.begin(), all_axes.begin() + np);
    function known = [outputs](const arrays&) { return outputs; };
    return std::pair{again(known, axes)(args), std::vector<int>(outputs.size(), 0)};
  };
}

// with_vjp is MLX's custom_vjp, but vmap does not forget the vjp.
function with_vjp(function f, vjp_function vjp) {
  return [=](const arrays& args) {
    auto rule = keeping(args.size(), [=](function known, const std::vector<int>& axes) {
      return with_vjp(known, vectorised_vjp(vjp, axes));
    });
    return mx::custom_function(f, vjp, std::nullopt, rule)(args);
  };
}

// checkpointed is MLX's checkpoint, but vmap does not forget it, outputs that take no
// cotangent do not confuse it, and it calls again and not f for the gradient.
function checkpointed(function f, function again) {
  auto vjp = [=](const arrays& primals, const arrays& cotangents, const arrays& outputs) {
    auto run = [&](const arrays& args) { return distinct(again(args)); };
    return mx::vjp(run, mx::depends(primals, outputs), cotangents).second;
  };
  return [=](const arrays& args) {
    auto rule = keeping(args.size(), [=](function known, const std::vector<int>& axes) {
      return checkpointed(known, mlxg::vectorised(again, axes));
    });
    return mx::custom_function(f, vjp, std::nullopt, rule)(args);
  };
}

// vjp_function_of is the C++ function that calls the Go function.
vjp_function vjp_function_of(uintptr_t id) {
  mlx_closure_custom c = mlxg_closure_custom_new(id);
  auto f = *static_cast<vjp_function*>(c.ctx);
  mlx_closure_custom_free(c);
  return f;
}

} // namespace

namespace mlxg {

function function_of(uintptr_t id) {
  mlx_closure c = mlxg_closure_new(id);
  auto f = *static_cast<function*>(c.ctx);
  mlx_closure_free(c);
  return f;
}

} // namespace mlxg

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

mlxg_results mlxg_vjp(
    uintptr_t id,
    void** primals,
    size_t np,
    void** cotangents,
    size_t nc,
    size_t* n_outputs) {
  *n_outputs = 0;
  return mlxg::with_results([&] {
    auto fun = mlxg::function_of(id);
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
    return joined({outputs, vjps});
  });
}

mlxg_results mlxg_value_and_grad(
    uintptr_t id,
    const int* argnums,
    size_t n,
    void** args,
    size_t na,
    size_t* n_outputs) {
  *n_outputs = 0;
  return mlxg::with_results([&] {
    std::vector<int> nums(argnums, argnums + n);
    auto [values, grads] = mx::value_and_grad(mlxg::function_of(id), nums)(mlxg::arrays_of(args, na));
    *n_outputs = values.size();
    return joined({values, grads});
  });
}

mlxg_results mlxg_custom_vjp(uintptr_t fun, uintptr_t vjp, void** args, size_t n) {
  return mlxg::with_results([&] {
    return with_vjp(mlxg::function_of(fun), vjp_function_of(vjp))(mlxg::arrays_of(args, n));
  });
}

mlxg_results mlxg_checkpoint(uintptr_t fun, uintptr_t again, void** args, size_t n) {
  return mlxg::with_results([&] {
    return checkpointed(mlxg::function_of(fun), mlxg::function_of(again))(mlxg::arrays_of(args, n));
  });
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
