// The interface of libmlxg, through which package mlxc uses MLX: what Go cannot do, or not in one
// call. The generator of mlxc/internal/generate reads this file and mlxg_io.h and writes, for each
// function, the one of the same name that Go calls: it passes the call to the loaded library.
// libmlxg/ has the library's sources.
//
// Three rules hold for every function here.
//   - The call into mlx-c and the fetching of its error message are one C
//     function: Go may move a goroutine to another OS thread between two calls,
//     and the message lives in a variable of the thread.
//   - Everything that builds, walks or evaluates a graph holds the graph lock.
//     An MLX array is a node with plain, unguarded fields; evaluation detaches
//     nodes that other threads may be reading.
//   - No exception and no exit leaves a function.
#ifndef MLXG_H
#define MLXG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

// mlxg_result is what a call returns: one new array, or an error message that
// the caller frees. scope is the id of the calling thread's innermost scope, 0
// if there is none.
typedef struct {
  void* ctx;
  char* err;
  uintptr_t scope;
} mlxg_result;

// mlxg_results is the same for a call that returns several arrays. Up to MLXG_FEW are in
// few; more are in items, which the caller frees with free() once it has taken the handles
// out. Of a call that gives two lists, one behind the other, first is the length of the
// first.
#define MLXG_FEW 8
typedef struct {
  void* few[MLXG_FEW];
  void** items;
  size_t n;
  size_t first;
  char* err;
  uintptr_t scope;
} mlxg_results;

// mlxg_members are arrays that a Go function is called with: new handles, which are its to
// own. scope is that of the calling thread.
typedef struct {
  void** handles;
  size_t n;
  uintptr_t scope;
} mlxg_members;

// mlxg_go is what the library calls and writes of Go's.
typedef struct {
  // Run the Go function with this id. They return 0, or 1 if the function failed.
  int (*call_closure)(uintptr_t id, mlxg_members* in, void* out);
  int (*call_custom)(uintptr_t id, mlxg_members* primals, mlxg_members* cotangents, mlxg_members* outputs, void* out);
  int (*call_jvp)(uintptr_t id, mlxg_members* primals, mlxg_members* tangents, void* out);
  int (*call_vmap)(uintptr_t id, mlxg_members* args, int* axes, void* out);
  // The number of ids for mlxg_take_released and of views. It is read and written atomically.
  int32_t* releasable;
  // How to set MLX up, for error messages, such as "run ./build.sh setup".
  const char* remedy;
  // Is called when mlxg_shutdown has ended MLX, with the graph lock held. No function that returns an error or
  // nothing is called after it.
  void (*ended)(void);
} mlxg_go;

// mlxg_init prepares the library once: error handler, the streams of the process. It returns an
// error message, which the caller frees, or NULL.
char* mlxg_init(const mlxg_go* go);

// mlxg_shutdown ends MLX: evaluations fail from the moment that it has the graph lock; it waits for the work on
// all streams and for the calls that wait for it, and clears the streams and the cache. Arrays are not destroyed
// after it. It returns whether that is done within the given time; otherwise it goes on, and another call waits
// again. *err is what it waits for or, if it is done, the first error that no call has reported, or NULL. The
// caller frees it.
bool mlxg_shutdown(int milliseconds, char** err);
// MLXG_SHUT_DOWN is the error of every function after it.
#define MLXG_SHUT_DOWN "MLX was shut down"

// The versions of the loaded MLX and mlx-c, static strings.
typedef struct {
  const char* mlx;
  const char* mlxc;
} mlxg_version_set;

mlxg_version_set mlxg_versions(void);

// The graph lock is re-entrant on its thread. Calls that can reach Go use enter and leave, which Go
// defers; the others lock and unlock within libmlxg.
int mlxg_waiting(void);  // threads that wait for the lock

// mlxg_enter takes the graph lock and makes the thread's current stream MLX's
// default, since transforms insert nodes on that one. It returns how many
// enters of this thread were open before.
int mlxg_enter(void);
bool mlxg_leave(void);  // whether the thread is stale
int mlxg_enter_depth(void);

