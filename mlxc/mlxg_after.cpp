// Arrays that are not computed before others are.
#include <memory>
#include <utility>
#include <vector>

#include "mlx/backend/cuda/cuda.h"
#include "mlx/mlx.h"
#include "mlx/primitives.h"
#include "mlxg_internal.h"

namespace mx = mlx::core;

namespace {

// after is MLX's Depends, which orders what the host submits. A CUDA device comes to it much later, and
// keeps all memory until then, so that what is to have another's memory would be given more:
// there the host waits too.
class after : public mx::Primitive {
 public:
  explicit after(std::shared_ptr<mx::Primitive> depends)
      : Primitive(depends->stream()), depends_(std::move(depends)) {}

  void eval_cpu(const mlxg::arrays& inputs, mlxg::arrays& outputs) override {
    depends_->eval_cpu(inputs, outputs);
  }
  void eval_gpu(const mlxg::arrays& inputs, mlxg::arrays& outputs) override {
    mx::synchronize(stream());
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
  std::shared_ptr<mx::Primitive> depends_;
};

} // namespace

extern "C" void mlxg_wait_before(mlx_array a) {
  auto& node = mlxg::array_of(a.ctx);
  if (!mx::cu::is_available() || mlxg::exporting() || !node.has_primitive() ||
      node.primitive().device() != mx::Device::gpu) {
    return;
  }
  node.primitive_ptr() = std::make_shared<after>(node.primitive_ptr());
}
