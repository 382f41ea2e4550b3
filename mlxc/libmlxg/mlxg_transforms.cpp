// Transforms, but for vmap, and the closures that they call. Go holds the graph lock
// through mlxg_enter around every function here that can reach Go.
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <unordered_set>
#include <vector>

#include "mlx/mlx.h"
#include "mlx/primitives.h"
#include "mlxg_immortal.h"
#include "mlxg_internal.h"

namespace mx = mlx::core;

using mlxg::arrays;
using mlxg::function;

namespace {

// released collects the ids of closures that MLX no longer uses. MLX may drop a
// closure on any thread, so Go is not called from here; it asks.
mlxg::immortal<std::mutex> releasing;
auto& released_lock = releasing.value;
mlxg::immortal<std::vector<uintptr_t>> all_released;
auto& released = all_released.value;

void release_closure(void* payload) {
  mlxg::release_id(reinterpret_cast<uintptr_t>(payload));
}

// members makes the handles that a Go function is called with.
class members {
 public:
  explicit members(const arrays& a) {
    for (auto& member : a) {
      handles_.push_back(new mx::array(member));
    }
    go_ = {handles_.data(), handles_.size(), mlxg_current_scope()};
  }
  explicit members(const mlx_vector_array v) : members(*static_cast<arrays*>(v.ctx)) {}
  members(const members&) = delete;

  operator mlxg_members*() { return &go_; }

 private:
  mx::SmallVector<void*> handles_;
  mlxg_members go_;
};

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
    // The rule's results have the new axis first.
    std::vector<int> first(mlx_vector_array_size(*out), 0);
    *out_axes = mlx_vector_int_new_data(first.data(), first.size());
  }
  return failed;
}

using vjp_function = std::function<arrays(const arrays&, const arrays&, const arrays&)>;
// The tangents are those of the arguments that argnums names.
using jvp_function = std::function<arrays(const arrays&, const arrays&, const std::vector<int>& argnums)>;
using vmap_function = std::function<std::pair<arrays, std::vector<int>>(const arrays&, const std::vector<int>&)>;

// stream_of is the stream of the work behind an array, the current one if it has none.
mx::Stream stream_of(const mx::array& a) {
  return a.has_primitive() ? a.primitive().stream() : *static_cast<mx::Stream*>(mlxg_real_stream());
}

// distinct makes every output a node of its own that takes a cotangent: MLX gives
// none to what stop_gradient returned, and one to an array that is there twice,
// and would pair the cotangents with the wrong outputs.
arrays distinct(arrays outputs) {
  std::unordered_set<std::uintptr_t> seen;
  for (auto& o : outputs) {
    bool stopped = o.has_primitive() && std::strcmp(o.primitive().name(), "StopGradient") == 0;
    if (!seen.insert(o.id()).second || stopped) {
      o = mx::copy(o, stream_of(o));
    }
  }
  return outputs;
}

// checked gives outputs and gradients as they are, if every gradient has the shape of what it
// is the gradient of. Some rules of MLX's are wrong: that of its pad, with which it makes the
// gradient of a convolution's weight, takes sizes from behind its lists.
std::pair<arrays, arrays> checked(std::pair<arrays, arrays> both, const arrays& primals) {
  for (size_t i = 0; i < primals.size(); i++) {
    auto& shape = both.second.at(i).shape();
    if (shape != primals[i].shape()) {
      std::ostringstream text;
      text << "gradient " << i << " has the shape " << shape << " instead of " << primals[i].shape()
           << ": a rule of MLX's is wrong for an operation of the function";
      throw std::runtime_error(text.str());
    }
    if (primals[i].size() == 0) {
      // Nothing to compute, which some kernels of MLX's divide by the number of.
      both.second[i] = mx::zeros(shape, primals[i].dtype(), stream_of(both.second[i]));
    }
  }
  return both;
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
      grads[i] =
          axes[i] < 0 ? mx::astype(mx::sum(grads[i], 0), primals[i].dtype()) : mx::moveaxis(grads[i], 0, axes[i]);
    }
    return grads;
  };
}

// vectorised_jvp is the jvp of f vectorised, where jvp is that of f. A tangent has the
// axis that its primal has.
jvp_function vectorised_jvp(jvp_function jvp, std::vector<int> axes) {
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
    return mlxg::vectorised(of_all, all_axes)(joined({primals, tangents}));
  };
}

// vjp_of is the vjp that f has by itself. It runs f again; with late set, not before the
// outputs are there, which is when the memory for it is free.
vjp_function vjp_of(function f, bool late) {
  return [f = std::move(f), late](const arrays& primals, const arrays& cotangents, const arrays& outputs) {
    auto run = [&](const arrays& args) { return distinct(f(args)); };
    return mx::vjp(run, late ? mx::depends(primals, outputs) : primals, cotangents).second;
  };
}

// jvp_of is the jvp that f has by itself.
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

// rules is a function with transforms of its own; what is missing is f's.
struct rules {
  function f;
  vjp_function vjp = nullptr;
  jvp_function jvp = nullptr;
  vmap_function vmap = nullptr;
  bool checkpoint = false;  // f's vjp waits for the outputs
};

