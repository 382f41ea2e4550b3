// The interface of libmlxg, a C++ library that package mlxc loads at run time and through which it calls MLX. The
// sources of libmlxg are in libmlxg/. mlxc/internal/generate reads this file and mlxg_io.h and writes, for each
// function, a Go-side C function of the same name that calls the loaded library.
//
// Three rules hold for every function here.
//   - One C function calls mlx-c and returns its error message. The message is thread-local, and Go may move a
//     goroutine to another thread between two calls.
//   - Code that builds, walks or evaluates a graph holds the graph lock. The fields of MLX's nodes have no lock, and
//     evaluation detaches nodes that other threads may read.
//   - No function throws an exception or ends the process.
// A char* result is an error message, which the caller frees, or NULL, unless the comment says otherwise.
#ifndef MLXG_H
#define MLXG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

// mlxg_result is the result of a call: one new array, or an error message that the caller frees. scope is the id of the
// calling thread's innermost scope, or 0.
typedef struct {
  void* ctx;
  char* err;
  uintptr_t scope;
} mlxg_result;

// mlxg_results is the result of a call that returns several arrays. Up to MLXG_FEW handles are in few. More handles are
// in items, which the caller frees with free(). For a call that returns two concatenated lists, first is the length of
// the first list.
#define MLXG_FEW 8
typedef struct {
  void* few[MLXG_FEW];
  void** items;
  size_t n;
  size_t first;
  char* err;
  uintptr_t scope;
} mlxg_results;

// mlxg_members holds the arguments of a Go function: new handles, which the function owns. scope is the id of the
// calling thread's innermost scope, or 0.
typedef struct {
  void** handles;
  size_t n;
  uintptr_t scope;
} mlxg_members;

// mlxg_go holds the Go functions and variables that the library uses.
typedef struct {
  // These run the Go function with this id. They return 0, or 1 if the function failed.
  int (*call_closure)(uintptr_t id, mlxg_members* in, void* out);
  int (*call_custom)(uintptr_t id, mlxg_members* primals, mlxg_members* cotangents, mlxg_members* outputs, void* out);
  int (*call_jvp)(uintptr_t id, mlxg_members* primals, mlxg_members* tangents, void* out);
  int (*call_vmap)(uintptr_t id, mlxg_members* args, int* axes, void* out);
  // The number of ids that mlxg_take_released may return: released ids and ids of views. Accesses are atomic.
  int32_t* releasable;
  // The remedy in error messages about the set-up, such as "run ./build.sh setup".
  const char* remedy;
  // mlxg_shutdown calls this when MLX has ended, with the graph lock held. From then on, Go's side of functions with an
  // error message returns MLXG_SHUT_DOWN, and Go's side of void functions does nothing; neither calls the library.
  void (*ended)(void);
} mlxg_go;

// mlxg_init initializes the library: error handler and streams of the process. It must be called once, before all other
// functions.
char* mlxg_init(const mlxg_go* go);

// mlxg_shutdown ends MLX: it makes later evaluations fail, waits for the work on all streams and for the threads that
// read its results, and clears the streams and the cache. Arrays are not destroyed afterwards. If all is done within
// the given time, it returns true, and *err is the first unreported error of the work, or NULL. Otherwise it returns
// false, and *err names the current wait, such as "the work on Stream(Device(cpu, 0), 0)". The shutdown then continues
// on another thread, and the next call waits again. The caller frees *err.
bool mlxg_shutdown(int milliseconds, char** err);
// MLXG_SHUT_DOWN is the error of every function after mlxg_shutdown.
#define MLXG_SHUT_DOWN "MLX was shut down"

// The versions of the loaded MLX and mlx-c. The strings are static.
typedef struct {
  const char* mlx;
  const char* mlxc;
} mlxg_version_set;

mlxg_version_set mlxg_versions(void);

// The graph lock is re-entrant. Functions that may call a Go function take it with mlxg_enter, and Go code defers
// mlxg_leave. All other functions lock and unlock within one call.
int mlxg_waiting(void);  // number of threads that wait for the lock

// mlxg_enter takes the graph lock and makes the thread's current stream MLX's default stream, on which transforms add
// nodes. It returns the depth before the call: the number of this thread's mlxg_enter calls without their mlxg_leave.
// mlxg_leave reports whether the thread is stale.
int mlxg_enter(void);
bool mlxg_leave(void);
int mlxg_enter_depth(void);

