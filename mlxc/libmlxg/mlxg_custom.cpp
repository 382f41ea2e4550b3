// Functions with custom transforms, and checkpoints.
#include <functional>
#include <vector>

#include "mlx/mlx.h"
#include "mlxg_closure.h"
#include "mlxg_transforms.h"

namespace mx = mlx::core;

using mlxg::arrays;
using mlxg::function;
using mlxg::members;
using mlxg::release_closure;

namespace {

int call_custom(
    mlx_vector_array* out,
    const mlx_vector_array primals,
    const mlx_vector_array cotangents,
    const mlx_vector_array outputs,
    void* payload) {
  *out = mlx_vector_array_new();
  return mlxg::go.call_custom(
      reinterpret_cast<uintptr_t>(payload), members(primals), members(cotangents), members(outputs), out->ctx);
}

int call_jvp(
    mlx_vector_array* out,
    const mlx_vector_array primals,
    const mlx_vector_array tangents,
    const int*,
    size_t,
    void* payload) {
  *out = mlx_vector_array_new();
  return mlxg::go.call_jvp(reinterpret_cast<uintptr_t>(payload), members(primals), members(tangents), out->ctx);
}

int call_vmap(
    mlx_vector_array* out,
    mlx_vector_int* out_axes,
    const mlx_vector_array args,
    const int* axes,
    size_t,
    void* payload) {
  *out = mlx_vector_array_new();
  int failed =
      mlxg::go.call_vmap(reinterpret_cast<uintptr_t>(payload), members(args), const_cast<int*>(axes), out->ctx);
  if (!failed) {
    // Contract of the Go function: the mapped axis is the first of each result.
    std::vector<int> first(mlx_vector_array_size(*out), 0);
    *out_axes = mlx_vector_int_new_data(first.data(), first.size());
  }
  return failed;
}

using mlxg::vjp_function;

// The tangents belong to the arguments that argnums lists.
using jvp_function = std::function<arrays(const arrays&, const arrays&, const std::vector<int>& argnums)>;
using vmap_function = std::function<std::pair<arrays, std::vector<int>>(const arrays&, const std::vector<int>&)>;

// concatenated returns the elements of all lists in order.
arrays concatenated(std::initializer_list<arrays> lists) {
  arrays all;
  for (auto& l : lists) {
    all.insert(all.end(), l.begin(), l.end());
  }
  return all;
}

// vmap_vjp returns the vjp of vmap_of(f, axes), given the vjp of f.
vjp_function vmap_vjp(vjp_function vjp, std::vector<int> axes) {
  return [vjp = std::move(vjp), axes = std::move(axes)](
             const arrays& primals, const arrays& cotangents, const arrays& outputs) {
    auto np = primals.size(), nc = cotangents.size();
    auto all_axes = axes;
    all_axes.resize(np + nc + outputs.size(), 0);
    auto of_all = [&](const arrays& a) {
      auto p = a.begin() + np, c = p + nc;
      return vjp({a.begin(), p}, {p, c}, {c, a.end()});
    };
    auto grads = mlxg::vmap_of(of_all, all_axes)(concatenated({primals, cotangents, outputs}));
    for (size_t i = 0; i < grads.size(); i++) {
      // The gradient of an argument without a mapped axis is the sum over the axis.
      grads[i] =
          axes[i] < 0 ? mx::astype(mx::sum(grads[i], 0), primals[i].dtype()) : mx::moveaxis(grads[i], 0, axes[i]);
    }
    return grads;
  };
}

// vmap_jvp returns the jvp of vmap_of(f, axes), given the jvp of f. A tangent has the mapped axis of its primal.
jvp_function vmap_jvp(jvp_function jvp, std::vector<int> axes) {
  return [jvp = std::move(jvp), axes = std::move(axes)](
             const arrays& primals, const arrays& tangents, const std::vector<int>& argnums) {
    auto np = primals.size();
    auto all_axes = axes;
    for (auto i : argnums) {
      all_axes.push_back(axes[i]);
    }
    auto of_all = [&](const arrays& a) {
      auto t = a.begin() + np;
      return jvp({a.begin(), t}, {t, a.end()}, argnums);
    };
    return mlxg::vmap_of(of_all, all_axes)(concatenated({primals, tangents}));
  };
}

// vjp_of returns the vjp of f, which runs f again. With after_outputs set, the second run begins after the outputs are
// computed, so it can reuse the memory of the first run.
vjp_function vjp_of(function f, bool after_outputs) {
  return [f = std::move(f), after_outputs](const arrays& primals, const arrays& cotangents, const arrays& outputs) {
    auto run = [&](const arrays& args) { return mlxg::distinct_outputs(f(args)); };
    return mx::vjp(run, after_outputs ? mx::depends(primals, outputs) : primals, cotangents).second;
  };
}

// jvp_of returns the jvp of f.
jvp_function jvp_of(function f) {
  return [f = std::move(f)](const arrays& primals, const arrays& tangents, const std::vector<int>& argnums) {
    arrays moving;
    for (auto i : argnums) {
      moving.push_back(primals[i]);
    }
    auto run = [&](const arrays& args) {
      auto all = primals;
      for (size_t i = 0; i < argnums.size(); i++) {
        all[argnums[i]] = args[i];
      }
      return f(all);
    };
    return mx::jvp(run, moving, tangents).second;
  };
}

// rules holds the custom transforms of f. A missing one is derived from f.
struct rules {
  function f;
  vjp_function vjp = nullptr;
  jvp_function jvp = nullptr;
  vmap_function vmap = nullptr;
  bool checkpoint = false;  // the derived vjp runs f after the outputs are computed
};

// with_rules is MLX's custom_function with rules that survive transforms: MLX drops the vjp and jvp rules under vmap
// (fault vmap-custom-vjp). run computes the outputs. Missing rules are derived from r.f.
function with_rules(function run, rules r) {
  return [=](const arrays& args) {
    auto n = args.size();
    // graph_vmapper passes the mapped outputs after the arguments.
    auto vmap = [=](const arrays& all, const std::vector<int>& all_axes) {
      arrays args(all.begin(), all.begin() + n), outputs(all.begin() + n, all.end());
      std::vector<int> axes(all_axes.begin(), all_axes.begin() + n);
      function known = [=](const arrays&) { return outputs; };
      function rule = [=](const arrays& a) { return r.vmap(a, axes).first; };
      rules mapped{r.vmap ? rule : mlxg::vmap_of(r.f, axes)};
      mapped.checkpoint = r.checkpoint;
      if (r.vjp) {
        mapped.vjp = vmap_vjp(r.vjp, axes);
      }
      if (r.jvp) {
        mapped.jvp = vmap_jvp(r.jvp, axes);
      }
      return std::pair{with_rules(r.vmap ? rule : known, mapped)(args), std::vector<int>(outputs.size(), 0)};
    };
    return mx::custom_function(run, r.vjp ? r.vjp : vjp_of(r.f, r.checkpoint), r.jvp ? r.jvp : jvp_of(r.f), vmap)(args);
  };
}

// The functions below return a C++ function that calls the Go function of a rule, or an empty function for the id 0.
jvp_function jvp_function_of(uintptr_t id) {
  if (id == 0) {
    return nullptr;
  }
  mlx_closure_custom_jvp c =
      mlx_closure_custom_jvp_new_func_payload(call_jvp, reinterpret_cast<void*>(id), release_closure);
  auto f = *static_cast<jvp_function*>(c.ctx);
  mlx_closure_custom_jvp_free(c);
  // The Go function expects a tangent for every argument.
  return [f](const arrays& primals, const arrays& tangents, const std::vector<int>& argnums) {
    arrays all;
    for (auto& p : primals) {
      all.push_back(mx::zeros_like(p, mlxg::stream_of(p)));
    }
    for (size_t i = 0; i < argnums.size(); i++) {
      all[argnums[i]] = tangents[i];
    }
    return f(primals, all, argnums);
  };
}

vmap_function vmap_function_of(uintptr_t id) {
  if (id == 0) {
    return nullptr;
  }
  mlx_closure_custom_vmap c =
      mlx_closure_custom_vmap_new_func_payload(call_vmap, reinterpret_cast<void*>(id), release_closure);
  auto f = *static_cast<vmap_function*>(c.ctx);
  mlx_closure_custom_vmap_free(c);
  return f;
}

}  // namespace

