// Loading of libmlxg.
#ifndef MLXG_LOAD_H
#define MLXG_LOAD_H

#include "gen_table.h"

// mlxg_loaded points to the functions of the loaded library. mlxg_usable is the same for functions that begin an
// operation: it is NULL after mlxg_shutdown. Both are NULL before the library is loaded, and are accessed atomically.
extern const mlxg_table* mlxg_loaded;
extern const mlxg_table* mlxg_usable;
// mlxg_releasable is the number of ids that MLX has released; see mlxg_go.
extern int32_t mlxg_releasable;

// mlxg_library_place adds a candidate path of the library's file. mlxg_library_remedy sets the end of error messages,
// which names the command that sets MLX up. Both keep their argument, which must not be freed. Both must be called
// before mlxg_library_load.
void mlxg_library_place(const char* path);
void mlxg_library_remedy(const char* text);

// mlxg_library_load loads the library from the first existing candidate unless it is loaded. It returns true if the
// library can be used. Each call tries again, unless MLX failed to start or mlxg_library_end was called. Any thread may
// call it.
bool mlxg_library_load(void);

// mlxg_library_end makes later calls of mlxg_library_load fail. It returns true if the library is loaded.
bool mlxg_library_end(void);

// mlxg_library_symbol returns the address of a function of the loaded library, or NULL.
void* mlxg_library_symbol(const char* name);

// mlxg_library_error returns the error of the last mlxg_library_load. The caller frees it.
char* mlxg_library_error(void);

#endif
