// Evaluation. The graph lock is held while MLX walks the graph, not while it computes.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <thread>

#include "mlx/mlx.h"
#include "mlx/primitives.h"
#include "mlx/scheduler.h"
#include "mlxg_evaluation.h"

namespace mx = mlx::core;

namespace {

// streams_of returns the streams of the nodes that compute the arrays.
std::set<mx::Stream> streams_of(const std::vector<mx::array>& arrays) {
  std::set<mx::Stream> streams;
  for (auto& a : arrays) {
    if (a.has_primitive()) {
      streams.insert(a.primitive().stream());
    } else if (a.event().valid()) {
      streams.insert(a.event().stream());
    }
  }
  return streams;
}

// spin_until polls done for at most 100 µs without sleeping.
template <typename F>
void spin_until(F&& done) {
  auto latest = std::chrono::steady_clock::now() + std::chrono::microseconds(100);
  while (!done() && std::chrono::steady_clock::now() < latest) {
    std::this_thread::yield();
  }
}

// A keep_awake keeps the thread of a stream busy polling while it exists, for at most 100 µs. Waking a thread takes
// longer than computing a small graph, and a thread that runs out of tasks during the walk would be woken for each
// further task.
class keep_awake {
 public:
  explicit keep_awake(mx::Stream s) {
    mx::scheduler::enqueue(s, [over = over_] { spin_until([&] { return over->load(); }); });
  }
  ~keep_awake() { *over_ = true; }
  keep_awake(const keep_awake&) = delete;

 private:
  std::shared_ptr<std::atomic<bool>> over_ = std::make_shared<std::atomic<bool>>(false);
};

// eval_and_wait evaluates and waits. If only CPU streams take part, it waits without the graph lock so that other
// threads can build and schedule graphs. Otherwise, and inside a transform, where the lock is held anyway, it calls
// MLX's eval: the synchronization of a GPU stream is not safe while another thread encodes work.
void eval_and_wait(std::vector<mx::array>& arrays) {
  std::shared_ptr<mlxg::evaluation> e;
  std::vector<mx::array> pending;
  {
    mlxg::guard g;
    mlxg::repair(arrays);
    e = mlxg::evaluation::plan(arrays, true);
    auto streams = streams_of(arrays);
    if (mlxg::depth() > 0 ||
        std::any_of(streams.begin(), streams.end(), [](auto& s) { return s.device != mx::Device::cpu; })) {
      e->run(arrays);
      return;
    }
    {
      std::optional<keep_awake> thread;
      for (auto& a : arrays) {
        if (!thread && a.has_primitive()) {
          thread.emplace(a.primitive().stream());
        }
      }
      e->start(arrays);
    }
    for (auto& a : arrays) {
      if (!a.is_available() && a.event().valid()) {
        // A separate node waits for the event, because array::wait writes to the node.
        pending.emplace_back(mx::Shape{}, mx::bool_, nullptr, std::vector<mx::array>{});
        pending.back().attach_event(a.event());
        pending.back().set_status(mx::array::Status::evaluated);
      }
    }
  }
  for (auto& p : pending) {
    spin_until([&] { return p.is_available(); });
    p.wait();
  }
  mlxg::guard g;
  e->check();
  for (auto& a : arrays) {
    a.wait();  // does not block: the array is computed
  }
}

// with_errors runs f and returns the message of its exception, or NULL.
template <typename F>
char* with_errors(F&& f) {
  try {
    f();
    return nullptr;
  } catch (std::exception& e) {
    return mlxg::error_text(e.what());
  } catch (...) {
    return mlxg::error_text("unknown C++ exception");
  }
}

// with_evaluation is with_errors for a function that evaluates. It repairs signal handlers if CUDA may have compiled:
// after an evaluation of a millisecond or more, and after every 64th one, since other calls compile, too. After each
// one it would cost more, because it calls the system twice.
template <typename F>
char* with_evaluation(F&& f) {
  static std::atomic<unsigned> evaluations = 0;
  auto start = std::chrono::steady_clock::now();
  char* err = with_errors(f);
  if (++evaluations % 64 == 0 || std::chrono::steady_clock::now() - start >= std::chrono::milliseconds(1)) {
    mlxg::restore_signal_stacks();
  }
  return err;
}

// locked_copies copies arrays under the graph lock. drop destroys such copies under the lock. Without the lock, another
// thread may detach a node while its array is copied.
std::vector<mx::array> locked_copies(const uintptr_t* ctx, size_t n) {
  mlxg::guard g;
  return mlxg::arrays_of(ctx, n);
}

void drop(std::vector<mx::array>& arrays) {
  mlxg::guard g;
  arrays.clear();
}

}  // namespace

