// Errors and results of calls.
#include <cstring>
#include <sstream>
#include <string>

#include "mlx/mlx.h"
#include "mlxg_internal.h"

namespace {

thread_local std::string last_error;

// on_error runs on the failing thread inside mlx-c's catch block. message lives as long as the exception.
void on_error(const char* message, void*) {
  last_error = message ? message : "unknown error";
}

char* copy_string(const std::string& s) {
  auto* p = static_cast<char*>(std::malloc(s.size() + 1));
  if (p) {
    std::memcpy(p, s.c_str(), s.size() + 1);
  }
  return p;
}

// oversized returns an error message if an array exceeds the address space, or NULL. Broadcasting can produce such
// shapes. MLX counts elements without an overflow check, so CPU kernels would write beyond their allocation (fault
// size-overflow).
char* oversized(const mlx::core::array& a) {
  constexpr uint64_t most = uint64_t(1) << 47;  // the address space of 64-bit processors
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
  text << "the result " << a.dtype() << a.shape() << " exceeds the address space";
  return mlxg::error_text(text.str().c_str());
}

}  // namespace

namespace mlxg {

void install_error_handler() {
  mlx_set_error_handler(on_error, nullptr, nullptr);
}

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
  r.scope = mlxg_current_scope();
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

}  // namespace mlxg

extern "C" {

mlxg_result mlxg_end(int rc, mlx_array res) {
  mlxg_result r = {res.ctx, nullptr, mlxg_current_scope()};
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
  // mlx-c's vector handle points to a std::vector.
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
