// Base classes of libmlxg's own primitives.
#ifndef MLXG_PRIMITIVE_H
#define MLXG_PRIMITIVE_H

#include <atomic>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "mlx/primitives.h"
#include "mlxg_buffer.h"
#include "mlxg_internal.h"

namespace mlxg {

namespace mx = mlx::core;

// opaque is a primitive without rules for transforms. Its errors contain the name.
class opaque : public mx::Primitive {
 public:
  opaque(mx::Stream s, std::string name) : Primitive(s), name_(std::move(name)), unique_("mlxgrad." + name_) {}

  void eval_gpu(const std::vector<mx::array>&, std::vector<mx::array>&) override {
    throw std::runtime_error("[" + name_ + "] runs on a CPU stream only");
  }

  std::vector<mx::Shape> output_shapes(const std::vector<mx::array>&) override {
    throw std::invalid_argument("[" + name_ + "] the output shapes are fixed when it is built and cannot be inferred");
  }

  std::vector<mx::array> vjp(
      const std::vector<mx::array>&,
      const std::vector<mx::array>&,
      const std::vector<int>&,
      const std::vector<mx::array>&) override {
    throw std::invalid_argument("[" + name_ + "] has no gradient");
  }

  std::vector<mx::array> jvp(
      const std::vector<mx::array>&, const std::vector<mx::array>&, const std::vector<int>&) override {
    throw std::invalid_argument("[" + name_ + "] has no forward-mode gradient");
  }

  std::pair<std::vector<mx::array>, std::vector<int>> vmap(
      const std::vector<mx::array>&, const std::vector<int>&) override {
    mlxg::refuse_vmap(name_);
  }

  // No primitive of MLX has the result of name: MLX and this library recognize some of MLX's primitives by it.
  const char* name() const override { return unique_.c_str(); }

  // launches returns the number of kernels that the node launches.
  virtual size_t launches() const { return 0; }

  // is_captured reports whether no graph that is built for an export has such a node. An exported graph with one has
  // captured it, and it depends on no argument.
  virtual bool is_captured() { return device() == mx::Device::gpu; }

 protected:
  std::string name_;

 private:
  std::string unique_;
};

// wrapper delegates to another primitive. Subclasses change its evaluation.
class wrapper : public mx::Primitive {
 public:
  explicit wrapper(std::shared_ptr<mx::Primitive> wrapped)
      : Primitive(wrapped->stream()), wrapped_(std::move(wrapped)) {}

  void eval_cpu(const arrays& inputs, arrays& outputs) override { wrapped_->eval_cpu(inputs, outputs); }
  void eval_gpu(const arrays& inputs, arrays& outputs) override { wrapped_->eval_gpu(inputs, outputs); }
  arrays vjp(const arrays& primals, const arrays& cotangents, const std::vector<int>& argnums, const arrays& outputs)
      override {
    return wrapped_->vjp(primals, cotangents, argnums, outputs);
  }
  arrays jvp(const arrays& primals, const arrays& tangents, const std::vector<int>& argnums) override {
    return wrapped_->jvp(primals, tangents, argnums);
  }
  std::pair<arrays, std::vector<int>> vmap(const arrays& inputs, const std::vector<int>& axes) override {
    return wrapped_->vmap(inputs, axes);
  }
  const char* name() const override { return wrapped_->name(); }

  const std::shared_ptr<mx::Primitive>& wrapped() const { return wrapped_; }

  // wrapped_inputs returns the inputs of the other primitive for a node with these inputs.
  virtual arrays wrapped_inputs(const arrays& inputs) const { return inputs; }

 protected:
  std::shared_ptr<mx::Primitive> wrapped_;
};

// unwrap removes the wrappers of a primitive, and changes the inputs of its node accordingly.
inline void unwrap(std::shared_ptr<mx::Primitive>& p, arrays& inputs) {
  while (auto w = std::dynamic_pointer_cast<wrapper>(p)) {
    inputs = w->wrapped_inputs(inputs);
    p = w->wrapped();
  }
}

// forwarder is a node whose outputs are its inputs from `first` on. Subclasses have rules for transforms.
class forwarder : public opaque {
 public:
  forwarder(mx::Stream s, size_t first) : opaque(s, "Forward"), first_(first) {}

  void eval_cpu(const arrays& inputs, arrays& outputs) override { forward(inputs, outputs); }
  void eval_gpu(const arrays& inputs, arrays& outputs) override { forward(inputs, outputs); }

  size_t first() const { return first_; }

 private:
  void forward(const arrays& inputs, arrays& outputs) const {
    for (size_t i = 0; i < outputs.size(); i++) {
      outputs[i].copy_shared_buffer(inputs[first_ + i]);
    }
  }

  size_t first_;
};

// forwarded returns the input that an array equals, if its node only forwards inputs: a forwarder, or MLX's node of a
// function with custom transforms. Otherwise it returns null.
inline const mx::array* forwarded(const mx::array& a) {
  if (!a.has_primitive()) {
    return nullptr;
  }
  if (auto node = dynamic_cast<const forwarder*>(&a.primitive())) {
    return &a.inputs()[node->first() + a.sibling_position()];
  }
  if (std::strcmp(a.primitive().name(), "CustomTransforms") == 0) {
    return &a.inputs()[a.inputs().size() - (a.siblings().size() + 1) + a.sibling_position()];
  }
  return nullptr;
}

// failed replaces the primitive of a node whose evaluation failed. It sets reported when it throws.
class failed : public opaque {
 public:
  failed(mx::Stream s, std::string name, std::string what, std::shared_ptr<std::atomic<bool>> reported = nullptr)
      : opaque(s, std::move(name)), what_(std::move(what)), reported_(std::move(reported)) {}

  void eval_cpu(const std::vector<mx::array>&, std::vector<mx::array>&) override {
    if (reported_) {
      *reported_ = true;
    }
    throw std::runtime_error(what_);
  }

  const std::string& what() const { return what_; }

 private:
  std::string what_;
  std::shared_ptr<std::atomic<bool>> reported_;
};

// fail throws an error and makes these outputs fail at every later evaluation. It replaces the primitive of these
// outputs only, because the calls of a compiled function share primitives. The caller must hold a reference to the old
// primitive, which would otherwise be destroyed while its eval_cpu runs.
[[noreturn]] inline void fail(
    std::vector<mx::array>& outputs, mx::Stream s, const std::string& name, const char* what) {
  auto failure = std::make_shared<failed>(s, name, "[" + name + "] " + what);
  for (auto& o : outputs) {
    o.primitive_ptr() = failure;
  }
  throw std::runtime_error(failure->what());
}

// allocate allocates the memory of the outputs. It throws if the system is out of memory.
inline void allocate(std::vector<mx::array>& outputs) {
  for (auto& o : outputs) {
    o.set_data(new_memory(o.nbytes(), "an output"));
  }
}

// dtype_of converts an mlx_dtype.
inline mx::Dtype dtype_of(int d) {
  // In the order of mlx_dtype.
  static const mx::Dtype table[] = {mx::bool_,   mx::uint8,   mx::uint16,   mx::uint32,   mx::uint64,
                                    mx::int8,    mx::int16,   mx::int32,    mx::int64,    mx::float16,
                                    mx::float32, mx::float64, mx::bfloat16, mx::complex64};
  return table[d];
}

}  // namespace mlxg

#endif
