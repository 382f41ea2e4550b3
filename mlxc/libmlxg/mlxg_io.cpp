// Arrays that read their elements from a file when they are evaluated.
#include "mlxg_io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "mlxg_primitive.h"

namespace mx = mlx::core;

namespace {

// source owns a file descriptor, which the nodes that read from it share. The file may be renamed or unlinked. A change
// of its size or modification time is an error.
class source {
 public:
  explicit source(int fd) : fd_(fcntl(fd, F_DUPFD_CLOEXEC, 0)) {
    if (fd_ < 0 || fstat(fd_, &state_) != 0) {
      std::string what = std::strerror(errno);
      close();
      throw std::runtime_error(what);
    }
  }
  ~source() { close(); }
  source(const source&) = delete;

  // read fills p with n bytes from offset on, or throws. Any thread may call it.
  void read(char* p, size_t n, uint64_t offset) const {
    struct stat now;
    if (fstat(fd_, &now) != 0) {
      throw std::runtime_error(std::strerror(errno));
    }
    if (now.st_size != state_.st_size || changed(now)) {
      throw std::runtime_error("the file was changed after it was opened");
    }
    while (n > 0) {
      ssize_t got = pread(fd_, p, n, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) {
        continue;
      }
      if (got < 0) {
        throw std::runtime_error(std::strerror(errno));
      }
      if (got == 0) {
        throw std::runtime_error("the file is truncated");
      }
      p += got;
      n -= static_cast<size_t>(got);
      offset += static_cast<uint64_t>(got);
    }
  }

 private:
  bool changed(const struct stat& now) const {
#ifdef __APPLE__
    auto &a = now.st_mtimespec, &b = state_.st_mtimespec;
#else
    auto &a = now.st_mtim, &b = state_.st_mtim;
#endif
    return a.tv_sec != b.tv_sec || a.tv_nsec != b.tv_nsec;
  }

  void close() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }

  int fd_;
  struct stat state_;
};

// load reads one array. It reads on the evaluating thread, so that an error reaches exactly the evaluations that need
// the array. MLX's Load discards read errors on the CPU and leaves the array undefined, and its file reader accepts
// short reads (fault npy-truncated).
class load : public mlxg::opaque {
 public:
  load(mx::Stream s, std::shared_ptr<source> from, uint64_t offset)
      : opaque(s, "load"), from_(std::move(from)), offset_(offset) {}

  bool is_captured() override { return true; }

  void eval_cpu(const std::vector<mx::array>&, std::vector<mx::array>& outputs) override {
    auto self = outputs[0].primitive_ptr();
    try {
      mlxg::allocate(outputs);
      from_->read(outputs[0].data<char>(), outputs[0].nbytes(), offset_);
    } catch (std::exception& e) {
      mlxg::fail(outputs, stream(), name_, e.what());
    }
  }

 private:
  std::shared_ptr<source> from_;
  uint64_t offset_;
};

std::shared_ptr<source>& source_of(void* s) {
  return *static_cast<std::shared_ptr<source>*>(s);
}

}  // namespace

extern "C" {

char* mlxg_source_new(int fd, void** s) {
  *s = nullptr;
  try {
    *s = new std::shared_ptr<source>(std::make_shared<source>(fd));
    return nullptr;
  } catch (std::exception& e) {
    return mlxg::error_text(e.what());
  }
}

void mlxg_source_free(void* s) {
  delete &source_of(s);
}

mlxg_result mlxg_load(void* s, uint64_t offset, const int* shape, int ndim, int dtype) {
  mlxg::guard g;
  mlx_array res = mlx_array_new();
  try {
    // Files are read on the CPU, independent of the current stream.
    auto stream = *static_cast<mx::Stream*>(mlxg_device_stream(0));
    auto node = std::make_shared<load>(stream, source_of(s), offset);
    mx::array a(mx::Shape(shape, shape + ndim), mlxg::dtype_of(dtype), node, mlxg::arrays{});
    int rc = mlx_array_set(&res, mlx_array{&a});
    return mlxg_end(rc, res);
  } catch (std::exception& e) {
    mlx_array_free(res);
    return {nullptr, mlxg::error_text(e.what()), 0};
  }
}

mlxg_results mlxg_gguf_arrays(const char* file, const char** names, size_t n) {
  mlx_io_gguf gguf = mlx_io_gguf_new();
  mlx_vector_array arrays = mlx_vector_array_new();
  // No lock: MLX reads the file before mlx_load_gguf returns, and no other thread has the new arrays.
  int rc = mlx_load_gguf(&gguf, file, mlx_stream{mlxg_device_stream(0)});
  for (size_t i = 0; i < n && rc == 0; i++) {
    mlx_array a = mlx_array_new();
    rc = mlx_io_gguf_get_array(&a, gguf, names[i]);
    bool found = rc == 0;
    if (found) {
      rc = mlx_vector_array_append_value(arrays, a);
    }
    mlx_array_free(a);
    if (!found) {  // mlx-c sets no message
      mlx_io_gguf_free(gguf);
      mlx_vector_array_free(arrays);
      return mlxg::no_results(mlxg::error_text("MLX's reader did not return the expected arrays"));
    }
  }
  mlx_io_gguf_free(gguf);
  return mlxg_end_vector(rc, arrays);
}

}  // extern "C"
