#pragma once
#include <optional>
#include <string>
#include <vector>
#define API __attribute__((visibility("default")))
#define LIMIT 4
#define PATCH 2

namespace mlx::core {

struct Device {
  enum class Kind { cpu, gpu = 4 };
  Device(Kind kind, int index = 0) : kind(kind), index(index) {}
  Kind kind;
  int index;
  long unused{0};
};

class API array {
 public:
  int size() const { return size_; }
  int ndim() const;
  template <typename T> T item();

 private:
  friend array gone(const array& x);
  int size_ = 0;
  int internal_ = 0;
};

using Boxes = std::vector<array>;

template <typename T, int N = 4>
std::vector<T> fill(const T& value, int count = N * 2);

API array product(
    const array& x,
    const std::optional<array>& bias = std::nullopt,
    const std::string& mode = "affine",
    bool sorted = false,
    Device device = {Device::Kind::cpu});
API array sum(const array& x, int axis);
API array sum(const array& x, const std::vector<int>& axes = {0, 1});
API array gone(const array& x);
API int answer(int step = LIMIT);

struct Gone {
  int x;
};

} // namespace mlx::core
