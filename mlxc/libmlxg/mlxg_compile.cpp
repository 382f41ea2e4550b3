// Compiled functions, and the bound on what is kept of them.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <list>
#include <string>
#include <unordered_map>

#include "mlx/compile.h"
#include "mlx/compile_impl.h"
#include "mlx/mlx.h"
#include "mlxg_internal.h"

namespace mx = mlx::core;

using mlxg::function;

namespace {

// MLX does not tell its mode. The graph lock guards this copy.
int mode = std::getenv("MLX_DISABLE_COMPILE") ? MLX_COMPILE_MODE_DISABLED : MLX_COMPILE_MODE_ENABLED;

std::atomic<bool> no_fusing = false;

// fusing sets MLX's mode for a call on the current stream, and mode again at the end.
class fusing {
 public:
  fusing() {
    if (no_fusing) {
      set(mx::default_device() == mx::Device::gpu ? mode
          : mode == MLX_COMPILE_MODE_ENABLED      ? MLX_COMPILE_MODE_NO_FUSE
          : mode == MLX_COMPILE_MODE_NO_SIMPLIFY  ? MLX_COMPILE_MODE_DISABLED
                                                  : mode);
    }
  }
  ~fusing() {
    if (no_fusing) {
      set(mode);
    }
  }
  fusing(const fusing&) = delete;

 private:
  static void set(int m) { mlx_set_compile_mode(static_cast<mlx_compile_mode>(m)); }
};

// A trace is a function compiled for one signature. MLX keeps all that it compiled under
// an id and searches it from the front; with an id for each signature it finds the one
// that is there, and can be told to forget it alone.
class trace {
 public:
  trace(std::string signature, const function& f, bool shapeless)
      : signature(std::move(signature)), call_(mx::detail::compile(traced(f), id(), shapeless)) {}
  ~trace() { mx::detail::compile_erase(mx::detail::compile_cache(), id()); }
  trace(const trace&) = delete;

  mlxg::arrays operator()(const mlxg::arrays& args) {
    auto results = call_(args);
    rings_.clear();
    return results;
  }

  const std::string signature;

 private:
  function traced(const function& f) {
    return [this, f](const mlxg::arrays& args) {
      auto results = f(args);
      rings_ = mlxg::rings(results);
      return results;
    };
  }

  // No function that MLX compiles itself has the address of a trace.
  uintptr_t id() const { return reinterpret_cast<uintptr_t>(this); }

  mlxg::arrays rings_;
  const function call_;
};

class compiled {
 public:
  compiled(function f, bool shapeless) : f_(std::move(f)), shapeless_(shapeless) {}

  mlxg::arrays operator()(const mlxg::arrays& args) {
    auto signature = signature_of(args);
    auto found = by_signature_.find(signature);
    if (found != by_signature_.end()) {
      recent_.splice(recent_.begin(), recent_, found->second);
    } else {
      recent_.emplace_front(signature, f_, shapeless_);
      by_signature_[signature] = recent_.begin();
    }
    while (recent_.size() > MLXG_SIGNATURES) {
      forget(std::prev(recent_.end()));
    }
    auto at = recent_.begin();
    try {
      return (*at)(args);
    } catch (...) {
      // MLX takes what it has of a trace that failed for a whole one.
      forget(at);
      throw;
    }
  }

 private:
  // signature_of is what MLX compares, and the mode.
  std::string signature_of(const mlxg::arrays& args) const {
    std::string s;
    auto add = [&s](int n) { s.append(reinterpret_cast<const char*>(&n), sizeof(n)); };
    auto stream = mx::default_stream(mx::default_device());
    add(mode);
    add(stream.index);
    add(static_cast<int>(stream.device.type));
    for (auto& a : args) {
      add(static_cast<int>(a.dtype().val()));
      add(static_cast<int>(a.ndim()));
      if (!shapeless_) {
        for (auto n : a.shape()) {
          add(n);
        }
      }
    }
    return s;
  }

  void forget(std::list<trace>::iterator t) {
    by_signature_.erase(t->signature);
    recent_.erase(t);
  }

  function f_;
  bool shapeless_;
  std::list<trace> recent_;  // the last used first
  std::unordered_map<std::string, std::list<trace>::iterator> by_signature_;
};

}  // namespace

extern "C" {

void* mlxg_compile_new(uintptr_t id, bool shapeless) {
  return new compiled(mlxg::function_of(id), shapeless);
}

mlxg_results mlxg_compiled_call(void* c, const uintptr_t* args, size_t n) {
  return mlxg::with_results([&] {
    fusing here;
    return (*static_cast<compiled*>(c))(mlxg::arrays_of(args, n));
  });
}

void mlxg_compiled_free(void* c) {
  delete static_cast<compiled*>(c);
}

void mlxg_compile_clear(void) {
  mx::detail::compile_clear_cache(mx::detail::compile_cache());
}

void mlxg_compile_no_fusing(void) {
  no_fusing = true;
}

int mlxg_compile_set_mode(int m) {
  mlxg::guard g;
  int before = mode;
  mode = m;
  mlx_set_compile_mode(static_cast<mlx_compile_mode>(m));
  return before;
}

}  // extern "C"
