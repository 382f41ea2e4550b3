// The C interface of the runtime, which Go and MLX's primitive call.
//
// No function calls Go or throws an exception.
#ifndef MLXG_HOST_RUNTIME_H
#define MLXG_HOST_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// A row-contiguous array. mlxg.h of package mlxc has the same declaration.
#ifndef MLXG_VIEW
#define MLXG_VIEW
typedef struct {
  void* data;
  const int32_t* shape;
  const int64_t* strides;
  int32_t ndim;
} mlxg_view;
#endif

// A loaded shader library: its handle and symbols, and the properties that it declares.
typedef struct {
  void* handle;
  const void* entry;
  const void* module;
  const char* name;
  uint32_t buffers;
  uint32_t threadgroup_memory;
  uint32_t uses_fibers;
} mlxg_host_library;

// Loads a shader library. Returns 0, or writes a message to err and returns -1. A library is never unloaded: launches
// on MLX's threads may still use it.
int mlxg_host_load(const char* path, mlxg_host_library* out, char* err, size_t errlen);

// The description of a launch. metadata[i] is the set of buffers that follow the data of input i: bit 0 is its shape,
// bit 1 its strides, bit 2 its number of dimensions.
typedef struct {
  const void* entry;
  const void* module;
  uint32_t grid[3];
  uint32_t threadgroup[3];
  uint32_t inputs;
  uint32_t outputs;
  uint8_t metadata[64];
  uint32_t workers;
} mlxg_host_launch_config;

// Creates a launch. Returns NULL if memory is exhausted. mlxg_host_launch_release frees the launch.
void* mlxg_host_launch_new(const mlxg_host_launch_config* config);

// The functions of a launch, which MLX calls on its own threads. prepare allocates all resources, and returns 0 or
// writes a message to err. After that, run may be called any number of times, concurrently. release comes last.
int mlxg_host_launch_prepare(void* launch, char* err, size_t errlen);
void mlxg_host_launch_run(void* launch, const mlxg_view* inputs, const mlxg_view* outputs);
void mlxg_host_launch_release(void* launch);

#ifdef __cplusplus
}
#endif

#endif
