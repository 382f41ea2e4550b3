// Launches that hold their constant inputs, such as sizes. MLX visits every input of a node when it builds, evaluates
// and frees the node, and these are about half of a launch's inputs.
#include "mlxg_bound.h"

#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "mlxg_buffer.h"
#include "mlxg_fast.h"

namespace {

namespace mx = mlx::core;

class bound : public mlxg::wrapper {
 public:
  bound(std::shared_ptr<mx::Primitive> launch, mlxg::constant_inputs constants)
      : wrapper(std::move(launch)), constants_(std::move(constants)) {}

  void eval_cpu(const mlxg::arrays& inputs, mlxg::arrays& outputs) override {
    wrapper::eval_cpu(wrapped_inputs(inputs), outputs);
  }

  void eval_gpu(const mlxg::arrays& inputs, mlxg::arrays& outputs) override {
    wrapper::eval_gpu(wrapped_inputs(inputs), outputs);
  }

  std::pair<mlxg::arrays, std::vector<int>> vmap(const mlxg::arrays& inputs, const std::vector<int>& axes) override {
    auto launch = wrapped_;
    auto all = inputs;
    mlxg::unwrap(launch, all);
    if (std::string_view(launch->name()) == "CustomKernel") {
      mlxg::refuse_vmap(std::get<0>(static_cast<const mx::fast::CustomKernel&>(*launch).state()));
    }
    return launch->vmap(all, axes);
  }

  mlxg::arrays wrapped_inputs(const mlxg::arrays& inputs) const override {
    mlxg::arrays all;
    all.reserve(inputs.size() - 1 + constants_.size());
    auto next = inputs.begin();
    auto add_until = [&](size_t n) {
      while (all.size() < n) {
        all.push_back(*next++);
      }
    };
    for (auto& [position, constant] : constants_) {
      add_until(position);
      all.push_back(constant);
    }
    add_until(inputs.size() - 1 + constants_.size());
    return all;
  }

 private:
  mlxg::constant_inputs constants_;
};

}  // namespace

std::shared_ptr<mx::Primitive> mlxg::bound_launch(std::shared_ptr<mx::Primitive> launch, constant_inputs constants) {
  return std::make_shared<bound>(std::move(launch), std::move(constants));
}

mx::array mlxg::keeper_of(constant_inputs constants) {
  mx::array keeper(mx::Shape{0}, mx::uint8, nullptr, {});
  auto keep = [constants = std::move(constants)](mx::allocator::Buffer) {};
  set_foreign(keeper, mx::allocator::Buffer(nullptr), 0, {true, true, true}, std::move(keep));
  keeper.set_status(mx::array::Status::available);
  return keeper;
}
