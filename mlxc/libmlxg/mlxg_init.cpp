// Start of libmlxg: version check, MLX's scheduler, device streams.
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "mlx/mlx.h"
#include "mlx/scheduler.h"
#include "mlx/version.h"
#include "mlxg_internal.h"

extern "C" {
// Only the mlx-c that build.sh compiles has these symbols.
__attribute__((weak)) const char* mlxgrad_mlx_c_version(void);
__attribute__((weak)) const char* mlxgrad_mlx_c_built_against(void);
// mlx-c 0.7 and later have this symbol.
__attribute__((weak)) mlx_compile_cache mlx_compile_cache_new(void);
}

namespace {

// park_main_thread starts MLX's scheduler on a thread that never ends and schedules nothing. MLX 0.32.2 treats the
// first thread of its scheduler as the main thread; scheduling a task there throws a pending error of the stream.
void park_main_thread() {
  auto started = std::make_shared<std::promise<void>>();
  auto ready = started->get_future();
  std::thread([started] {
    mlx::core::scheduler::scheduler();
    started->set_value();
    mlxg::wait_for_shutdown();
  }).detach();
  ready.wait();
}

// mlx_version_text returns the version of the loaded MLX.
const char* mlx_version_text() {
  static const std::string loaded = [] {
    mlx_string s = mlx_string_new();
    std::string text = mlx_version(&s) == 0 ? mlx_string_data(s) : "";
    mlx_string_free(s);
    return text;
  }();
  return loaded.c_str();
}

// mlxc_version_text returns the version of the loaded mlx-c, or "" if build.sh did not compile it.
const char* mlxc_version_text() {
  return mlxgrad_mlx_c_version ? mlxgrad_mlx_c_version() : "";
}

// check_versions returns an error message unless the loaded libraries are the pair that libmlxg was compiled for. MLX's
// C++ interface has no stable ABI: code compiled for another version misreads its objects. The check calls only
// functions that every mlx-c has.
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
    // Such an mlx-c is refused even if its version matches: a percent sign in an error message of MLX would crash the
    // process.
    loaded = std::string("an mlx-c that build.sh did not compile (") +
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

}  // namespace

namespace mlxg {

mlxg_go go;

}  // namespace mlxg

extern "C" {

char* mlxg_init(const mlxg_go* with) {
  mlxg::go = *with;
  if (char* err = check_versions()) {
    return err;
  }
  mlxg::install_error_handler();
  try {
    park_main_thread();
  } catch (std::exception& e) {
    return mlxg::error_text(e.what());
  }
  if (char* err = mlxg::open_device_streams()) {
    return err;
  }
  mlxg::set_up_allocator();
  return nullptr;
}

mlxg_version_set mlxg_versions(void) {
  return {mlx_version_text(), mlxc_version_text()};
}

}  // extern "C"
