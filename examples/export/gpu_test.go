package main

import (
	"testing"

	"github.com/mlxgrad/mlxgrad/internal/testdevice"
)

var _ = testdevice.AlsoOnGPU(TestExportedStepRunsWithKernels)

func TestMain(m *testing.M) { testdevice.Main(m) }

func TestOnGPU(t *testing.T) { testdevice.RunOnGPU(t) }
