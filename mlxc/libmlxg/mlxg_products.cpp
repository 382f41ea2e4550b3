// Matrix products that write to rows of an existing array, on CUDA devices. MLX's own products always allocate their
// result, so sums of products and parts of one matrix cost additional passes over memory.
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
#include "mlx/mlx.h"
#include "mlxg_cuda.h"
#include "mlxg_evaluation.h"
#include "mlxg_primitive.h"

namespace mx = mlx::core;

namespace {

namespace cuda = mlxg::cuda;
using cuda::api;
using cuda::check;

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

// blas holds the functions of cuBLASLt that a product calls.
struct blas {
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

  bool complete;

  blas() {
    void* lt = cuda::library("libcublasLt.so.13");
    if (!lt) {
      lt = cuda::library("libcublasLt.so.12");
    }
    complete = cuda::find(create, lt, "cublasLtCreate") && cuda::find(layout, lt, "cublasLtMatrixLayoutCreate") &&
               cuda::find(layout_free, lt, "cublasLtMatrixLayoutDestroy") &&
               cuda::find(description, lt, "cublasLtMatmulDescCreate") &&
               cuda::find(description_set, lt, "cublasLtMatmulDescSetAttribute") &&
               cuda::find(description_free, lt, "cublasLtMatmulDescDestroy") &&
               cuda::find(preference, lt, "cublasLtMatmulPreferenceCreate") &&
               cuda::find(preference_set, lt, "cublasLtMatmulPreferenceSetAttribute") &&
               cuda::find(preference_free, lt, "cublasLtMatmulPreferenceDestroy") &&
               cuda::find(choose, lt, "cublasLtMatmulAlgoGetHeuristic") &&
               cuda::find(attribute, lt, "cublasLtMatmulAlgoConfigGetAttribute") &&
               cuda::find(multiply, lt, "cublasLtMatmul");
  }
};

const blas& cublas() {
  static const auto& all = *new blas;
  return all;
}

// owned is an object of cuBLASLt or of the driver that is destroyed with its scope.
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
  api().make_current(api().device_of(d));
  static auto& all = *new std::vector<session>;
  if (all.size() <= static_cast<size_t>(d.index)) {
    all.resize(d.index + 1);
  }
  auto& s = all[d.index];
  // Each step is done once, also if a later one fails, for example for lack of memory.
  if (!s.handle) {
    check(cublas().create(&s.handle), "cublasLtCreate");
  }
  if (!s.stream) {
    check(api().stream_create(&s.stream, stream_non_blocking), "cuStreamCreate");
  }
  if (!s.zero_and_one) {
    const float numbers[] = {0, 1};
    uint64_t address = 0;
    check(api().allocate(&address, sizeof numbers), "cuMemAlloc");
    check(api().upload(address, numbers, sizeof numbers), "cuMemcpyHtoD");
    s.zero_and_one = address;
  }
  return s;
}

int type_of(mx::Dtype d) {
  return d == mx::float16 ? half_type : d == mx::bfloat16 ? bfloat_type : float_type;
}

// allocated returns an array with memory on the device.
mx::array allocated(mx::Shape shape, mx::Dtype dtype, mx::Stream s) {
  mx::array memory(std::move(shape), dtype, std::make_shared<cuda::on_cuda>(s, "Memory"), {});
  cuda::allocate(memory);
  memory.detach();
  return memory;
}

// product computes the elements of a matrix from `begin` on: factor·a·b, plus the elements before if it accumulates.
// Its inputs are a, a matrix with the rows of b, if in_place the array in whose memory the result is, if scaled the
// factor, and arrays whose nodes must run earlier.
class product : public cuda::on_cuda {
 public:
  product(mx::Stream s, const mlxg_product& p) : cuda::on_cuda(s, "ProductInto"), p_(p) {}

