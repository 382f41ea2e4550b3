// Shutdown of MLX before the process ends.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>

#include "mlx/mlx.h"
#include "mlx/scheduler.h"
#include "mlx/stream.h"
#include "mlxg_evaluation.h"
#include "mlxg_immortal.h"

namespace mx = mlx::core;

namespace {

// ending is the state shared by mlxg_shutdown and MLX's main thread.
struct ending {
  std::mutex lock;
  std::condition_variable changed;
  bool requested = false;
  bool done = false;
  std::string step;   // names the work that the main thread waits for
  std::string error;  // the first unreported error
};
mlxg::immortal<ending> the_end;
ending& end_ = the_end.value;

std::atomic<bool> closed = false;  // evaluations fail; written under the graph lock
std::atomic<bool> ended = false;   // arrays are not destroyed; written under the graph lock

void at_step(std::string step) {
  std::lock_guard lock(end_.lock);
  end_.step = std::move(step);
}

void note(const std::string& error) {
  std::lock_guard lock(end_.lock);
  if (end_.error.empty()) {
    end_.error = error;
  }
}

// drain waits for the work of a stream. No other thread may submit work to it.
void drain(mx::Stream s) {
  if (s.device == mx::Device::cpu) {
    auto reached = std::make_shared<std::promise<void>>();
    mx::scheduler::enqueue(s, [reached] { reached->set_value(); });
    reached->get_future().wait();
  } else {
    mlxg::guard g;
    mx::synchronize(s);
  }
}

// drain_all makes new evaluations fail and waits for running ones.
void drain_all() {
  at_step("a transform, or the compilation of a kernel, on another goroutine");
  {
    mlxg::guard g;
    closed = true;
  }
  for (auto& s : mx::get_streams()) {
    std::ostringstream name;
    name << "the work on " << s;
    at_step(name.str());
    try {
      drain(s);
    } catch (std::exception&) {
      // MLX created this GPU stream for another thread. libmlxg does not use it.
    }
    if (auto error = mlxg::take_unread(s); !error.empty()) {
      note(error);
    }
  }
  at_step("other goroutines, which read the results of completed work");
  while (mlxg::waiting_call::count > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// end_mlx runs on MLX's main thread, the only thread on which MLX clears the streams shared by all threads.
void end_mlx() {
  // drain_all runs on another thread. Scheduling a task on MLX's main thread would throw the stream's pending error
  // here instead of in its evaluation.
  std::thread(drain_all).join();
  at_step("another goroutine that frees or combines arrays");
  mlxg::guard g;
  ended = true;
  mx::clear_streams();
  mx::clear_cache();
  mlxg::go.ended();
}

}  // namespace

namespace mlxg {

std::atomic<int> waiting_call::count = 0;

bool has_ended() {
  return ended;
}

void require_open() {
  if (closed) {
    throw std::runtime_error(MLXG_SHUT_DOWN);
  }
}

void wait_for_shutdown() {
  {
    std::unique_lock lock(end_.lock);
    end_.changed.wait(lock, [] { return end_.requested; });
  }
  try {
    end_mlx();
  } catch (std::exception& e) {
    note(e.what());
  }
  std::unique_lock lock(end_.lock);
  end_.done = true;
  end_.changed.notify_all();
  for (;;) {
    end_.changed.wait(lock);
  }
}

}  // namespace mlxg

extern "C" bool mlxg_shutdown(int milliseconds, char** err) {
  std::unique_lock lock(end_.lock);
  end_.requested = true;
  end_.changed.notify_all();
  end_.changed.wait_for(lock, std::chrono::milliseconds(milliseconds), [] { return end_.done; });
  auto& text = end_.done ? end_.error : end_.step;
  *err = text.empty() ? nullptr : mlxg::error_text(text.c_str());
  return end_.done;
}
