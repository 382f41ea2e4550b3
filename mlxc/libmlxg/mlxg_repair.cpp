// Replacement of nodes that MLX computes wrongly, before their graph is evaluated. docs/mlx-faults.md describes the
// faults by the names given here.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <tuple>
#include <typeinfo>
#include <vector>

#include "mlx/backend/cpu/encoder.h"
#include "mlx/linalg.h"
#include "mlx/ops.h"
#include "mlx/primitives.h"
#include "mlxg_primitive.h"

namespace mx = mlx::core;

namespace {

// fixed_lu wraps LUF, which sets the data_size of its first output to bytes instead of elements:
// operations on that output then access memory beyond it (fault lu-factor-size).
class fixed_lu : public mlxg::wrapper {
 public:
  using wrapper::wrapper;

  void eval_cpu(const mlxg::arrays& inputs, mlxg::arrays& outputs) override {
    wrapped_->eval_cpu(inputs, outputs);
    auto& lu = outputs[0];
    lu.copy_shared_buffer(lu, mx::Strides(lu.strides()), lu.flags(), lu.size());
  }
};

// fixed_view wraps a View whose elements are smaller than its operand's. MLX's View keeps two properties that may be
// wrong for the result: the stride of a last axis of size 1, which may be any number (fault
// view-single-element-stride), and the flag of column-major order, which is correct only if at most one axis is longer
// than 1 (fault view-column-major-flag).
class fixed_view : public mlxg::wrapper {
 public:
  using wrapper::wrapper;

  void eval_cpu(const mlxg::arrays& inputs, mlxg::arrays& outputs) override {
    mlxg::arrays dense = {unit_stride(inputs[0])};
    wrapped_->eval_cpu(dense, outputs);
    fix_flags(outputs[0]);
  }
  void eval_gpu(const mlxg::arrays& inputs, mlxg::arrays& outputs) override {
    mlxg::arrays dense = {unit_stride(inputs[0])};
    wrapped_->eval_gpu(dense, outputs);
    fix_flags(outputs[0]);
  }

 private:
  static mx::array unit_stride(const mx::array& in) {
    if (in.shape(-1) != 1) {
      return in;
    }
    mx::array out(in.shape(), in.dtype(), nullptr, {});
    auto strides = in.strides();
    strides.back() = 1;
    out.copy_shared_buffer(in, strides, in.flags(), in.data_size());
    return out;
  }

  static void fix_flags(mx::array& out) {
    auto flags = out.flags();
    auto longest = std::max_element(out.shape().begin(), out.shape().end());
    flags.col_contiguous = flags.row_contiguous && out.size() == static_cast<size_t>(*longest);
    out.copy_shared_buffer(out, mx::Strides(out.strides()), flags, out.data_size());
  }
};

// fixed_split wraps a Split. MLX treats an axis with a negative stride like a broadcast axis (fault
// split-negative-stride).
class fixed_split : public mlxg::wrapper {
 public:
  using wrapper::wrapper;

  void eval_cpu(const mlxg::arrays& inputs, mlxg::arrays& outputs) override {
    wrapped_->eval_cpu(inputs, outputs);
    count_elements(outputs);
  }
  void eval_gpu(const mlxg::arrays& inputs, mlxg::arrays& outputs) override {
    wrapped_->eval_gpu(inputs, outputs);
    count_elements(outputs);
  }

 private:
  static void count_elements(mlxg::arrays& outputs) {
    for (auto& o : outputs) {
      auto strides = o.strides();
      if (o.size() == 0 || std::all_of(strides.begin(), strides.end(), [](auto s) { return s >= 0; })) {
        continue;
      }
      size_t span = 1;
      for (int i = 0; i < o.ndim(); i++) {
        span += std::abs(strides[i]) * (o.shape(i) - 1);
      }
      auto flags = o.flags();
      flags.contiguous = span == 1 || flags.row_contiguous || flags.col_contiguous;
      o.copy_shared_buffer(o, strides, flags, span);
    }
  }
};

// fixed_sum wraps a sum of float32 over trailing axes. MLX accumulates in float32 in order, so that a sum stops growing
// when it exceeds its terms by 2²⁴ (fault sum-stagnates).
class fixed_sum : public mlxg::wrapper {
 public:
  using wrapper::wrapper;

