// Metal's matrices: matrix<T, C, R> of one thread, and simdgroup_matrix.
#ifndef METAL_MATRIX_H
#define METAL_MATRIX_H

#include "metal_math.h"
#include "metal_multiply.h"

namespace metal {

// ---- matrices of a thread ----

namespace detail {
// A type without values. It disables the constructors of matrices with another number of columns.
template <int>
struct none {
  none() = delete;
};
}  // namespace detail

// A matrix of C columns and R rows, in column-major order.
template <class T, int C, int R>
struct matrix {
  vec<T, R> columns[C];

  matrix() = default;
  MLXG_INLINE explicit matrix(T diagonal) {
    for (int c = 0; c < C; ++c) {
      for (int r = 0; r < R; ++r) {
        columns[c].data[r] = c == r ? diagonal : T(0);
      }
    }
  }
  // From one vector for each column. The constructors are not templates, so that a column may be a braced list.
  template <int N>
  using column = conditional_t<C == N, vec<T, R>, detail::none<N>>;
  MLXG_INLINE constexpr matrix(const column<2>& a, const column<2>& b) : columns{a, b} {}
  MLXG_INLINE constexpr matrix(const column<3>& a, const column<3>& b, const column<3>& c) : columns{a, b, c} {}
  MLXG_INLINE constexpr matrix(const column<4>& a, const column<4>& b, const column<4>& c, const column<4>& d)
      : columns{a, b, c, d} {}
  // From all elements, in column-major order.
  template <class... A, class = enable_if_t<sizeof...(A) == C * R && (... && (detail::lanes<A> == 1))>, class = void>
  MLXG_INLINE matrix(const A&... element) {
    int i = 0;
    ((columns[i / R].data[i % R] = T(element), ++i), ...);
  }
  template <class U>
  MLXG_INLINE explicit matrix(const matrix<U, C, R>& m) {
    for (int c = 0; c < C; ++c) {
      columns[c] = vec<T, R>(m.columns[c]);
    }
  }
  MLXG_INLINE vec<T, R>& operator[](int c) { return columns[detail::element<C>(c)]; }
  MLXG_INLINE const vec<T, R>& operator[](int c) const { return columns[detail::element<C>(c)]; }

#define MLXG_ELEMENTWISE(OP)                                                \
  MLXG_INLINE friend matrix operator OP(const matrix& a, const matrix& b) { \
    matrix m;                                                               \
    for (int c = 0; c < C; ++c)                                             \
      m.columns[c] = a.columns[c] OP b.columns[c];                          \
    return m;                                                               \
  }                                                                         \
  MLXG_INLINE matrix& operator OP## = (const matrix& b) {                   \
    return *this = *this OP b;                                              \
  }
  MLXG_ELEMENTWISE(+)
  MLXG_ELEMENTWISE(-)
#undef MLXG_ELEMENTWISE
  MLXG_INLINE friend matrix operator-(const matrix& a) { return a * T(-1); }
  template <class B>
  MLXG_INLINE matrix& operator*=(const B& b) {
    return *this = *this * b;
  }
  MLXG_INLINE friend matrix operator*(const matrix& a, T s) {
    matrix m;
    for (int c = 0; c < C; ++c) {
      m.columns[c] = a.columns[c] * s;
    }
    return m;
  }
  MLXG_INLINE friend matrix operator*(T s, const matrix& a) { return a * s; }
  MLXG_INLINE friend vec<T, R> operator*(const matrix& a, const vec<T, C>& v) {
    vec<T, R> r = a.columns[0] * v.data[0];
    for (int c = 1; c < C; ++c) {
      r += a.columns[c] * v.data[c];
    }
    return r;
  }
  MLXG_INLINE friend vec<T, C> operator*(const vec<T, R>& v, const matrix& a) {
    vec<T, C> r;
    for (int c = 0; c < C; ++c) {
      r.data[c] = dot(v, a.columns[c]);
    }
    return r;
  }
};
template <class T, int K, int R, int C>
MLXG_INLINE matrix<T, C, R> operator*(const matrix<T, K, R>& a, const matrix<T, C, K>& b) {
  matrix<T, C, R> m;
  for (int c = 0; c < C; ++c) {
    m.columns[c] = a * b.columns[c];
  }
  return m;
}
template <class T, int C, int R>
MLXG_INLINE matrix<T, R, C> transpose(const matrix<T, C, R>& a) {
  matrix<T, R, C> m;
  for (int c = 0; c < C; ++c) {
    for (int r = 0; r < R; ++r) {
      m.columns[r].data[c] = a.columns[c].data[r];
    }
  }
  return m;
}
template <class T>
MLXG_INLINE T determinant(const matrix<T, 2, 2>& m) {
  return m[0][0] * m[1][1] - m[1][0] * m[0][1];
}
template <class T>
MLXG_INLINE T determinant(const matrix<T, 3, 3>& m) {
  return dot(m[0], cross(m[1], m[2]));
}
template <class T>
MLXG_INLINE T determinant(const matrix<T, 4, 4>& m) {
  T sum = T(0);
  for (int c = 0; c < 4; ++c) {
    matrix<T, 3, 3> minor;
    for (int j = 0, k = 0; j < 4; ++j) {
      if (j != c) {
        minor[k++] = vec<T, 3>(m[j][1], m[j][2], m[j][3]);
      }
    }
    const T term = m[c][0] * determinant(minor);
    sum = c % 2 == 0 ? sum + term : sum - term;
  }
  return sum;
}
#define MLXG_MATRIX_NAMES(T)      \
  using T##2x2 = matrix<T, 2, 2>; \
  using T##2x3 = matrix<T, 2, 3>; \
  using T##2x4 = matrix<T, 2, 4>; \
  using T##3x2 = matrix<T, 3, 2>; \
  using T##3x3 = matrix<T, 3, 3>; \
  using T##3x4 = matrix<T, 3, 4>; \
  using T##4x2 = matrix<T, 4, 2>; \
  using T##4x3 = matrix<T, 4, 3>; \
  using T##4x4 = matrix<T, 4, 4>;
