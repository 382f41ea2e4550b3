// Host functions: lazy nodes on CPU streams that run a C function.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "mlx/backend/cpu/encoder.h"
#include "mlx/mlx.h"
#include "mlxg_primitive.h"

namespace mx = mlx::core;

namespace {

// provider owns the context of a C function. The node and its tasks share it, so that an array may be freed while its
// node is evaluated.
struct provider {
  void* ctx;
  mlxg_prepare_fn prepare;
  mlxg_run_fn run;
  mlxg_release_fn release;
  std::optional<float> init_value;
  provider(void* c, mlxg_prepare_fn p, mlxg_run_fn r, mlxg_release_fn d, const float* init)
      : ctx(c), prepare(p), run(r), release(d) {
    if (init) {
      init_value = *init;
    }
  }
  provider(const provider&) = delete;
  ~provider() {
    if (release) {
      release(ctx);
    }
  }
};

// buffers holds the views of arrays for a task, which may run after the nodes are detached or freed. MLX keeps the data
// alive until the stream has passed the task.
struct buffers {
  std::vector<mx::Shape> shapes;
  std::vector<mx::Strides> strides;
  std::vector<mlxg_view> views;

  void add(const std::vector<mx::array>& arrays) {
    for (auto& a : arrays) {
      shapes.push_back(a.shape());
      strides.push_back(a.strides());
      views.push_back({const_cast<char*>(a.data<char>()), nullptr, nullptr, static_cast<int32_t>(a.ndim())});
    }
  }

  void bind() {
    for (size_t i = 0; i < views.size(); i++) {
      views[i].shape = shapes[i].data();
      views[i].strides = strides[i].data();
    }
  }
};

template <typename T>
void fill_as(char* p, size_t n, float value) {
  std::fill_n(reinterpret_cast<T*>(p), n, static_cast<T>(value));
}

// fill sets n elements to value, converted to the dtype d.
void fill(char* p, size_t n, mx::Dtype d, float value) {
  switch (d) {
    case mx::bool_:
      return fill_as<bool>(p, n, value);
    case mx::uint8:
      return fill_as<uint8_t>(p, n, value);
    case mx::uint16:
      return fill_as<uint16_t>(p, n, value);
    case mx::uint32:
      return fill_as<uint32_t>(p, n, value);
    case mx::uint64:
      return fill_as<uint64_t>(p, n, value);
    case mx::int8:
      return fill_as<int8_t>(p, n, value);
    case mx::int16:
      return fill_as<int16_t>(p, n, value);
    case mx::int32:
      return fill_as<int32_t>(p, n, value);
    case mx::int64:
      return fill_as<int64_t>(p, n, value);
    case mx::float16:
      return fill_as<mx::float16_t>(p, n, value);
    case mx::float32:
      return fill_as<float>(p, n, value);
    case mx::float64:
      return fill_as<double>(p, n, value);
    case mx::bfloat16:
      return fill_as<mx::bfloat16_t>(p, n, value);
    case mx::complex64:
      return fill_as<mx::complex64_t>(p, n, value);
  }
}

class host_function : public mlxg::opaque {
 public:
  // With contiguous set, the function reads copies of the inputs that are not row-major.
  host_function(mx::Stream s, std::string name, std::shared_ptr<provider> f, bool contiguous)
      : opaque(s, std::move(name)), f_(std::move(f)), contiguous_(contiguous) {}

  size_t launches() const override { return 1; }

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    // Steps that can fail run here, on the evaluating thread. Their exception reaches exactly the evaluations that need
    // this node, and the node stays in the graph. MLX would report an exception of the task in an unrelated evaluation.
    auto operands = inputs;
    try {
      mlxg::allocate(outputs);
      if (contiguous_) {
        make_contiguous(operands);
      }
      char text[512] = "";
      if (f_->prepare && f_->prepare(f_->ctx, text, sizeof(text)) != 0) {
        throw std::runtime_error(text);
      }
    } catch (std::exception& e) {
      auto self = outputs[0].primitive_ptr();
      mlxg::fail(outputs, stream(), name_, e.what());
    }
    auto in = std::make_shared<buffers>();
    in->add(operands);
    in->bind();
    auto out = std::make_shared<buffers>();
    out->add(outputs);
    out->bind();
    auto& encoder = mx::cpu::get_command_encoder(stream());
    if (f_->init_value) {
      for (auto& o : outputs) {
        encoder.dispatch(
            [p = o.data<char>(), n = o.size(), d = o.dtype(), v = *f_->init_value]() { fill(p, n, d, v); });
      }
    }
    encoder.dispatch([f = f_, in, out]() { f->run(f->ctx, in->views.data(), out->views.data()); });
  }

 private:
  void make_contiguous(mlxg::arrays& operands) {
    for (auto& a : operands) {
      if (!a.flags().row_contiguous) {
        mlxg::arrays copy{mx::contiguous(a, false, stream())};
        copy[0].primitive().eval_cpu({a}, copy);
        a = copy[0];
        mx::cpu::get_command_encoder(stream()).add_temporary(a);
      }
    }
  }

  std::shared_ptr<provider> f_;
  bool contiguous_;
};

}  // namespace

extern "C" mlxg_results mlxg_primitive_call(
    const char* name,
    void* ctx,
    void* prepare,
    void* run,
    void* release,
    bool contiguous,
    const float* init_value,
    const int* dims,
    const int* dtypes,
    size_t n_outputs,
    const uintptr_t* inputs,
    size_t n) {
  // The provider owns ctx from here on, even if this function fails.
  auto f = std::make_shared<provider>(
      ctx, reinterpret_cast<mlxg_prepare_fn>(prepare), reinterpret_cast<mlxg_run_fn>(run),
      reinterpret_cast<mlxg_release_fn>(release), init_value);
  mlxg::guard g;
  try {
    auto s = *static_cast<mx::Stream*>(mlxg_stream().ctx);
    auto in = mlxg::arrays_of(inputs, n);
    std::vector<mx::Shape> shapes;
    std::vector<mx::Dtype> types;
    const int* d = dims;
    for (size_t i = 0; i < n_outputs; i++) {
      int ndim = *d++;
      shapes.emplace_back(d, d + ndim);
      d += ndim;
      types.push_back(mlxg::dtype_of(dtypes[i]));
    }
    auto prim = std::make_shared<host_function>(s, name, f, contiguous);
    auto outs = mx::array::make_arrays(std::move(shapes), types, prim, in);
    return mlxg::results_of(outs);
  } catch (std::exception& e) {
    return mlxg::no_results(mlxg::error_text(e.what()));
  }
}

extern "C" void mlxg_release(void* release, void* ctx) {
  if (release) {
    reinterpret_cast<mlxg_release_fn>(release)(ctx);
  }
}
