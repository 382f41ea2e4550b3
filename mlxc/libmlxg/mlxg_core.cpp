// Errors, the graph lock, and what belongs to a thread: stream, scope, nesting.
#include "mlxg_call.h"

#include <atomic>
#include <cstring>
#include <future>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "mlx/mlx.h"
#include "mlx/scheduler.h"
#include "mlx/version.h"
#include "mlxg_immortal.h"
#include "mlxg_internal.h"

extern "C" {
// Symbols of the mlx-c that build.sh makes; another build of mlx-c lacks them.
__attribute__((weak)) const char* mlxgrad_mlx_c_version(void);
__attribute__((weak)) const char* mlxgrad_mlx_c_built_against(void);
// Came with mlx-c 0.7.
__attribute__((weak)) mlx_compile_cache mlx_compile_cache_new(void);
}

namespace {

thread_local std::string last_error;
// The streams of the open enters.
thread_local std::vector<void*> enter_streams;
thread_local bool stale = false;
thread_local void* current_stream = nullptr;
thread_local uintptr_t current_scope = 0;

// Streams of the process, usable from any thread; never freed, since arrays of
// a thread that outlives main may still refer to them.
void* device_streams[2] = {nullptr, nullptr};
std::atomic<int> default_device_type = 0;

void on_error(const char* message, void*) {
  // Runs on the failing thread, inside mlx-c's catch block; the text dies with
  // the exception.
  last_error = message ? message : "unknown error";
}

// The graph lock, re-entrant by a count of its thread's own, which costs less than a
// recursive mutex.
mlxg::immortal<std::mutex> graph;
std::mutex& graph_mutex = graph.value;
thread_local int holds = 0;
std::atomic<int> waiting = 0;  // threads

char* copy_string(const std::string& s) {
  auto* p = static_cast<char*>(std::malloc(s.size() + 1));
  if (p) {
    std::memcpy(p, s.c_str(), s.size() + 1);
  }
  return p;
}

// make_default makes a stream and its device MLX's defaults on this thread: a
// transform inserts nodes there. Goroutines move between threads, so each entry
// sets it.
void make_default(void* stream) {
  // Not through mlx-c, which makes and frees a device for it at every transform.
  auto& s = *static_cast<mlx::core::Stream*>(stream);
  mlx::core::set_default_device(s.device);
  mlx::core::set_default_stream(s);
}

// park_main_thread starts MLX's scheduler on a thread that never ends and schedules nothing. MLX takes the
// thread for the program's main thread, on which scheduling a task throws whatever error its stream has.
void park_main_thread() {
  auto started = std::make_shared<std::promise<void>>();
  auto ready = started->get_future();
  std::thread([started] {
    mlx::core::scheduler::scheduler();
    started->set_value();
    mlxg::serve_end();
  }).detach();
  ready.wait();
}

// oversized says that memory cannot hold an array, which operations come to that broadcast
// their operands: MLX counts elements without looking for overflow, and CPU kernels then
// write to memory that they did not get. NULL if it can.
char* oversized(const mlx::core::array& a) {
  constexpr uint64_t most = uint64_t(1) << 47;  // the address space of today's processors
  uint64_t bytes = a.itemsize();
  bool beyond = false;
  for (auto n : a.shape()) {
    if (n == 0) {
      return nullptr;
    }
    beyond = beyond || bytes > most / static_cast<uint64_t>(n);
    bytes *= static_cast<uint64_t>(n);
  }
  if (!beyond) {
    return nullptr;
  }
  std::ostringstream text;
  text << "the result " << a.dtype() << a.shape() << " holds more elements than memory can";
  return mlxg::error_text(text.str().c_str());
}

// mlx_version_text is the version of the loaded MLX.
const char* mlx_version_text() {
  static const std::string loaded = [] {
    mlx_string s = mlx_string_new();
    std::string text = mlx_version(&s) == 0 ? mlx_string_data(s) : "";
    mlx_string_free(s);
    return text;
  }();
  return loaded.c_str();
}

// mlxc_version_text is the version of the loaded mlx-c, "" if build.sh did not make it.
const char* mlxc_version_text() {
  return mlxgrad_mlx_c_version ? mlxgrad_mlx_c_version() : "";
}

// check_versions returns an error message unless the loaded libraries are the pair that this one was
// compiled for. It calls only functions that every mlx-c has. MLX's C++ interface has no stable binary
// form: other headers than the library's misread its objects.
char* check_versions() {
  const std::string mlx = mlx_version_text(), mlxc = mlxc_version_text();
  const std::string made_for = mlxgrad_mlx_c_built_against ? mlxgrad_mlx_c_built_against() : "";
  const std::string headers = std::to_string(MLX_VERSION_MAJOR) + "." + std::to_string(MLX_VERSION_MINOR) + "." +
                              std::to_string(MLX_VERSION_PATCH);
  if (mlx == headers && mlxc == MLXGRAD_MLX_C_VERSION && made_for == mlx) {
    return nullptr;
  }
  std::string loaded = "mlx-c " + mlxc, why;
  if (mlxc.empty()) {
    // An error of any version: MLX's messages, used as formats, would end the process.
    loaded = std::string("an mlx-c that build.sh did not make (") +
             (mlx_compile_cache_new ? "0.7 or later" : "older than 0.7") + ", by its symbols)";
    why = "; such an mlx-c uses MLX's error messages as printf formats";
  } else if (made_for != mlx) {
    loaded += " (made for MLX " + made_for + ")";
  }
  const std::string text = "MLX " + mlx + " and " + loaded + " are loaded, but libmlxg was compiled for MLX " +
                           headers + " and mlx-c " MLXGRAD_MLX_C_VERSION + why + ": " + mlxg::go.remedy +
                           ", and check the library search path";
  return mlxg::error_text(text.c_str());
}

bool is_gpu(void* stream) {
  return stream && static_cast<mlx::core::Stream*>(stream)->device == mlx::core::Device::gpu;
}

}  // namespace

