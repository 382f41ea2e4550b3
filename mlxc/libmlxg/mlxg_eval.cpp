// Evaluation: the lock is held while MLX walks the graph, not while it computes.
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

// streams_of lists the streams on which the arrays' last work runs.
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

// soon waits for what is likely to come at once: a tenth of a millisecond without sleeping.
template <typename F>
void soon(F&& done) {
  auto latest = std::chrono::steady_clock::now() + std::chrono::microseconds(100);
  while (!done() && std::chrono::steady_clock::now() < latest) {
    std::this_thread::yield();
  }
}

// awake keeps the thread of a stream waiting for the tasks that are scheduled during its
// life. To wake a thread takes longer than many a graph, and one that runs out of tasks
// while the graph is still walked would have to be woken for each of the others.
class awake {
 public:
  explicit awake(mx::Stream s) {
    mx::scheduler::enqueue(s, [over = over_] { soon([&] { return over->load(); }); });
  }
  ~awake() { *over_ = true; }
  awake(const awake&) = delete;

 private:
  std::shared_ptr<std::atomic<bool>> over_ = std::make_shared<std::atomic<bool>>(false);
};

// eval_and_wait evaluates and waits. If only CPU streams take part, it waits without the lock, so
// that other goroutines build and schedule meanwhile. A GPU stream's own synchronization is not
// safe beside another thread that encodes, and inside a transform the lock is held anyway: there
// the evaluation is MLX's own.
void eval_and_wait(std::vector<mx::array>& arrays) {
  std::shared_ptr<mlxg::evaluation> e;
  std::vector<mx::array> pending;
  {
    mlxg::guard g;
    mlxg::repair(arrays);
    e = mlxg::evaluation::of(arrays, true);
    auto streams = streams_of(arrays);
    if (mlxg::depth() > 0 ||
        std::any_of(streams.begin(), streams.end(), [](auto& s) { return s.device != mx::Device::cpu; })) {
      e->run(arrays);
      return;
    }
    {
      std::optional<awake> thread;
      for (auto& a : arrays) {
        if (!thread && a.has_primitive()) {
          thread.emplace(a.primitive().stream());
        }
      }
      e->start(arrays);
    }
    for (auto& a : arrays) {
      if (!a.is_available() && a.event().valid()) {
        // A node of our own with the event: array::wait writes to the node.
        pending.emplace_back(mx::Shape{}, mx::bool_, nullptr, std::vector<mx::array>{});
        pending.back().attach_event(a.event());
        pending.back().set_status(mx::array::Status::evaluated);
      }
    }
  }
  for (auto& p : pending) {
    soon([&] { return p.is_available(); });
    p.wait();
  }
  mlxg::guard g;
  e->check();
  for (auto& a : arrays) {
    a.wait();  // returns at once
  }
}

// with_errors runs f and turns an exception into a message.
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

// locked_copies takes references under the lock: copying a handle whose node is
// being detached elsewhere is safe only there. drop releases them there too.
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
  mlxg::use_device_streams();
  mlxg::inside call;
  auto arrays = locked_copies(ctx, n);
  char* err = with_errors([&] { eval_and_wait(arrays); });
  mlxg::mend_signals();
  drop(arrays);
  return err;
}

char* mlxg_async_eval(const uintptr_t* ctx, size_t n) {
  mlxg::use_device_streams();
  mlxg::guard g;
  auto arrays = mlxg::arrays_of(ctx, n);
  char* err = with_errors([&] {
    mlxg::repair(arrays);
    mlxg::evaluation::of(arrays, false)->start(arrays);
  });
  mlxg::mend_signals();
  return err;
}

char* mlxg_read(void* ctx, void* dst, size_t nbytes) {
  mlxg::use_device_streams();
  mlxg::inside call;
  std::vector<mx::array> rows;
  char* err = with_errors([&] {
    bool there;
    {
      mlxg::guard g;
      auto a = mlxg::argument_of(mlxg::array_of(ctx));
      there = mlxg::available(a) && a.flags().row_contiguous;
      if (there) {
        // Not through the graph, which would wait for all that its stream has to do.
        rows.push_back(a);
      } else {
        a = mlxg::array_of(ctx);
        // Row-major order whatever the strides; no copy if they are already.
        auto s = a.has_primitive() ? a.primitive().stream() : *static_cast<mx::Stream*>(mlxg_real_stream());
        if (a.size() == 0 && s.device == mx::Device::gpu) {
          // Nothing to compute, which MLX's CUDA kernels do not expect: some end the
          // process, others leave an error behind that later ones find.
          return;
        }
        // The array itself is evaluated, not only its row-major form, so that a
        // second read does not compute it again.
        rows.push_back(a);
        rows.push_back(mx::contiguous(a, false, s));
      }
    }
    if (!there) {
      eval_and_wait(rows);
      mlxg::mend_signals();
    }
    // MLX 0.32.2 on CUDA leaves the row-major form of one element of a large array unwritten.
    auto& elements = rows.front().flags().row_contiguous ? rows.front() : rows.back();
    if (elements.nbytes() != nbytes) {
      throw std::runtime_error("[read] the destination's size is not the array's");
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
  mlxg::inside call;
  return with_errors([&] {
    mlxg::refuse_if_closed();
    if (s.device == mx::Device::cpu) {
      // Not MLX's function, which takes the errors of evaluations that still run. Nothing but the
      // queue is touched, so others go on meanwhile.
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

bool mlxg_traced(void* ctx) {
  mlxg::guard g;
  return mlxg::array_of(ctx).is_tracer();
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
