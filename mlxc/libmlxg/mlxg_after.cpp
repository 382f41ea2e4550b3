// Arrays that are not computed before others are.
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "mlx/backend/cuda/cuda.h"
#include "mlx/mlx.h"
#include "mlx/scheduler.h"
#include "mlxg_primitive.h"

namespace mx = mlx::core;

namespace {

// A mark is how far a device had been given work when a link of a chain was evaluated.
class mark {
 public:
  // set marks the end of what the stream has been given.
  void set(mx::Stream s) {
    std::function<void()> reached;
    if (s.device == mx::Device::cpu) {
      // Not an array, which would have the error of a task before it.
      auto promise = std::make_shared<std::promise<void>>();
      mx::scheduler::enqueue(s, [promise] { promise->set_value(); });
      reached = [future = promise->get_future().share()] { future.wait(); };
    } else {
      // MLX's events are not for others; those of its arrays are waited for like this.
      mx::array a = mx::zeros({1}, mx::float32, s);
      mx::async_eval({a});
      reached = [a]() mutable { a.wait(); };
    }
    std::lock_guard lock(mutex_);
    reached_ = std::move(reached);
  }

  // wait waits until the device is there, if the mark has been set since the last wait.
  void wait() {
    std::function<void()> reached;
    {
      std::lock_guard lock(mutex_);
      reached.swap(reached_);
    }
    if (reached) {
      reached();
    }
  }

 private:
  // Of the last evaluation: a compiled function has one primitive for all of its calls.
  std::mutex mutex_;
  std::function<void()> reached_;
};

// after is MLX's Depends, which orders what the host submits. A device comes to it much later, and
// keeps all memory until then, so that what is to have another's memory would be given more. There
// the host waits too, for the link before of a chain, so that the device has one to work on.
class after : public mlxg::wrapper {
 public:
  after(std::shared_ptr<mx::Primitive> depends, std::shared_ptr<mark> before)
      : wrapper(std::move(depends)), before_(std::move(before)) {}

  // own is the link's mark, for the next. It outlives the link, which would else have all links
  // before it.
  std::shared_ptr<mark> own() const { return own_; }

  void eval_cpu(const mlxg::arrays& inputs, mlxg::arrays& outputs) override {
    keep_pace();
    wrapper::eval_cpu(inputs, outputs);
  }
  void eval_gpu(const mlxg::arrays& inputs, mlxg::arrays& outputs) override {
    keep_pace();
    wrapper::eval_gpu(inputs, outputs);
  }

 private:
  void keep_pace() {
    own_->set(stream());
    if (before_) {
      before_->wait();
    }
  }

  std::shared_ptr<mark> own_ = std::make_shared<mark>();
  std::shared_ptr<mark> before_;
};

// wait_before makes a node of MLX's Depends a link.
void wait_before(mx::array& node) {
  if (mlxg::exporting() || !node.has_primitive() ||
      (node.primitive().device() == mx::Device::gpu && !mx::cu::is_available())) {
    return;
  }
  std::shared_ptr<mark> before;
  if (auto& of = node.inputs()[0]; of.has_primitive()) {
    if (auto link = dynamic_cast<after*>(&of.primitive())) {
      before = link->own();
    }
  }
  node.primitive_ptr() = std::make_shared<after>(node.primitive_ptr(), std::move(before));
}

}  // namespace

extern "C" mlxg_result mlxg_depends(void* a, const uintptr_t* others, size_t n, bool wait) {
  mlx_vector_array first = mlx_vector_array_new_value(mlx_array{a});
  mlx_vector_array then = mlxg::vector_of(others, n);
  mlx_vector_array out = mlx_vector_array_new();
  mlx_array res{};
  int rc = mlx_depends(&out, first, then);
  if (rc == 0) {
    rc = mlx_vector_array_get(&res, out, 0);
  }
  if (rc == 0 && wait) {
    wait_before(mlxg::array_of(res.ctx));
  }
  mlx_vector_array_free(out);
  mlx_vector_array_free(then);
  mlx_vector_array_free(first);
  return mlxg_end(rc, res);
}