namespace mlxg {

mlxg_go go;

char* take_error() {
  if (last_error.empty()) {
    last_error = "unknown error";
  }
  char* p = copy_string(last_error);
  last_error.clear();
  return p;
}

char* error_text(const char* what) {
  last_error = what ? what : "unknown error";
  return take_error();
}

mlxg_results no_results(char* err) {
  mlxg_results r = {};
  r.err = err;
  r.scope = current_scope;
  return r;
}

mlxg_results results_of(arrays a, arrays b) {
  for (auto* list : {&a, &b}) {
    for (auto& member : *list) {
      if (char* err = oversized(member)) {
        return no_results(err);
      }
    }
  }
  mlxg_results r = no_results(nullptr);
  r.n = a.size() + b.size();
  r.first = a.size();
  void** out = r.few;
  if (r.n > MLXG_FEW) {
    out = r.items = static_cast<void**>(std::malloc(r.n * sizeof(void*)));
    if (!out) {
      return no_results(error_text("out of memory"));
    }
  }
  for (auto* list : {&a, &b}) {
    for (auto& member : *list) {
      *out++ = new mlx::core::array(std::move(member));
    }
  }
  return r;
}

int depth() {
  return static_cast<int>(enter_streams.size());
}

void use_device_streams() {
  thread_local bool done = false;
  if (done || depth() > 0) {  // there, the stream that the transform was called on is the default
    return;
  }
  guard g;
  for (void* s : device_streams) {
    if (s) {
      mlx::core::set_default_stream(*static_cast<mlx::core::Stream*>(s));
    }
  }
  done = true;
}

arrays rings(const arrays& results) {
  arrays found, waiting = results;
  std::unordered_set<uintptr_t> seen;
  while (!waiting.empty()) {
    auto a = std::move(waiting.back());
    waiting.pop_back();
    if (!seen.insert(a.id()).second) {
      continue;
    }
    waiting.insert(waiting.end(), a.inputs().begin(), a.inputs().end());
    if (!a.siblings().empty()) {
      for (auto& s : a.siblings()) {
        seen.insert(s.id());
      }
      found.push_back(std::move(a));
    }
  }
  return found;
}

}  // namespace mlxg

extern "C" {

char* mlxg_init(const mlxg_go* with) {
  mlxg::go = *with;
  if (char* err = check_versions()) {
    return err;
  }
  mlx_set_error_handler(on_error, nullptr, nullptr);
  try {
    park_main_thread();
  } catch (std::exception& e) {
    return mlxg::error_text(e.what());
  }
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
  mlxg::check_allocations();
  return nullptr;
}

mlxg_version_set mlxg_versions(void) {
  return {mlx_version_text(), mlxc_version_text()};
}

void mlxg_lock(void) {
  if (holds++ == 0 && !graph_mutex.try_lock()) {
    waiting++;
    graph_mutex.lock();
    waiting--;
  }
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
  holds = graph_mutex.try_lock() ? 1 : 0;
  return holds == 1;
}

int mlxg_enter(void) {
  mlxg_lock();
  enter_streams.push_back(mlxg_real_stream());
  make_default(enter_streams.back());
  return static_cast<int>(enter_streams.size()) - 1;
}

bool mlxg_leave(void) {
  enter_streams.pop_back();
  if (!enter_streams.empty()) {
    // The transform further up goes on with the stream that it began with.
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
  bool cuda = false;
  mlx_cuda_is_available(&cuda);
  return cuda && s != mlxg_placeholder_gpu() ? 2 : 1;
}

void* mlxg_placeholder_gpu(void) {
  static mlx::core::Stream s(-1, mlx::core::Device::gpu);
  return &s;
}

mlxg_result mlxg_end(int rc, mlx_array res) {
  mlxg_result r = {res.ctx, nullptr, current_scope};
  r.err = rc != 0 || !res.ctx ? mlxg::take_error() : oversized(mlxg::array_of(res.ctx));
  if (r.err) {
    if (res.ctx) {
      mlx_array_free(res);
      r.ctx = nullptr;
    }
  }
  return r;
}

mlxg_result mlxg_finish(int rc, mlx_array res) {
  mlxg_result r = mlxg_end(rc, res);
  mlxg_unlock();
  return r;
}

mlxg_results mlxg_end_vector(int rc, mlx_vector_array res) {
  // mlx-c's vector is a pointer to C++'s.
  mlxg_results r = rc != 0 ? mlxg::no_results(mlxg::take_error())
                           : mlxg::results_of(std::move(*static_cast<mlxg::arrays*>(res.ctx)));
  mlx_vector_array_free(res);
  return r;
}

mlxg_results mlxg_end_pair(int rc, const mlx_array* pair) {
  mlx_vector_array both = mlx_vector_array_new();
  for (int i = 0; i < 2; i++) {
    if (rc == 0) {
      rc = mlx_vector_array_append_value(both, pair[i]);
    }
    if (pair[i].ctx) {
      mlx_array_free(pair[i]);
    }
  }
  return mlxg_end_vector(rc, both);
}

char* mlxg_end_status(int rc) {
  return rc == 0 ? nullptr : mlxg::take_error();
}

}  // extern "C"
