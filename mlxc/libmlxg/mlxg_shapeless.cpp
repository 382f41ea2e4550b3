// Checks of shapeless traces: whether the graph of a function depends on the shapes of its arguments, and whether the
// operands of an imported graph have shapes that its operations accept.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <typeinfo>
#include <utility>
#include <vector>

#include "mlx/primitives.h"
#include "mlxg_internal.h"

namespace mx = mlx::core;

namespace {

// same_primitive compares the primitives of two nodes.
bool same_primitive(const mx::array& a, const mx::array& b) {
  auto &p = a.primitive(), &q = b.primitive();
  if (&p == &q) {
    return true;
  }
  if (typeid(p) != typeid(q) || p.stream() != q.stream()) {
    return false;
  }
  if (auto fused = dynamic_cast<mx::Compiled*>(&p)) {
    return fused->lib_name() == static_cast<mx::Compiled&>(q).lib_name();
  }
  std::string name = p.name();
  if (name == "Broadcast") {
    // The stored shape is the output's. With several operands, MLX computes it from theirs.
    return a.shape() == b.shape() || a.inputs().size() > 1;
  }
  // MLX does not compare Expm1 and Log1p, which have no parameters.
  return name == "Expm1" || name == "Log1p" || p.is_equivalent(q);
}

bool same_constant(const mx::array& a, const mx::array& b) {
  return a.shape() == b.shape() && a.is_available() && b.is_available() && a.flags().row_contiguous &&
         b.flags().row_contiguous && std::memcmp(a.data<char>(), b.data<char>(), a.nbytes()) == 0;
}

// same_node compares two nodes, but not their inputs, and their shapes only if same_shapes is set.
bool same_node(const mx::array& a, const mx::array& b, bool same_shapes) {
  if (a.dtype() != b.dtype() || a.ndim() != b.ndim() || a.has_primitive() != b.has_primitive() ||
      a.inputs().size() != b.inputs().size() || a.siblings().size() != b.siblings().size()) {
    return false;
  }
  if (!a.has_primitive()) {
    return same_constant(a, b);
  }
  auto x = a.outputs(), y = b.outputs();
  for (size_t i = 0; i < x.size(); i++) {
    if ((same_shapes && x[i].shape() != y[i].shape()) || (x[i].id() == a.id()) != (y[i].id() == b.id())) {
      return false;
    }
  }
  return same_primitive(a, b);
}

// Operations whose operands have the output's shape.
constexpr const char* elementwise[] = {
    "Abs",      "Add",           "ArcCos",       "ArcCosh",    "ArcSin",     "ArcSinh",    "ArcTan",    "ArcTan2",
    "ArcTanh",  "ArgSort",       "AsType",       "BitwiseAnd", "BitwiseOr",  "BitwiseXor", "LeftShift", "RightShift",
    "Ceil",     "BitwiseInvert", "Conjugate",    "Copy",       "Cos",        "Cosh",       "Divide",    "DivMod",
    "Equal",    "NaNEqual",      "Erf",          "ErfInv",     "Exp",        "Expm1",      "Floor",     "FloorDivide",
    "Full",     "Greater",       "GreaterEqual", "Imag",       "Less",       "LessEqual",  "Log",       "Log2",
    "Log10",    "Log1p",         "LogAddExp",    "LogicalAnd", "LogicalNot", "LogicalOr",  "Maximum",   "Minimum",
    "Multiply", "Negative",      "NotEqual",     "Power",      "Real",       "Remainder",  "Round",     "Rsqrt",
    "Select",   "Sigmoid",       "Sign",         "Sin",        "Sinh",       "Softmax",    "Sort",      "Sqrt",
    "Square",   "StopGradient",  "Subtract",     "Tan",        "Tanh"};

// Operations that accept all shapes of a fixed number of axes, or whose output_shapes checks them.
constexpr const char* any_shapes[] = {"Transpose",     "ExpandDims",       "Flatten", "Broadcast",
                                      "BroadcastAxes", "NumberOfElements", "Arange"};

constexpr const char* reductions[] = {"And", "Or", "Sum", "Prod", "Min", "Max", "ArgReduce", "LogSumExp"};

bool is_any(const std::string& name, const auto& names) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool same_batch(const mx::array& a, const mx::array& b) {
  return a.ndim() == b.ndim() && std::equal(a.shape().begin(), a.shape().end() - 2, b.shape().begin());
}

bool same_except(const mx::array& a, const mx::array& b, int axis) {
  for (int i = 0; i < a.ndim(); i++) {
    if (i != axis && a.shape(i) != b.shape(i)) {
      return false;
    }
  }
  return a.ndim() == b.ndim();
}

// accepts reports whether an operation computes its output from operands of these shapes. It reports false for
// operations that it does not know.
bool accepts(const mx::array& out) {
  const auto& in = out.inputs();
  const std::string name = out.primitive().name();
  auto all = [&](auto&& fits) { return std::all_of(in.begin(), in.end(), fits); };
  if (is_any(name, elementwise)) {
    return all([&](auto& a) { return a.shape() == out.shape(); });
  }
  if (is_any(name, any_shapes)) {
    return true;
  }
  if (name == "Squeeze" || name == "Unflatten" || name == "Reshape") {
    return in[0].size() == out.size();
  }
  // mlxgrad replaces some of these operations if an operand is empty, when it traces the function.
  if (!all([](auto& a) { return a.size() > 0; })) {
    return false;
  }
  if (is_any(name, reductions)) {
    return true;
  }
  if (name == "Concatenate") {
    int axis = static_cast<mx::Concatenate&>(out.primitive()).state();
    return all([&](auto& a) { return same_except(a, out, axis); });
  }
  if (name == "Matmul" || name == "AddMM") {
    return same_batch(in[0], in[1]) && in[0].shape(-1) == in[1].shape(-2) &&
           (in.size() == 2 || in[2].shape() == out.shape());
  }
  if (name == "Gather") {
    auto sizes = static_cast<mx::Gather&>(out.primitive()).state().second;
    for (int i = 0; i < sizes.size(); i++) {
      if (sizes[i] > in[0].shape(i)) {
        return false;
      }
    }
    return std::all_of(in.begin() + 1, in.end(), [&](auto& ids) { return ids.shape() == in[1].shape(); });
  }
  if (name == "GatherAxis") {
    return same_except(in[0], in[1], static_cast<mx::GatherAxis&>(out.primitive()).state());
  }
  if (name == "RMSNorm" || name == "LayerNorm") {
    return std::all_of(in.begin() + 1, in.end(), [&](auto& w) { return w.ndim() == 0 || w.shape(0) == out.shape(-1); });
  }
  if (name == "Convolution") {
    return in[0].shape(-1) == in[1].shape(-1) * std::get<5>(static_cast<mx::Convolution&>(out.primitive()).state());
  }
  return false;
}

}  // namespace

