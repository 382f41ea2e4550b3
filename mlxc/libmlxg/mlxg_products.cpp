// Matrix products that write to rows of an existing array, on CUDA devices. MLX's own products always allocate their
// result, so sums of products and parts of one matrix cost additional passes over memory.
//
// CUDA's headers are no part of MLX's packages, so this file declares the functions that it calls.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "mlx/compile.h"
#include "mlx/fast.h"
#include "mlx/mlx.h"
#include "mlx/version.h"
#include "mlxg_evaluation.h"
#include "mlxg_primitive.h"

namespace mx = mlx::core;

namespace {

// Values of cublasLt.h and cuda.h.
enum { half_type = 2, float_type = 0, bfloat_type = 14 };
enum { compute_float = 68, compute_tf32 = 77 };
enum { pointer_mode = 2, transpose_a = 3, transpose_b = 4, device_pointers = 1 };
enum { max_workspace = 1, min_alignment_a = 5, min_alignment_b = 6, min_alignment_c = 7, min_alignment_d = 8 };
enum { algorithm_id = 0, algorithm_tile = 1, hopper_algorithm = 66 };
enum { tile_128x160 = 29, tile_168x128 = 197, tile_176x128 = 201 };
enum { capture_thread_local = 1, stream_non_blocking = 1 };

struct heuristic {
  uint64_t algorithm[8];
  size_t workspace;
  int status;
  float waves;
  int reserved[4];
};

// choice is cuBLASLt's algorithm for a product, once `chosen` is 1.
struct choice {
  heuristic best{};
  int chosen = 0;
};

using encoder = void;  // mlx::core::cu::CommandEncoder

// functions holds the functions of MLX, cuBLASLt and the driver that a product calls.
struct functions {
  encoder* (*encoder_of)(mx::Stream);
  void* (*device_of)(mx::Device);
  void (*make_current)(void* device);
  void (*set_input)(encoder*, const mx::array&);
  void (*set_output)(encoder*, const mx::array&);
  void (*add_completed)(encoder*, std::function<void()>);
  void (*add_graph)(encoder*, void* graph);

  int (*create)(void** handle);
  int (*layout)(void** layout, int type, uint64_t rows, uint64_t columns, int64_t stride);
  int (*layout_free)(void* layout);
  int (*description)(void** description, int compute, int scale);
  int (*description_set)(void* description, int what, const void* value, size_t size);
  int (*description_free)(void* description);
  int (*preference)(void** preference);
  int (*preference_set)(void* preference, int what, const void* value, size_t size);
  int (*preference_free)(void* preference);
  int (*choose)(void*, void*, void*, void*, void*, void*, void*, int count, heuristic* found, int* n);
  int (*attribute)(const void* algorithm, int what, void* value, size_t size, size_t* written);
  int (*multiply)(
      void*,
      void*,
      const void* alpha,
      const void* a,
      void*,
      const void* b,
      void*,
      const void* beta,
      const void* c,
      void*,
      void* d,
      void*,
      const void* algorithm,
      void* workspace,
      size_t,
      void* stream);

  int (*stream_create)(void** stream, unsigned flags);
  int (*capture_begin)(void* stream, int mode);
  int (*capture_end)(void* stream, void** graph);
  int (*graph_destroy)(void* graph);
  int (*allocate)(uint64_t* address, size_t size);
  int (*upload)(uint64_t address, const void* data, size_t size);

  bool complete = true;

