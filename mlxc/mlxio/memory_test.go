package mlxio_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/mlxio"
)

// countingBytes is a reader of bytes that count from 0 to 250, repeatedly.
type countingBytes struct{ at int }

func (c *countingBytes) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte((c.at + i) % 251)
	}
	c.at += len(p)
	return len(p), nil
}

// A stream's elements are read directly into MLX's memory, without a copy in Go's memory. A large array takes little
// more than its own size.
func TestReadingTakesNoMemoryForCopies(t *testing.T) {
	const size = 96 << 20
	header := fmt.Appendf(nil, `{"a":{"dtype":"U8","shape":[2,%d],"data_offsets":[0,%d]}}`, size/2, size)
	prefix := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	stream := io.MultiReader(bytes.NewReader(prefix), bytes.NewReader(header), io.LimitReader(&countingBytes{}, size))

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	mlxc.ResetPeakMemory()
	active := mlxc.ActiveMemory()
	arrays, _, err := mlxio.ReadSafetensors(stream)
	require.NoError(t, err)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20))
	require.Less(t, mlxc.PeakMemory()-active, size+size/2)

	defer arrays["a"].Free()
	for _, at := range []int{0, 250, 32<<20 - 1, 32 << 20, size/2 - 1} {
		for row := range 2 {
			element := arrays["a"].Index(mlxc.At(row), mlxc.At(at))
			require.Equal(t, []uint8{byte((row*size/2 + at) % 251)}, mlxtest.Read[uint8](t, element))
		}
	}
}
