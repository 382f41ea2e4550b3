package ops

import (
	"testing"

	"github.com/mlxgrad/mlxgrad/internal/testdevice"
)

func TestMain(m *testing.M) { testdevice.Main(m) }

// Each test that is registered compiles few kernels: NVIDIA's compiler takes a second or more for each.
func TestOnGPU(t *testing.T) { testdevice.RunOnGPU(t) }