  functions() {
    // The names contain the types of the parameters, so a function that changes is not found.
    void* mlx = open("libmlx.so");
    find(encoder_of, mlx, "_ZN3mlx4core2cu19get_command_encoderENS0_6StreamE");
    find(device_of, mlx, "_ZN3mlx4core2cu6deviceENS0_6DeviceE");
    find(make_current, mlx, "_ZN3mlx4core2cu6Device12make_currentEv");
    find(set_input, mlx, "_ZN3mlx4core2cu14CommandEncoder15set_input_arrayERKNS0_5arrayE");
    find(set_output, mlx, "_ZN3mlx4core2cu14CommandEncoder16set_output_arrayERKNS0_5arrayE");
    find(add_completed, mlx, "_ZN3mlx4core2cu14CommandEncoder21add_completed_handlerESt8functionIFvvEE");
    find(add_graph, mlx, "_ZN3mlx4core2cu14CommandEncoder14add_graph_nodeEP10CUgraph_st");
    void* blas = open("libcublasLt.so.13");
    if (!blas) {
      blas = open("libcublasLt.so.12");
    }
    find(create, blas, "cublasLtCreate");
    find(layout, blas, "cublasLtMatrixLayoutCreate");
    find(layout_free, blas, "cublasLtMatrixLayoutDestroy");
    find(description, blas, "cublasLtMatmulDescCreate");
    find(description_set, blas, "cublasLtMatmulDescSetAttribute");
    find(description_free, blas, "cublasLtMatmulDescDestroy");
    find(preference, blas, "cublasLtMatmulPreferenceCreate");
    find(preference_set, blas, "cublasLtMatmulPreferenceSetAttribute");
    find(preference_free, blas, "cublasLtMatmulPreferenceDestroy");
    find(choose, blas, "cublasLtMatmulAlgoGetHeuristic");
    find(attribute, blas, "cublasLtMatmulAlgoConfigGetAttribute");
    find(multiply, blas, "cublasLtMatmul");
    void* driver = open("libcuda.so.1");
    find(stream_create, driver, "cuStreamCreate");
    find(capture_begin, driver, "cuStreamBeginCapture_v2");
    find(capture_end, driver, "cuStreamEndCapture");
    find(graph_destroy, driver, "cuGraphDestroy");
    find(allocate, driver, "cuMemAlloc_v2");
    find(upload, driver, "cuMemcpyHtoD_v2");
  }

 private:
  static void* open(const char* library) { return dlopen(library, RTLD_LAZY | RTLD_NOLOAD); }

  template <typename F>
  void find(F& f, void* library, const char* name) {
    f = library ? reinterpret_cast<F>(dlsym(library, name)) : nullptr;
    complete = complete && f;
  }
};

const functions& cuda() {
  static const auto& all = *new functions;
  return all;
}

void check(int status, const char* function) {
  if (status != 0) {
    throw std::runtime_error(std::string(function) + " returned the error " + std::to_string(status));
  }
}

// owned is an object of cuBLASLt that is destroyed with its scope.
struct owned {
  void* p = nullptr;
  int (*destroy)(void*);
  explicit owned(int (*d)(void*)) : destroy(d) {}
  owned(const owned&) = delete;
  ~owned() { p ? destroy(p) : 0; }
};

// session holds a device's handle of cuBLASLt, the stream that records products, and the numbers 0 and 1 in the
// device's memory. It remembers cuBLASLt's choices, which take longer than the rest of a product on the host.
struct session {
  void* handle = nullptr;
  void* stream = nullptr;
  uint64_t zero_and_one = 0;
  std::map<std::vector<uint64_t>, choice> choices;  // by everything that a choice depends on
};

// A product holds the lock while it uses a session.
std::mutex& sessions_lock() {
  static auto& lock = *new std::mutex;
  return lock;
}

session& session_of(mx::Device d) {
  cuda().make_current(cuda().device_of(d));
  static auto& all = *new std::vector<session>;
  if (all.size() <= static_cast<size_t>(d.index)) {
    all.resize(d.index + 1);
  }
  auto& s = all[d.index];
  if (!s.handle) {
    check(cuda().create(&s.handle), "cublasLtCreate");
    check(cuda().stream_create(&s.stream, stream_non_blocking), "cuStreamCreate");
    const float numbers[] = {0, 1};
    check(cuda().allocate(&s.zero_and_one, sizeof numbers), "cuMemAlloc");
    check(cuda().upload(s.zero_and_one, numbers, sizeof numbers), "cuMemcpyHtoD");
  }
  return s;
}

// address returns the device memory of an array. MLX's buffers on CUDA devices begin with this pointer.
char* address(const mx::array& a) {
  return *static_cast<char* const*>(a.buffer().ptr()) + a.offset();
}

int type_of(mx::Dtype d) {
  return d == mx::float16 ? half_type : d == mx::bfloat16 ? bfloat_type : float_type;
}

// on_cuda is a primitive that runs on CUDA streams only.
class on_cuda : public mlxg::opaque {
 public:
  using opaque::opaque;

  void eval_cpu(const std::vector<mx::array>&, std::vector<mx::array>&) override {
    throw std::runtime_error("[" + name_ + "] runs on a CUDA stream only");
  }
};

// allocation returns a node of a kernel that does nothing. It allocates the memory of its output.
std::shared_ptr<mx::Primitive> allocation(mx::Stream s) {
  // Any GPU that MLX supports runs PTX for compute capability 7.5.
  constexpr const char* empty_kernel = R"(.version 6.4
.target sm_75
.address_size 64
.visible .entry mlxg_undefined(.param .u64 output) { ret; }
)";
  return mx::fast::precompiled_cuda_kernel(
             "mlxg_undefined", empty_kernel, {}, {{1}}, {mx::uint8}, {}, {1, 1, 1}, {1, 1, 1}, 0, std::nullopt, false,
             s)[0]
      .primitive_ptr();
}

