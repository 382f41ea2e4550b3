// MLX's and the driver's functions for work on CUDA devices. This library also runs with builds of MLX without CUDA,
// and CUDA's headers are no part of MLX's packages. So it declares these functions and looks them up by name.
#ifndef MLXG_CUDA_H
#define MLXG_CUDA_H

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "mlx/array.h"
#include "mlx/stream.h"
#include "mlxg_primitive.h"

namespace mlxg::cuda {

using encoder = void;  // mlx::core::cu::CommandEncoder, which records the work of a stream in a CUDA graph

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};

// A kernel_node is CUDA_KERNEL_NODE_PARAMS of cuda.h.
struct kernel_node {
  void* function;
  dim3 grid, block;
  unsigned shared_memory;
  void** arguments;
  void* unused[3] = {};
};

// A graph_node is mlx::core::cu::CommandEncoder::GraphNode. MLX uses an instantiated graph again for graphs whose nodes
// have the same types and edges.
struct graph_node {
  void* node;
  std::string type, id;
};

// A graph_edge is CUgraphEdgeData of cuda.h.
struct graph_edge {
  unsigned char from_port, to_port, type, reserved[5];
};

// set_input and set_output apply to the next node that is added. The node depends on the last writer of each of these
// arrays, and becomes the last writer of the outputs.
struct functions {
  encoder* (*encoder_of)(mx::Stream);
  void* (*device_of)(mx::Device);
  void (*make_current)(void* device);
  void (*set_input)(encoder*, const mx::array&);
  void (*set_output)(encoder*, const mx::array&);
  // The function is called after the device has run the recorded work.
  void (*add_completed)(encoder*, std::function<void()>);
  void (*add_graph)(encoder*, void* graph);
  void (*add_kernel)(encoder*, void* function, dim3 grid, dim3 block, dim3 cluster, unsigned memory, void** arguments);
  void (*add_node)(encoder*, graph_node);  // the node must be in the graph

  int (*stream_create)(void** stream, unsigned flags);
  int (*capture_begin)(void* stream, int mode);
  int (*capture_end)(void* stream, void** graph);
  int (*graph_destroy)(void* graph);
  int (*kernel_node_create)(void** node, void* graph, const void*, size_t, const kernel_node*);
  int (*edges_create)(void* graph, void* const* from, void* const* to, const graph_edge*, size_t n);
  int (*allocate)(uint64_t* address, size_t size);
  int (*upload)(uint64_t address, const void* data, size_t size);
  int (*load)(void** module, const void* code, unsigned n, const int* options, void** values);
  int (*function_of)(void** function, void* module, const char* name);
  int (*set_attribute)(void* function, int attribute, int value);

  // Whether the version of MLX is known and all functions except edges_create were found. edges_create needs a driver
  // for CUDA 12.3 or later.
  bool complete;
};

// api returns the functions.
const functions& api();

// library returns a library that the process has loaded, or null.
inline void* library(const char* name) {
  return dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
}

// find looks up a function and reports whether the library has it.
template <typename F>
bool find(F& f, void* library, const char* name) {
  f = library ? reinterpret_cast<F>(dlsym(library, name)) : nullptr;
  return f;
}

// check throws an error if a function of CUDA has failed.
void check(int status, const char* function);

// graph_of returns the graph to which an encoder adds nodes, or null if MLX launches kernels without graphs.
void* graph_of(encoder* e);

// allocate allocates device memory for an output in row-major order, on the device of its stream.
void allocate(mx::array& output);

// address returns the device memory of an array.
char* address(const mx::array& a);

// copy_of returns a copy of a view in row-major order, in a buffer of its own. The stream holds the copy until the
// device has run the encoder's current graph.
mx::array copy_of(const mx::array& a, mx::Stream s);

// on_cuda is a primitive that runs on CUDA streams only.
class on_cuda : public opaque {
 public:
  using opaque::opaque;

  void eval_cpu(const arrays&, arrays&) override {
    throw std::runtime_error("[" + name_ + "] runs on a CUDA stream only");
  }
};

}  // namespace mlxg::cuda

#endif
