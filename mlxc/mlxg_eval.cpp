// Evaluation: the lock is held while MLX walks the graph, not while it computes.
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <thread>

#include "mlx/mlx.h"
#include "mlx/primitives.h"
#include "mlx/scheduler.h"
#include "mlxg_primitive.h"

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
  ~awake() {
    *over_ = true;
  }
  awake(const awake&) = delete;

 private:
  std::shared_ptr<std::atomic<bool>> over_ = std::make_shared<std::atomic<bool>>(false);
};

// wait_for evaluates and waits. Where only CPU streams take part, it waits without
// holding the lock, so that other goroutines build and schedule meanwhile; it waits for
// nodes of its own that have the arrays' events, since array::wait writes to the node. A
// GPU stream's own synchronisation is not safe beside another thread that encodes, and
// inside a transform the lock is held anyway; there the evaluation is MLX's own.
void wait_for(std::vector<mx::array>& arrays) {
  std::vector<mx::array> stand_ins;
  {
    mlxg::guard g;
    bool plain = mlxg::depth() > 0;
    auto streams = streams_of(arrays);
    for (auto& s : streams) {
      plain = plain || s.device != mx::Device::cpu;
    }
    if (plain) {
      mx::eval(arrays);
      return;
    }
    {
      std::optional<awake> thread;
      for (auto& a : arrays) {
        if (!thread && a.has_primitive()) {
          thread.emplace(a.primitive().stream());
        }
      }
      mx::async_eval(arrays);
    }
    for (auto& a : arrays) {
      if (!a.is_available() && a.event().valid()) {
        stand_ins.emplace_back(mx::Shape{}, mx::bool_, nullptr, std::vector<mx::array>{});
        stand_ins.back().attach_event(a.event());
        stand_ins.back().set_status(mx::array::Status::evaluated);
      }
    }
  }
  for (auto& s : stand_ins) {
    soon([&] { return s.is_available(); });
    s.wait();
  }
  mlxg::guard g;
  for (auto& a : arrays) {
    // Returns at once, or throws what the stream's task threw.
    a.wait();
  }
}

// not_there lists those that have no elements yet.
std::vector<mx::array> not_there(const std::vector<mx::array>& arrays) {
  std::vector<mx::array> pending;
  for (auto& a : arrays) {
    if (!a.is_available()) {
      pending.push_back(a);
    }
  }
  return pending;
}

// fail_for_good has arrays whose evaluation failed fail at every other one. MLX takes an array whose
// task threw for computed: a second evaluation would return no error, and its elements, or those
// of what it is an operand of, would be whatever the memory held. What they were computed from,
// MLX has forgotten by then.
void fail_for_good(std::vector<mx::array>& pending, const std::exception& e) {
  auto failure = std::make_shared<mlxg::failed>(
      *static_cast<mx::Stream*>(mlxg_device_stream(0)), "Eval", e.what());
  for (auto& a : pending) {
    a.primitive_ptr() = failure;
    a.set_status(mx::array::Status::unscheduled);
  }
}

// eval_and_wait does what wait_for does, and what fails, fails for good.
void eval_and_wait(std::vector<mx::array>& arrays) {
  std::vector<mx::array> pending;
  {
    mlxg::guard g;
    mlxg::repair(arrays);
    pending = not_there(arrays);
  }
  try {
    wait_for(arrays);
  } catch (std::exception& e) {
    mlxg::guard g;
    fail_for_good(pending, e);
    pending.clear();
    throw;
  }
  mlxg::guard g;
  pending.clear();
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

} // namespace

namespace mlxg {

mx::array argument_of(mx::array a) {
  while (a.has_primitive() && std::strcmp(a.primitive().name(), "Copy") == 0) {
    a = mx::array(a.inputs()[0]);
  }
  return a;
}

} // namespace mlxg

extern "C" {

char* mlxg_eval(const uintptr_t* ctx, size_t n) {
  mlxg::use_device_streams();
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
    auto pending = not_there(arrays);
    try {
      mx::async_eval(arrays);
    } catch (std::exception& e) {
      fail_for_good(pending, e);
      throw;
    }
  });
  mlxg::mend_signals();
  return err;
}

char* mlxg_read(void* ctx, void* dst, size_t nbytes) {
  mlxg::use_device_streams();
  std::vector<mx::array> rows;
  char* err = with_errors([&] {
    bool there;
    {
      mlxg::guard g;
      auto a = mlxg::argument_of(mlxg::array_of(ctx));
      there = a.is_available() && a.flags().row_contiguous;
      if (there) {
        // Not through the graph, which would wait for all that its stream has to do.
        rows.push_back(a);
      } else {
        a = mlxg::array_of(ctx);
        // Row-major order whatever the strides; no copy if they are already.
        auto s = a.has_primitive()
            ? a.primitive().stream()
            : *static_cast<mx::Stream*>(mlxg_real_stream());
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
    auto& elements = rows.back();
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

bool mlxg_available(void* ctx) {
  mlxg::guard g;
  return mlxg::argument_of(mlxg::array_of(ctx)).is_available();
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

} // extern "C"
