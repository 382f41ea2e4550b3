#include "load.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "_cgo_export.h"

enum { MAX_PLACES = 8 };

const mlxg_table* mlxg_loaded;
const mlxg_table* mlxg_usable;
int32_t mlxg_releasable;

static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;  // guards the variables below
static const char* places[MAX_PLACES];
static int place_count;

// ended is mlxg_go.ended.
static void ended(void) {
  __atomic_store_n(&mlxg_usable, NULL, __ATOMIC_RELEASE);
}

static mlxg_go go = {
    .call_closure = mlxgCallClosure,
    .call_custom = mlxgCallCustom,
    .call_jvp = mlxgCallJVP,
    .call_vmap = mlxgCallVmap,
    .releasable = &mlxg_releasable,
    .remedy = "",
    .ended = ended,
};
static void* library;    // the loaded library
static char* failure;    // why the last attempt failed
static bool is_started;  // mlxg_init was called; it cannot be called again
static bool is_ended;    // mlxg_library_end was called

void mlxg_library_place(const char* path) {
  if (place_count < MAX_PLACES) {
    places[place_count++] = path;
  }
}

void mlxg_library_remedy(const char* text) {
  go.remedy = text;
}

static void fail(const char* format, ...) {
  char text[4096];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  free(failure);
  failure = strdup(text);
}

// first_place returns the first candidate that exists, or NULL.
static const char* first_place(void) {
  for (int i = 0; i < place_count; i++) {
    if (access(places[i], F_OK) == 0) {
      return places[i];
    }
  }
  return NULL;
}

// connect loads and initializes the library and returns its functions. On an error it sets failure and returns NULL. It
// then unloads the library, except after an error of mlxg_init.
static const mlxg_table* connect(void) {
  const char* path = first_place();
  if (!path) {
    char list[3500] = "";
    for (int i = 0; i < place_count; i++) {
      size_t at = strlen(list);
      snprintf(list + at, sizeof list - at, "%s%s", i ? " and no " : "", places[i]);
    }
    fail("MLX is not set up, there is no %s: %s", list, go.remedy);
    return NULL;
  }
  // RTLD_NOW reports functions that MLX or mlx-c lacks. Otherwise the first call of one would end the process.
  void* found = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!found) {
    fail("MLX cannot be loaded: %s: %s", dlerror(), go.remedy);
    return NULL;
  }
  const mlxg_table* (*functions)(const char*) = (const mlxg_table* (*)(const char*))dlsym(found, "mlxg_functions");
  const mlxg_table* table = functions ? functions(MLXG_INTERFACE) : NULL;
  if (!table) {
    fail("%s is of another version of mlxgrad than this program: %s", path, go.remedy);
    dlclose(found);
    return NULL;
  }
  is_started = true;
  char* err = table->mlxg_init(&go);
  if (err) {
    fail("MLX could not be started: %s", err);
    free(err);
    return NULL;
  }
  library = found;
  return table;
}

bool mlxg_library_load(void) {
  pthread_mutex_lock(&loading);
  if (!mlxg_loaded && !is_started && !is_ended) {
    const mlxg_table* table = connect();
    __atomic_store_n(&mlxg_usable, table, __ATOMIC_RELEASE);
    __atomic_store_n(&mlxg_loaded, table, __ATOMIC_RELEASE);
  }
  bool usable = __atomic_load_n(&mlxg_usable, __ATOMIC_ACQUIRE) != NULL;
  pthread_mutex_unlock(&loading);
  return usable;
}

bool mlxg_library_end(void) {
  pthread_mutex_lock(&loading);
  is_ended = true;
  bool loaded = mlxg_loaded != NULL;
  pthread_mutex_unlock(&loading);
  return loaded;
}

void* mlxg_library_symbol(const char* name) {
  return dlsym(library, name);
}

char* mlxg_library_error(void) {
  pthread_mutex_lock(&loading);
  const char* why = failure ? failure : "MLX is loaded";
  char* text = strdup(is_ended ? MLXG_SHUT_DOWN : why);
  pthread_mutex_unlock(&loading);
  return text;
}
