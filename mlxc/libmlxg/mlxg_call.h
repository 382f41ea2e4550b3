// What libmlxg's own files use of each other and of mlx-c.
#ifndef MLXG_CALL_H
#define MLXG_CALL_H

#include "mlx/c/mlx.h"
#include "mlxg.h"

extern "C" {

// The graph lock, for calls that cannot reach Go.
void mlxg_lock(void);
void mlxg_unlock(void);
bool mlxg_try_lock(bool wait);  // with wait set it blocks and returns true

// The calling thread's current stream, or the default of the process.
mlx_stream mlxg_stream(void);

// mlxg_end turns the outcome of an mlx-c call into a result. mlxg_finish does so and
// gives the graph lock back.
mlxg_result mlxg_end(int rc, mlx_array res);
mlxg_result mlxg_finish(int rc, mlx_array res);
mlxg_results mlxg_end_vector(int rc, mlx_vector_array res);
mlxg_results mlxg_end_pair(int rc, const mlx_array* pair);
char* mlxg_end_status(int rc);

// MLXG_CALL wraps one leaf call of mlx-c that writes its result to &res.
#define MLXG_CALL(call) \
  mlx_array res{};      \
  mlxg_lock();          \
  int rc_ = (call);     \
  return mlxg_finish(rc_, res)

// MLXG_CALL_ALL is the same for a call that gives several arrays.
#define MLXG_CALL_ALL(call)                      \
  mlx_vector_array res = mlx_vector_array_new(); \
  mlxg_lock();                                   \
  int rc_ = (call);                              \
  mlxg_results out_ = mlxg_end_vector(rc_, res); \
  mlxg_unlock();                                 \
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

int mlxg_elementwise(mlxg_patterns* patterns, mlxg_binary op, mlx_array* res, mlx_array a, mlx_array b, mlx_stream s);

// mlxg_complex and mlxg_complex_binary call op and, where the operands are complex, give the node
// gradients with the conjugate that MLX's lack.
typedef int (*mlxg_unary)(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlxg_complex(mlxg_unary op, mlx_array* res, mlx_array a, mlx_stream s);
int mlxg_complex_binary(mlxg_binary op, mlx_array* res, mlx_array a, mlx_array b, mlx_stream s);

}  // extern "C"

#endif
