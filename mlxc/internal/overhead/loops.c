//go:build mlxheaders

#include "loops.h"

#include "mlx/c/mlx.h"

static mlx_array ones(const int* shape, size_t ndim, mlx_stream s) {
  mlx_array a = mlx_array_new();
  mlx_ones(&a, shape, ndim, MLX_FLOAT32, s);
  mlx_array_eval(a);
  return a;
}

int overhead_add(size_t n) {
  mlx_stream s = mlx_default_cpu_stream_new();
  const int shape[] = {8};
  mlx_array a = ones(shape, 1, s), b = ones(shape, 1, s);
  int rc = 0;
  for (size_t i = 0; i < n && rc == 0; i++) {
    mlx_array sum = mlx_array_new();
    rc = mlx_add(&sum, a, b, s);
    mlx_array_free(sum);
  }
  mlx_array_free(a);
  mlx_array_free(b);
  mlx_stream_free(s);
  return rc;
}

int overhead_chain(size_t n, size_t ops) {
  mlx_stream s = mlx_default_cpu_stream_new();
  const int shape[] = {8};
  mlx_array a = ones(shape, 1, s);
  int rc = 0;
  for (size_t i = 0; i < n && rc == 0; i++) {
    mlx_array y = mlx_array_new();
    rc = mlx_array_set(&y, a);
    for (size_t k = 0; k < ops && rc == 0; k++) {
      mlx_array next = mlx_array_new();
      rc = mlx_add(&next, y, a, s);
      mlx_array_free(y);
      y = next;
    }
    if (rc == 0) {
      rc = mlx_array_eval(y);
    }
    mlx_array_free(y);
  }
  mlx_array_free(a);
  mlx_stream_free(s);
  return rc;
}

// norm_sum returns the sum of RMSNorm(x, w). overhead_step differentiates it.
static int norm_sum(mlx_vector_array* out, const mlx_vector_array in) {
  mlx_stream s = mlx_default_cpu_stream_new();
  mlx_array x = mlx_array_new(), w = mlx_array_new(), y = mlx_array_new(), sum = mlx_array_new();
  int rc = mlx_vector_array_get(&x, in, 0);
  rc = rc ? rc : mlx_vector_array_get(&w, in, 1);
  rc = rc ? rc : mlx_fast_rms_norm(&y, x, w, 1e-5f, s);
  rc = rc ? rc : mlx_sum(&sum, y, false, s);
  if (rc == 0) {
    *out = mlx_vector_array_new_value(sum);
  }
  mlx_array_free(x);
  mlx_array_free(w);
  mlx_array_free(y);
  mlx_array_free(sum);
  mlx_stream_free(s);
  return rc;
}

int overhead_step(size_t n, bool eval) {
  mlx_stream s = mlx_default_cpu_stream_new();
  mlx_set_default_stream(s);
  const int shape[] = {8, 64}, argnums[] = {0, 1};
  mlx_array args[] = {ones(shape, 2, s), ones(shape + 1, 1, s)};
  mlx_vector_array in = mlx_vector_array_new_data(args, 2);
  mlx_closure f = mlx_closure_new_func(norm_sum);
  mlx_closure_value_and_grad step = mlx_closure_value_and_grad_new();
  int rc = mlx_value_and_grad(&step, f, argnums, 2);
  for (size_t i = 0; i < n && rc == 0; i++) {
    mlx_vector_array values = mlx_vector_array_new(), grads = mlx_vector_array_new();
    rc = mlx_closure_value_and_grad_apply(&values, &grads, step, in);
    if (rc == 0 && eval) {
      for (size_t k = 0; k < mlx_vector_array_size(grads); k++) {
        mlx_array g = mlx_array_new();
        mlx_vector_array_get(&g, grads, k);
        mlx_vector_array_append_value(values, g);
        mlx_array_free(g);
      }
      rc = mlx_eval(values);
    }
    mlx_vector_array_free(values);
    mlx_vector_array_free(grads);
  }
  mlx_closure_value_and_grad_free(step);
  mlx_closure_free(f);
  mlx_vector_array_free(in);
  mlx_array_free(args[0]);
  mlx_array_free(args[1]);
  mlx_stream_free(s);
  return rc;
}
