// Names inside of Apple's library that shaders use.
#ifndef METAL_INTERNALS_H
#define METAL_INTERNALS_H

#include "metal_traits.h"

namespace metal {

// Whether simdgroup functions take a T: numbers of at most 32 bits and vectors of them.
template <class T>
struct __is_valid_simdgroup_type : false_type {};
template <class T>
  requires(detail::lanes<T> > 0)
struct __is_valid_simdgroup_type<T> : bool_constant<sizeof(detail::scalar_of<T>) <= 4> {};

}  // namespace metal

#endif
