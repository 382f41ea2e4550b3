#include "metal_host.h"
// Applies a function to 1024 floats for each thread, 16 at a time.
 void custom_kernel_exp_loop(
  const float* x ,
  float* y ,
  uint thread_position_in_grid ) {
  for (uint i = 0; i < 1024; i += 16) {
    const uint at = thread_position_in_grid * 1024 + i;
    float held[16];
    for (int k = 0; k < 16; ++k) held[k] = x[at + k];
    for (int k = 0; k < 16; ++k) held[k] = FUNCTION held[k]);
    for (int k = 0; k < 16; ++k) y[at + k] = held[k];
  }
}
namespace { void mlxg_invoke(void* const* buffers, const mlxg::thread_position& p) {
 custom_kernel_exp_loop(static_cast<const float*>(buffers[0]), static_cast<float*>(buffers[1]), p.thread_position_in_grid.x); } }
extern "C" const mlxg::entry mlxgrad_entry = { "custom_kernel_exp_loop", 2, mlxg_invoke };