// A thread is stale after a goroutine ended inside a callback: the destructors that restore MLX's thread-local tracing
// state did not run, and no other code can restore it.
void mlxg_mark_stale(void);
bool mlxg_is_stale(void);

// The calling thread's current stream and scope. NULL means the default stream of the process. mlxg_real_stream returns
// that default for NULL and for the placeholder GPU. The swap functions return the previous value.
void* mlxg_real_stream(void);
void* mlxg_swap_stream(void* stream);
uintptr_t mlxg_swap_scope(uintptr_t scope);
uintptr_t mlxg_current_scope(void);
void* mlxg_current_stream(void);  // the stream set on this thread, or NULL

// The process's default device: 0 is the CPU, 1 the GPU. mlxg_set_default_device returns -1 if the device does not
// exist.
int mlxg_default_device(void);
int mlxg_set_default_device(int type);
void* mlxg_device_stream(int type);  // NULL if the device does not exist
int mlxg_current_device(void);
int mlxg_current_backend(void);  // 0 CPU, 1 Metal, 2 CUDA

// mlxg_placeholder_gpu returns a GPU stream that exists on every machine. It cannot evaluate; MLX generates Metal
// kernels for it during export.
void* mlxg_placeholder_gpu(void);

// Streams. NULL is the calling thread's current stream.
char* mlxg_stream_new(void** stream, int device);
char* mlxg_stream_text(void* stream, char** text);  // the caller frees *text
int mlxg_stream_index(void* stream);
int mlxg_stream_device(void* stream);
// mlxg_streams lists all streams of the process, one per line. The caller frees *text.
char* mlxg_streams(char** text);

// Devices. mlxg_device_info describes a device in lines of three tab-separated fields: key, "text" or "number", value.
// The caller frees *lines.
char* mlxg_device_count(int* count, int device);
char* mlxg_device_info(int device, int index, char** lines);

// Memory of MLX's allocator, in bytes.
size_t mlxg_active_memory(void);
size_t mlxg_peak_memory(void);
void mlxg_reset_peak_memory(void);
size_t mlxg_cache_memory(void);
void mlxg_clear_cache(void);
size_t mlxg_memory_limit(void);
// The first argument of mlxg_set_limit.
enum { MLXG_LIMIT_MEMORY, MLXG_LIMIT_CACHE, MLXG_LIMIT_WIRED };
char* mlxg_set_limit(int which, size_t* previous, size_t limit);

// GPUs.
bool mlxg_metal_available(void);
bool mlxg_cuda_available(void);
char* mlxg_metal_library(char** path);  // the caller frees *path
char* mlxg_set_metal_library(const char* path);
char* mlxg_start_metal_capture(const char* path);
char* mlxg_stop_metal_capture(void);

// mlxg_depends returns an array equal to a that is computed after the others. wait limits the memory of a chain, in
// which a is the result of another mlxg_depends with wait set: evaluation of the new array blocks until the device has
// computed a. Without it the host may run far ahead, and all work in the device's queue keeps its memory.
mlxg_result mlxg_depends(void* a, const uintptr_t* others, size_t n, bool wait);

// Matrix products on CUDA devices that write to memory that exists. For an exported graph, none are available.
bool mlxg_products_available(void);
// mlxg_reuse returns an array with the elements of the first input, and an array of the same shape for the results of a
// node that overwrites them while it reads them. The second has the memory of the first input if nothing else refers to
// that input when it is evaluated, and else new memory for rows × columns elements. No other array may share the
// memory. The nodes of the other inputs run earlier.
mlxg_results mlxg_reuse(const uintptr_t* inputs, size_t n, int rows, int columns);
// mlxg_reuse_copies returns the number of evaluated nodes of mlxg_reuse that took new memory, modulo 2⁶⁴.
uint64_t mlxg_reuse_copies(void);
// mlxg_scale_rows returns the first input, a matrix, by one kernel: its rows times float32 factors, the second input if
// scaled is set, rounded once. The rows for which a further input, of int32 numbers, is negative are zeros.
mlxg_result mlxg_scale_rows(const uintptr_t* inputs, size_t n, bool scaled);
// mlxg_product_into returns a matrix whose elements from `begin` on are the product of the first input and of rows of
// the second. It begins the memory of the third input if in_place is set, and else new memory for memory_rows ×
// memory_columns elements. The memory of the third input, which no other node may use afterwards, holds the matrix, and
// the input is row-major. If accumulate is set, the product is added to the elements. If scaled is set, the next input
// is a float32 scalar by which the product is multiplied. The nodes of further inputs run earlier.
typedef struct {
  bool a_transposed, b_transposed, in_place, accumulate, scaled, tf32;
  int b_first, b_end;  // rows of the second input
  int rows, columns;   // of the result
  int memory_rows, memory_columns;
  uint64_t begin;
} mlxg_product;
mlxg_result mlxg_product_into(mlxg_product p, const uintptr_t* inputs, size_t n);