// A thread is stale after a goroutine ended inside a callback: MLX's own
// per-thread tracing state was skipped over and cannot be repaired.
void mlxg_mark_stale(void);
bool mlxg_is_stale(void);

// The calling thread's current stream and scope. A NULL stream stands for the
// default of the process, and mlxg_real_stream gives that default in its place.
void* mlxg_real_stream(void);
void* mlxg_swap_stream(void* stream);
uintptr_t mlxg_swap_scope(uintptr_t scope);
uintptr_t mlxg_current_scope(void);
void* mlxg_current_stream(void);  // as set for this thread, or NULL

// The process's default device: 0 the CPU, 1 the GPU. Set returns -1 if there
// is no such device.
int mlxg_default_device(void);
int mlxg_set_default_device(int type);
void* mlxg_device_stream(int type);  // NULL if there is no such device
int mlxg_current_device(void);
int mlxg_current_backend(void);  // 0 CPU, 1 Metal, 2 CUDA

// mlxg_placeholder_gpu is a GPU stream that exists on every machine. Nothing
// can be evaluated on it; MLX builds Metal kernels on it while it exports.
void* mlxg_placeholder_gpu(void);

// Streams. NULL stands for the calling thread's current one.
char* mlxg_stream_new(void** stream, int device);
char* mlxg_stream_text(void* stream, char** text);  // the caller frees *text
int mlxg_stream_index(void* stream);
int mlxg_stream_device(void* stream);
// mlxg_streams names all streams of the process, one a line. The caller frees *text.
char* mlxg_streams(char** text);

// Devices. mlxg_device_info describes a device in lines, "key text value" or "key number value", with
// tabs between the three. The caller frees *lines.
char* mlxg_device_count(int* count, int device);
char* mlxg_device_info(int device, int index, char** lines);

// Memory of MLX's allocator, in bytes.
size_t mlxg_active_memory(void);
size_t mlxg_peak_memory(void);
void mlxg_reset_peak_memory(void);
size_t mlxg_cache_memory(void);
void mlxg_clear_cache(void);
size_t mlxg_memory_limit(void);
// The limits that can be set.
enum { MLXG_LIMIT_MEMORY, MLXG_LIMIT_CACHE, MLXG_LIMIT_WIRED };
char* mlxg_set_limit(int which, size_t* previous, size_t limit);

// GPUs.
bool mlxg_metal_available(void);
bool mlxg_cuda_available(void);
char* mlxg_metal_library(char** path);  // the caller frees *path
char* mlxg_set_metal_library(const char* path);
char* mlxg_start_metal_capture(const char* path);
char* mlxg_stop_metal_capture(void);

// mlxg_depends gives a, not to be computed before the others. With wait set it waits for what the
// last such array, if a depends on one, came after: the queue of a device keeps the memory of all
// that it has not come to.
mlxg_result mlxg_depends(void* a, const uintptr_t* others, size_t n, bool wait);

// Arrays.
typedef struct {
  int ndim;
  int dtype;
  size_t size;
  size_t itemsize;
  const int* shape;  // valid as long as the array's handle
} mlxg_info;

mlxg_info mlxg_array_info(void* a);
mlxg_result mlxg_array_new(const void* data, const int* shape, int ndim, int dtype);

// mlxg_array_unfilled makes an array whose elements the caller writes to *data, in row-major
// order, before anything else uses the array.
mlxg_result mlxg_array_unfilled(const int* shape, int ndim, int dtype, void** data);
// mlxg_array_view makes an array over memory that stays as it is until the id is handed
// back (see mlxg_take_released).
mlxg_result mlxg_array_view(void* data, const int* shape, int ndim, int dtype, uintptr_t id);
// mlxg_strides evaluates a and writes its strides, in elements.
char* mlxg_strides(void* a, int64_t* strides);
// mlxg_array_free frees n handles if the graph lock can be had without waiting,
// or if wait is set; it returns whether it did.
bool mlxg_array_free(const uintptr_t* handles, size_t n, bool wait);
// mlxg_return gives the results of a Go function to the C++ function that called it, whose
// results are.
void mlxg_return(void* results, const uintptr_t* handles, size_t n);

