#include "mlxg_cuda.h"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "mlx/ops.h"
#include "mlx/primitives.h"
#include "mlx/version.h"

namespace mx = mlx::core;

using mlxg::cuda::encoder;
using mlxg::cuda::find;
using mlxg::cuda::functions;

namespace {

functions* find_functions() {
  auto& f = *new functions{};
  void* mlx = mlxg::cuda::library("libmlx.so");
  void* driver = mlxg::cuda::library("libcuda.so.1");
  // A name contains the types of the parameters, so a function that changes is not found.
  auto member = [&](auto& function, const std::string& name) {
    return find(function, mlx, ("_ZN3mlx4core2cu14CommandEncoder" + name).c_str());
  };
  f.complete =
      // What these functions assume is verified for this version: graph_of, allocate, address, copy_of, launch::fill,
      // and the members of a graph_node.
      MLX_VERSION_NUMERIC == 32004 && find(f.encoder_of, mlx, "_ZN3mlx4core2cu19get_command_encoderENS0_6StreamE") &&
      find(f.device_of, mlx, "_ZN3mlx4core2cu6deviceENS0_6DeviceE") &&
      find(f.make_current, mlx, "_ZN3mlx4core2cu6Device12make_currentEv") &&
      member(f.set_input, "15set_input_arrayERKNS0_5arrayE") &&
      member(f.set_output, "16set_output_arrayERKNS0_5arrayE") &&
      member(f.add_completed, "21add_completed_handlerESt8functionIFvvEE") &&
      member(f.add_graph, "14add_graph_nodeEP10CUgraph_st") &&
      member(f.add_kernel, "19add_kernel_node_rawEP9CUfunc_st4dim3S5_S5_jPPv") &&
      member(f.add_node, "25insert_graph_dependenciesENS2_9GraphNodeE") &&
      find(f.stream_create, driver, "cuStreamCreate") && find(f.capture_begin, driver, "cuStreamBeginCapture_v2") &&
      find(f.capture_end, driver, "cuStreamEndCapture") && find(f.graph_destroy, driver, "cuGraphDestroy") &&
      find(f.kernel_node_create, driver, "cuGraphAddKernelNode_v2") && find(f.allocate, driver, "cuMemAlloc_v2") &&
      find(f.upload, driver, "cuMemcpyHtoD_v2") && find(f.load, driver, "cuModuleLoadDataEx") &&
      find(f.function_of, driver, "cuModuleGetFunction") && find(f.set_attribute, driver, "cuFuncSetAttribute");
  find(f.edges_create, driver, "cuGraphAddDependencies_v2");
  return &f;
}

}  // namespace

const functions& mlxg::cuda::api() {
  static const auto& f = *find_functions();
  return f;
}

void mlxg::cuda::check(int status, const char* function) {
  if (status != 0) {
    throw std::runtime_error(std::string(function) + " returned the error " + std::to_string(status));
  }
}

void* mlxg::cuda::graph_of(encoder* e) {
  static const bool has_graphs = [] {  // as MLX reads it, at its first work on a GPU
    const char* value = std::getenv("MLX_USE_CUDA_GRAPHS");
    return !value || std::atoi(value);
  }();
  // The members of an encoder begin with its device, its stream and its graph.
  return has_graphs ? static_cast<void**>(e)[2] : nullptr;
}

// MLX does not export its allocator of device memory. An elementwise operation allocates as many elements as its
// operand has in memory, and launches no kernel if the operand's shape has no elements. This operand has no elements in
// its shape, and those of the output in memory.
void mlxg::cuda::allocate(mx::array& output) {
  static auto& node = *new mx::array(mx::square(mx::array(0.0f), output.primitive().stream()));
  auto& shape = output.shape();
  const bool is_vector = output.size() <= 1 || std::find(shape.begin(), shape.end(), output.size()) != shape.end();
  arrays operand{mx::array({0}, output.dtype(), nullptr, {})};
  operand[0].copy_shared_buffer(operand[0], output.strides(), {true, true, is_vector}, output.size());
  static_cast<mx::UnaryPrimitive&>(node.primitive()).eval_gpu(operand, output);
  if (!output.data_shared_ptr() || output.buffer_size() < output.nbytes()) {
    throw std::runtime_error("MLX allocated no memory for " + std::to_string(output.nbytes()) + " bytes of an output");
  }
}

// A buffer on a CUDA device begins with this pointer.
char* mlxg::cuda::address(const mx::array& a) {
  return *static_cast<char* const*>(a.buffer().ptr()) + a.offset();
}

mx::array mlxg::cuda::copy_of(const mx::array& a, mx::Stream s) {
  auto flags = a.flags();
  flags.row_contiguous = false;  // MLX copies only such views
  mx::array view(a.shape(), a.dtype(), nullptr, {});
  view.copy_shared_buffer(a, a.strides(), flags, a.data_size());
  arrays copy{mx::contiguous(view, false, s)};
  copy[0].primitive().eval_gpu({view}, copy);
  api().add_completed(api().encoder_of(s), [data = copy[0].data_shared_ptr()] {});
  return copy[0];
}
