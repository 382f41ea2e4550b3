// Groups of processes that exchange arrays.
#include <pthread.h>
#include <signal.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "mlx/backend/cpu/encoder.h"
#include "mlx/distributed/distributed.h"
#include "mlx/distributed/distributed_impl.h"
#include "mlx/scheduler.h"
#include "mlxg_internal.h"

namespace mx = mlx::core;
namespace md = mlx::core::distributed;

namespace {

using implementation = std::shared_ptr<md::detail::GroupImpl>;

// backend_of returns the backend of a group of MLX, or "" for a group of one. MLX has no function for it and keeps the
// classes private, so the mangled class name decides.
const char* backend_of(const md::detail::GroupImpl& group) {
  std::string name = typeid(group).name();
  for (auto [space, backend] : {std::pair{"4ring", "ring"}, {"3mpi", "mpi"}, {"4nccl", "nccl"}, {"5jaccl", "jaccl"}}) {
    if (name.find(std::string("11distributed") + space) != std::string::npos) {
      return backend;
    }
  }
  return "";
}

// messages is the state of a group. The threads of all streams share it.
struct messages {
  std::mutex lock;
  std::condition_variable changed;
  bool lost = false;  // a message failed
};

struct message {
  bool ready = false;  // its input is computed
  bool done = false;
  std::string error;
};

// group wraps a group of MLX. It communicates from GPU streams if the backend is NCCL, otherwise from CPU streams. MLX
// sends from sender_, a stream that only the group uses, and the streams of the graph wait for it. After a failed
// message the group is lost: MLX's ring threads have exited, and a further message would block forever. The group then
// sends nothing, and all waiting and later operations fail.
class group : public md::detail::GroupImpl {
 public:
  explicit group(implementation mlx)
      : mlx_(std::move(mlx)), backend_(backend_of(*mlx_)), sender_(mx::new_thread_unsafe_stream(mx::Device::cpu)) {}

  const char* backend() const { return backend_; }

  mx::Stream communication_stream(mx::StreamOrDevice s) override {
    auto stream = mlx_->communication_stream(s);
    auto device = std::string(backend_) == "nccl" ? mx::Device::gpu : mx::Device::cpu;
    if (size() == 1 || stream.device == device) {
      return stream;
    }
    return *static_cast<mx::Stream*>(mlxg_device_stream(device == mx::Device::gpu));
  }

  int rank() override { return mlx_->rank(); }
  int size() override { return mlx_->size(); }
  implementation split(int color, int key) override {
    auto part = mlx_->split(color, key);
    mlxg::guard g;  // taken after the split, which blocks on the other processes
    return std::make_shared<group>(part);
  }

  void all_sum(const mx::array& in, mx::array& out, mx::Stream s) override {
    run(s, {in, out}, [&](auto s) { mlx_->all_sum(in, out, s); });
  }
  void all_max(const mx::array& in, mx::array& out, mx::Stream s) override {
    run(s, {in, out}, [&](auto s) { mlx_->all_max(in, out, s); });
  }
  void all_min(const mx::array& in, mx::array& out, mx::Stream s) override {
    run(s, {in, out}, [&](auto s) { mlx_->all_min(in, out, s); });
  }
  void all_gather(const mx::array& in, mx::array& out, mx::Stream s) override {
    run(s, {in, out}, [&](auto s) { mlx_->all_gather(in, out, s); });
  }
  void sum_scatter(const mx::array& in, mx::array& out, mx::Stream s) override {
    run(s, {in, out}, [&](auto s) { mlx_->sum_scatter(in, out, s); });
  }
  void send(const mx::array& in, int dst, mx::Stream s) override {
    run(s, {in}, [&](auto s) { mlx_->send(in, dst, s); });
  }
  void recv(mx::array& out, int src, mx::Stream s) override {
    run(s, {out}, [&](auto s) { mlx_->recv(out, src, s); });
  }

 private:
  // error_of removes and returns the pending error of a stream, or "".
  static std::string error_of(mx::Stream s) {
    try {
      mx::scheduler::check_error(s);
      return "";
    } catch (std::exception& e) {
      return e.what();
    }
  }