// Arrays.
typedef struct {
  int ndim;
  int dtype;
  size_t size;
  size_t itemsize;
  const int* shape;  // valid as long as the array's handle
} mlxg_info;

mlxg_info mlxg_array_info(uintptr_t a);
mlxg_result mlxg_array_new(const void* data, const int* shape, int ndim, int dtype);

// mlxg_array_unfilled returns an array without defined elements. The caller writes them to *data, in row-major order,
// before any other use of the array.
mlxg_result mlxg_array_unfilled(const int* shape, int ndim, int dtype, void** data);
// mlxg_array_view returns an array over memory that must not move or change until the id is released (see
// mlxg_take_released).
mlxg_result mlxg_array_view(void* data, const int* shape, int ndim, int dtype, uintptr_t id);
// mlxg_strides evaluates a and writes its strides, in elements.
char* mlxg_strides(void* a, int64_t* strides);
// mlxg_array_free destroys n handles if the graph lock is free, or if wait is set. It reports whether it did.
bool mlxg_array_free(const uintptr_t* handles, size_t n, bool wait);
// mlxg_return appends the results of a Go function to results, a std::vector of the calling C++ function. Go keeps the
// handles and frees them.
void mlxg_return(void* results, const uintptr_t* handles, size_t n);

// mlxg_eval evaluates and waits. It holds the graph lock while it submits the work, and not while the work runs.
char* mlxg_eval(const uintptr_t* arrays, size_t n);
char* mlxg_async_eval(const uintptr_t* arrays, size_t n);
// mlxg_read evaluates a and copies its elements to dst in row-major order. nbytes is the size of a.
char* mlxg_read(void* a, void* dst, size_t nbytes);
char* mlxg_tostring(void* a, char** text);
// mlxg_synchronize waits for the work that was submitted to the stream. It returns an unreported error of that work.
char* mlxg_synchronize(void* stream);
// mlxg_available reports whether a has been computed.
bool mlxg_available(void* a);
// mlxg_find_id finds the first id outside first … last, after adding wrap to negative ids, that is not `except`. It
// returns its row-major index and stores it in *id. It returns MLXG_NO_ID if there is none, or MLXG_NOT_COMPUTED if ids
// has not been computed.
#define MLXG_NO_ID -1
#define MLXG_NOT_COMPUTED -2
int64_t mlxg_find_id(void* ids, int64_t wrap, int64_t first, int64_t last, int64_t except, int64_t* id);
// mlxg_traced reports whether a depends on an argument of a running transform.
bool mlxg_traced(uintptr_t a);

// Each Go function and each pinned memory block that MLX uses has an id. mlxg_take_released writes up to cap ids that
// MLX no longer uses and returns their number. It need not be called while *mlxg_go.releasable is 0.
size_t mlxg_take_released(uintptr_t* ids, size_t cap);

// The functions from here to mlxg_vmap, except mlxg_recipe_apply, call mlxg_enter. The caller calls mlxg_leave.
mlxg_results mlxg_vjp(uintptr_t id, const uintptr_t* primals, size_t np, const uintptr_t* cotangents, size_t nc);
// argnums must be ascending without duplicates.
mlxg_results mlxg_value_and_grad(uintptr_t id, const int* argnums, size_t n, const uintptr_t* args, size_t na);
mlxg_results mlxg_jvp(uintptr_t id, const uintptr_t* primals, const uintptr_t* tangents, size_t n);
// A rule with the id 0 is derived from fun.
mlxg_results mlxg_custom_function(
    uintptr_t fun, uintptr_t vjp, uintptr_t jvp, uintptr_t vmap, const uintptr_t* args, size_t n);
