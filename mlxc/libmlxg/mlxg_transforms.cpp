// vjp, value_and_grad and jvp. Go calls mlxg_leave after every function here.
#include <algorithm>
#include <cstring>
#include <functional>
#include <sstream>
#include <string>
#include <unordered_set>
#include <vector>

#include "mlx/primitives.h"
#include "mlxg_primitive.h"
#include "mlxg_transforms.h"

namespace mx = mlx::core;

using mlxg::arrays;
using mlxg::stream_of;

namespace {

// checked_gradients returns outputs and gradients. Outside of other transforms, the differentiated outputs lose the
// nodes that carry vjp rules, so evaluations do not visit them. It throws if the shape of a gradient differs from its
// primal's. Some vjp rules of MLX cause this (faults conv-gradient-asymmetric-padding and pad-value-gradient).
// Gradients without elements become zeros, since some kernels of MLX divide by the number of elements.
std::pair<arrays, arrays> checked_gradients(std::pair<arrays, arrays> both, const arrays& primals) {
  for (size_t i = 0; i < primals.size(); i++) {
    auto& shape = both.second.at(i).shape();
    if (shape != primals[i].shape()) {
      std::ostringstream text;
      text << "gradient " << i << " has the shape " << shape << " instead of " << primals[i].shape()
           << ": MLX's vjp is wrong for an operation of the function";
      throw std::runtime_error(text.str());
    }
    if (primals[i].size() == 0) {
      both.second[i] = mx::zeros(shape, primals[i].dtype(), stream_of(both.second[i]));
    }
  }
  if (mlxg::depth() == 1) {
    for (auto& o : both.first) {
      while (auto in = mlxg::forwarded(o)) {
        o = mx::array(*in);
      }
    }
  }
  return both;
}

void mark_traced(mx::array a) {
  a.set_tracer(true);
  for (auto& s : a.siblings()) {
    s.set_tracer(true);
  }
}

// Calls visit for the arrays in the graph of `outputs` that `enters` accepts, the inputs of an array before the array.
// The walk ends at the other arrays.
template <class Enters, class Visit>
void walk_graph(const arrays& outputs, Enters enters, Visit visit) {
  struct step {
    const mx::array* a;
    bool inputs_visited;
  };
  std::unordered_set<std::uintptr_t> seen;
  std::vector<step> steps;
  for (auto& o : outputs) {
    steps.push_back({&o, false});
  }
  while (!steps.empty()) {
    auto [a, inputs_visited] = steps.back();
    steps.pop_back();
    if (inputs_visited) {
      visit(*a);
    } else if (enters(*a) && seen.insert(a->id()).second) {
      steps.push_back({a, true});
      for (auto& in : a->inputs()) {
        steps.push_back({&in, false});
      }
    }
  }
}

// MLX's vjp and jvp clear the mark of traced arrays in the whole graph of the function's outputs, also of arrays that
// an outer transform traces. Evaluating such an array would drop its graph, and the outer gradient would become zero
// (fault nested-gradient-untraces). An outer_traces sets these marks again, at the latest at its end. While a vjp rule
// runs, every array counts as traced, so it marks more arrays than necessary.
class outer_traces {
 public:
  ~outer_traces() { restore(); }

  // Finds the arrays that an outer transform traces. The function of the inner transform has computed the outputs from
  // copies of the primals.
  void find(const arrays& primals, const arrays& copies, const arrays& outputs) {
    if (mlxg::depth() == 1) {
      return;
    }
    std::unordered_set<std::uintptr_t> outer, inner;
    auto add_outer = [&](auto& a) {
      outer.insert(a.id());
      traced_.push_back(a);
    };
    for (size_t i = 0; i < primals.size(); i++) {
      inner.insert(copies[i].id());
      if (primals[i].is_tracer()) {
        add_outer(copies[i]);
      }
    }
    auto enters = [&](auto& a) { return a.is_tracer() && !inner.count(a.id()); };
    const bool in_rule = mx::array(0.0f).is_tracer();
    walk_graph(outputs, enters, [&](auto& a) {
      if (in_rule && !a.has_primitive()) {
        return;
      }
      auto depends_on = [&](auto& set) {
        return std::any_of(a.inputs().begin(), a.inputs().end(), [&](auto& in) { return set.count(in.id()) > 0; });
      };
      bool is_inner = depends_on(inner);
      if (is_inner) {
        inner.insert(a.id());
      }
      if (!is_inner || depends_on(outer)) {
        add_outer(a);
      }
    });
  }