namespace mlxg {

vjp_function vjp_function_of(uintptr_t id) {
  if (id == 0) {
    return nullptr;
  }
  mlx_closure_custom c = mlx_closure_custom_new_func_payload(call_custom, reinterpret_cast<void*>(id), release_closure);
  auto f = *static_cast<vjp_function*>(c.ctx);
  mlx_closure_custom_free(c);
  return f;
}

arrays custom_vjp(function f, vjp_function vjp, const arrays& args) {
  rules r{f};
  r.vjp = std::move(vjp);
  return with_rules(f, r)(args);
}

}  // namespace mlxg

extern "C" {

mlxg_results mlxg_custom_function(
    uintptr_t fun, uintptr_t vjp, uintptr_t jvp, uintptr_t vmap, const uintptr_t* args, size_t n) {
  return mlxg::with_graph_lock([&] {
    auto f = mlxg::function_of(fun);
    rules r{f, mlxg::vjp_function_of(vjp), jvp_function_of(jvp), vmap_function_of(vmap)};
    return with_rules(f, r)(mlxg::arrays_of(args, n));
  });
}

mlxg_results mlxg_checkpoint(uintptr_t fun, uintptr_t again, const uintptr_t* args, size_t n) {
  return mlxg::with_graph_lock([&] {
    rules r{mlxg::function_of(again)};
    r.checkpoint = true;
    return with_rules(mlxg::function_of(fun), r)(mlxg::arrays_of(args, n));
  });
}

}  // extern "C"
