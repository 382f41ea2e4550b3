package mlxio_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/mlxio"
)

func TestNPYRoundTrip(t *testing.T) {
	testdevice.CPUOnly(t, "computes float64, or an operation that MLX has for CPUs only")
	arrays, values := oneOfEach()
	path := filepath.Join(t.TempDir(), "x.npy")
	for name, a := range arrays {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, mlxio.SaveNPY(path, a))
			lazy, err := mlxio.LoadNPY(path)
			require.NoError(t, err)
			requireElements(t, values[name], []int{2, 3}, lazy)
			var b bytes.Buffer
			require.NoError(t, mlxio.WriteNPY(&b, a))
			require.Zero(t, (b.Len()-a.NBytes())%64, "the elements are aligned")
			now, err := mlxio.ReadNPY(iotest.HalfReader(&b))
			require.NoError(t, err)
			requireElements(t, values[name], []int{2, 3}, now)
		})
	}
	for _, shape := range [][]int{{}, {1}, {0}, {3, 0, 2}, {1, 2, 3, 4}} {
		a := mlxc.Zeros(mlxc.Int32, shape...)
		require.NoError(t, mlxio.SaveNPY(path, a))
		b, err := mlxio.LoadNPY(path)
		require.NoError(t, err)
		requireElements(t, mlxtest.Read[int32](t, a), shape, b)
	}
}

func npy(header string, data ...byte) []byte {
	file := append([]byte("\x93NUMPY"), 1, 0)
	file = binary.LittleEndian.AppendUint16(file, uint16(len(header)))
	return append(append(file, header...), data...)
}

// Headers as NumPy and others write them.
func TestNPYByHand(t *testing.T) {
	header := "{'descr':'|u1','fortran_order':False,'shape':(1L,)}    \n"
	v2 := binary.LittleEndian.AppendUint32([]byte("\x93NUMPY\x02\x00"), uint32(len(header)))
	v2 = append(append(v2, header...), 7)
	for name, c := range map[string]struct {
		file  []byte
		shape []int
		want  any
	}{
		"NumPy": {
			npy("{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }  \n", 1, 0, 2, 0),
			[]int{2},
			[]int16{1, 2},
		},
		"MLX": {
			npy("{'descr': '<i2', 'fortran_order': False, 'shape': (1, 2, )}\n", 1, 0, 2, 0),
			[]int{1, 2},
			[]int16{1, 2},
		},
		"other way": {npy(`{"shape": (), "fortran_order": True, "descr": "|b1"}`, 9), []int{}, []bool{true}},
		"big-endian": {npy("{'descr': '>c8', 'fortran_order': False, 'shape': (1,)}\n", 0x3f, 0x80, 0, 0, 0x40, 0, 0,
			0), []int{1}, []complex64{1 + 2i}},
		"columns": {
			npy("{'descr': '|i1', 'fortran_order': True, 'shape': (2, 3)}\n", 0, 1, 2, 3, 4, 5),
			[]int{2, 3},
			[]int8{0, 2, 4, 1, 3, 5},
		},
		"version 2": {v2, []int{1}, []uint8{7}},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := mlxio.ReadNPY(bytes.NewReader(c.file))
			require.NoError(t, err)
			requireElements(t, c.want, c.shape, a)
			path := filepath.Join(t.TempDir(), "x.npy")
			require.NoError(t, os.WriteFile(path, c.file, 0o600))
			a, err = mlxio.LoadNPY(path)
			require.NoError(t, err)
			requireElements(t, c.want, c.shape, a)
		})
	}
}

func TestMalformedNPY(t *testing.T) {
	for _, c := range []struct {
		file []byte
		want string
	}{
		{nil, "truncated"},
		{[]byte("PK\x03\x04....."), "not a .npy"},
		{[]byte("\x93NUMPY\x09\x00\x00\x00"), "version is 9.0"},
		{[]byte("\x93NUMPY\x02\x00\xff\xff\xff\xff{"), "the header has"},
		{[]byte("\x93NUMPY\x01\x00\xff\xff{"), "truncated"},
		{npy(""), "begin with {"},
		{npy("{"), "a string is missing"},
		{npy("{}"), "must have the keys"},
		{npy("{'descr"), "not terminated"},
		{npy("{'descr'}"), "no colon"},
		{npy("{'descr': '', 'fortran_order': False, 'shape': ()}"), "no dtype"},
		{npy("{'descr': '|O', 'fortran_order': False, 'shape': ()}"), "no dtype"},
		{npy("{'descr': '<<f4', 'fortran_order': False, 'shape': ()}"), "no dtype"},
		{npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}"), "a simple type"},
		{npy("{'descr': '<f4', 'fortran_order': 1, 'shape': ()}"), "True or False"},
		{npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}"), "non-negative integers"},
		{npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1)}", 0, 0, 0, 0), "tuple"},
		{npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2147483648,)}"), "2³¹−1"},
		{npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}"), "non-negative integers"},
		{npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2147483647, 2147483647, 2147483647)}"), "address space"},
		{npy("{'descr': '<f4', 'fortran_order': False, 'shape': (" + strings.Repeat("1, ", 65) + ")}"), "64 axes"},
		{npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}"), "is not unique"},
		{npy("{'descr': '<f4', 'fortran_order': False, 'shape': ()}}"), "follows"},
		{npy("{'descr': '<f4', 'fortran_order': False, 'shape': (), 'x': 1}"), "is unknown"},
		{
			npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000,)}", 1, 2, 3),
			"truncated|header describes",
		},
	} {
		t.Run(c.want, func(t *testing.T) {
			requireSmallAllocations(t)
			_, err := mlxio.ReadNPY(bytes.NewReader(c.file))
			require.Error(t, err)
			require.Regexp(t, c.want, err.Error())
			path := filepath.Join(t.TempDir(), "x")
			require.NoError(t, os.WriteFile(path, c.file, 0o600))
			_, err = mlxio.LoadNPY(path)
			require.Error(t, err)
			require.Regexp(t, c.want, err.Error())
		})
	}
}
