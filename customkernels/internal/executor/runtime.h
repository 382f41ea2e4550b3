// The C interface of the runtime: what Go and MLX's primitive call.
//
// Nothing here calls Go, and no exception leaves it.
#ifndef MLXG_HOST_RUNTIME_H
#define MLXG_HOST_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// One array, row contiguous. mlxg.h of package mlxc declares the same.
#ifndef MLXG_VIEW
#define MLXG_VIEW
typedef struct {
  void* data;
  const int32_t* shape;
  const int64_t* strides;
  int32_t ndim;
} mlxg_view;
#endif

// A loaded shader library: its symbols, and what it says of itself.
typedef struct {
  void* handle;
  const void* entry;
  const void* module;
  const char* name;
  uint32_t buffers;
  uint32_t threadgroup_memory;
  uint32_t uses_fibers;
} mlxg_host_library;

// Loads a shader library; returns 0, or fills err and returns -1. A library is
// never unloaded: launches on MLX's threads may still hold it.
int mlxg_host_load(const char* path, mlxg_host_library* out, char* err, size_t errlen);

// What a launch is made of. metadata[i] says which buffers follow the data of
// input i: bit 0 its shape, bit 1 its strides, bit 2 its number of dimensions.
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

// Makes a launch; NULL when there is no memory.
void* mlxg_host_launch_new(const mlxg_host_launch_config* config);

// The functions of a launch, for a thread of MLX's. A launch may be run several
// times, from several threads at once.
int mlxg_host_launch_prepare(void* launch, char* err, size_t errlen);
void mlxg_host_launch_run(void* launch, const mlxg_view* inputs, const mlxg_view* outputs);
void mlxg_host_launch_release(void* launch);

#ifdef __cplusplus
}
#endif

#endif
