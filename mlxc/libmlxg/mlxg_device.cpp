// Streams, devices, memory and GPUs.
#include <string.h>

#include <string>

#include "mlxg_internal.h"

namespace {

mlx_stream stream_or_current(void* stream) {
  return mlx_stream{stream ? stream : mlxg_real_stream()};
}

// copy_text stores a copy of a text in *to. The caller frees it. It returns an error message or NULL.
char* copy_text(const char* text, char** to) {
  *to = strdup(text);
  return *to ? nullptr : mlxg::error_text("out of memory");
}

// This copy_text copies a string of mlx-c, unless the status rc is an error, and frees the string of mlx-c.
char* copy_text(int rc, mlx_string text, char** to) {
  char* err = mlxg_end_status(rc);
  if (!err) {
    err = copy_text(mlx_string_data(text), to);
  }
  mlx_string_free(text);
  return err;
}

}  // namespace

extern "C" {

char* mlxg_stream_new(void** stream, int device) {
  mlx_device d = mlx_device_new_type(static_cast<mlx_device_type>(device), 0);
  mlxg_lock();  // the table of streams, which evaluations read, has no lock
  *stream = mlx_stream_new_thread_unsafe(d).ctx;
  char* err = mlxg_end_status(*stream ? 0 : 1);
  mlxg_unlock();
  mlx_device_free(d);
  return err;
}

char* mlxg_stream_text(void* stream, char** text) {
  mlx_string s = mlx_string_new();
  int rc = mlx_stream_tostring(&s, stream_or_current(stream));
  return copy_text(rc, s, text);
}

int mlxg_stream_index(void* stream) {
  int index = -1;
  mlx_stream_get_index(&index, stream_or_current(stream));
  return index;
}

int mlxg_stream_device(void* stream) {
  mlx_device d = mlx_device_new();
  mlx_device_type type = MLX_CPU;
  mlx_stream_get_device(&d, stream_or_current(stream));
  mlx_device_get_type(&type, d);
  mlx_device_free(d);
  return type;
}

char* mlxg_streams(char** text) {
  std::string names;
  mlx_vector_stream streams = mlx_vector_stream_new();
  mlxg_lock();
  char* err = mlxg_end_status(mlx_get_streams(&streams));
  mlxg_unlock();
  for (size_t i = 0; i < mlx_vector_stream_size(streams) && !err; i++) {
    mlx_stream s{};
    mlx_vector_stream_get(&s, streams, i);
    char* name = nullptr;
    err = mlxg_stream_text(s.ctx, &name);
    if (!err) {
      names += std::string(name) + "\n";
      free(name);
    }
    mlx_stream_free(s);
  }
  mlx_vector_stream_free(streams);
  return err ? err : copy_text(names.c_str(), text);
}

char* mlxg_device_count(int* count, int device) {
  return mlxg_end_status(mlx_device_count(count, static_cast<mlx_device_type>(device)));
}

char* mlxg_device_info(int device, int index, char** lines) {
  mlx_device d = mlx_device_new_type(static_cast<mlx_device_type>(device), index);
  mlx_device_info info = mlx_device_info_new();
  mlx_vector_string keys = mlx_vector_string_new();
  int rc = mlx_device_info_get(&info, d);
  if (rc == 0) {
    rc = mlx_device_info_get_keys(&keys, info);
  }
  char* err = mlxg_end_status(rc);
  std::string text;
  for (size_t i = 0; i < mlx_vector_string_size(keys) && !err; i++) {
    char* key = nullptr;
    mlx_vector_string_get(&key, keys, i);
    bool is_text = false;
    mlx_device_info_is_string(&is_text, info, key);
    if (is_text) {
      const char* value = nullptr;
      mlx_device_info_get_string(&value, info, key);
      text += std::string(key) + "\ttext\t" + value + "\n";
    } else {
      size_t value = 0;
      mlx_device_info_get_size(&value, info, key);
      text += std::string(key) + "\tnumber\t" + std::to_string(value) + "\n";
    }
  }
  mlx_vector_string_free(keys);
  mlx_device_info_free(info);
  mlx_device_free(d);
  return err ? err : copy_text(text.c_str(), lines);
}

size_t mlxg_active_memory(void) {
  size_t n = 0;
  mlx_get_active_memory(&n);
  return n;
}

size_t mlxg_peak_memory(void) {
  size_t n = 0;
  mlx_get_peak_memory(&n);
  return n;
}

void mlxg_reset_peak_memory(void) {
  mlx_reset_peak_memory();
}

size_t mlxg_cache_memory(void) {
  size_t n = 0;
  mlx_get_cache_memory(&n);
  return n;
}

void mlxg_clear_cache(void) {
  mlx_clear_cache();
}

size_t mlxg_memory_limit(void) {
  size_t n = 0;
  mlx_get_memory_limit(&n);
  return n;
}

char* mlxg_set_limit(int which, size_t* previous, size_t limit) {
  auto set = mlx_set_wired_limit;
  if (which == MLXG_LIMIT_MEMORY) {
    set = mlx_set_memory_limit;
  } else if (which == MLXG_LIMIT_CACHE) {
    set = mlx_set_cache_limit;
  }
  return mlxg_end_status(set(previous, limit));
}

bool mlxg_metal_available(void) {
  bool yes = false;
  return mlx_metal_is_available(&yes) == 0 && yes;
}

bool mlxg_cuda_available(void) {
  bool yes = false;
  return mlx_cuda_is_available(&yes) == 0 && yes;
}

char* mlxg_metal_library(char** path) {
  mlx_string s = mlx_string_new();
  int rc = mlx_metal_get_metallib_path(&s);
  return copy_text(rc, s, path);
}

char* mlxg_set_metal_library(const char* path) {
  return mlxg_end_status(mlx_metal_set_metallib_path(path));
}

char* mlxg_start_metal_capture(const char* path) {
  mlxg::guard g;
  return mlxg_end_status(mlx_metal_start_capture(path));
}

char* mlxg_stop_metal_capture(void) {
  mlxg::guard g;
  return mlxg_end_status(mlx_metal_stop_capture());
}

}  // extern "C"
