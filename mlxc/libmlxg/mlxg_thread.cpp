// The graph lock and the state of a thread: stream, scope, depth of nested transforms.
#include <atomic>
#include <exception>
#include <mutex>
#include <vector>

#include "mlx/backend/cuda/cuda.h"
#include "mlx/mlx.h"
#include "mlxg_immortal.h"
#include "mlxg_internal.h"

namespace {

// The stream of each open mlxg_enter, outermost first.
thread_local std::vector<void*> enter_streams;
thread_local bool stale = false;  // see mlxg_mark_stale
thread_local void* current_stream = nullptr;
thread_local uintptr_t current_scope = 0;

// The streams of the process by device, 0 for the CPU and 1 for the GPU. Any thread may use them. They are never freed
// because arrays of a thread that outlives main may refer to them.
void* device_streams[2] = {nullptr, nullptr};
std::atomic<int> default_device_type = 0;

// The graph lock. The thread-local count makes it re-entrant, at a lower cost than std::recursive_mutex.
mlxg::immortal<std::mutex> graph;
std::mutex& graph_mutex = graph.value;
thread_local int holds = 0;
std::atomic<int> waiting = 0;  // threads that wait for the lock

// set_default_stream does not throw. MLX throws on a new thread while the process ends, when CUDA no longer counts its
// devices. Nothing is computed then.
void set_default_stream(void* stream) {
  try {
    mlx::core::set_default_stream(*static_cast<mlx::core::Stream*>(stream));
  } catch (const std::exception&) {
  }
}

// make_default sets MLX's default device and stream on this thread. A transform adds nodes on the default stream.
// Goroutines move between threads, so each mlxg_enter sets it.
void make_default(void* stream) {
  // This calls C++ because mlx-c's function would allocate and free a device for each transform.
  mlx::core::set_default_device(static_cast<mlx::core::Stream*>(stream)->device);
  set_default_stream(stream);
}

bool is_gpu(void* stream) {
  return stream && static_cast<mlx::core::Stream*>(stream)->device == mlx::core::Device::gpu;
}

}  // namespace

namespace mlxg {

char* open_device_streams() {
  mlx_device cpu = mlx_device_new_type(MLX_CPU, 0);
  mlx_stream s = mlx_stream_new_thread_unsafe(cpu);
  mlx_device_free(cpu);
  if (!s.ctx) {
    return mlxg::take_error();
  }
  device_streams[0] = s.ctx;
  mlx_device gpu = mlx_device_new_type(MLX_GPU, 0);
  bool available = false;
  if (mlx_device_is_available(&available, gpu) == 0 && available) {
    mlx_stream g = mlx_stream_new_thread_unsafe(gpu);
    if (!g.ctx) {
      mlx_device_free(gpu);
      return mlxg::take_error();
    }
    device_streams[1] = g.ctx;
    default_device_type = 1;
  }
  mlx_device_free(gpu);
  return nullptr;
}

int depth() {
  return static_cast<int>(enter_streams.size());
}

void use_device_streams() {
  thread_local bool done = false;
  if (done || !device_streams[0]) {
    return;
  }
  for (void* s : device_streams) {
    if (s) {
      set_default_stream(s);
    }
  }
  done = true;
}

}  // namespace mlxg

extern "C" {

void mlxg_lock(void) {
  if (holds++ > 0) {
    return;
  }
  if (!graph_mutex.try_lock()) {
    waiting++;
    graph_mutex.lock();
    waiting--;
  }
  mlxg::use_device_streams();
}

int mlxg_waiting(void) {
  return waiting;
}

void mlxg_unlock(void) {
  if (--holds == 0) {
    graph_mutex.unlock();
  }
}

bool mlxg_try_lock(bool wait) {
  if (wait || holds > 0) {
    mlxg_lock();
    return true;
  }
  if (!graph_mutex.try_lock()) {
    return false;
  }
  holds = 1;
  mlxg::use_device_streams();
  return true;
}

int mlxg_enter(void) {
  mlxg_lock();
  void* s = mlxg_real_stream();
  if (enter_streams.empty() || enter_streams.back() != s) {
    make_default(s);
  }
  enter_streams.push_back(s);
  return static_cast<int>(enter_streams.size()) - 1;
}

bool mlxg_leave(void) {
  void* s = enter_streams.back();
  enter_streams.pop_back();
  if (!enter_streams.empty() && enter_streams.back() != s) {
    // The enclosing transform continues on its own stream.
    make_default(enter_streams.back());
  }
  mlxg_unlock();
  return stale;
}

int mlxg_enter_depth(void) {
  return mlxg::depth();
}

void mlxg_mark_stale(void) {
  stale = true;
}

bool mlxg_is_stale(void) {
  return stale;
}

mlx_stream mlxg_stream(void) {
  mlx_stream s;
  s.ctx = current_stream ? current_stream : device_streams[default_device_type];
  return s;
}

void* mlxg_real_stream(void) {
  void* s = mlxg_stream().ctx;
  return s == mlxg_placeholder_gpu() ? device_streams[default_device_type] : s;
}

void* mlxg_swap_stream(void* stream) {
  void* old = current_stream;
  current_stream = stream;
  return old;
}

uintptr_t mlxg_swap_scope(uintptr_t scope) {
  uintptr_t old = current_scope;
  current_scope = scope;
  return old;
}

uintptr_t mlxg_current_scope(void) {
  return current_scope;
}

void* mlxg_current_stream(void) {
  return current_stream;
}

int mlxg_default_device(void) {
  return default_device_type;
}

int mlxg_set_default_device(int type) {
  if (type < 0 || type > 1 || !device_streams[type]) {
    return -1;
  }
  mlxg_lock();
  default_device_type = type;
  mlxg_unlock();
  return 0;
}

void* mlxg_device_stream(int type) {
  return type < 0 || type > 1 ? nullptr : device_streams[type];
}

int mlxg_current_device(void) {
  return is_gpu(mlxg_stream().ctx) ? 1 : 0;
}

int mlxg_current_backend(void) {
  void* s = mlxg_stream().ctx;
  if (!is_gpu(s)) {
    return 0;
  }
  static const bool cuda = mlx::core::cu::is_available();
  return cuda && s != mlxg_placeholder_gpu() ? 2 : 1;
}

void* mlxg_placeholder_gpu(void) {
  static mlx::core::Stream s(-1, mlx::core::Device::gpu);
  return &s;
}

}  // extern "C"
