package valuetest

import (
	"testing"

	"github.com/mlxgrad/mlxgrad/internal/testdevice"
)

var _ = testdevice.AllOnGPU()

func TestMain(m *testing.M) { testdevice.Main(m) }

func TestOnGPU(t *testing.T) { testdevice.RunOnGPU(t) }