// mlxg_recipe_apply is mlxg_custom_function of the functions that mlxg_recipe_record recorded for this id and for
// arguments of the same shapes and dtypes, on the current stream. It returns no arrays if none were recorded. The
// functions may depend on nothing else, and must not read elements. Only the first `visible` outputs of fun are
// returned. vjp receives their cotangents, and all outputs. mlxg_recipe_apply calls no Go function.
mlxg_results mlxg_recipe_apply(uint64_t id, const uintptr_t* args, size_t n);
mlxg_results mlxg_recipe_record(
    uint64_t id, uintptr_t fun, size_t visible, uintptr_t vjp, const uintptr_t* args, size_t n);
// mlxg_recipe_launches returns the number of kernel launches that recipes have added without a call of Go, modulo 2⁶⁴.
uint64_t mlxg_recipe_launches(void);
// The forward pass calls fun. The gradient calls again, which recomputes the same results.
mlxg_results mlxg_checkpoint(uintptr_t fun, uintptr_t again, const uintptr_t* args, size_t n);
// mlxg_vmap maps fun over one axis of each argument. −1 in in_axes and MLXG_UNMAPPED in out_axes mean no axis.
// n_out = 0 means axis 0 of every output.
#define MLXG_UNMAPPED INT32_MIN
mlxg_results mlxg_vmap(
    uintptr_t fun, const uintptr_t* args, const int* in_axes, size_t n, const int* out_axes, size_t n_out);

// Compiled functions. All calls must come from one thread, because MLX's compile cache is thread-local. A function
// keeps the graphs of the MLXG_SIGNATURES most recently used signatures.
#define MLXG_SIGNATURES 64
void* mlxg_compile_new(uintptr_t id, bool shapeless);
mlxg_results mlxg_compiled_call(void* compiled, const uintptr_t* args, size_t n);
void mlxg_compiled_free(void* compiled);
void mlxg_compile_clear(void);
// The compile modes, numbered as in mlx_compile_mode. mlxg_compile_set_mode returns the previous mode.
enum { MLXG_COMPILE_DISABLED, MLXG_COMPILE_NO_SIMPLIFY, MLXG_COMPILE_NO_FUSE, MLXG_COMPILE_ENABLED };
int mlxg_compile_set_mode(int mode);
// mlxg_compile_no_fusing disables fusing on CPU streams, in all modes, for the rest of the process.
void mlxg_compile_no_fusing(void);

// Groups of processes. mlxg_group_backend returns a group's backend, or "" for a group of one.
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

// Host functions: nodes on a CPU stream that run a C function. Packages that provide such functions declare the same
// struct layout themselves, because the C types of a cgo package are private to it.
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

// mlxg_primitive_call adds a host function. dims holds, for each output, the number of axes and the shape. prepare, run
// and release have the types above; Go passes them as plain pointers. It owns ctx: release is called once, on any
// thread, also after an error. mlxg_release releases ctx if mlxg_primitive_call is not called.
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

// Custom kernels. Names are concatenated zero-terminated strings.
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
// If code_size is not 0, launches run the function `function` of code, a cubin or PTX. Launches in an exported graph
// have the text instead, with exported_header in place of header. If aligned, launches of code read copies of inputs
// that do not begin at a multiple of 16 bytes in their buffers. If early, they may start before the end of the
// kernels that write their inputs. They pass the inputs in `values`, a bit for each, by value.
void* mlxg_cuda_kernel_new(
    const char* name,
    const char* inputs,
    size_t n_inputs,
    const char* outputs,
    size_t n_outputs,
    const char* body,
    const char* header,
    const char* exported_header,
    const char* function,
    const void* code,
    size_t code_size,
    uint32_t values,
    bool contiguous,
    bool aligned,
    bool early,
    int shared_memory,
    char** err);
void mlxg_kernel_free(void* kernel);
// mlxg_kernel_apply adds a launch. numbers holds, in order: the grid in threads (3), the threadgroup (3); the number of
// outputs, and for each its dtype, number of axes and shape; the number of template arguments, and for each its kind
// (MLXG_TEMPLATE_…) and value; 1 and the bits of the initial value, or 0; the values of inputs that are passed by
// value. names holds the names of the template arguments.
mlxg_results mlxg_kernel_apply(void* kernel, const uintptr_t* inputs, size_t n, const int* numbers, const char* names);

enum { MLXG_TEMPLATE_DTYPE, MLXG_TEMPLATE_INT, MLXG_TEMPLATE_BOOL };

// mlxg_node is a node of an exported graph: the name of its primitive and the strings among its state. mlxg_trace
// returns the nodes that MLX would export; the caller frees them with mlxg_nodes_free.
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
