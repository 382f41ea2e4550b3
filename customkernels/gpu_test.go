package customkernels

import (
	"testing"

	"github.com/mlxgrad/mlxgrad/internal/testdevice"
)

func TestMain(m *testing.M) { testdevice.Main(m) }

func TestOnGPU(t *testing.T) {
	testdevice.RunOnGPU(t, "-test.run=^Test(ScaleInEveryDTypeAndSizeClass|LaunchIsLazyAndTakesStridedInputs|SeveralOutputsAndTables|"+
		"InitialValue|LaunchOfShaderThatIncludes|ThreadgroupArgumentsAndFunctionConstants|SmallDeviceInput.*|"+
		"ConstantStructurePassedToAHelper|LaunchesFromManyGoroutines|ColdLaunchesInsideAndOutsideATransform|EmptyLaunches|WrongLaunches)$")
}
