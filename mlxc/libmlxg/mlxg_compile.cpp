// Compiled functions, and the bound on the number of compiled signatures.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <list>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "mlx/compile.h"
#include "mlx/compile_impl.h"
#include "mlx/mlx.h"
#include "mlxg_internal.h"

namespace mx = mlx::core;

using mlxg::function;

namespace {

// MLX has no getter for the compile mode, so this is a copy. The graph lock guards it.
int mode = std::getenv("MLX_DISABLE_COMPILE") ? MLX_COMPILE_MODE_DISABLED : MLX_COMPILE_MODE_ENABLED;

std::atomic<bool> no_fusing = false;

// mode_scope sets the compile mode of a call: after mlxg_compile_no_fusing, calls on CPU streams do not fuse. Its
// destructor restores `mode`.
class mode_scope {
 public:
  mode_scope() {
    if (no_fusing) {
      set(mx::default_device() == mx::Device::gpu ? mode
          : mode == MLX_COMPILE_MODE_ENABLED      ? MLX_COMPILE_MODE_NO_FUSE
          : mode == MLX_COMPILE_MODE_NO_SIMPLIFY  ? MLX_COMPILE_MODE_DISABLED
                                                  : mode);
    }
  }
  ~mode_scope() {
    if (no_fusing) {
      set(mode);
    }
  }
  mode_scope(const mode_scope&) = delete;

 private:
  static void set(int m) { mlx_set_compile_mode(static_cast<mlx_compile_mode>(m)); }
};

bool is_infinite_complex(const mx::array& a) {
  if (a.has_primitive() || a.dtype() != mx::complex64 || a.size() != 1 || !a.is_available()) {
    return false;
  }
  auto* parts = a.data<float>();
  return !std::isfinite(parts[0]) || !std::isfinite(parts[1]);
}

// unfuse_constants replaces complex constants that are not finite by nodes with the same value. MLX prints constants
// into the code of fused kernels, and prints these as `nan` or `inf`, which C++ does not accept (fault
// compile-complex-nan).
void unfuse_constants(const mlxg::arrays& results) {
  mlxg::arrays waiting = results;
  std::unordered_set<uintptr_t> seen;
  while (!waiting.empty()) {
    auto a = std::move(waiting.back());
    waiting.pop_back();
    if (!seen.insert(a.id()).second) {
      continue;
    }
    for (auto& in : a.inputs()) {
      if (a.siblings().empty() && is_infinite_complex(in)) {
        in = mx::reshape(mx::expand_dims(in, 0, a.primitive().stream()), in.shape(), a.primitive().stream());
      } else {
        waiting.push_back(in);
      }
    }
  }
}

// A trace is a function compiled for one signature. MLX's compile cache keeps a list of all signatures under a
// function's id and searches it linearly. Each trace has a separate id, so the list has one entry, and the trace can be
// erased alone.
class trace {
 public:
  trace(std::string signature, const function& f, bool shapeless)
      : signature(std::move(signature)), call_(mx::detail::compile(recorded(f), id(), shapeless)) {}
  ~trace() { mx::detail::compile_erase(mx::detail::compile_cache(), id()); }
  trace(const trace&) = delete;

  // traced reports whether MLX compiled the function. It does not if compilation is disabled.
  bool traced() const { return traced_; }

  mlxg::arrays operator()(const mlxg::arrays& args) {
    auto results = call_(args);
    cycles_.clear();
    return results;
  }

  const std::string signature;
  std::unordered_set<std::string> checked;  // the shapes of arguments that check_shapes has accepted

 private:
  function recorded(const function& f) {
    return [this, f](const mlxg::arrays& args) {
      traced_ = std::any_of(args.begin(), args.end(), [](auto& a) { return a.is_tracer(); });
      auto results = f(args);
      unfuse_constants(results);
      cycles_ = mlxg::sibling_cycles(results);
      return results;
    };
  }

  // The address of a trace differs from the ids of functions that MLX compiles by itself.
  uintptr_t id() const { return reinterpret_cast<uintptr_t>(this); }

  bool traced_ = false;
  mlxg::arrays cycles_;  // see sibling_cycles
  const function call_;
};

// max_checked bounds the memory for the shapes that a shapeless trace has accepted.
constexpr size_t max_checked = 1 << 16;

// compiled is a function with its most recently used traces, one per signature, MLXG_SIGNATURES at most.
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
    mlxg::arrays results;
    try {
      results = (*at)(args);
    } catch (...) {
      // MLX would treat the incomplete entry of a failed trace as complete.
      forget(at);
      throw;
    }
    if (shapeless_) {
      check_shapes(*at, args, results);
    }
    return results;
  }

 private:
  // check_shapes throws unless the results of a shapeless trace equal those of a trace for the shapes of args. MLX
  // computes the shapes in the results' graph from args, but keeps the parameters and constants of the first trace.
  void check_shapes(trace& t, const mlxg::arrays& args, const mlxg::arrays& results) {
    std::string shapes;
    for (auto& a : args) {
      shapes.append(reinterpret_cast<const char*>(a.shape().data()), a.ndim() * sizeof(a.shape()[0]));
    }
    if (!t.traced() || t.checked.count(shapes)) {
      return;
    }
    // MLX's operations build other nodes inside a shapeless trace, so the trace for these shapes is inside of one.
    mlxg::arrays expected;
    trace same_shapes({}, f_, false);
    auto run = [&](const mlxg::arrays&) {
      expected = same_shapes(args);
      return mlxg::arrays{};
    };
    trace({}, run, true)(args);
    mlxg::refuse_difference(mlxg::difference(results, expected));
    if (t.checked.size() == max_checked) {
      t.checked.clear();
    }
    t.checked.insert(shapes);
  }

  // signature_of returns the compile mode and the properties by which MLX tells signatures apart.
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
  std::list<trace> recent_;  // the most recently used first
  std::unordered_map<std::string, std::list<trace>::iterator> by_signature_;
};

}  // namespace

namespace mlxg {

arrays sibling_cycles(const arrays& results) {
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

void* mlxg_compile_new(uintptr_t id, bool shapeless) {
  return new compiled(mlxg::function_of(id), shapeless);
}

mlxg_results mlxg_compiled_call(void* c, const uintptr_t* args, size_t n) {
  return mlxg::with_results([&] {
    mode_scope scope;
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
