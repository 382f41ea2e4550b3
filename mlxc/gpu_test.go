package mlxc_test

import (
	"strings"
	"testing"

	"github.com/mlxgrad/mlxgrad/internal/testdevice"
)

func TestMain(m *testing.M) { testdevice.Main(m) }

func TestOnGPU(t *testing.T) {
	testdevice.RunOnGPU(t, "-test.skip=^("+strings.Join([]string{
		// Computes float64, or what MLX has for CPUs alone.
		"TestEveryDTypeSurvivesTheWayThroughMLX", "TestElementwiseOfLikeOperands.*", "TestWrongLinearAlgebra", "TestWrongOperations",
		".*RoundTrip", "TestGradients", "TestGradientsOf.*", "TestLinearAlgebraWithoutGradients", "TestVmapOf(Smooth)?Operations.*",
		"TestVmapOfEveryOperand", "TestJVPAgreesWithVJPAndDifferences", "TestView", "FuzzDTypes", "TestLoadedPair",
		"TestLUFactor.*", "TestProductsWithoutElements", "TestOperationsWithoutElements", "TestDivisorsThatAreViews",
		// Reads computed ids, which a CUDA device has in its own memory.
		"TestIDs.*", "TestWindowsOutOfRange",
		// Compares with what Go computes, as near as MLX's backend for CPUs does.
		"TestValues", "TestBorders.*", "TestPromotion", "TestDivMod", "TestConvTranspose", "TestRest", "TestAlong", "TestFull",
		// A GPU is given all before it has come to the first, keeps what it reads until then, and is done at another time.
		"TestReadingDoesNotQueue", "TestCheckpointGivesUpMemory", "TestMemoryLimits",
	}, "|")+")$")
}
