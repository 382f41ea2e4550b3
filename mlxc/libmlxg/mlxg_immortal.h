// Static objects without destruction.
#ifndef MLXG_IMMORTAL_H
#define MLXG_IMMORTAL_H

namespace mlxg {

// An immortal is a static object that is never destroyed, because MLX's threads and goroutines may run while the C
// library ends the process. It does not allocate: a library that fails the version check is unloaded, and heap objects
// would leak.
template <typename T>
union immortal {
  T value;
  immortal() : value() {}
  ~immortal() {}
};

}  // namespace mlxg

#endif