  // Marks the found arrays, and the arrays in the graphs of the transform's results that depend on marked ones.
  void mark(const arrays& results) {
    restore();
    if (mlxg::depth() == 1) {
      return;
    }
    auto enters = [](auto& a) { return !a.is_tracer(); };
    walk_graph(results, enters, [](auto& a) {
      if (std::any_of(a.inputs().begin(), a.inputs().end(), [](auto& in) { return in.is_tracer(); })) {
        mark_traced(a);
      }
    });
  }

 private:
  void restore() {
    for (auto& a : traced_) {
      mark_traced(a);
    }
    traced_.clear();
  }

  arrays traced_;
};

}  // namespace

namespace mlxg {

mx::Stream stream_of(const mx::array& a) {
  return a.has_primitive() ? a.primitive().stream() : *static_cast<mx::Stream*>(mlxg_real_stream());
}

// If a function returns an array twice, MLX uses only one of its cotangents (fault vjp-output-twice).
arrays distinct_outputs(arrays outputs) {
  std::unordered_set<std::uintptr_t> seen;
  for (auto& o : outputs) {
    bool stopped = o.has_primitive() && std::strcmp(o.primitive().name(), "StopGradient") == 0;
    if (!seen.insert(o.id()).second || stopped) {
      o = mx::copy(o, stream_of(o));
    }
  }
  return outputs;
}

}  // namespace mlxg

extern "C" {

mlxg_results mlxg_vjp(uintptr_t id, const uintptr_t* primals, size_t np, const uintptr_t* cotangents, size_t nc) {
  return mlxg::with_graph_lock([&] {
    auto in = mlxg::arrays_of(primals, np);
    outer_traces traces;
    auto run = [&](const arrays& args) {
      auto out = mlxg::distinct_outputs(mlxg::call_function(id, args));
      if (out.size() != nc) {
        throw std::invalid_argument(
            "the function has " + std::to_string(out.size()) + " outputs, but there are " + std::to_string(nc) +
            " cotangents");
      }
      for (size_t i = 0; i < nc; i++) {
        auto& c = mlxg::array_of(cotangents[i]);
        if (c.shape() != out[i].shape() || c.dtype() != out[i].dtype()) {
          std::ostringstream text;
          text << "output " << i << " is " << out[i].dtype() << out[i].shape() << ", but its cotangent is " << c.dtype()
               << c.shape();
          throw std::invalid_argument(text.str());
        }
      }
      traces.find(in, args, out);
      return out;
    };
    auto both = checked_gradients(mx::vjp(run, in, mlxg::arrays_of(cotangents, nc)), in);
    traces.mark(both.second);
    return both;
  });
}

mlxg_results mlxg_value_and_grad(uintptr_t id, const int* argnums, size_t n, const uintptr_t* args, size_t na) {
  // MLX's value_and_grad does the same, but copies the function, the lists and the results, and allocates a cotangent.
  return mlxg::with_graph_lock([&] {
    auto all = mlxg::arrays_of(args, na);
    arrays primals;
    primals.reserve(n);
    for (size_t i = 0; i < n; i++) {
      primals.push_back(all[argnums[i]]);
    }
    outer_traces traces;
    auto run = [&](const arrays& traced) {
      for (size_t i = 0; i < n; i++) {
        all[argnums[i]] = traced[i];
      }
      auto outputs = mlxg::call_function(id, all);
      for (size_t i = 1; i < outputs.size(); i++) {
        outputs[i] = mx::stop_gradient(outputs[i], stream_of(outputs[i]));
      }
      traces.find(primals, traced, outputs);
      return outputs;
    };
    // Never destroyed: graphs may outlive static objects.
    static const auto& one = *new mx::array(1.0f);
    auto both = checked_gradients(mx::vjp(std::ref(run), primals, {one}), primals);
    traces.mark(both.second);
    return both;
  });
}

mlxg_results mlxg_jvp(uintptr_t id, const uintptr_t* primals, const uintptr_t* tangents, size_t n) {
  return mlxg::with_graph_lock([&] {
    auto in = mlxg::arrays_of(primals, n);
    outer_traces traces;
    auto run = [&](const arrays& args) {
      auto outputs = mlxg::call_function(id, args);
      traces.find(in, args, outputs);
      return outputs;
    };
    auto both = mx::jvp(run, in, mlxg::arrays_of(tangents, n));
    traces.mark(both.second);
    return both;
  });
}

}  // extern "C"
