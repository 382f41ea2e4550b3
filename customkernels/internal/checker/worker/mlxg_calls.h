// The interface between a shader that is compiled for the checker and the worker.
#ifndef MLXG_CALLS_H
#define MLXG_CALLS_H

#include "mlxg_abi.h"

extern "C" {
// flags is a metal::mem_flags, order a metal::memory_order and scope a metal::thread_scope. line is a line of the
// shader.
void mlxg_checked_threadgroup_barrier(uint32_t flags, uint32_t line);
void mlxg_checked_simdgroup_barrier(uint32_t flags, uint32_t line);
void mlxg_checked_fence(uint32_t flags, uint32_t order, uint32_t scope);
void mlxg_checked_rendezvous(void (*complete)(mlxg::simdgroup&, uint32_t), uint32_t kind, uint32_t line);

// Gives the next rendezvous an argument that must be equal in all active lanes of each group of `width` lanes.
void mlxg_checked_uniform(uint32_t argument, uint32_t width);

// Registers a threadgroup variable before main, and returns its index in mlxg_checked_address. Sizes are in bytes.
// A variable with `zero` begins as zeros, any other is uninitialized.
uint32_t mlxg_checked_threadgroup(uint32_t id, uint32_t size, uint32_t element, uint32_t cell, uint32_t zero);
extern void* mlxg_checked_address[];

// Reports an unsigned index that wraps around.
void mlxg_checked_wrap();

// The bytes with which local variables without a value begin.
extern unsigned char mlxg_checked_fill;
}

namespace mlxg::checker {
// The kinds of SIMD-group operations. They differ in the lanes that must be active.
enum operation : uint32_t { is_reduction, is_quad_reduction, is_shuffle, is_matrix, is_vote, is_barrier };
}  // namespace mlxg::checker

#endif
