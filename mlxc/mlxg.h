// The C side of package mlxc: what Go cannot do, or not in one call.
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

// These defines must come before mlx-c's headers are needed, so that a checkout
// without the libraries fails with one line that says what to do.
#if defined(__has_include)
#if !__has_include("mlx/c/mlx.h")
#error "MLX and mlx-c are not set up: run ./build.sh in the repository's root, then build again"
#define MLXG_NOT_SET_UP 1
#endif
#endif

#ifndef MLXG_NOT_SET_UP

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "mlx/c/mlx.h"

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

// mlxg_init prepares the library once: error handler, the streams of the
// process. It returns an error message, which the caller frees, or NULL.
char* mlxg_init(void);

// mlxg_versions gives the versions of the loaded libraries, of the headers that this
// package was compiled with and of those that the loaded mlx-c was; strings that are
// unknown are empty. probe is what the symbols of the loaded mlx-c tell of its version.
// It calls only what every mlx-c has. The strings are static.
typedef struct {
  const char* mlx;
  const char* headers;
  const char* mlxc;
  const char* against;
  const char* probe;
} mlxg_version_set;

mlxg_version_set mlxg_versions(void);

// The graph lock, re-entrant on its thread. Leaf calls use lock and unlock;
// calls that can reach Go use enter and leave, which Go defers.
void mlxg_lock(void);
void mlxg_unlock(void);
bool mlxg_try_lock(bool wait); // with wait set it blocks and returns true
int mlxg_waiting(void); // threads that wait for the lock

// mlxg_enter takes the graph lock and makes the thread's current stream MLX's
// default, since transforms insert nodes on that one. It returns how many
// enters of this thread were open before.
int mlxg_enter(void);
bool mlxg_leave(void); // whether the thread is stale
int mlxg_enter_depth(void);

// A thread is stale after a goroutine ended inside a callback: MLX's own
// per-thread tracing state was skipped over and cannot be repaired.
void mlxg_mark_stale(void);
bool mlxg_is_stale(void);

// The calling thread's current stream and scope. A NULL stream stands for the
// default of the process.
mlx_stream mlxg_stream(void);
// mlxg_real_stream is the same, but the default instead of the placeholder.
void* mlxg_real_stream(void);
void* mlxg_swap_stream(void* stream);
uintptr_t mlxg_swap_scope(uintptr_t scope);
uintptr_t mlxg_current_scope(void);
void* mlxg_current_stream(void); // as set for this thread, or NULL

// The process's default device: 0 the CPU, 1 the GPU. Set returns -1 if there
// is no such device.
int mlxg_default_device(void);
int mlxg_set_default_device(int type);
void* mlxg_device_stream(int type); // NULL if there is no such device
int mlxg_current_device(void);
int mlxg_current_backend(void); // 0 CPU, 1 Metal, 2 CUDA

// mlxg_placeholder_gpu is a GPU stream that exists on every machine. Nothing
// can be evaluated on it; MLX builds Metal kernels on it while it exports.
void* mlxg_placeholder_gpu(void);

// mlxg_end turns the outcome of an mlx-c call into a result. mlxg_finish does so and
// gives the graph lock back.
mlxg_result mlxg_end(int rc, mlx_array res);
mlxg_result mlxg_finish(int rc, mlx_array res);
mlxg_results mlxg_end_vector(int rc, mlx_vector_array res);
mlxg_results mlxg_end_pair(int rc, const mlx_array* pair);
char* mlxg_end_status(int rc);

// MLXG_CALL wraps one leaf call of mlx-c that writes its result to &res.
#define MLXG_CALL(call) \
  mlx_array res = {0};  \
  mlxg_lock();          \
  int rc_ = (call);     \
  return mlxg_finish(rc_, res)

// MLXG_CALL_ALL is the same for a call that gives several arrays.
#define MLXG_CALL_ALL(call)                             \
  mlx_vector_array res = mlx_vector_array_new();        \
  mlxg_lock();                                          \
  int rc_ = (call);                                     \
  mlxg_results out_ = mlxg_end_vector(rc_, res);        \
  mlxg_unlock();                                        \
  return out_

// mlxg_elementwise makes the node of an element-wise operation. For two operands of the same
// dtype and shape the nodes of an operation differ in nothing but operands and shape, yet MLX
// promotes, broadcasts and allocates a primitive each time, which is most of what a node
// costs. So the first node is MLX's and those after it share its primitive, as the nodes of
// functions that MLX compiled do: a primitive of these operations never changes. patterns
// are of one operation; the graph lock guards them.
#define MLXG_DTYPES 14
typedef struct {
  void* of[MLXG_DTYPES];
} mlxg_patterns;
typedef int (*mlxg_binary)(mlx_array* res, const mlx_array a, const mlx_array b, const mlx_stream s);

int mlxg_elementwise(
    mlxg_patterns* patterns, mlxg_binary op, mlx_array* res, mlx_array a, mlx_array b, mlx_stream s);

// mlxg_complex and mlxg_complex_binary call op and, where the operands are complex, give the node
// gradients with the conjugate that MLX's lack.
typedef int (*mlxg_unary)(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlxg_complex(mlxg_unary op, mlx_array* res, mlx_array a, mlx_stream s);
int mlxg_complex_binary(mlxg_binary op, mlx_array* res, mlx_array a, mlx_array b, mlx_stream s);

// mlxg_mend_signals has all handlers of signals run on the stack for them.
void mlxg_mend_signals(void);

// mlxg_wait_before makes an array of mlx_depends one that waits for what the last such array, if it
// depends on one, came after: the queue of a device keeps the memory of all that it has not come to.
void mlxg_wait_before(mlx_array a);

// Arrays.
typedef struct {
  int ndim;
  int dtype;
  size_t size;
  size_t itemsize;
  const int* shape; // valid as long as the array's handle
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
// back by mlxg_take_released. It has nothing to do while mlxg_releasable, which is read and
// written atomically, is 0.
size_t mlxg_take_released(uintptr_t* ids, size_t cap);
extern int32_t mlxg_releasable;

// The functions from here to mlxg_vmap enter (see mlxg_enter), and the caller leaves.
mlxg_results mlxg_vjp(
    uintptr_t id, const uintptr_t* primals, size_t np, const uintptr_t* cotangents, size_t nc);
// argnums are in ascending order, none twice.
mlxg_results mlxg_value_and_grad(
    uintptr_t id, const int* argnums, size_t n, const uintptr_t* args, size_t na);
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
// Modes are numbered as in mlx_compile_mode; set returns the one before.
int mlxg_compile_set_mode(int mode);
// mlxg_compile_no_fusing has calls on CPU streams fuse nothing, in any mode, from now on.
void mlxg_compile_no_fusing(void);

// Groups of processes. mlxg_group_backend names a group's backend, "" for a group of one.
char* mlxg_group_init(void** group, bool strict, const char* backend);
const char* mlxg_group_backend(void* group);

// A primitive of one's own on a CPU stream: a node of MLX's graph that runs a C
// function. The layout of these structs is a contract with the packages that
// provide such functions; they declare the same layout themselves, because a
// cgo package's C types are its own.
typedef struct {
  void* data;
  const int32_t* shape;
  const int64_t* strides; // in elements
  int32_t ndim;
} mlxg_view;

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
    const float* init_value, // or NULL
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
mlxg_results mlxg_kernel_apply(
    void* kernel, const uintptr_t* inputs, size_t n, const int* numbers, const char* names);

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

#endif // MLXG_NOT_SET_UP
#endif // MLXG_H
