// Dependencies between arrays, with a limit on how far the host runs ahead of the device.
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

// A device_fence marks a position in the queue of a stream. Any thread may use it.
class device_fence {
 public:
  // set places the fence after all work that was submitted to the stream.
  void set(mx::Stream s) {
    std::function<void()> reached;
    if (s.device == mx::Device::cpu) {
      // A task and not an array: evaluating an array would take the error of an earlier task.
      auto promise = std::make_shared<std::promise<void>>();
      mx::scheduler::enqueue(s, [promise] { promise->set_value(); });
      reached = [future = promise->get_future().share()] { future.wait(); };
    } else {
      // MLX's events of GPU streams are private. Array::wait blocks on one.
      mx::array a = mx::zeros({1}, mx::float32, s);
      mx::async_eval({a});
      reached = [a]() mutable { a.wait(); };
    }
    std::lock_guard lock(mutex_);
    reached_ = std::move(reached);
  }

  // wait blocks until the device has reached the fence, and unsets it. It returns immediately if the fence is not set.
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
  // The fence of the latest evaluation. Several evaluations may use one fence, because all calls of a compiled function
  // share the primitive.
  std::mutex mutex_;
  std::function<void()> reached_;
};

// depends_and_wait wraps MLX's Depends, which only orders the submission of work, and throttles the host. All submitted
// work keeps its memory until the device has run it. If the host runs far ahead, a chain of nodes that could reuse one
// buffer allocates one buffer per node. The host therefore waits until the device has passed the preceding link of the
// chain. The device still has one link to compute, so it does not become idle.
class depends_and_wait : public mlxg::wrapper {
 public:
  depends_and_wait(std::shared_ptr<mx::Primitive> depends, std::shared_ptr<device_fence> before)
      : wrapper(std::move(depends)), before_(std::move(before)) {}

  // own returns the fence after this link. The next link holds only this fence: a reference to the link would keep the
  // whole chain alive.
  std::shared_ptr<device_fence> own() const { return own_; }

  void eval_cpu(const mlxg::arrays& inputs, mlxg::arrays& outputs) override {
    throttle();
    wrapper::eval_cpu(inputs, outputs);
  }
  void eval_gpu(const mlxg::arrays& inputs, mlxg::arrays& outputs) override {
    throttle();
    wrapper::eval_gpu(inputs, outputs);
  }

 private:
  void throttle() {
    own_->set(stream());
    if (before_) {
      before_->wait();
    }
  }

  std::shared_ptr<device_fence> own_ = std::make_shared<device_fence>();
  std::shared_ptr<device_fence> before_;
};

// add_throttle makes a Depends node a link of a chain. It does not change nodes of Metal streams and of exported
// graphs.
void add_throttle(mx::array& node) {
  if (mlxg::exporting() || !node.has_primitive() ||
      (node.primitive().device() == mx::Device::gpu && !mx::cu::is_available())) {
    return;
  }
  std::shared_ptr<device_fence> before;
  if (auto& of = node.inputs()[0]; of.has_primitive()) {
    if (auto link = dynamic_cast<depends_and_wait*>(&of.primitive())) {
      before = link->own();
    }
  }
  node.primitive_ptr() = std::make_shared<depends_and_wait>(node.primitive_ptr(), std::move(before));
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
    add_throttle(mlxg::array_of(res.ctx));
  }
  mlx_vector_array_free(out);
  mlx_vector_array_free(then);
  mlx_vector_array_free(first);
  return mlxg_end(rc, res);
}