MLXG_MATRIX_NAMES(float)
MLXG_MATRIX_NAMES(half)
MLXG_MATRIX_NAMES(bfloat)
#undef MLXG_MATRIX_NAMES

}  // namespace metal

namespace metal {

// ---- matrices of a simdgroup ----

template <class T, int Cols, int Rows>
struct simdgroup_matrix {
  static_assert(Cols == 8 && Rows == 8, "simdgroup matrices are 8 by 8");
  static_assert(is_floating_point_v<T>, "simdgroup matrices are of half, bfloat or float");
  using storage_type = vec<T, 2>;
  storage_type elements;

  simdgroup_matrix() = default;
  // A diagonal matrix.
  MLXG_INLINE explicit simdgroup_matrix(T diagonal) {
    const unsigned lane = mlxg::matrix_lane<T>();
    for (unsigned i = 0; i < 2; ++i) {
      elements.data[i] = mlxg::matrix_row(lane) == mlxg::matrix_column(lane) + i ? diagonal : T(0);
    }
  }
  MLXG_INLINE storage_type& thread_elements() { return elements; }
  MLXG_INLINE const storage_type& thread_elements() const { return elements; }
};
using simdgroup_half8x8 = simdgroup_matrix<half, 8, 8>;
using simdgroup_bfloat8x8 = simdgroup_matrix<bfloat, 8, 8>;
using simdgroup_float8x8 = simdgroup_matrix<float, 8, 8>;

template <class T, int Cols, int Rows = Cols>
MLXG_INLINE simdgroup_matrix<T, Cols, Rows> make_filled_simdgroup_matrix(T value) {
  simdgroup_matrix<T, Cols, Rows> m;
  m.elements = vec<T, 2>(value);
  return m;
}

namespace detail {
MLXG_INLINE ulong matrix_at(unsigned lane, unsigned i, ulong per_row, ulong2 origin, bool transposed) {
  const ulong row = mlxg::matrix_row(lane), column = mlxg::matrix_column(lane) + i;
  return transposed ? (origin.y + column) * per_row + origin.x + row : (origin.y + row) * per_row + origin.x + column;
}
}  // namespace detail

// Each lane loads or stores its own two elements. Neither synchronizes.
template <class T, class U>
MLXG_INLINE void simdgroup_load(
    simdgroup_matrix<T, 8, 8>& d,
    const U* from,
    ulong per_row = 8,
    ulong2 origin = ulong2(0),
    bool transposed = false) {
  const unsigned lane = mlxg::matrix_lane<T>();
  for (unsigned i = 0; i < 2; ++i) {
    d.elements.data[i] = from[detail::matrix_at(lane, i, per_row, origin, transposed)];
  }
}
template <class T, class U>
MLXG_INLINE void simdgroup_store(
    const simdgroup_matrix<T, 8, 8>& m, U* to, ulong per_row = 8, ulong2 origin = ulong2(0), bool transposed = false) {
  const unsigned lane = mlxg::matrix_lane<T>();
  for (unsigned i = 0; i < 2; ++i) {
    to[detail::matrix_at(lane, i, per_row, origin, transposed)] = m.elements.data[i];
  }
}

template <class D, class A, class B, class C>
MLXG_INLINE void simdgroup_multiply_accumulate(
    simdgroup_matrix<D, 8, 8>& d,
    const simdgroup_matrix<A, 8, 8>& a,
    const simdgroup_matrix<B, 8, 8>& b,
    const simdgroup_matrix<C, 8, 8>& c,
    MLXG_LINE) {
  mlxg::multiply_arguments v;
  for (unsigned i = 0; i < 2; ++i) {
    v.a[i] = float(a.elements.data[i]);
    v.b[i] = float(b.elements.data[i]);
    v.c[i] = float(c.elements.data[i]);
  }
  mlxg::multiply_accumulate(v, line);
  for (unsigned i = 0; i < 2; ++i) {
    d.elements.data[i] = D(v.c[i]);
  }
}
template <class D, class A, class B>
MLXG_INLINE void simdgroup_multiply(
    simdgroup_matrix<D, 8, 8>& d, const simdgroup_matrix<A, 8, 8>& a, const simdgroup_matrix<B, 8, 8>& b, MLXG_LINE) {
  simdgroup_multiply_accumulate(d, a, b, make_filled_simdgroup_matrix<float, 8, 8>(0.0f), line);
}
template <class T>
MLXG_INLINE simdgroup_matrix<T, 8, 8> operator*(
    const simdgroup_matrix<T, 8, 8>& a, const simdgroup_matrix<T, 8, 8>& b) {
  simdgroup_matrix<T, 8, 8> d;
  simdgroup_multiply(d, a, b);
  return d;
}

}  // namespace metal

#endif
