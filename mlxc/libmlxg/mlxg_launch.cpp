#include "mlxg_launch.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "mlx/mlx.h"
#include "mlxg_cuda.h"
#include "mlxg_immortal.h"

namespace mx = mlx::core;

using mlxg::arrays;

namespace {

namespace cuda = mlxg::cuda;

// A cuda_module is a kernel with its function on each device. The first launch on a device loads the code, which is
// never unloaded.
class cuda_module {
 public:
  explicit cuda_module(const mlxg::compiled_kernel& k) : kernel(k) {}

  const mlxg::compiled_kernel& kernel;

  void* function_on(mx::Device d) {
    auto& f = functions_[d.index % most_devices];
    if (!f) {
      std::lock_guard lock(mutex_);
      if (!f) {
        f = load(d);
      }
    }
    return f;
  }

 private:
  void* load(mx::Device d) const {
    enum { log_text = 5, log_size = 6, most_shared_memory = 8 };  // values of cuda.h
    auto require = [&](int status, const char* function, const std::string& more = "") {
      cuda::check(status, ("[" + kernel.function + "] " + function + more).c_str());
    };
    cuda::api().make_current(cuda::api().device_of(d));
    char log[4096] = "";
    const int options[] = {log_text, log_size};
    void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
    void *module = nullptr, *f = nullptr;
    int status = cuda::api().load(&module, kernel.code.c_str(), 2, options, values);
    require(status, "cuModuleLoadDataEx", *log ? " (" + std::string(log) + ")" : "");
    require(cuda::api().function_of(&f, module, kernel.function.c_str()), "cuModuleGetFunction");
    require(
        cuda::api().set_attribute(f, most_shared_memory, kernel.shared_memory), "cuFuncSetAttribute",
        " for " + std::to_string(kernel.shared_memory) + " bytes of shared memory");
    return f;
  }

  static constexpr int most_devices = 64;
  std::mutex mutex_;
  std::atomic<void*> functions_[most_devices] = {};
};

// module_of returns the module of a kernel. Equal kernels share it.
cuda_module& module_of(const mlxg::compiled_kernel& k) {
  static mlxg::immortal<std::mutex> mutex;
  static auto& modules = *new std::map<mlxg::compiled_kernel, std::unique_ptr<cuda_module>>;
  std::lock_guard lock(mutex.value);
  auto& [kernel, module] = *modules.try_emplace(k).first;
  if (!module) {
    module = std::make_unique<cuda_module>(kernel);
  }
  return *module;
}

std::vector<int> values_of(const std::vector<std::pair<std::string, mx::fast::TemplateArg>>& arguments) {
  std::vector<int> values;
  for (auto& a : arguments) {
    values.push_back(std::get<int>(a.second));
  }
  return values;
}

// launch is a node that runs a kernel. It passes the addresses of the inputs and of the outputs, and then the values.
class launch : public cuda::on_cuda {
 public:
  using three = std::tuple<int, int, int>;

  // The grid is in threads, at least 1 on each axis, like the block. init is the initial value of the outputs.
  launch(mx::Stream s, cuda_module& m, std::vector<int> values, three grid, three block, std::optional<float> init)
      : on_cuda(s, m.kernel.function), module_(m), values_(std::move(values)), init_(init) {
    auto axis = [](int64_t threads, int64_t size, unsigned& blocks, unsigned& block_size) {
      blocks = (threads + size - 1) / size;
      block_size = std::min(threads, size);
    };
    axis(std::get<0>(grid), std::get<0>(block), grid_.x, block_.x);
    axis(std::get<1>(grid), std::get<1>(block), grid_.y, block_.y);
    axis(std::get<2>(grid), std::get<2>(block), grid_.z, block_.z);
  }

  size_t launches() const override { return 1; }
  const std::string& function() const { return name_; }
  bool is_early() const { return module_.kernel.early; }

  void eval_gpu(const arrays& inputs, arrays& outputs) override {
    auto e = cuda::api().encoder_of(stream());
    std::vector<void*> arguments;
    add(e, prepare(e, inputs.size(), [&](size_t i) { return std::pair(&inputs[i], true); }, outputs, arguments));
  }

  // prepare allocates the outputs and returns the kernel's node for n inputs. It stores the node's arguments in
  // `arguments`. input(i) returns an array, and whether the node depends on the array's last writer in MLX's graph.
  cuda::kernel_node prepare(
      cuda::encoder* e, size_t n, auto input, std::span<mx::array> outputs, std::vector<void*>& arguments) {
    auto& kernel = module_.kernel;
    cuda::kernel_node node{
        module_.function_on(stream().device), grid_, block_, static_cast<unsigned>(kernel.shared_memory)};
    const size_t addresses = n + outputs.size();
    arguments.reserve(2 * addresses + values_.size());  // the addresses, and pointers to them and to the values
    for (auto& o : outputs) {
      init_ ? fill(o, e) : cuda::allocate(o);
    }
    auto add_input = [&](const mx::array& a, bool depends) {
      if (depends) {
        cuda::api().set_input(e, a);
      }
      arguments.push_back(cuda::address(a));
    };
    for (size_t i = 0; i < n; i++) {
      auto [a, depends] = input(i);
      const bool is_ready =
          (!kernel.contiguous || a->flags().row_contiguous) && (!kernel.aligned || a->offset() % 16 == 0);
      is_ready ? add_input(*a, depends) : add_input(cuda::copy_of(*a, stream()), true);
    }
    for (auto& o : outputs) {
      cuda::api().set_output(e, o);
      arguments.push_back(cuda::address(o));
    }
    for (size_t i = 0; i < addresses; i++) {
      arguments.push_back(&arguments[i]);
    }
    for (auto& v : values_) {
      arguments.push_back(&v);
    }
    node.arguments = arguments.data() + addresses;
    return node;
  }

