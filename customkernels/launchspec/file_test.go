package launchspec

import (
	"math"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/internal/npy"
)

// elements returns the bytes of numbers.
func elements(d sanitizer.DType, values ...float64) (data []byte) {
	for _, v := range values {
		data = d.Append(data, v)
	}
	return data
}

// npyFile returns a file with elements of NumPy's type kind.
func npyFile(kind string, d sanitizer.DType, shape []int, values ...float64) *fstest.MapFile {
	return &fstest.MapFile{Data: append(npy.FormatHeader(kind, d.Size(), shape), elements(d, values...)...)}
}

// text returns a file with a header as other programs write it.
func text(header string, data ...byte) *fstest.MapFile {
	file := append([]byte("\x93NUMPY"), 1, 0, byte(len(header)), 0)
	return &fstest.MapFile{Data: append(append(file, header...), data...)}
}

func TestFiles(t *testing.T) {
	files := fstest.MapFS{
		"shaders/x.npy":   npyFile("f4", sanitizer.Float32, []int{2, 2}, 1, -2, 3, 4),
		"shaders/x.bin":   {Data: elements(sanitizer.Float32, 1, -2, 3, 4)},
		"shaders/x.txt":   {Data: []byte("1 -2\n3\t4\n")},
		"shaders/big.npy": text("{'descr': '>f4', 'fortran_order': False, 'shape': (4,)}", 63, 128, 0, 0, 192, 0, 0, 0, 64, 64, 0, 0, 64, 128, 0, 0),
		"shaders/f8.npy":  npyFile("f8", sanitizer.Float64, []int{4}, 2, -4, 6, 8),
		"shaders/i1.npy":  npyFile("i1", sanitizer.Int8, []int{4}, 2, -4, 6, 8),
		"shaders/y.bin":   {Data: elements(sanitizer.Float32, 2, -4, 6, 8)},
		"shaders/one.txt": {Data: []byte("7\n")},
	}
	const launch = "scale grid=4 threadgroup=4 T=float32 factor=float32:2 x=float32[4]:@"
	for _, name := range []string{"x.npy", "x.bin", "x.txt", "big.npy"} {
		s := oneLaunch(t, launch+name+" y=out:float32[4]")
		_, err := scaleArguments(t, s)
		require.ErrorContains(t, err, "the elements of x are in a file: call Spec.ReadFiles first")
		require.NoError(t, s.ReadFiles(files, "shaders"), name)
		_, err = scaleArguments(t, s)
		require.NoError(t, err)
		x := s.Inputs[slices.IndexFunc(s.Inputs, func(in Input) bool { return in.Name == "x" })]
		require.Equal(t, []float64{1, -2, 3, 4}, x.Array(1).Values(), name)
	}
	for name, want := range map[string][]float64{
		"f8.npy": {2, -4, 6, 8}, "i1.npy": {2, -4, 6, 8}, "y.bin": {2, -4, 6, 8}, "x.txt": {1, -2, 3, 4}, "one.txt": {7, 7, 7, 7},
	} {
		s := oneLaunch(t, launch+"x.npy y=inout:float32[4]:@x.bin:expect=@"+name)
		require.NoError(t, s.ReadFiles(files, "shaders"), name)
		require.Equal(t, []float64{1, -2, 3, 4}, s.InOut[0].Array(1).Values())
		l, err := scaleArguments(t, s)
		require.NoError(t, err)
		require.Equal(t, want, l.Expected["y"].Values, name)
	}
}

func TestUnusableFiles(t *testing.T) {
	nan := npyFile("f2", sanitizer.Float16, []int{4}, math.NaN(), 0, 0, 0)
	files := fstest.MapFS{
		"f2.npy": nan, "empty.npy": {}, "zip.npy": {Data: []byte("PK\x03\x04....")},
		"short.npy":   {Data: npy.FormatHeader("f4", 4, []int{4})},
		"long.npy":    npyFile("f4", sanitizer.Float32, []int{4}, 1, 2, 3, 4, 5),
		"shape.npy":   npyFile("f4", sanitizer.Float32, []int{5}, 1, 2, 3, 4, 5),
		"huge.npy":    text("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 4)}"),
		"object.npy":  text("{'descr': '|O', 'fortran_order': False, 'shape': (4,)}"),
		"fortran.npy": text("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}"),
		"short.bin":   {Data: make([]byte, 15)}, "long.bin": {Data: make([]byte, 17)},
		"bad.txt": {Data: []byte("1 x 3 4")}, "few.txt": {Data: []byte("1 2 3")},
	}
	for name, part := range map[string]string{
		"f2.npy": "its dtype is float16; the description says float32", "empty.npy": "it ends within its header",
		"zip.npy": "it is not a .npy file", "short.npy": "it ends after 0 bytes; 4 elements of float32 have 16",
		"long.npy": "it has more bytes than the 16 of 4 elements of float32", "shape.npy": "its shape is [5]; the description has 4 elements",
		"huge.npy": "the description has 4 elements", "object.npy": "its type is O, which MLX lacks",
		"fortran.npy": "Fortran's order", "short.bin": "it ends after 15 bytes", "long.bin": "it has more bytes than the 16",
		"bad.txt": `"x" is not a number`, "few.txt": "3 numbers for 4 elements", "none.npy": "file does not exist",
	} {
		s := oneLaunch(t, "scale grid=4 threadgroup=4 T=float32 factor=float32:2 y=out:float32[4] x=float32[4]:@"+name)
		err := s.ReadFiles(files, ".")
		require.ErrorContains(t, err, "line 1: launch description: elements of x: "+name+": ", name)
		require.ErrorContains(t, err, part)
	}
	s := oneLaunch(t, "grid=4 threadgroup=4 x=uint8[4]:@few.bin y=out:float32[4]:expect=@shape.npy")
	files["few.bin"] = &fstest.MapFile{Data: []byte{1, 2, 3, 4}}
	require.ErrorContains(t, s.ReadFiles(files, "."), "expected values of y: shape.npy: its shape is [5]")
	s = oneLaunch(t, "grid=4 threadgroup=4 x=uint8[4]:@big.txt")
	files["big.txt"] = &fstest.MapFile{Data: []byte("1 2 3 256")}
	require.ErrorContains(t, s.ReadFiles(files, "."), "256 does not fit uint8")
}