// product computes the elements of a matrix from `begin` on: factor·a·b, plus the elements before if it accumulates.
// Its inputs are a, a matrix with the rows of b, if in_place the array in whose memory the result is, if scaled the
// factor, and arrays whose nodes must run earlier.
class product : public on_cuda {
 public:
  product(mx::Stream s, const mlxg_product& p)
      : on_cuda(s, "ProductInto"), p_(p), allocation_(s.device == mx::Device::gpu ? allocation(s) : nullptr) {}

  void eval_gpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    std::lock_guard lock(sessions_lock());
    auto& s = session_of(stream().device);
    auto e = cuda().encoder_of(stream());
    auto& out = outputs[0];
    auto memory = p_.in_place ? inputs[2] : allocated({p_.memory_rows, p_.memory_columns}, out.dtype());
    const bool is_vector = out.shape(0) == 1 || out.shape(1) == 1;
    out.copy_shared_buffer(memory, mx::Strides(out.strides()), {true, true, is_vector}, out.size());
    multiply(s, e, contiguous(inputs[0], e), contiguous(rows_of(inputs[1]), e), out, inputs);
  }

 private:
  mx::array allocated(mx::Shape shape, mx::Dtype dtype) const {
    std::vector<mx::array> memory{mx::array(std::move(shape), dtype, nullptr, {})};
    allocation_->eval_gpu({}, memory);
    return memory[0];
  }

  // rows_of returns a view of the rows of the second input.
  mx::array rows_of(const mx::array& all) const {
    mx::array rows({p_.b_end - p_.b_first, all.shape(1)}, all.dtype(), nullptr, {});
    const bool is_contiguous = all.flags().row_contiguous;
    rows.copy_shared_buffer(
        all, all.strides(), {is_contiguous, is_contiguous, false}, is_contiguous ? rows.size() : all.data_size(),
        p_.b_first * all.strides(0));
    return rows;
  }

  // contiguous returns a copy of a view in row-major order, which lives until the device has run the product.
  mx::array contiguous(const mx::array& a, encoder* e) {
    if (a.flags().row_contiguous) {
      return a;
    }
    std::vector<mx::array> copy{mx::contiguous(a, false, stream())};
    copy[0].primitive().eval_gpu({a}, copy);
    cuda().add_completed(e, [data = copy[0].data_shared_ptr()] {});
    return copy[0];
  }

  // multiply adds the product of a and b to the graph of e. cuBLASLt's matrices are column-major, so it computes the
  // transpose: bᵀ·aᵀ.
  void multiply(
      session& s,
      encoder* e,
      const mx::array& a,
      const mx::array& b,
      const mx::array& into,
      const std::vector<mx::array>& inputs) {
    uint64_t rows = a.shape(p_.a_transposed), columns = b.shape(!p_.b_transposed);
    char* d = address(into) + p_.begin * into.itemsize();
    int compute = a.dtype() == mx::float32 && p_.tf32 ? compute_tf32 : compute_float;
    owned da(cuda().layout_free), db(cuda().layout_free), dd(cuda().layout_free), of(cuda().description_free);
    check(cuda().layout(&db.p, type_of(b.dtype()), b.shape(1), b.shape(0), b.shape(1)), "cublasLtMatrixLayoutCreate");
    check(cuda().layout(&da.p, type_of(a.dtype()), a.shape(1), a.shape(0), a.shape(1)), "cublasLtMatrixLayoutCreate");
    check(cuda().layout(&dd.p, type_of(into.dtype()), columns, rows, columns), "cublasLtMatrixLayoutCreate");
    check(cuda().description(&of.p, compute, float_type), "cublasLtMatmulDescCreate");
    auto set = [&](int what, int32_t value) {
      check(cuda().description_set(of.p, what, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
    };
    set(transpose_a, p_.b_transposed);
    set(transpose_b, p_.a_transposed);
    if (p_.scaled) {
      set(pointer_mode, device_pointers);
    }
    const uint64_t flags = p_.a_transposed | p_.b_transposed << 1 | p_.scaled << 2 | p_.tf32 << 3;
    auto& algorithm = s.choices[{
        flags, static_cast<uint64_t>(type_of(a.dtype())), static_cast<uint64_t>(type_of(into.dtype())), rows, columns,
        static_cast<uint64_t>(a.shape(!p_.a_transposed)), alignment(address(a)), alignment(address(b)), alignment(d)}];
    if (!algorithm.chosen) {
      owned wish(cuda().preference_free);
      check(cuda().preference(&wish.p), "cublasLtMatmulPreferenceCreate");
      auto prefer = [&](int what, auto value) {
        check(cuda().preference_set(wish.p, what, &value, sizeof value), "cublasLtMatmulPreferenceSetAttribute");
      };
      prefer(max_workspace, most_workspace);
      prefer(min_alignment_a, alignment(address(b)));
      prefer(min_alignment_b, alignment(address(a)));
      prefer(min_alignment_c, alignment(d));
      prefer(min_alignment_d, alignment(d));
      std::vector<heuristic> found(16);
      int n = 0;
      check(
          cuda().choose(s.handle, of.p, db.p, da.p, dd.p, dd.p, wish.p, found.size(), found.data(), &n),
          "cublasLtMatmulAlgoGetHeuristic");
      found.resize(n);
      if (n > 0) {
        const bool is_short = a.itemsize() == 2 && a.shape(!p_.a_transposed) <= 4096;
        algorithm = {best_of(found, is_short && rows * columns >= 1 << 25), 1};
      }
    }
    // With a factor in the device's memory, the factor of the previous rows must be there, too.
    const float one = 1, previous = p_.accumulate;
    const void *alpha = &one, *beta = &previous;
    if (p_.scaled) {
      alpha = address(inputs[2 + p_.in_place]);
      beta = reinterpret_cast<const float*>(s.zero_and_one) + p_.accumulate;
    }
    char* workspace = nullptr;
    if (auto size = algorithm.best.workspace) {
      auto memory =
          allocated({std::max(static_cast<int>(size), 256)}, mx::uint8);  // MLX keeps small arrays on the host
      cuda().add_completed(e, [data = memory.data_shared_ptr()] {});
      workspace = address(memory);
    }
    // MLX runs nodes of a graph side by side unless one reads an output of the other. The operands are registered as
    // outputs, so that the product runs after all earlier uses of their memory and before all later ones.
    for (auto operand : {&a, &b, &into}) {
      cuda().set_input(e, *operand);
      cuda().set_output(e, *operand);
    }
    for (size_t i = 2; i < inputs.size(); i++) {
      cuda().set_input(e, inputs[i]);
    }
    void* graph = nullptr;
    check(cuda().capture_begin(s.stream, capture_thread_local), "cuStreamBeginCapture");
    const int status = cuda().multiply(
        s.handle, of.p, alpha, address(b), db.p, address(a), da.p, beta, d, dd.p, d, dd.p, algorithm.best.algorithm,
        workspace, algorithm.best.workspace, s.stream);
    const int ended = cuda().capture_end(s.stream, &graph);
    if (status == 0 && ended == 0) {
      cuda().add_graph(e, graph);
    }
    if (graph) {
      cuda().graph_destroy(graph);
    }
    check(status, "cublasLtMatmul");
    check(ended, "cuStreamEndCapture");
  }

  // best_of returns one of cuBLASLt's algorithms. cuBLASLt sorts them by the time that it estimates. For large results
  // of short sums, `small_tiles` selects tiles that are faster than the first algorithm; see RATIONALE.md.
  static const heuristic& best_of(const std::vector<heuristic>& found, bool small_tiles) {
    if (!small_tiles) {
      return found[0];
    }
    auto attribute = [](const heuristic& h, int what) {
      uint32_t value = 0;
      size_t written = 0;
      check(
          cuda().attribute(h.algorithm, what, &value, sizeof value, &written), "cublasLtMatmulAlgoConfigGetAttribute");
      return value;
    };
    for (uint32_t tile : {tile_176x128, tile_168x128, tile_128x160}) {
      for (auto& h : found) {
        if (attribute(h, algorithm_id) == hopper_algorithm && attribute(h, algorithm_tile) == tile) {
          return h;
        }
      }
    }
    return found[0];
  }

  static uint32_t alignment(const char* p) {
    return std::min<uint64_t>(256, uint64_t{1} << std::countr_zero(reinterpret_cast<uintptr_t>(p)));
  }

  // The limit of the workspace in bytes. cuBLASLt uses at most 4 for large products on an H200.
  static constexpr uint64_t most_workspace = 4 << 20;

  mlxg_product p_;
  std::shared_ptr<mx::Primitive> allocation_;  // null without a CUDA device
};

// reuse has two outputs: the elements of its first input, and memory for a node that overwrites them while it reads
// them. This is the input's memory if no other node or array refers to the input when the node is evaluated, and else
// new memory for more elements. The other inputs are arrays whose nodes must run earlier. MLX's own nodes also require
// that no other array shares the memory, which the caller guarantees here: MLX cannot tell such an array from the
// references of earlier kernels, which the stream holds until it completes them.
class reuse : public mlxg::opaque {
 public:
  static inline std::atomic<uint64_t> copies = 0;

  // memory is the shape of new memory.
  reuse(mx::Stream s, mx::Shape memory)
      : opaque(s, "Reuse"),
        memory_(std::move(memory)),
        allocation_(s.device == mx::Device::gpu ? allocation(s) : nullptr) {}

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    evaluate(inputs[0], outputs, [](std::vector<mx::array>& memory) {
      memory[0].set_data(mx::allocator::malloc(memory[0].nbytes()));
    });
  }
  void eval_gpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    evaluate(inputs[0], outputs, [&](std::vector<mx::array>& memory) { allocation_->eval_gpu({}, memory); });
  }

 private:
  template <typename F>
  void evaluate(const mx::array& in, std::vector<mx::array>& outputs, F allocate) {
    outputs[0].copy_shared_buffer(in);
    if (mlxg::references(in) == outputs.size()) {  // each output of a node refers to the inputs
      outputs[1].copy_shared_buffer(in);
      return;
    }
    copies++;
    std::vector<mx::array> memory{mx::array(memory_, in.dtype(), nullptr, {})};
    allocate(memory);
    // The new memory holds a reference to the input: while a kernel of this stream may still read the elements, a node
    // of another stream must not overwrite them.
    auto flags = memory[0].flags();
    flags.col_contiguous = false;  // the output may have another shape
    mlxg::set_foreign(outputs[1], memory[0].buffer(), 0, flags, [in, memory](mx::allocator::Buffer) {});
  }

  mx::Shape memory_;
  std::shared_ptr<mx::Primitive> allocation_;  // null on a CPU
};

}  // namespace