  // applies reports whether a node is a long sum that fixed_sum computes.
  static bool applies(const mx::array& a, mx::Reduce& reduce) {
    auto& in = a.inputs()[0];
    if (in.size() < a.size() * shortest || in.dtype() != mx::float32 || reduce.device() != mx::Device::cpu) {
      return false;
    }
    auto [type, axes] = reduce.state();
    std::sort(axes.begin(), axes.end());
    return type == mx::Reduce::Sum && axes.front() == static_cast<int>(in.ndim() - axes.size());
  }

  void eval_cpu(const mlxg::arrays& inputs, mlxg::arrays& outputs) override {
    auto& in = inputs[0];
    auto& out = outputs[0];
    auto flags = in.flags();
    bool scalar = in.data_size() == 1;
    bool dense = in.data_size() == in.size() && (flags.row_contiguous || (flags.contiguous && out.size() == 1));
    if (!scalar && !dense) {
      wrapped_->eval_cpu(inputs, outputs);
      return;
    }
    out.set_data(mx::allocator::malloc(out.nbytes()));
    auto& encoder = mx::cpu::get_command_encoder(stream());
    encoder.set_input_array(in);
    encoder.set_output_array(out);
    auto x = in.data<float>();
    auto sums = out.data<float>();
    auto rows = out.size(), n = in.size() / rows;
    encoder.dispatch([=] {
      for (size_t r = 0; r < rows; r++) {
        sums[r] = scalar ? x[0] * n : sum(x + r * n, n);
      }
    });
  }

 private:
  static constexpr size_t shortest = 1 << 20;

  // sum adds blocks in float32, with independent lanes that compilers vectorize, and the sums of blocks in float64.
  static float sum(const float* x, size_t n) {
    constexpr size_t lanes = 16, block = 1 << 12;
    double total = 0;
    for (auto end = x + n; x < end;) {
      float lane[lanes] = {};
      auto stop = x + std::min<size_t>(block, end - x);
      for (; x + lanes <= stop; x += lanes) {
        for (size_t k = 0; k < lanes; k++) {
          lane[k] += x[k];
        }
      }
      for (; x < stop; x++) {
        lane[0] += *x;
      }
      for (auto l : lane) {
        total += l;
      }
    }
    return static_cast<float>(total);
  }
};

template <typename T>
void wrap(const mx::array& a) {
  auto fixed = std::make_shared<T>(a.primitive_ptr());
  for (auto& o : a.outputs()) {
    o.primitive_ptr() = fixed;
  }
}

// only_computes reports whether a primitive has no effect except to compute its outputs. Distributed operations
// exchange messages, Depends orders other work, and libmlxg's own primitives may return errors, except its launches on
// a GPU.
bool only_computes(mx::Primitive& p) {
  if (auto own = dynamic_cast<mlxg::opaque*>(&p)) {
    return own->launches() > 0 && p.device() == mx::Device::gpu;
  }
  for (auto name : {"Depends", "AllReduce", "AllGather", "ReduceScatter", "Send", "Recv"}) {
    if (std::strstr(p.name(), name)) {
      return false;
    }
  }
  return true;
}

// set_empty gives an array without elements an empty buffer and row-major strides.
void set_empty(mx::array& a) {
  auto strides = mx::array(a.shape(), a.dtype(), nullptr, {}).strides();
  a.set_data(mx::allocator::malloc(0), 0, strides, {true, true, true});
}

// walk repairs the unevaluated nodes of a graph. The caller holds the graph lock.
class walk {
 public:
  walk() = default;

  ~walk() {
    for (auto* a : seen_) {
      a->set_status(mx::array::Status::unscheduled);
    }
  }

  walk(const walk&) = delete;

  // from returns whether one of the nodes runs on a CPU.
  bool from(mlxg::arrays& roots) {
    for (auto& r : roots) {
      visit(r);
    }
    for (size_t i = 0; i < seen_.size(); i++) {
      auto& a = *seen_[i];
      for (auto& in : a.inputs()) {
        if (in.size() == 0 && !computed(in) && !all_empty(in)) {
          // Some of the node's outputs have elements. For example, MLX gives an empty part of a Split the strides of
          // the whole array.
          in = mx::array(in.shape(), in.dtype(), nullptr, {});
          set_empty(in);
          in.set_status(mx::array::Status::available);
        }
        visit(in);
      }
      for (auto& s : a.siblings()) {
        visit(s);
      }
    }
    return on_cpu_;
  }

