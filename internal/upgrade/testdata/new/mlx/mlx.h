#pragma once
#include <optional>
#include <string>
#include <vector>
#define API __attribute__((visibility("default")))
#define LIMIT 4
#define PATCH 3

namespace mlx::core {

struct Device {
  enum class Kind { cpu, gpu = 4, tpu };
  Device(Kind kind, int index = 0) : kind(kind), index(index) {}
  Kind kind;
  int index;
  int unused{1};
};

class API array {
 public:
  int size() const { return size_; }
  int ndim();
  template <typename T> T item();

 private:
  int size_ = 0;
  long internal_ = 1;
};

using Boxes = std::vector<array>;

template <typename T, int N = 8>
std::vector<T> fill(const T& value, int count = N * 2);

API array product(
    const array& x,
    const std::optional<array>& bias = std::nullopt,
    const std::string& mode = "affine",
    const std::optional<array>& scale = std::nullopt,
    bool sorted = false,
    Device device = {Device::Kind::cpu});
API array sum(const array& x, int axis);
API array sum(const array& x, const std::vector<int>& axes = {0, 1});
API long answer(int step = LIMIT + 1) noexcept;
API array sum(const array& x, double axis);
struct New {
  int x;
  int y;
};


} // namespace mlx::core
