// Gradients of complex functions. MLX's gradients lack the conjugate, or call functions that lack it (faults
// complex-vjp-conjugate and complex-power-vjp). MLX's gradient of sign is 0 (fault complex-sign-gradient).
#include <cmath>
#include <memory>
#include <string>
#include <typeinfo>
#include <unordered_map>
#include <utility>
#include <vector>

#include "mlx/mlx.h"
#include "mlx/primitives.h"
#include "mlxg_internal.h"

namespace mx = mlx::core;

namespace {

using mlxg::arrays;

// correct replaces the vjp, jvp and vmap rules of a new node of MLX by the rules of this file, if the node is complex.
mx::array correct(mx::array a);

mx::array constant(float x) {
  return mx::array(mx::complex64_t{x, 0.0f}, mx::complex64);
}

mx::array sqrt_of(const mx::array& z, mx::Stream s) {
  return correct(mx::sqrt(z, s));
}
mx::array rsqrt_of(const mx::array& z, mx::Stream s) {
  return correct(mx::rsqrt(z, s));
}
// square_plus returns sign·z² + c.
mx::array square_plus(float sign, const mx::array& z, float c, mx::Stream s) {
  return mx::add(mx::multiply(constant(sign), mx::square(z, s), s), constant(c), s);
}
// along_sign returns the component of t in the direction of the unit number u, as a real number.
mx::array along_sign(const mx::array& u, const mx::array& t, mx::Stream s) {
  return mx::real(mx::multiply(mx::conjugate(u, s), t, s), s);
}

// derivatives returns ∂out/∂z for every operand z of a holomorphic function.
using derivatives = arrays (*)(const arrays& z, const mx::array& out, mx::Stream s);

const std::unordered_map<std::string, derivatives> holomorphic = {
    {"Sin", [](auto& z, auto&, auto s) { return arrays{correct(mx::cos(z[0], s))}; }},
    {"Cos", [](auto& z, auto&, auto s) { return arrays{mx::negative(correct(mx::sin(z[0], s)), s)}; }},
    {"Tan", [](auto&, auto& out, auto s) { return arrays{square_plus(1, out, 1, s)}; }},
    {"ArcSin", [](auto& z, auto&, auto s) { return arrays{rsqrt_of(square_plus(-1, z[0], 1, s), s)}; }},
    {"ArcCos",
     [](auto& z, auto&, auto s) { return arrays{mx::negative(rsqrt_of(square_plus(-1, z[0], 1, s), s), s)}; }},
    {"ArcTan", [](auto& z, auto&, auto s) { return arrays{mx::reciprocal(square_plus(1, z[0], 1, s), s)}; }},
    {"ArcSinh", [](auto& z, auto&, auto s) { return arrays{rsqrt_of(square_plus(1, z[0], 1, s), s)}; }},
    {"ArcCosh",
     [](auto& z, auto&, auto s) {  // 1/√(z²−1) has another branch cut
       auto below = mx::subtract(z[0], constant(1), s);
       return arrays{mx::multiply(rsqrt_of(below, s), rsqrt_of(mx::add(z[0], constant(1), s), s), s)};
     }},
    {"ArcTanh", [](auto& z, auto&, auto s) { return arrays{mx::reciprocal(square_plus(-1, z[0], 1, s), s)}; }},
    {"Sqrt", [](auto&, auto& out, auto s) { return arrays{mx::divide(constant(0.5), out, s)}; }},
    {"Rsqrt",
     [](auto& z, auto& out, auto s) { return arrays{mx::multiply(constant(-0.5), mx::divide(out, z[0], s), s)}; }},
    {"Power",
     [](auto& z, auto& out, auto s) {
       auto lower = correct(mx::power(z[0], mx::subtract(z[1], constant(1), s), s));
       auto by_exponent = mx::multiply(mx::log(z[0], s), out, s);
       auto zero = mx::equal(out, constant(0), s);  // 0·ln 0 is 0
       return arrays{mx::multiply(z[1], lower, s), mx::where(zero, constant(0), by_exponent, s)};
     }},
    {"LogAddExp",
     [](auto& z, auto& out, auto s) {
       return arrays{mx::exp(mx::subtract(z[0], out, s), s), mx::exp(mx::subtract(z[1], out, s), s)};
     }},
};

// node wraps a primitive of MLX. Subclasses have their own vjp and jvp rules. MLX's exporter rejects its name.
class node : public mx::Primitive {
 public:
  node(std::shared_ptr<mx::Primitive> mlx)
      : Primitive(mlx->stream()), mlx_(std::move(mlx)), name_(std::string("Complex") + mlx_->name()) {}

  void eval_cpu(const arrays& inputs, arrays& outputs) override { mlx_->eval_cpu(inputs, outputs); }
  void eval_gpu(const arrays& inputs, arrays& outputs) override { mlx_->eval_gpu(inputs, outputs); }
  std::vector<mx::Shape> output_shapes(const arrays& inputs) override { return mlx_->output_shapes(inputs); }
  bool is_equivalent(const mx::Primitive& other) const override {
    const mx::Primitive &mine = *mlx_, &theirs = *dynamic_cast<const node&>(other).mlx_;
    return typeid(mine) == typeid(theirs) && mine.is_equivalent(theirs);
  }
  std::pair<arrays, std::vector<int>> vmap(const arrays& inputs, const std::vector<int>& axes) override {
    auto out = mlx_->vmap(inputs, axes);
    for (auto& a : out.first) {
      a = correct(a);
    }
    return out;
  }
  const char* name() const override { return name_.c_str(); }