std::string mlxg::difference(const arrays& a, const arrays& b, const arrays& a_args, const arrays& b_args) {
  std::vector<std::pair<mx::array, mx::array>> pairs;
  std::set<std::pair<uintptr_t, uintptr_t>> seen;
  auto add = [&](const arrays& a, const arrays& b) {
    for (size_t i = 0; i < a.size() && i < b.size(); i++) {
      if (a[i].id() != b[i].id() && seen.emplace(a[i].id(), b[i].id()).second) {
        pairs.emplace_back(a[i], b[i]);
      }
    }
  };
  add(a_args, b_args);
  pairs.clear();  // arguments count as equal
  add(a, b);
  for (size_t i = 0; i < pairs.size(); i++) {
    auto [x, y] = pairs[i];
    add(x.inputs(), y.inputs());
  }
  // Operands come after the nodes that use them. Name the cause rather than its effects.
  for (auto p = pairs.rbegin(); p != pairs.rend(); ++p) {
    auto& [x, y] = *p;
    if (!same_node(x, y, a_args.empty())) {
      return y.has_primitive() ? y.primitive().name() : x.has_primitive() ? x.primitive().name() : "constant";
    }
  }
  return a.size() == b.size() ? "" : "results";
}

void mlxg::refuse_difference(const std::string& different) {
  if (!different.empty()) {
    throw std::invalid_argument("[" + different + "] the graph of the function depends on the shapes of its arguments");
  }
}

void mlxg::require_shapeless(const arrays& results, const arrays& args) {
  each_node(results, args, [](auto& a) {
    auto& p = a.primitive();
    if (std::strcmp(p.name(), "Load") == 0) {
      return;  // a constant of the file
    }
    auto shapes = p.output_shapes(a.inputs());
    auto outputs = a.outputs();
    bool same = std::equal(shapes.begin(), shapes.end(), outputs.begin(), outputs.end(), [](auto& shape, auto& o) {
      return shape == o.shape();
    });
    if (!same || !accepts(a)) {
      throw std::invalid_argument(
          std::string("[") + p.name() + "] the operation, or the shapes of its operands, are not supported in a " +
          "shapeless function: use Export");
    }
  });
}