// mlxg_eval evaluates and waits. The lock is held while the work is handed to
// MLX's streams and released while they run.
char* mlxg_eval(const uintptr_t* arrays, size_t n);
char* mlxg_async_eval(const uintptr_t* arrays, size_t n);
// mlxg_read evaluates a and copies its elements, in row-major order, to dst.
char* mlxg_read(void* a, void* dst, size_t nbytes);
char* mlxg_tostring(void* a, char** text);
// mlxg_synchronize waits for the work that was started on the stream. It returns the error of work
// that no call has reported.
char* mlxg_synchronize(void* stream);
// mlxg_available reports whether a is computed.
bool mlxg_available(void* a);
// mlxg_find_id looks through computed ids in row-major order for one out of range: below 0 or
// above last, where an id below 0 stands for wrap more. It gives the place and the id.
#define MLXG_NO_ID -1
#define MLXG_NOT_COMPUTED -2
int64_t mlxg_find_id(void* ids, int64_t wrap, int64_t last, int64_t* id);
// mlxg_traced reports whether a depends on an argument of a transform at work.
bool mlxg_traced(void* a);

// Functions of Go that MLX calls have an id; ids whose last user in MLX is gone are handed
// back by mlxg_take_released. It has nothing to do while mlxg_go.releasable is 0.
size_t mlxg_take_released(uintptr_t* ids, size_t cap);

// The functions from here to mlxg_vmap enter (see mlxg_enter), and the caller leaves.
mlxg_results mlxg_vjp(uintptr_t id, const uintptr_t* primals, size_t np, const uintptr_t* cotangents, size_t nc);
// argnums are in ascending order, none twice.
mlxg_results mlxg_value_and_grad(uintptr_t id, const int* argnums, size_t n, const uintptr_t* args, size_t na);
mlxg_results mlxg_jvp(uintptr_t id, const uintptr_t* primals, const uintptr_t* tangents, size_t n);
// A rule with the id 0 is fun's own.
mlxg_results mlxg_custom_function(
    uintptr_t fun, uintptr_t vjp, uintptr_t jvp, uintptr_t vmap, const uintptr_t* args, size_t n);
// again is called for fun where its gradient is taken.
mlxg_results mlxg_checkpoint(uintptr_t fun, uintptr_t again, const uintptr_t* args, size_t n);
// mlxg_vmap runs fun over one axis of each argument. In in_axes −1 stands for none; in
// out_axes MLXG_UNMAPPED does, and n_out = 0 for axis 0 of every output.
#define MLXG_UNMAPPED INT32_MIN
mlxg_results mlxg_vmap(
    uintptr_t fun, const uintptr_t* args, const int* in_axes, size_t n, const int* out_axes, size_t n_out);

// Compiled functions. All calls for them come from one thread, to which MLX's compile
// cache belongs. Each keeps what was compiled for the last MLXG_SIGNATURES signatures.
#define MLXG_SIGNATURES 64
void* mlxg_compile_new(uintptr_t id, bool shapeless);
mlxg_results mlxg_compiled_call(void* compiled, const uintptr_t* args, size_t n);
void mlxg_compiled_free(void* compiled);
void mlxg_compile_clear(void);
// The modes, numbered as in mlx_compile_mode. Set returns the one before.
enum { MLXG_COMPILE_DISABLED, MLXG_COMPILE_NO_SIMPLIFY, MLXG_COMPILE_NO_FUSE, MLXG_COMPILE_ENABLED };
int mlxg_compile_set_mode(int mode);
// mlxg_compile_no_fusing has calls on CPU streams fuse nothing, in any mode, from now on.
void mlxg_compile_no_fusing(void);