namespace mlxg {

mx::array argument_of(mx::array a) {
  while (a.has_primitive() && std::strcmp(a.primitive().name(), "Copy") == 0) {
    a = mx::array(a.inputs()[0]);
  }
  return a;
}

}  // namespace mlxg

extern "C" {

char* mlxg_eval(const uintptr_t* ctx, size_t n) {
  mlxg::waiting_call call;
  auto arrays = locked_copies(ctx, n);
  char* err = with_evaluation([&] { eval_and_wait(arrays); });
  drop(arrays);
  return err;
}

char* mlxg_async_eval(const uintptr_t* ctx, size_t n) {
  mlxg::guard g;
  auto arrays = mlxg::arrays_of(ctx, n);
  return with_evaluation([&] {
    bool on_cpu = mlxg::repair(arrays);
    mlxg::submit(std::move(arrays), on_cpu);
  });
}

char* mlxg_read(void* ctx, void* dst, size_t nbytes) {
  mlxg::waiting_call call;
  std::vector<mx::array> rows;
  char* err = with_evaluation([&] {
    bool there;
    {
      mlxg::guard g;
      auto a = mlxg::argument_of(mlxg::array_of(ctx));
      there = mlxg::available(a) && a.flags().row_contiguous;
      if (there) {
        // Copying through the graph would wait for all work of the stream.
        rows.push_back(a);
      } else {
        a = mlxg::array_of(ctx);
        // contiguous below converts to row-major order. It does not copy an array that is row-major already.
        auto s = a.has_primitive() ? a.primitive().stream() : *static_cast<mx::Stream*>(mlxg_real_stream());
        if (a.size() == 0 && s.device == mx::Device::gpu) {
          // MLX 0.32.2's CUDA kernels do not support empty arrays: some end the process, others leave an error that
          // later kernels report.
          return;
        }
        // The array is evaluated with its row-major form so that a second read does not recompute it.
        rows.push_back(a);
        rows.push_back(mx::contiguous(a, false, s));
      }
    }
    if (!there) {
      eval_and_wait(rows);
    }
    // MLX 0.32.2 on CUDA leaves the row-major form of one element of a large array unwritten.
    auto& elements = rows.front().flags().row_contiguous ? rows.front() : rows.back();
    if (elements.nbytes() != nbytes) {
      throw std::runtime_error("[read] the destination has a different size than the array");
    }
    if (nbytes > 0) {
      std::memcpy(dst, elements.data<char>(), nbytes);
    }
  });
  drop(rows);
  return err;
}

char* mlxg_synchronize(void* stream) {
  auto s = *static_cast<mx::Stream*>(stream);
  mlxg::waiting_call call;
  return with_errors([&] {
    mlxg::require_open();
    if (s.device == mx::Device::cpu) {
      // MLX's synchronize would take the errors of running evaluations. This needs only the queue, and no graph lock.
      auto reached = std::make_shared<std::promise<void>>();
      mx::scheduler::enqueue(s, [reached] { reached->set_value(); });
      reached->get_future().wait();
    } else {
      mlxg::guard g;
      mx::synchronize(s);
    }
    if (auto error = mlxg::take_unread(s); !error.empty()) {
      throw std::runtime_error(error);
    }
  });
}

bool mlxg_available(void* ctx) {
  mlxg::guard g;
  return mlxg::available(mlxg::argument_of(mlxg::array_of(ctx)));
}

bool mlxg_traced(uintptr_t handle) {
  mlxg::guard g;
  return mlxg::array_of(handle).is_tracer();
}

char* mlxg_tostring(void* ctx, char** text) {
  *text = nullptr;
  auto handle = reinterpret_cast<uintptr_t>(ctx);
  if (char* err = mlxg_eval(&handle, 1)) {
    return err;
  }
  mlxg::guard g;
  mlx_string s = mlx_string_new();
  int rc = mlx_array_tostring(&s, mlx_array{ctx});
  char* err = mlxg_end_status(rc);
  if (!err) {
    *text = strdup(mlx_string_data(s));
  }
  mlx_string_free(s);
  return err;
}

}  // extern "C"
