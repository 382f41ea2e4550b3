// Loads libmlxg and connects package mlxc with it.
#ifndef MLXG_LOAD_H
#define MLXG_LOAD_H

#include "gen_table.h"

// mlxg_loaded are the functions of the loaded library, and mlxg_usable those that begin something: NULL after
// mlxg_shutdown. Both are read atomically, and NULL before the library is loaded.
extern const mlxg_table* mlxg_loaded;
extern const mlxg_table* mlxg_usable;
extern int32_t mlxg_releasable;

// mlxg_library_place adds a file that may be the library. It keeps path. mlxg_library_remedy sets the end of
// the errors, which tells how to set MLX up. It keeps text. Both must be called before mlxg_library_load.
void mlxg_library_place(const char* path);
void mlxg_library_remedy(const char* text);

// mlxg_library_load loads the library if it is not loaded, from the first place where a file is. It returns
// whether the library can be used. Each call tries again, unless the library was found and MLX could not be
// started, or mlxg_library_end was called.
bool mlxg_library_load(void);

// mlxg_library_end makes later loading fail. It returns whether the library is loaded.
bool mlxg_library_end(void);

// mlxg_library_symbol returns the address of a function of the loaded library, or NULL.
void* mlxg_library_symbol(const char* name);

// mlxg_library_error returns why mlxg_library_load failed last, a message that the caller frees.
char* mlxg_library_error(void);

#endif
