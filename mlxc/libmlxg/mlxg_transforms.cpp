// vjp, value_and_grad and jvp. Go calls mlxg_leave after every function here.
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
      return out;
    };
    return checked_gradients(mx::vjp(run, in, mlxg::arrays_of(cotangents, nc)), in);
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
    // Never destroyed: graphs may outlive static objects.
    static const auto& one = *new mx::array(1.0f);
    return checked_gradients(mx::vjp(std::ref(run), primals, {one}), primals);
  });
}

mlxg_results mlxg_jvp(uintptr_t id, const uintptr_t* primals, const uintptr_t* tangents, size_t n) {
  return mlxg::with_graph_lock([&] {
    return mx::jvp(
        [&](const arrays& args) { return mlxg::call_function(id, args); }, mlxg::arrays_of(primals, n),
        mlxg::arrays_of(tangents, n));
  });
}

}  // extern "C"
