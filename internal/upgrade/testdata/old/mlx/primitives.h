#pragma once
#include "mlx/mlx.h"
#define NAMED(X) \
  const char* name() const override { return #X; }

namespace mlx::core {

class Primitive {
 public:
  virtual ~Primitive() = default;
  virtual const char* name() const = 0;
  virtual void eval(const std::vector<array>& inputs, std::vector<array>& outputs) {}

 private:
  virtual int hidden() { return 0; }
};

class Unary : public Primitive {
 public:
  NAMED(Unary)
  explicit Unary(int axis) : axis_(axis) {}

 protected:
  int axis_;
};

} // namespace mlx::core