  static void add(cuda::encoder* e, const cuda::kernel_node& n) {
    cuda::api().add_kernel(e, n.function, n.grid, n.block, {}, n.shared_memory, n.arguments);
  }

 private:
  // fill allocates an output and sets its elements to the initial value.
  void fill(mx::array& output, cuda::encoder* e) {
    static auto& node = *new mx::array(mx::full({1}, mx::array(0.0f), stream()));
    mx::array value(*init_, output.dtype());
    static_cast<mx::UnaryPrimitive&>(node.primitive()).eval_gpu({value}, output);
    cuda::api().add_completed(e, [data = value.data_shared_ptr()] {});
  }

  cuda_module& module_;
  std::vector<int> values_;
  std::optional<float> init_;
  cuda::dim3 grid_, block_;
};

// launch_pair is the node of pair_of.
class launch_pair : public cuda::on_cuda {
 public:
  launch_pair(
      std::shared_ptr<launch> first,
      std::shared_ptr<launch> second,
      size_t inputs,
      size_t outputs,
      std::vector<size_t> places)
      : on_cuda(first->stream(), first->function() + " and " + second->function()),
        first_(std::move(first)),
        second_(std::move(second)),
        first_inputs_(inputs),
        first_outputs_(outputs),
        places_(std::move(places)) {}

  size_t launches() const override { return 2; }

  void eval_gpu(const arrays& inputs, arrays& outputs) override {
    auto e = cuda::api().encoder_of(stream());
    auto graph = cuda::graph_of(e);
    std::span out(outputs);
    std::vector<void*> arguments, more_arguments;
    auto input = [&](size_t i) { return std::pair(&inputs[i], true); };
    auto first = add(e, graph, "K", first_->prepare(e, first_inputs_, input, out.first(first_outputs_), arguments));
    auto more_input = [&](size_t i) {
      if (auto p = places_[i]; p >= first_outputs_) {
        return std::pair(&inputs[p - first_outputs_], true);
      } else {
        // MLX keeps the inputs of a node until the device has run it, so that no other node takes their memory.
        cuda::api().add_completed(e, [data = outputs[p].data_shared_ptr()] {});
        return std::pair(&std::as_const(outputs)[p], !graph);
      }
    };
    // The type is part of the key of MLX's instantiated graphs, and no node of MLX has it.
    auto second = add(
        e, graph, "P", second_->prepare(e, places_.size(), more_input, out.subspan(first_outputs_), more_arguments));
    if (graph) {
      // The second kernel starts when every threadgroup of the first one has ended or has executed
      // griddepcontrol.launch_dependents. Its griddepcontrol.wait blocks until the results of the first are visible.
      // MLX must not add its own edge, because the driver refuses a second one between two nodes.
      const cuda::graph_edge programmatic{1, 0, 1, {}};
      cuda::check(cuda::api().edges_create(graph, &first, &second, &programmatic, 1), "cuGraphAddDependencies");
    }
  }

 private:
  // add adds a node to the graph and returns it. Without a graph it launches the kernel.
  static void* add(cuda::encoder* e, void* graph, const char* type, const cuda::kernel_node& n) {
    void* node = nullptr;
    if (!graph) {
      launch::add(e, n);
    } else {
      cuda::check(cuda::api().kernel_node_create(&node, graph, nullptr, 0, &n), "cuGraphAddKernelNode");
      cuda::api().add_node(e, {node, type, ""});
    }
    return node;
  }

  std::shared_ptr<launch> first_, second_;
  size_t first_inputs_, first_outputs_;
  std::vector<size_t> places_;
};

}  // namespace

mx::fast::CustomKernelFunction mlxg::launcher_of(const compiled_kernel& k) {
  if (cuda::api().complete) {
    return [&module = module_of(k)](
               auto& inputs, auto& shapes, auto& dtypes, auto grid, auto block, const auto& arguments, auto init, bool,
               auto s) {
      auto node = std::make_shared<launch>(mx::to_stream(s), module, values_of(arguments), grid, block, init);
      return mx::array::make_arrays(shapes, dtypes, node, inputs);
    };
  }
  if (k.aligned) {
    return nullptr;
  }
  return [k](auto& inputs, auto& shapes, auto& dtypes, auto grid, auto block, const auto& arguments, auto init, bool,
             auto s) {
    std::vector<mx::fast::ScalarArg> values;
    for (auto v : values_of(arguments)) {
      values.push_back(v);
    }
    return mx::fast::precompiled_cuda_kernel(
        k.function, k.code, inputs, shapes, dtypes, values, grid, block, k.shared_memory, init, k.contiguous, s);
  };
}

std::shared_ptr<mx::Primitive> mlxg::pair_of(
    const std::shared_ptr<mx::Primitive>& first,
    const std::shared_ptr<mx::Primitive>& second,
    size_t inputs,
    size_t outputs,
    std::vector<size_t> places) {
  auto a = std::dynamic_pointer_cast<launch>(first), b = std::dynamic_pointer_cast<launch>(second);
  if (!a || !b || !b->is_early() || a->stream() != b->stream() || !cuda::api().edges_create) {
    return nullptr;
  }
  return std::make_shared<launch_pair>(std::move(a), std::move(b), inputs, outputs, std::move(places));
}