  // run queues a message on a stream. send calls MLX with the stream to send from.
  template <typename F>
  void run(mx::Stream s, const mlxg::arrays& operands, F&& send) {
    if (s.device == mx::Device::gpu) {
      send(s);
      return;
    }
    // A lost group ends the wait of the graph's streams. A message that is still being sent keeps its buffers alive.
    std::vector<std::shared_ptr<mx::array::Data>> buffers;
    for (auto& a : operands) {
      buffers.push_back(a.data_shared_ptr());
    }
    auto m = std::make_shared<message>();
    auto& sender = mx::cpu::get_command_encoder(sender_);
    sender.dispatch([all = all_, m] {
      std::unique_lock<std::mutex> l(all->lock);
      all->changed.wait(l, [&] { return m->ready; });
    });
    send(sender_);
    sender.dispatch([all = all_, m, buffers, sender = sender_] {
      auto error = error_of(sender);
      std::lock_guard<std::mutex> l(all->lock);
      m->error = error;
      m->done = true;
      all->lost = all->lost || !error.empty();
      all->changed.notify_all();
    });
    mx::cpu::get_command_encoder(s).dispatch([all = all_, m] {
      std::unique_lock<std::mutex> l(all->lock);
      m->ready = !all->lost;
      all->changed.notify_all();
      all->changed.wait(l, [&] { return m->done || all->lost; });
      if (!m->done) {
        throw std::runtime_error("[distributed] an earlier message failed: the group is lost");
      }
      if (!m->error.empty()) {
        throw std::runtime_error(m->error);
      }
    });
  }

  implementation mlx_;
  const char* backend_;
  mx::Stream sender_;
  std::shared_ptr<messages> all_ = std::make_shared<messages>();
};

}  // namespace

extern "C" {

char* mlxg_group_init(void** result, bool strict, const char* backend) {
  // MLX writes to its sockets without MSG_NOSIGNAL, so SIGPIPE would end the process when a peer has exited. The
  // writing threads start here and inherit the blocked signal.
  sigset_t pipe, before;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  char* err = nullptr;
  try {
    implementation mlx;
    {
      // md::init writes MLX's table of backends.
      static std::mutex initializing;
      std::lock_guard<std::mutex> l(initializing);
      mlx = md::init(strict, backend).raw_group();
    }
    mlxg::guard g;  // taken after md::init, which blocks on the other processes
    // Each group of MLX has one wrapper, which lives as long as the process, so all handles share the state `lost`.
    static auto* known = new std::vector<std::pair<implementation, implementation>>;
    implementation ours;
    for (auto& [theirs, wrapped] : *known) {
      ours = theirs == mlx ? wrapped : ours;
    }
    if (!ours) {
      ours = std::make_shared<group>(mlx);
      known->emplace_back(mlx, ours);
    }
    *result = new md::Group(ours);
  } catch (std::exception& e) {
    err = mlxg::error_text(e.what());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return err;
}

const char* mlxg_group_backend(void* g) {
  return static_cast<group&>(*static_cast<md::Group*>(g)->raw_group()).backend();
}

bool mlxg_group_available(const char* backend) {
  return mlx_distributed_is_available(backend);
}

int mlxg_group_rank(void* group) {
  return mlx_distributed_group_rank(mlx_distributed_group{group});
}

int mlxg_group_size(void* group) {
  return mlx_distributed_group_size(mlx_distributed_group{group});
}

char* mlxg_group_split(void** part, void* group, int color, int key) {
  mlx_distributed_group g{};
  char* err = mlxg_end_status(mlx_distributed_group_split(&g, mlx_distributed_group{group}, color, key));
  *part = g.ctx;
  return err;
}

void mlxg_group_free(void* group) {
  mlx_distributed_group_free(mlx_distributed_group{group});
}

mlxg_result mlxg_group_collect(int what, void* x, void* group) {
  auto f = mlx_distributed_sum_scatter;
  switch (what) {
    case MLXG_ALL_SUM:
      f = mlx_distributed_all_sum;
      break;
    case MLXG_ALL_MAX:
      f = mlx_distributed_all_max;
      break;
    case MLXG_ALL_MIN:
      f = mlx_distributed_all_min;
      break;
    case MLXG_ALL_GATHER:
      f = mlx_distributed_all_gather;
      break;
  }
  MLXG_CALL(f(&res, mlx_array{x}, mlx_distributed_group{group}, mlxg_stream()));
}

mlxg_result mlxg_group_send(void* x, int to, void* group) {
  MLXG_CALL(mlx_distributed_send(&res, mlx_array{x}, to, mlx_distributed_group{group}, mlxg_stream()));
}

mlxg_result mlxg_group_receive(const int* shape, size_t n, int dtype, int from, void* group) {
  MLXG_CALL(mlx_distributed_recv(
      &res, shape, n, static_cast<mlx_dtype>(dtype), from, mlx_distributed_group{group}, mlxg_stream()));
}

mlxg_result mlxg_group_receive_like(void* x, int from, void* group) {
  MLXG_CALL(mlx_distributed_recv_like(&res, mlx_array{x}, from, mlx_distributed_group{group}, mlxg_stream()));
}

}  // extern "C"
