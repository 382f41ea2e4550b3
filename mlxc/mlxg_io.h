// The C side of files, of exported and imported functions and of pictures of graphs.
#ifndef MLXG_IO_H
#define MLXG_IO_H

#include "mlxg.h"

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

// Export, to a file. sizes holds the number of inputs of each of n traces, which follow
// one another in inputs; names those of the last inputs of the only trace.
char* mlxg_export_shapeless(uintptr_t id, const char* file, const uintptr_t* inputs, size_t n);
char* mlxg_export_traces(uintptr_t id, const char* file, const uintptr_t* inputs, const size_t* sizes, size_t n);
char* mlxg_export_named(
    uintptr_t id, const char* file, const uintptr_t* inputs, size_t n, const char** names, size_t n_names);

// Import. The last n_names of n arguments have names.
char* mlxg_import(const char* file, void** imported);
void mlxg_import_free(void* imported);
mlxg_results mlxg_import_call(void* imported, const uintptr_t* args, size_t n, const char** names, size_t n_names);

// mlxg_graph_text prints the graph behind outputs, as a text or for Graphviz. The first
// n_names arrays of named have names. The caller frees *text.
char* mlxg_graph_text(
    bool dot,
    const uintptr_t* outputs,
    size_t n,
    const uintptr_t* named,
    const char** names,
    size_t n_names,
    char** text,
    size_t* size);

#ifdef __cplusplus
}
#endif

#endif  // MLXG_IO_H