// with_rules is MLX's custom_function, but a transform does not forget the rules of the
// others. run gives the outputs, r.f what the rules that are missing are taken of.
function with_rules(function run, rules r) {
  return [=](const arrays& args) {
    auto n = args.size();
    // The vectoriser gives the rule the outputs too, as it has found them to be.
    auto vmap = [=](const arrays& all, const std::vector<int>& all_axes) {
      arrays args(all.begin(), all.begin() + n), outputs(all.begin() + n, all.end());
      std::vector<int> axes(all_axes.begin(), all_axes.begin() + n);
      function known = [=](const arrays&) { return outputs; };
      function rule = [=](const arrays& a) { return r.vmap(a, axes).first; };
      rules mapped{r.vmap ? rule : mlxg::vectorised(r.f, axes)};
      mapped.checkpoint = r.checkpoint;
      if (r.vjp) {
        mapped.vjp = vectorised_vjp(r.vjp, axes);
      }
      if (r.jvp) {
        mapped.jvp = vectorised_jvp(r.jvp, axes);
      }
      return std::pair{with_rules(r.vmap ? rule : known, mapped)(args), std::vector<int>(outputs.size(), 0)};
    };
    return mx::custom_function(run, r.vjp ? r.vjp : vjp_of(r.f, r.checkpoint), r.jvp ? r.jvp : jvp_of(r.f), vmap)(args);
  };
}

// The C++ functions that call the Go function of a rule; empty for the id 0.
vjp_function vjp_function_of(uintptr_t id) {
  if (id == 0) {
    return nullptr;
  }
  mlx_closure_custom c = mlx_closure_custom_new_func_payload(call_custom, reinterpret_cast<void*>(id), release_closure);
  auto f = *static_cast<vjp_function*>(c.ctx);
  mlx_closure_custom_free(c);
  return f;
}

jvp_function jvp_function_of(uintptr_t id) {
  if (id == 0) {
    return nullptr;
  }
  mlx_closure_custom_jvp c =
      mlx_closure_custom_jvp_new_func_payload(call_jvp, reinterpret_cast<void*>(id), release_closure);
  auto f = *static_cast<jvp_function*>(c.ctx);
  mlx_closure_custom_jvp_free(c);
  // Go gets a tangent for every argument.
  return [f](const arrays& primals, const arrays& tangents, const std::vector<int>& argnums) {
    arrays all;
    for (auto& p : primals) {
      all.push_back(mx::zeros_like(p, stream_of(p)));
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

void release_id(uintptr_t id) {
  std::lock_guard<std::mutex> g(released_lock);
  released.push_back(id);
  releasable(1);
}

arrays call_function(uintptr_t id, const arrays& args) {
  arrays results;
  if (mlxg::go.call_closure(id, members(args), &results) != 0) {
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
  mlxg::releasable(-static_cast<int>(n));
  return n;
}

mlxg_results mlxg_vjp(uintptr_t id, const uintptr_t* primals, size_t np, const uintptr_t* cotangents, size_t nc) {
  return mlxg::entering([&] {
    auto in = mlxg::arrays_of(primals, np);
    auto run = [&](const arrays& args) {
      auto out = distinct(mlxg::call_function(id, args));
      if (out.size() != nc) {
        throw std::invalid_argument(
            "the function has " + std::to_string(out.size()) + " outputs, but there are " + std::to_string(nc) +
            " cotangents");
      }
      for (size_t i = 0; i < nc; i++) {
        auto& c = mlxg::array_of(cotangents[i]);
        if (c.shape() != out[i].shape() || c.dtype() != out[i].dtype()) {
          std::ostringstream text;
          text << "output " << i << " has the shape and dtype " << out[i].dtype() << out[i].shape()
               << ", but its cotangent " << c.dtype() << c.shape();
          throw std::invalid_argument(text.str());
        }
      }
      return out;
    };
    return checked(mx::vjp(run, in, mlxg::arrays_of(cotangents, nc)), in);
  });
}

mlxg_results mlxg_value_and_grad(uintptr_t id, const int* argnums, size_t n, const uintptr_t* args, size_t na) {
  // MLX's value_and_grad is this too, but copies the function, the lists and the results,
  // and makes the cotangent anew.
  return mlxg::entering([&] {
    auto all = mlxg::arrays_of(args, na);
    arrays primals;
    primals.reserve(n);
    for (size_t i = 0; i < n; i++) {
      primals.push_back(all[argnums[i]]);
    }
    auto run = [&](const arrays& traced) {
      for (size_t i = 0; i < n; i++) {
        all[argnums[i]] = traced[i];
      }
      auto outputs = mlxg::call_function(id, all);
      for (size_t i = 1; i < outputs.size(); i++) {
        outputs[i] = mx::stop_gradient(outputs[i], stream_of(outputs[i]));
      }
      return outputs;
    };
    // Leaked on purpose: graphs may outlive what is torn down at the end.
    static const auto& one = *new mx::array(1.0f);
    return checked(mx::vjp(std::ref(run), primals, {one}), primals);
  });
}

mlxg_results mlxg_jvp(uintptr_t id, const uintptr_t* primals, const uintptr_t* tangents, size_t n) {
  return mlxg::entering([&] {
    return mx::jvp(
        [&](const arrays& args) { return mlxg::call_function(id, args); }, mlxg::arrays_of(primals, n),
        mlxg::arrays_of(tangents, n));
  });
}

mlxg_results mlxg_custom_function(
    uintptr_t fun, uintptr_t vjp, uintptr_t jvp, uintptr_t vmap, const uintptr_t* args, size_t n) {
  return mlxg::entering([&] {
    auto f = mlxg::function_of(fun);
    rules r{f, vjp_function_of(vjp), jvp_function_of(jvp), vmap_function_of(vmap)};
    return with_rules(f, r)(mlxg::arrays_of(args, n));
  });
}

mlxg_results mlxg_checkpoint(uintptr_t fun, uintptr_t again, const uintptr_t* args, size_t n) {
  return mlxg::entering([&] {
    rules r{mlxg::function_of(again)};
    r.checkpoint = true;
    return with_rules(mlxg::function_of(fun), r)(mlxg::arrays_of(args, n));
  });
}

}  // extern "C"
