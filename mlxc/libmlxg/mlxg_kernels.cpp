// Custom Metal and CUDA kernels.
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "mlx/fast.h"
#include "mlx/mlx.h"
#include "mlxg_internal.h"
#include "mlxg_launch.h"

namespace mx = mlx::core;

namespace {

using launcher = mx::fast::CustomKernelFunction;

// kernel is a custom kernel of MLX.
struct kernel {
  launcher launch;
  launcher exported;    // used for launches in exported graphs; its text must not refer to files of this process
  uint32_t values = 0;  // a bit for each input that `launch` passes by value
};

// texts splits n zero-terminated strings.
std::vector<std::string> texts(const char* p, size_t n) {
  std::vector<std::string> list;
  for (size_t i = 0; i < n; i++) {
    list.emplace_back(p);
    p += list.back().size() + 1;
  }
  return list;
}

void* kernel_or_error(char** err, auto&& make) {
  *err = nullptr;
  try {
    return new kernel(make());
  } catch (std::exception& e) {
    *err = mlxg::error_text(e.what());
    return nullptr;
  }
}

}  // namespace

extern "C" {

void* mlxg_metal_kernel_new(
    const char* name,
    const char* inputs,
    size_t n_inputs,
    const char* outputs,
    size_t n_outputs,
    const char* body,
    const char* header,
    bool contiguous,
    bool atomic_outputs,
    char** err) {
  return kernel_or_error(err, [&] {
    auto f = mx::fast::metal_kernel(
        name, texts(inputs, n_inputs), texts(outputs, n_outputs), body, header, contiguous, atomic_outputs);
    return kernel{f, f};
  });
}

void* mlxg_cuda_kernel_new(
    const char* name,
    const char* inputs,
    size_t n_inputs,
    const char* outputs,
    size_t n_outputs,
    const char* body,
    const char* header,
    const char* exported_header,
    const char* function,
    const void* code,
    size_t code_size,
    uint32_t values,
    bool contiguous,
    bool aligned,
    bool early,
    int shared_memory,
    char** err) {
  return kernel_or_error(err, [&] {
    auto with = [&](const char* h) {
      return mx::fast::cuda_kernel(
          name, texts(inputs, n_inputs), texts(outputs, n_outputs), body, h, contiguous, shared_memory);
    };
    if (code_size == 0) {
      return kernel{with(header), with(exported_header)};
    }
    mlxg::restore_signal_stacks();
    std::string text(static_cast<const char*>(code), code_size);
    auto launch = mlxg::launcher_of({function, std::move(text), contiguous, aligned, early, shared_memory});
    return launch ? kernel{launch, with(exported_header), values} : kernel{with(header), with(exported_header)};
  });
}

void mlxg_kernel_free(void* k) {
  delete static_cast<kernel*>(k);
}

mlxg_results mlxg_kernel_apply(void* k, const uintptr_t* inputs, size_t n, const int* numbers, const char* names) {
  mlxg::guard g;
  return mlxg::with_results([&] {
    auto next = [&] { return *numbers++; };
    auto three = [&] {
      int x = next(), y = next(), z = next();
      return std::tuple(x, y, z);
    };
    auto grid = three(), threadgroup = three();
    std::vector<mx::Shape> shapes;
    std::vector<mx::Dtype> dtypes;
    for (int outputs = next(); outputs > 0; outputs--) {
      dtypes.push_back(mlxg::dtype_of(next()));
      int ndim = next();
      shapes.emplace_back(numbers, numbers + ndim);
      numbers += ndim;
    }
    std::vector<std::pair<std::string, mx::fast::TemplateArg>> arguments;
    for (int left = next(); left > 0; left--) {
      std::string name = names;
      names += name.size() + 1;
      int kind = next(), value = next();
      switch (kind) {
        case MLXG_TEMPLATE_DTYPE:
          arguments.emplace_back(std::move(name), mlxg::dtype_of(value));
          break;
        case MLXG_TEMPLATE_INT:
          arguments.emplace_back(std::move(name), value);
          break;
        default:
          arguments.emplace_back(std::move(name), value != 0);
      }
    }
    std::optional<float> init;
    if (next()) {
      init = std::bit_cast<float>(next());
    }
    auto& made = *static_cast<kernel*>(k);
    auto by_value = mlxg::exporting() ? 0 : made.values;
    std::vector<uintptr_t> by_pointer;
    for (size_t i = 0; i < n; i++) {
      if (i < 32 && by_value >> i & 1) {
        arguments.emplace_back("", next());
      } else {
        by_pointer.push_back(inputs[i]);
      }
    }
    return (mlxg::exporting() ? made.exported : made.launch)(
        mlxg::arrays_of(by_pointer.data(), by_pointer.size()), shapes, dtypes, grid, threadgroup, arguments, init,
        false, *static_cast<mx::Stream*>(mlxg_stream().ctx));
  });
}

}  // extern "C"
