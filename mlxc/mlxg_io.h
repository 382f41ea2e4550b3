// Functions of libmlxg for files, exported and imported functions, and printing of graphs.
#ifndef MLXG_IO_H
#define MLXG_IO_H

#include "mlxg.h"

#ifdef __cplusplus
extern "C" {
#endif

// mlxg_source_new opens a source, from which lazy arrays read their elements. It duplicates fd. It returns an error
// message, which the caller frees, or NULL. mlxg_source_free closes the source; arrays that are not evaluated keep the
// file open.
char* mlxg_source_new(int fd, void** source);
void mlxg_source_free(void* source);

// mlxg_load adds a node that reads an array from a source, in row-major order and the machine's byte order.
mlxg_result mlxg_load(void* source, uint64_t offset, const int* shape, int ndim, int dtype);

// mlxg_gguf_arrays reads the named arrays of a GGUF file with MLX's reader, which trusts the file.
mlxg_results mlxg_gguf_arrays(const char* file, const char** names, size_t n);

// Export to a file. sizes holds the number of inputs of each of the n traces, whose inputs are concatenated in inputs.
// names are the names of the last n_names inputs.
char* mlxg_export_shapeless(uintptr_t id, const char* file, const uintptr_t* inputs, size_t n);
char* mlxg_export_traces(uintptr_t id, const char* file, const uintptr_t* inputs, const size_t* sizes, size_t n);
char* mlxg_export_named(
    uintptr_t id, const char* file, const uintptr_t* inputs, size_t n, const char** names, size_t n_names);

// Import. names are the names of the last n_names arguments.
char* mlxg_import(const char* file, void** imported);
void mlxg_import_free(void* imported);
mlxg_results mlxg_import_call(void* imported, const uintptr_t* args, size_t n, const char** names, size_t n_names);

// mlxg_graph_text prints the graph behind outputs as text, or in the DOT language. names are the names of the n_names
// arrays of named. The caller frees *text.
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
