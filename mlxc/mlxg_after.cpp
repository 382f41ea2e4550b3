// Arrays that are not computed before others are.
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "mlx/backend/cuda/cuda.h"
#include "mlx/mlx.h"
#include "mlx/primitives.h"
#include "mlxg_internal.h"

namespace mx = mlx::core;

namespace {

// after is MLX's Depends, which orders what the host submits. A device comes to it much later, and
// keeps all memory until then, so that what is to have another's memory would be given more. There
// the host waits too, for the link before of a chain, so that the device has one to work on.
class after : public mx::Primitive {
 public:
  after(std::shared_ptr<mx::Primitive> depends, std::shared_ptr<after> before)
      : Primitive(depends->stream()), depends_(std::move(depends)), before_(std::move(before)) {}

  void eval_cpu(const mlxg::arrays& inputs, mlxg::arrays& outputs) override {
    keep_pace();
    depends_->eval_cpu(inputs, outputs);
  }
  void eval_gpu(const mlxg::arrays& inputs, mlxg::arrays& outputs) override {
    keep_pace();
    depends_->eval_gpu(inputs, outputs);
  }
  mlxg::arrays vjp(
      const mlxg::arrays& primals,
      const mlxg::arrays& cotangents,
      const std::vector<int>& argnums,
      const mlxg::arrays& outputs) override {
    return depends_->vjp(primals, cotangents, argnums, outputs);
  }
  mlxg::arrays jvp(
      const mlxg::arrays& primals,
      const mlxg::arrays& tangents,
      const std::vector<int>& argnums) override {
    return depends_->jvp(primals, tangents, argnums);
  }
  std::pair<mlxg::arrays, std::vector<int>> vmap(
      const mlxg::arrays& inputs, const std::vector<int>& axes) override {
    return depends_->vmap(inputs, axes);
  }
  const char* name() const override {
    return depends_->name();
  }

 private:
  // Marks how far the stream has been given work, and waits until the device is at the mark of the
  // link before. A mark is an array of the stream, which MLX waits for as for any: its events are
  // not for others.
  void keep_pace() {
    mx::array mark = mx::zeros({1}, mx::float32, stream());
    mx::async_eval({mark});
    {
      std::lock_guard lock(mutex_);
      mark_ = mark;
    }
    if (before_) {
      before_->wait();
    }
  }

  void wait() {
    std::optional<mx::array> mark;
    {
      std::lock_guard lock(mutex_);
      mark = std::exchange(mark_, std::nullopt);
    }
    if (mark) {
      mark->wait();
    }
  }

  std::shared_ptr<mx::Primitive> depends_;
  std::shared_ptr<after> before_;
  // Of the last evaluation: a compiled function has one primitive for all of its calls.
  std::mutex mutex_;
  std::optional<mx::array> mark_;
};

} // namespace

extern "C" void mlxg_wait_before(mlx_array a) {
  auto& node = mlxg::array_of(a.ctx);
  if (mlxg::exporting() || !node.has_primitive() ||
      (node.primitive().device() == mx::Device::gpu && !mx::cu::is_available())) {
    return;
  }
  std::shared_ptr<after> before;
  if (auto& of = node.inputs()[0]; of.has_primitive()) {
    before = std::dynamic_pointer_cast<after>(of.primitive_ptr());
  }
  node.primitive_ptr() = std::make_shared<after>(node.primitive_ptr(), std::move(before));
}