// Groups of processes. mlxg_group_backend names a group's backend, "" for a group of one.
bool mlxg_group_available(const char* backend);
char* mlxg_group_init(void** group, bool strict, const char* backend);
const char* mlxg_group_backend(void* group);
int mlxg_group_rank(void* group);
int mlxg_group_size(void* group);
char* mlxg_group_split(void** part, void* group, int color, int key);
void mlxg_group_free(void* group);
enum { MLXG_ALL_SUM, MLXG_ALL_MAX, MLXG_ALL_MIN, MLXG_ALL_GATHER, MLXG_SUM_SCATTER };
mlxg_result mlxg_group_collect(int what, void* x, void* group);
mlxg_result mlxg_group_send(void* x, int to, void* group);
mlxg_result mlxg_group_receive(const int* shape, size_t n, int dtype, int from, void* group);
mlxg_result mlxg_group_receive_like(void* x, int from, void* group);

// A primitive of one's own on a CPU stream: a node of MLX's graph that runs a C
// function. The layout of these structs is a contract with the packages that
// provide such functions; they declare the same layout themselves, because a
// cgo package's C types are its own.
#ifndef MLXG_VIEW
#define MLXG_VIEW
typedef struct {
  void* data;
  const int32_t* shape;
  const int64_t* strides;  // in elements
  int32_t ndim;
} mlxg_view;
#endif

typedef int (*mlxg_prepare_fn)(void* ctx, char* err, size_t errlen);
typedef void (*mlxg_run_fn)(void* ctx, const mlxg_view* in, const mlxg_view* out);
typedef void (*mlxg_release_fn)(void* ctx);

// mlxg_primitive_call adds such a node. dims holds, for each output, its number
// of axes and then its shape. The functions are passed as plain pointers since Go
// has no type for them.
mlxg_results mlxg_primitive_call(
    const char* name,
    void* ctx,
    void* prepare,
    void* run,
    void* release,
    bool contiguous,
    const float* init_value,  // or NULL
    const int* dims,
    const int* dtypes,
    size_t n_outputs,
    const uintptr_t* inputs,
    size_t n);
void mlxg_release(void* release, void* ctx);

// Custom kernels. Names are one text, each with its 0 at the end.
void* mlxg_metal_kernel_new(
    const char* name,
    const char* inputs,
    size_t n_inputs,
    const char* outputs,
    size_t n_outputs,
    const char* body,
    const char* header,
    bool contiguous,
    bool atomic_outputs,
    char** err);
// A launch that is exported has exported_header in the place of header.
void* mlxg_cuda_kernel_new(
    const char* name,
    const char* inputs,
    size_t n_inputs,
    const char* outputs,
    size_t n_outputs,
    const char* body,
    const char* header,
    const char* exported_header,
    bool contiguous,
    int shared_memory,
    char** err);
void mlxg_kernel_free(void* kernel);
// mlxg_kernel_apply adds a launch. numbers has the grid, three threads, and the threadgroup;
// the number of outputs, and for each its dtype, its number of axes and its shape; the number
// of template arguments, whose names names has, and for each its kind, one of
// MLXG_TEMPLATE_…, and its value; then whether there is an initial value, and its bits.
mlxg_results mlxg_kernel_apply(void* kernel, const uintptr_t* inputs, size_t n, const int* numbers, const char* names);

enum { MLXG_TEMPLATE_DTYPE, MLXG_TEMPLATE_INT, MLXG_TEMPLATE_BOOL };

// Export tracing: one line of text per node of the graph that MLX would export.
// For every primitive: its name, then its state's strings.
typedef struct {
  char* name;
  char** strings;
  size_t n_strings;
} mlxg_node;

char* mlxg_export(uintptr_t id, const char* file, const uintptr_t* inputs, size_t n);
char* mlxg_trace(uintptr_t id, const uintptr_t* inputs, size_t n, mlxg_node** nodes, size_t* n_nodes);
void mlxg_nodes_free(mlxg_node* nodes, size_t n);

#ifdef __cplusplus
}
#endif

#endif  // MLXG_H