 protected:
  std::shared_ptr<mx::Primitive> mlx_;

 private:
  std::string name_;
};

class holomorphic_node : public node {
 public:
  holomorphic_node(std::shared_ptr<mx::Primitive> mlx, derivatives of) : node(std::move(mlx)), of_(of) {}

  arrays vjp(
      const arrays& z, const arrays& cotangents, const std::vector<int>& argnums, const arrays& outputs) override {
    auto d = of_(z, outputs[0], stream());
    arrays out;
    for (auto i : argnums) {
      out.push_back(mx::multiply(cotangents[0], mx::conjugate(d[i], stream()), stream()));
    }
    return out;
  }
  arrays jvp(const arrays& z, const arrays& tangents, const std::vector<int>& argnums) override {
    mx::array again(z[0].shape(), z[0].dtype(), std::make_shared<holomorphic_node>(mlx_, of_), z);
    auto d = of_(z, again, stream());
    auto out = mx::multiply(tangents[0], d[argnums[0]], stream());
    for (size_t i = 1; i < argnums.size(); i++) {
      out = mx::add(out, mx::multiply(tangents[i], d[argnums[i]], stream()), stream());
    }
    return {out};
  }

 private:
  derivatives of_;
};

// sign_node is z/|z|. Its derivative in direction t is the component of t perpendicular to z, divided by |z|. This map
// is its own transpose, so vjp and jvp compute the same.
class sign_node : public node {
 public:
  using node::node;
  arrays vjp(const arrays& z, const arrays& cotangents, const std::vector<int>&, const arrays& outputs) override {
    return across(z[0], outputs[0], cotangents[0]);
  }
  arrays jvp(const arrays& z, const arrays& tangents, const std::vector<int>&) override {
    return across(z[0], correct(mx::sign(z[0], stream())), tangents[0]);
  }

 private:
  arrays across(const mx::array& z, const mx::array& u, const mx::array& t) {
    auto s = stream();
    auto size = correct(mx::abs(z, s));
    auto zero = mx::equal(size, mx::array(0.0f), s);
    auto turn = mx::subtract(t, mx::multiply(u, along_sign(u, t, s), s), s);
    auto over = mx::divide(turn, mx::where(zero, mx::array(1.0f), size, s), s);
    return {mx::where(zero, constant(0), over, s)};
  }
};

// abs_node is |z| as a complex number. MLX converts it to float32 afterwards.
class abs_node : public node {
 public:
  using node::node;
  arrays vjp(const arrays& z, const arrays& cotangents, const std::vector<int>&, const arrays&) override {
    auto s = stream();
    return {mx::multiply(mx::real(cotangents[0], s), correct(mx::sign(z[0], s)), s)};
  }
  arrays jvp(const arrays& z, const arrays& tangents, const std::vector<int>&) override {
    auto s = stream();
    return {mx::astype(along_sign(correct(mx::sign(z[0], s)), tangents[0], s), mx::complex64, s)};
  }
  std::pair<arrays, std::vector<int>> vmap(const arrays& z, const std::vector<int>& axes) override {
    // mx::abs returns a conversion to float32. Its input is the node that abs_node replaces.
    return {{correct(mx::abs(z[0], stream())).inputs()[0]}, axes};
  }
};

mx::array correct(mx::array a) {
  if (!a.has_primitive() || mlxg::exporting()) {
    return a;
  }
  std::string name = a.primitive().name();
  if (name == "AsType" && a.inputs()[0].has_primitive()) {  // the conversion to float32 of MLX's abs
    correct(a.inputs()[0]);
  }
  if (a.dtype() != mx::complex64) {
    return a;
  }
  auto& primitive = a.primitive_ptr();
  if (auto known = holomorphic.find(name); known != holomorphic.end()) {
    primitive = std::make_shared<holomorphic_node>(primitive, known->second);
  } else if (name == "Sign") {
    primitive = std::make_shared<sign_node>(primitive);
  } else if (name == "Abs") {
    primitive = std::make_shared<abs_node>(primitive);
  }
  return a;
}

}  // namespace

extern "C" int mlxg_complex(mlxg_unary op, mlx_array* res, mlx_array a, mlx_stream s) {
  int rc = op(res, a, s);
  if (rc == 0 && mlxg::array_of(a.ctx).dtype() == mx::complex64) {
    correct(mlxg::array_of(res->ctx));
  }
  return rc;
}

extern "C" int mlxg_complex_binary(mlxg_binary op, mlx_array* res, mlx_array a, mlx_array b, mlx_stream s) {
  int rc = op(res, a, b, s);
  if (rc == 0) {
    correct(mlxg::array_of(res->ctx));
  }
  return rc;
}
