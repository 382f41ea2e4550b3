package ops

import (
	"testing"

	"github.com/mlxgrad/mlxgrad/internal/testdevice"
)

func TestMain(m *testing.M) { testdevice.Main(m) }

// Registered tests compile few kernels, because NVIDIA's compiler takes a second or more for each.
func TestOnGPU(t *testing.T) { testdevice.RunOnGPU(t) }
