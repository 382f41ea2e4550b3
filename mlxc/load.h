// Loads libmlxg and connects package mlxc with it.
#ifndef MLXG_LOAD_H
#define MLXG_LOAD_H

#include "gen_table.h"

// MLXG_REMEDY ends the errors of loading.
#define MLXG_REMEDY "run ./build.sh setup in the folder of mlxgrad's sources"

// mlxg_loaded are the functions of the loaded library. It is read atomically, and NULL before.
extern const mlxg_table* mlxg_loaded;
extern int32_t mlxg_releasable;

// mlxg_library_place adds a file that may be the library. It keeps path.
void mlxg_library_place(const char* path);

// mlxg_library_load loads the library if no call has before, from the first place where a file is. It returns
// false if that fails, and fails at every later call then.
bool mlxg_library_load(void);

// mlxg_library_symbol returns the address of a function of the loaded library, or NULL.
void* mlxg_library_symbol(const char* name);

// mlxg_library_error is why mlxg_library_load failed, a message that the caller frees.
char* mlxg_library_error(void);

#endif
