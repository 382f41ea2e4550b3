package bench

import (
	"testing"

	"github.com/mlxgrad/mlxgrad/internal/testdevice"
)

func TestMain(m *testing.M) { testdevice.Main(m) }

func TestOnGPU(t *testing.T) { testdevice.RunOnGPU(t) }