 private:
  // The status of a visited node, which MLX does not use. It costs less than a set of visited nodes. MLX and libmlxg
  // read the status under the graph lock only, and the destructor restores it.
  static constexpr auto marked = static_cast<mx::array::Status>(3);

  static bool computed(const mx::array& a) {
    return a.status() != mx::array::Status::unscheduled && a.status() != marked;
  }

  static bool all_empty(const mx::array& a) {
    return a.size() == 0 &&
           std::all_of(a.siblings().begin(), a.siblings().end(), [](auto& s) { return s.size() == 0; });
  }

  void visit(mx::array& a) {
    if (computed(a)) {
      if (a.size() == 0 && !a.flags().row_contiguous) {
        set_empty(a);
      }
      return;
    }
    if (a.status() == marked || !a.has_primitive()) {
      return;
    }
    if (a.size() == 0 && all_empty(a) && only_computes(a.primitive())) {
      compute_empty(a);
      return;
    }
    repair(a);
    on_cpu_ = on_cpu_ || a.primitive().device() == mx::Device::cpu;
    seen_.push_back(&a);
    a.set_status(marked);
  }

  // compute_empty marks a node whose outputs have no elements as computed, so that no operation of MLX computes or
  // reads such an array. MLX's matmul_general returns early for empty outputs, before it registers the copies of its
  // operands, which are then freed while they are written (fault matmul-empty-frees-operand). MLX's reductions loop, or
  // read out of bounds, over an empty operand that is not in row-major order (fault sum-empty-view).
  static void compute_empty(mx::array& a) {
    for (auto& o : a.outputs()) {
      set_empty(o);
      o.set_status(mx::array::Status::available);
    }
    if (!a.is_tracer()) {
      a.detach();
    }
  }

  static void repair(mx::array& a) {
    // MLX does not export the classes; sample nodes supply their type_info.
    static const auto types = [] {
      auto s = *static_cast<mx::Stream*>(mlxg_device_stream(0));
      auto lu = mx::linalg::lu_factor(mx::zeros({1, 1}, mx::float32, s), s).first;
      auto view = mx::view(mx::zeros({1}, mx::float32, s), mx::uint8, s);
      auto sum = mx::sum(mx::zeros({2}, mx::float32, s), 0, true, s);
      auto part = mx::split(mx::zeros({2}, mx::float32, s), 2, 0, s)[0];
      auto &l = lu.primitive(), &v = view.primitive(), &r = sum.primitive(), &p = part.primitive();
      return std::tuple{&typeid(l), &typeid(v), &typeid(r), &typeid(p)};
    }();
    auto [lu, view, reduce, split] = types;
    auto& p = a.primitive();
    auto type = &typeid(p);
    if (type == lu) {
      wrap<fixed_lu>(a);
    } else if (type == view && a.itemsize() < a.inputs()[0].itemsize()) {
      wrap<fixed_view>(a);
    } else if (type == split) {
      wrap<fixed_split>(a);
    } else if (type == reduce && a.shape() == a.inputs()[0].shape()) {
      // A shapeless compiled function also reduces axes of size 1. MLX plans the reduction by the last axis longer than
      // 1, which does not exist here (fault shapeless-sum-single-element).
      auto& in = a.inputs()[0];
      auto same = in.dtype() == a.dtype() ? mx::copy(in, p.stream()) : mx::astype(in, a.dtype(), p.stream());
      a.primitive_ptr() = same.primitive_ptr();
    } else if (type == reduce && fixed_sum::applies(a, static_cast<mx::Reduce&>(p))) {
      wrap<fixed_sum>(a);
    }
  }

  std::vector<mx::array*> seen_;
  bool on_cpu_ = false;
};

}  // namespace

namespace mlxg {

bool repair(arrays& roots) {
  return walk().from(roots);
}

}  // namespace mlxg
