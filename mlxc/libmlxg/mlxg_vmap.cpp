// Vmap: a function for one element, run on all.
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "mlx/fast_primitives.h"
#include "mlx/mlx.h"
#include "mlx/primitives.h"
#include "mlx/transforms_impl.h"
#include "mlxg_internal.h"

namespace mx = mlx::core;

using mlxg::arrays;
using mlxg::function;

namespace {

// repeated gives the array a new first axis.
mx::array repeated(const mx::array& a, int size) {
  auto shape = a.shape();
  shape.insert(shape.begin(), size);
  return mx::broadcast_to(a, shape);
}

mx::array to_front(const mx::array& a, int axis) {
  return axis == 0 ? a : mx::moveaxis(a, axis, 0);
}

// vectoriser gives nodes of a graph a new first axis, from the arguments on. MLX's own
// vmap_replace does the same, but leaves the axis wherever a primitive's rule puts it,
// and several rules are right for a first axis only.
class vectoriser {
 public:
  // size is that of the new axis.
  explicit vectoriser(int size) : size_(size) {}

  // set says what stands for a stand-in.
  void set(const mx::array& stand_in, const mx::array& whole) {
    visited_.insert(stand_in.id());
    done_.emplace(stand_in.id(), whole);
  }

  // of gives the node with the axis, or nothing if it depends on no stand-in.
  std::optional<mx::array> of(const mx::array& root) {
    // Post-order without recursion: graphs are deep.
    std::vector<mx::array> todo{root};
    while (!todo.empty()) {
      mx::array a = todo.back();
      auto ready = todo.size();
      if (!visited_.count(a.id())) {
        for (auto& in : a.inputs()) {
          if (!visited_.count(in.id())) {
            todo.push_back(in);
          }
        }
        if (todo.size() > ready) {
          continue;
        }
        finish(a);
      }
      todo.pop_back();
    }
    auto it = done_.find(root.id());
    return it == done_.end() ? std::nullopt : std::optional(it->second);
  }

 private:
  void finish(const mx::array& a) {
    auto outputs = a.outputs();
    for (auto& o : outputs) {
      visited_.insert(o.id());
    }
    arrays inputs;
    std::vector<int> axes;
    bool depends = false;
    for (auto& in : a.inputs()) {
      auto it = done_.find(in.id());
      inputs.push_back(it == done_.end() ? in : it->second);
      axes.push_back(it == done_.end() ? -1 : 0);
      depends = depends || it != done_.end();
    }
    if (!depends) {
      return;
    }
    auto [results, places] = apply(a.primitive(), inputs, axes, outputs.size());
    for (size_t i = 0; i < outputs.size(); i++) {
      auto& r = results.at(i);
      r = places.at(i) < 0 ? repeated(r, size_) : to_front(r, places[i]);
      auto shape = outputs[i].shape();
      shape.insert(shape.begin(), size_);
      if (r.shape() != shape || r.dtype() != outputs[i].dtype()) {
        throw std::runtime_error(
            std::string("[") + a.primitive().name() + "] MLX's rule for vmap is wrong for these operands");
      }
      done_.emplace(outputs[i].id(), r);
    }
  }

  // apply gives what stands for n outputs of a primitive, and the place of the axis in
  // each. Where MLX's rule is wrong or missing, it is put right.
  std::pair<arrays, std::vector<int>> apply(mx::Primitive& p, arrays inputs, std::vector<int> axes, size_t n) {
    std::string name = p.name();
    if (name == "CustomKernel") {
      mlxg::refuse_vmap(std::get<0>(static_cast<const mx::fast::CustomKernel&>(p).state()));
    }
    if (name == "Depends") {
      // It gives its first inputs, once the others are there.
      map_all(inputs, axes, 0, inputs.size());
      auto rest = inputs.begin() + n;
      return {mx::depends({inputs.begin(), rest}, {rest, inputs.end()}), std::vector<int>(n, 0)};
    }
    if (name == "CustomTransforms") {
      // Behind its arguments are its function's outputs, which it keeps from its rule.
      // Ours (see keeping) wants them.
      auto first = inputs.size() - n;
      map_all(inputs, axes, first, inputs.size());
      inputs.insert(inputs.end(), inputs.begin() + first, inputs.end());
      axes.resize(inputs.size(), 0);
    }
    if (name.starts_with("SliceUpdate")) {
      // The rule gives an update without the axis one of size 1, and reads past it.
      map_all(inputs, axes, 0, inputs.size());
    }
    if (name == "DynamicSliceUpdate" && (axes[0] >= 0 || axes[1] >= 0)) {
      // The rule puts an update without the axis into the first element only.
      map_all(inputs, axes, 0, 2);
    }
    if (name == "Convolution" && axes[1] >= 0 && std::get<5>(static_cast<const mx::Convolution&>(p).state()) > 1) {
      // Where the weight alone has the axis, the rule mixes up its groups.
      map_all(inputs, axes, 0, 1);
    }
    auto done = p.vmap(inputs, axes);
    if (name == "NotEqual") {
      done.second = {0};  // the rule gives the operands' axes for that of the result
    }
    return done;
  }

