#include "load.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "_cgo_export.h"

enum { MOST_PLACES = 8 };

const mlxg_table* mlxg_loaded;
int32_t mlxg_releasable;

static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
static const char* places[MOST_PLACES];
static int place_count;
static void* library;
static char* failure; // why loading failed

void mlxg_library_place(const char* path) {
  if (place_count < MOST_PLACES) places[place_count++] = path;
}

static void fail(const char* format, ...) {
  char text[4096];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  failure = strdup(text);
}

// first_place returns the first place where a file is, or NULL.
static const char* first_place(void) {
  for (int i = 0; i < place_count; i++) {
    if (access(places[i], F_OK) == 0) return places[i];
  }
  return NULL;
}

// connect returns the functions of the library, started, or NULL and sets failure.
static const mlxg_table* connect(void) {
  static const mlxg_go go = {
      .call_closure = mlxgCallClosure,
      .call_custom = mlxgCallCustom,
      .call_jvp = mlxgCallJVP,
      .call_vmap = mlxgCallVmap,
      .releasable = &mlxg_releasable,
  };
  const char* path = first_place();
  if (!path) {
    char list[3500] = "";
    for (int i = 0; i < place_count; i++) {
      size_t at = strlen(list);
      snprintf(list + at, sizeof list - at, "%s%s", i ? " and no " : "", places[i]);
    }
    fail("MLX is not set up, there is no %s: " MLXG_REMEDY, list);
    return NULL;
  }
  // RTLD_NOW finds functions that are missing from MLX or mlx-c here. Otherwise the first call of one
  // would end the process.
  library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fail("MLX cannot be loaded: %s: " MLXG_REMEDY, dlerror());
    return NULL;
  }
  const mlxg_table* (*functions)(const char*) = (const mlxg_table* (*)(const char*))dlsym(library, "mlxg_functions");
  const mlxg_table* table = functions ? functions(MLXG_INTERFACE) : NULL;
  if (!table) {
    fail("%s is of another version of mlxgrad than this program: " MLXG_REMEDY, path);
    return NULL;
  }
  char* err = table->mlxg_init(&go);
  if (err) {
    fail("MLX could not be started: %s", err);
    free(err);
    return NULL;
  }
  return table;
}

bool mlxg_library_load(void) {
  pthread_mutex_lock(&loading);
  if (!mlxg_loaded && !failure) {
    const mlxg_table* table = connect();
    __atomic_store_n(&mlxg_loaded, table, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&loading);
  return mlxg_loaded != NULL;
}

void* mlxg_library_symbol(const char* name) {
  return dlsym(library, name);
}

char* mlxg_library_error(void) {
  return strdup(failure ? failure : "MLX is loaded");
}
