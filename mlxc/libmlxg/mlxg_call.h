// Functions that the files of libmlxg, including the generated ones, call in each other.
#ifndef MLXG_CALL_H
#define MLXG_CALL_H

#include "mlx/c/mlx.h"
#include "mlxg.h"

extern "C" {

// mlxg_lock and mlxg_unlock take and release the graph lock, which is re-entrant. A call that may run a Go function
// uses mlxg_enter instead.
void mlxg_lock(void);
void mlxg_unlock(void);
bool mlxg_try_lock(bool wait);  // with wait set it blocks and returns true

// The calling thread's current stream, or the default of the process.
mlx_stream mlxg_stream(void);

// The mlxg_end functions convert the status rc and the result of an mlx-c call, and take ownership of the result.
// mlxg_finish also releases the graph lock.
mlxg_result mlxg_end(int rc, mlx_array res);
mlxg_result mlxg_finish(int rc, mlx_array res);
mlxg_results mlxg_end_vector(int rc, mlx_vector_array res);
mlxg_results mlxg_end_pair(int rc, const mlx_array* pair);
char* mlxg_end_status(int rc);

// MLXG_CALL is the body of a function. It makes one mlx-c call under the graph lock. The call stores its array in &res
// and evaluates to a status.
#define MLXG_CALL(call) \
  mlx_array res{};      \
  mlxg_lock();          \
  int rc_ = (call);     \
  return mlxg_finish(rc_, res)

// MLXG_CALL_ALL is MLXG_CALL for a call with several results.
#define MLXG_CALL_ALL(call)                      \
  mlx_vector_array res = mlx_vector_array_new(); \
  mlxg_lock();                                   \
  int rc_ = (call);                              \
  mlxg_results out_ = mlxg_end_vector(rc_, res); \
  mlxg_unlock();                                 \
  return out_

// mlxg_elementwise adds the node of an element-wise operation. If both operands have the same dtype and shape, MLX
// creates the first node, and later nodes share its primitive. This skips the promotion of dtypes, the broadcast and
// the allocation of a primitive, which are most of a node's cost. Sharing is safe because these primitives are
// immutable; MLX shares them between the calls of a compiled function, too. patterns caches the primitives of one
// operation by dtype. The graph lock guards it.
#define MLXG_DTYPES 14
typedef struct {
  void* of[MLXG_DTYPES];
} mlxg_patterns;
typedef int (*mlxg_binary)(mlx_array* res, const mlx_array a, const mlx_array b, const mlx_stream s);

int mlxg_elementwise(mlxg_patterns* patterns, mlxg_binary op, mlx_array* res, mlx_array a, mlx_array b, mlx_stream s);

// mlxg_complex and mlxg_complex_binary call op. For complex operands they also replace the gradient of the node, which
// lacks a conjugate in MLX 0.32.2.
typedef int (*mlxg_unary)(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlxg_complex(mlxg_unary op, mlx_array* res, mlx_array a, mlx_stream s);
int mlxg_complex_binary(mlxg_binary op, mlx_array* res, mlx_array a, mlx_array b, mlx_stream s);

}  // extern "C"

#endif