extern "C" {

bool mlxg_products_available(void) {
  // address is verified for these versions.
  return MLX_VERSION_NUMERIC >= 32004 && MLX_VERSION_NUMERIC < 33000 && !mlxg::exporting() && cuda().complete;
}

mlxg_results mlxg_reuse(const uintptr_t* inputs, size_t n, int rows, int columns) {
  mlxg::guard g;
  return mlxg::with_results([&] {
    auto all = mlxg::arrays_of(inputs, n);
    auto& in = all[0];
    auto node = std::make_shared<reuse>(*static_cast<mx::Stream*>(mlxg_stream().ctx), mx::Shape{rows, columns});
    return mx::array::make_arrays({in.shape(), in.shape()}, {in.dtype(), in.dtype()}, node, all);
  });
}

uint64_t mlxg_reuse_copies(void) {
  return reuse::copies;
}

mlxg_result mlxg_scale_rows(const uintptr_t* inputs, size_t n, bool scaled) {
  mlxg::guard g;
  mlx_array res{};
  try {
    auto s = *static_cast<mx::Stream*>(mlxg_stream().ctx);
    auto operands = mlxg::arrays_of(inputs, n);
    for (size_t i = 1; i < n; i++) {
      operands[i] = mx::expand_dims(operands[i], 1, s);
    }
    auto fused = mx::compile([=](const std::vector<mx::array>& in) -> std::vector<mx::array> {
      auto rows = in[0];
      auto dtype = rows.dtype();
      if (scaled) {
        rows = mx::astype(mx::multiply(mx::astype(rows, mx::float32, s), in[1], s), dtype, s);
      }
      if (n > 1 + scaled) {
        rows = mx::where(mx::less(in.back(), mx::array(0), s), mx::array(0.0f, dtype), rows, s);
      }
      return {rows};
    });
    res.ctx = new mx::array(fused(operands)[0]);
    return mlxg_end(0, res);
  } catch (std::exception& e) {
    mlx_error("%s", e.what());
    return mlxg_end(1, res);
  }
}

mlxg_result mlxg_product_into(mlxg_product p, const uintptr_t* inputs, size_t n) {
  mlxg::guard g;
  mlx_array res{};
  try {
    auto in = mlxg::arrays_of(inputs, n);
    auto node = std::make_shared<product>(*static_cast<mx::Stream*>(mlxg_stream().ctx), p);
    auto dtype = in[0].dtype();
    res.ctx = new mx::array({p.rows, p.columns}, dtype, std::move(node), std::move(in));
    return mlxg_end(0, res);
  } catch (std::exception& e) {
    mlx_error("%s", e.what());
    return mlxg_end(1, res);
  }
}

}  // extern "C"
