package ops

import (
	"testing"

	"github.com/mlxgrad/mlxgrad/internal/testdevice"
)

func TestMain(m *testing.M) { testdevice.Main(m) }

// Each compiles few kernels, which take NVIDIA's compiler a second or more each.
func TestOnGPU(t *testing.T) {
	testdevice.RunOnGPU(t, "-test.run=^Test(AttentionByHand|AttentionOrder|AttentionOfLazyStarts|CrossEntropyByHand|CrossEntropyMean|"+
		"CrossEntropyOfExtremeRows|SoftmaxByHand|SoftmaxOfInfinities|EmbeddingOfNumbers|EmbeddingSparseGradientOfNumbers|"+
		"LinearCrossEntropyDoesNotOverflow|LinearCrossEntropyOfLogitsFarBelowZero|LinearCrossEntropyIgnoresWhatIgnoredRowsHold|"+
		"TransposeKeepsBits|RMSNormFromManyGoroutines|RMSNormOfTransposedAndStridedInputs|MemoryStaysFlatOverGradientSteps|"+
		".*WithoutElements|GradientIsExportedForCUDA|.*Beyond32Bits)$")
}
