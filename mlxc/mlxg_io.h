// The C side of files, of imported functions and of pictures of graphs.
#ifndef MLXG_IO_H
#define MLXG_IO_H

#include "mlxg.h"

#ifndef MLXG_NOT_SET_UP

#ifdef __cplusplus
extern "C" {
#endif

// mlxg_source_new makes a source, an open file that lazy arrays read from, of a copy of
// fd. It returns an error message or NULL.
char* mlxg_source_new(int fd, void** source);
void mlxg_source_free(void* source);

// mlxg_load adds a node that reads an array, in row-major order and the machine's byte
// order, from a source.
mlxg_result mlxg_load(void* source, uint64_t offset, const int* shape, int ndim, int dtype);

// mlxg_gguf_arrays loads the arrays of these names from a GGUF file that was checked.
mlxg_results mlxg_gguf_arrays(const char* file, const char** names, size_t n);

#ifdef __cplusplus
}
#endif

#endif // MLXG_NOT_SET_UP
#endif // MLXG_IO_H
