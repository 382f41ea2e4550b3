// vmap, with corrections of MLX's rules.
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "mlx/mlx.h"
#include "mlx/primitives.h"
#include "mlx/transforms_impl.h"
#include "mlxg_fast.h"
#include "mlxg_primitive.h"

namespace mx = mlx::core;

using mlxg::arrays;
using mlxg::function;

namespace {

// repeated returns the array broadcast along a new first axis.
mx::array repeated(const mx::array& a, int size) {
  auto shape = a.shape();
  shape.insert(shape.begin(), size);
  return mx::broadcast_to(a, shape);
}

mx::array to_front(const mx::array& a, int axis) {
  return axis == 0 ? a : mx::moveaxis(a, axis, 0);
}

// graph_vmapper maps the nodes of a traced graph over a new first axis, beginning at the arguments. MLX's vmap_replace
// does the same, but leaves the axis at the position that a primitive's rule returns, and several rules of MLX are
// correct for a first axis only (fault vmap-expand-dims-axes).
class graph_vmapper {
 public:
  // size is the length of the mapped axis.
  explicit graph_vmapper(int size) : size_(size) {}

  // set assigns the mapped array to a traced argument.
  void set(const mx::array& traced, const mx::array& mapped) {
    visited_.insert(traced.id());
    done_.emplace(traced.id(), mapped);
  }

  // map returns the mapped array of root, or nothing if root depends on no mapped argument.
  std::optional<mx::array> map(const mx::array& root) {
    // Post-order without recursion, since graphs are deep.
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

  // apply returns the n mapped outputs of a primitive and the position of the mapped axis in each. It corrects rules
  // that are wrong or missing in MLX, and names the faults.
  std::pair<arrays, std::vector<int>> apply(mx::Primitive& p, arrays inputs, std::vector<int> axes, size_t n) {
    std::string name = p.name();
    if (name == "CustomKernel" && !dynamic_cast<const mlxg::wrapper*>(&p)) {
      mlxg::refuse_vmap(std::get<0>(static_cast<const mx::fast::CustomKernel&>(p).state()));
    }
    if (name == "Depends") {  // vmap-depends
      // The outputs equal the first n inputs. The other inputs are dependencies.
      map_all(inputs, axes, 0, inputs.size());
      auto rest = inputs.begin() + n;
      return {mx::depends({inputs.begin(), rest}, {rest, inputs.end()}), std::vector<int>(n, 0)};
    }
    if (name == "CustomTransforms") {
      // The last n inputs are the outputs of the function. MLX does not pass them to the vmap rule. The rule of
      // with_rules reads them, so they are passed twice.
      auto first = inputs.size() - n;
      map_all(inputs, axes, first, inputs.size());
      inputs.insert(inputs.end(), inputs.begin() + first, inputs.end());
      axes.resize(inputs.size(), 0);
    }
    if (name.starts_with("SliceUpdate")) {
      // vmap-slice-update: the rule gives an unmapped update an axis of size 1 and reads beyond it.
      map_all(inputs, axes, 0, inputs.size());
    }
    if (name == "DynamicSliceUpdate" && (axes[0] >= 0 || axes[1] >= 0)) {
      // vmap-slice-update-dynamic: the rule writes an unmapped update to the first element only.
      map_all(inputs, axes, 0, 2);
    }
    if (name == "Convolution" && axes[1] >= 0 && std::get<5>(static_cast<const mx::Convolution&>(p).state()) > 1) {
      // vmap-conv-groups: if only the weight is mapped, the rule confuses the groups.
      map_all(inputs, axes, 0, 1);
    }
    if (name == "Inverse") {
      auto [triangular, upper] = static_cast<const mx::Inverse&>(p).state();
      if (triangular) {  // vmap-triangular-inverse: the rule inverts the whole matrix
        return {{mx::linalg::tri_inv(inputs[0], upper, p.stream())}, {0}};
      }
    }
    auto done = p.vmap(inputs, axes);
    if (name == "NotEqual") {  // vmap-not-equal-axes
      done.second = {0};       // the rule returns the operands' axes instead of the result's
    }
    return done;
  }

  // map_all broadcasts each of the inputs first … last−1 without a mapped axis along a new first axis.
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

// vmap_results holds the results of a mapped function. A result that depends on no mapped argument is not mapped.
struct vmap_results {
  arrays results;
  std::vector<bool> mapped;  // whether the first axis is the mapped one
  int size = -1;             // length of the mapped axis
};

// run_vmap maps f over the given axes of the arguments, −1 for an argument without a mapped axis.
vmap_results run_vmap(const function& f, const arrays& args, const std::vector<int>& axes) {
  vmap_results v;
  for (size_t i = 0; i < args.size(); i++) {
    v.size = axes[i] < 0 ? v.size : args[i].shape(axes[i]);
  }
  if (v.size < 0) {
    // Example: a checkpoint inside the function, whose second run maps only the checkpoint's arguments.
    throw std::invalid_argument("a function captures mapped arrays: pass them to it as arguments");
  }
  auto [in, out] = mx::detail::vmap_trace(f, args, axes);
  graph_vmapper mapper(v.size);
  for (size_t i = 0; i < args.size(); i++) {
    if (axes[i] >= 0) {
      mapper.set(in[i], to_front(args[i], axes[i]));
    }
  }
  for (auto& o : out) {
    auto r = mapper.map(o);
    v.mapped.push_back(r.has_value());
    v.results.push_back(r.value_or(o));
  }
  return v;
}

}  // namespace

namespace mlxg {

void refuse_vmap(const std::string& name) {
  throw std::invalid_argument(
      "[" + name + "] has no rule for Vmap: call it for each element, or outside of Vmap on all elements");
}

function vmap_of(function f, std::vector<int> axes) {
  return [f = std::move(f), axes = std::move(axes)](const arrays& args) {
    auto v = run_vmap(f, args, axes);
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
  return mlxg::with_graph_lock([&] {
    auto f = [fun, n_out](const arrays& a) {
      auto out = mlxg::call_function(fun, a);
      if (n_out != 0 && out.size() != n_out) {
        throw std::invalid_argument(
            "the function has " + std::to_string(out.size()) + " outputs, but there are " + std::to_string(n_out) +
            " output axes");
      }
      return out;
    };
    auto v = run_vmap(f, mlxg::arrays_of(args, n), {in_axes, in_axes + n});
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
            std::to_string(ndim) + " axes");
      }
      r = mx::moveaxis(r, 0, axis);
    }
    return v.results;
  });
}
