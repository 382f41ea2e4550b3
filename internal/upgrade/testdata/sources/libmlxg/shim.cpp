#include "mlx/primitives.h"

namespace mx = mlx::core;

namespace {

class Ours : public mx::Unary {
 public:
  Ours() : mx::Unary(1) {}
  const char* name() const override { return "Ours"; }
};

struct Wrapped {
  mx::Gone gone;
};

} // namespace

int shim(mx::Device device) {
  Ours ours;
  ours.eval({}, *new std::vector<mx::array>);
  return device.unused + (device.kind == mx::Device::Kind::gpu);
}