  void eval_gpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    std::lock_guard lock(sessions_lock());
    auto& s = session_of(stream().device);
    auto e = api().encoder_of(stream());
    auto& out = outputs[0];
    auto memory = p_.in_place ? inputs[2] : allocated({p_.memory_rows, p_.memory_columns}, out.dtype(), stream());
    const bool is_vector = out.shape(0) == 1 || out.shape(1) == 1;
    out.copy_shared_buffer(memory, mx::Strides(out.strides()), {true, true, is_vector}, out.size());
    multiply(s, e, in_rows(inputs[0]), in_rows(rows_of(inputs[1])), out, inputs);
  }

 private:
  // rows_of returns a view of the rows of the second input.
  mx::array rows_of(const mx::array& all) const {
    mx::array rows({p_.b_end - p_.b_first, all.shape(1)}, all.dtype(), nullptr, {});
    const bool is_contiguous = all.flags().row_contiguous;
    rows.copy_shared_buffer(
        all, all.strides(), {is_contiguous, is_contiguous, false}, is_contiguous ? rows.size() : all.data_size(),
        p_.b_first * all.strides(0));
    return rows;
  }

  // in_rows returns a matrix in row-major order.
  mx::array in_rows(const mx::array& a) { return a.flags().row_contiguous ? a : cuda::copy_of(a, stream()); }

  // multiply adds the product of a and b to the graph of e. cuBLASLt's matrices are column-major, so it computes the
  // transpose: bᵀ·aᵀ.
  void multiply(
      session& s,
      cuda::encoder* e,
      const mx::array& a,
      const mx::array& b,
      const mx::array& into,
      const std::vector<mx::array>& inputs) {
    uint64_t rows = a.shape(p_.a_transposed), columns = b.shape(!p_.b_transposed);
    char* d = cuda::address(into) + p_.begin * into.itemsize();
    int compute = a.dtype() == mx::float32 && p_.tf32 ? compute_tf32 : compute_float;
    owned da(cublas().layout_free), db(cublas().layout_free), dd(cublas().layout_free), of(cublas().description_free);
    check(cublas().layout(&db.p, type_of(b.dtype()), b.shape(1), b.shape(0), b.shape(1)), "cublasLtMatrixLayoutCreate");
    check(cublas().layout(&da.p, type_of(a.dtype()), a.shape(1), a.shape(0), a.shape(1)), "cublasLtMatrixLayoutCreate");
    check(cublas().layout(&dd.p, type_of(into.dtype()), columns, rows, columns), "cublasLtMatrixLayoutCreate");
    check(cublas().description(&of.p, compute, float_type), "cublasLtMatmulDescCreate");
    auto set = [&](int what, int32_t value) {
      check(cublas().description_set(of.p, what, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
    };
    set(transpose_a, p_.b_transposed);
    set(transpose_b, p_.a_transposed);
    if (p_.scaled) {
      set(pointer_mode, device_pointers);
    }
    const uint64_t flags = p_.a_transposed | p_.b_transposed << 1 | p_.scaled << 2 | p_.tf32 << 3;
    auto& algorithm = s.choices[{
        flags, static_cast<uint64_t>(type_of(a.dtype())), static_cast<uint64_t>(type_of(into.dtype())), rows, columns,
        static_cast<uint64_t>(a.shape(!p_.a_transposed)), alignment(cuda::address(a)), alignment(cuda::address(b)),
        alignment(d)}];
    if (!algorithm.chosen) {
      owned wish(cublas().preference_free);
      check(cublas().preference(&wish.p), "cublasLtMatmulPreferenceCreate");
      auto prefer = [&](int what, auto value) {
        check(cublas().preference_set(wish.p, what, &value, sizeof value), "cublasLtMatmulPreferenceSetAttribute");
      };
      prefer(max_workspace, most_workspace);
      prefer(min_alignment_a, alignment(cuda::address(b)));
      prefer(min_alignment_b, alignment(cuda::address(a)));
      prefer(min_alignment_c, alignment(d));
      prefer(min_alignment_d, alignment(d));
      std::vector<heuristic> found(16);
      int n = 0;
      check(
          cublas().choose(s.handle, of.p, db.p, da.p, dd.p, dd.p, wish.p, found.size(), found.data(), &n),
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
      alpha = cuda::address(inputs[2 + p_.in_place]);
      beta = reinterpret_cast<const float*>(s.zero_and_one) + p_.accumulate;
    }
    char* workspace = nullptr;
    if (auto size = algorithm.best.workspace) {
      const int bytes = std::max(static_cast<int>(size), 256);  // MLX keeps small arrays on the host
      auto memory = allocated({bytes}, mx::uint8, stream());
      api().add_completed(e, [data = memory.data_shared_ptr()] {});
      workspace = cuda::address(memory);
    }
    // MLX runs nodes of a graph side by side unless one reads an output of the other. The operands are registered as
    // outputs, so that the product runs after all earlier uses of their memory and before all later ones.
    for (auto operand : {&a, &b, &into}) {
      api().set_input(e, *operand);
      api().set_output(e, *operand);
    }
    for (size_t i = 2; i < inputs.size(); i++) {
      api().set_input(e, inputs[i]);
    }
    owned graph(api().graph_destroy);
    check(api().capture_begin(s.stream, capture_thread_local), "cuStreamBeginCapture");
    const int status = cublas().multiply(
        s.handle, of.p, alpha, cuda::address(b), db.p, cuda::address(a), da.p, beta, d, dd.p, d, dd.p,
        algorithm.best.algorithm, workspace, algorithm.best.workspace, s.stream);
    const int ended = api().capture_end(s.stream, &graph.p);
    check(status, "cublasLtMatmul");
    check(ended, "cuStreamEndCapture");
    api().add_graph(e, graph.p);
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
          cublas().attribute(h.algorithm, what, &value, sizeof value, &written),
          "cublasLtMatmulAlgoConfigGetAttribute");
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
  reuse(mx::Stream s, mx::Shape memory) : opaque(s, "Reuse"), memory_(std::move(memory)) {}

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    evaluate(inputs[0], outputs, [&] {
      mx::array memory(memory_, inputs[0].dtype(), nullptr, {});
      memory.set_data(mx::allocator::malloc(memory.nbytes()));
      return memory;
    });
  }
  void eval_gpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    evaluate(inputs[0], outputs, [&] { return allocated(memory_, inputs[0].dtype(), stream()); });
  }

 private:
  template <typename F>
  void evaluate(const mx::array& in, std::vector<mx::array>& outputs, F new_memory) {
    outputs[0].copy_shared_buffer(in);
    if (mlxg::references(in) == outputs.size()) {  // each output of a node refers to the inputs
      outputs[1].copy_shared_buffer(in);
      return;
    }
    copies++;
    auto memory = new_memory();
    // The new memory holds a reference to the input: while a kernel of this stream may still read the elements, a node
    // of another stream must not overwrite them.
    auto flags = memory.flags();
    flags.col_contiguous = false;  // the output may have another shape
    mlxg::set_foreign(outputs[1], memory.buffer(), 0, flags, [in, memory](mx::allocator::Buffer) {});
  }

  mx::Shape memory_;
};

}  // namespace

extern "C" {

bool mlxg_products_available(void) {
  return !mlxg::exporting() && api().complete && cublas().complete;
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
