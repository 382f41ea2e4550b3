// Static objects that threads may use while others are destroyed.
#ifndef MLXG_IMMORTAL_H
#define MLXG_IMMORTAL_H

namespace mlxg {

// An immortal is a static object that is never destroyed: MLX's threads and goroutines may run while the C
// library ends the process. It is not on the heap, since a library of another version is loaded and unloaded.
template <typename T>
union immortal {
  T value;
  immortal() : value() {}
  ~immortal() {}
};

}  // namespace mlxg

#endif
