// The calls between a shader that is compiled for the checker and the worker.
#ifndef MLXG_CALLS_H
#define MLXG_CALLS_H

#include "mlxg_abi.h"

extern "C" {
// Flags are metal::mem_flags, an order is a metal::memory_order, a scope a metal::thread_scope.
void mlxg_checked_threadgroup_barrier(uint32_t flags, uint32_t line);
void mlxg_checked_simdgroup_barrier(uint32_t flags, uint32_t line);
void mlxg_checked_fence(uint32_t flags, uint32_t order, uint32_t scope);
void mlxg_checked_rendezvous(void (*complete)(mlxg::simdgroup&, uint32_t), uint32_t kind, uint32_t line);

// Announces a threadgroup variable while the program starts, and returns where in
// mlxg_checked_address it will find its place.
uint32_t mlxg_checked_threadgroup(uint32_t id, uint32_t size, uint32_t element, uint32_t cell);
extern void* mlxg_checked_address[];
}

namespace mlxg::checker {
// The kinds of operations that differ in what they ask of the lanes.
enum operation : uint32_t { is_reduction, is_quad_reduction, is_shuffle, is_matrix, is_vote, is_barrier };
}  // namespace mlxg::checker

#endif