  // map_all gives the axis to those of the inputs first … last−1 that do not have it.
  void map_all(arrays& inputs, std::vector<int>& axes, size_t first, size_t last) {
    for (size_t i = first; i < last; i++) {
      inputs[i] = axes[i] < 0 ? repeated(inputs[i], size_) : inputs[i];
      axes[i] = 0;
    }
  }

  int size_;
  std::unordered_set<std::uintptr_t> visited_;
  std::unordered_map<std::uintptr_t, mx::array> done_;
};

// vectors are the results of a function that ran over an axis of its arguments. A
// result that depends on none of these arguments has no such axis.
struct vectors {
  arrays results;
  std::vector<bool> mapped;  // whether the first axis is the new one
  int size = -1;             // of the new axis
};

// vectorise runs f over the given axes of the arguments, −1 where an argument has none.
vectors vectorise(const function& f, const arrays& args, const std::vector<int>& axes) {
  vectors v;
  for (size_t i = 0; i < args.size(); i++) {
    v.size = axes[i] < 0 ? v.size : args[i].shape(axes[i]);
  }
  if (v.size < 0) {
    // Of a checkpoint inside: it runs its function again, on its arguments only.
    throw std::invalid_argument("a function captures mapped arrays: pass them to it as arguments");
  }
  auto [in, out] = mx::detail::vmap_trace(f, args, axes);
  vectoriser whole(v.size);
  for (size_t i = 0; i < args.size(); i++) {
    if (axes[i] >= 0) {
      whole.set(in[i], to_front(args[i], axes[i]));
    }
  }
  for (auto& o : out) {
    auto r = whole.of(o);
    v.mapped.push_back(r.has_value());
    v.results.push_back(r.value_or(o));
  }
  return v;
}

}  // namespace

namespace mlxg {

void refuse_vmap(const std::string& name) {
  throw std::invalid_argument(
      "[" + name + "] has no rule for Vmap: call it for each element, or once with the axis as one of its own");
}

function vectorised(function f, std::vector<int> axes) {
  return [f = std::move(f), axes = std::move(axes)](const arrays& args) {
    auto v = vectorise(f, args, axes);
    for (size_t i = 0; i < v.results.size(); i++) {
      if (!v.mapped[i]) {
        v.results[i] = repeated(v.results[i], v.size);
      }
    }
    return v.results;
  };
}

}  // namespace mlxg

extern "C" mlxg_results mlxg_vmap(
    uintptr_t fun, const uintptr_t* args, const int* in_axes, size_t n, const int* out_axes, size_t n_out) {
  return mlxg::entering([&] {
    auto f = [fun, n_out](const arrays& a) {
      auto out = mlxg::call_function(fun, a);
      if (n_out != 0 && out.size() != n_out) {
        throw std::invalid_argument(
            "the function has " + std::to_string(out.size()) + " outputs, but there are " + std::to_string(n_out) +
            " output axes");
      }
      return out;
    };
    auto v = vectorise(f, mlxg::arrays_of(args, n), {in_axes, in_axes + n});
    for (size_t i = 0; i < v.results.size(); i++) {
      auto& r = v.results[i];
      int axis = n_out == 0 ? 0 : out_axes[i];
      if (axis == MLXG_UNMAPPED) {
        if (v.mapped[i]) {
          throw std::invalid_argument(
              "output " + std::to_string(i) + " depends on a mapped argument: it needs an axis");
        }
        continue;
      }
      if (!v.mapped[i]) {
        r = repeated(r, v.size);
      }
      int ndim = static_cast<int>(r.ndim());
      if (axis < -ndim || axis >= ndim) {
        throw std::invalid_argument(
            "there is no axis " + std::to_string(axis) + ": output " + std::to_string(i) + " has " +
            std::to_string(ndim));
      }
      r = mx::moveaxis(r, 0, axis);
    }
    return v.results;
  });
}
