package mlxio_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/mlxio"
)

var ggufMetadata = map[string]any{
	"general.architecture": "llama", "general.alignment": uint32(64),
	"a.u8": uint8(200), "a.i8": int8(-7), "a.u16": uint16(60000), "a.i16": int16(-300),
	"a.u32": uint32(math.MaxUint32), "a.i32": int32(math.MinInt32), "a.u64": uint64(math.MaxUint64),
	"a.i64": int64(math.MinInt64), "a.f32": float32(0.1), "a.f64": 0.1, "a.bool": true, "a.empty": "",
	"s.text": []string{"", "é", "c"}, "s.none": []string{}, "s.u8": []uint8{1, 2}, "s.i8": []int8{-1},
	"s.u16": []uint16{1}, "s.i16": []int16{-1}, "s.u32": []uint32{1}, "s.i32": []int32{}, "s.u64": []uint64{1},
	"s.i64": []int64{-1}, "s.f32": []float32{0.5, -2}, "s.f64": []float64{0.1, 0.2}, "s.bool": []bool{true, false},
}

func TestGGUFRoundTrip(t *testing.T) {
	testdevice.CPUOnly(t, "computes float64, or an operation that MLX has for CPUs only")
	all, values := oneOfEach()
	arrays := named{"scalar": mlxc.Scalar(int32(7)), "empty": mlxc.Zeros(mlxc.Float32, 0, 3)}
	for _, name := range []string{"int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"} {
		arrays[name] = all[name]
	}
	check := func(t *testing.T, got named, metadata map[string]any, err error) {
		require.NoError(t, err)
		require.Equal(t, ggufMetadata, metadata)
		require.Len(t, got, len(arrays))
		for name, a := range arrays {
			if want, ok := values[name]; ok {
				requireElements(t, want, []int{2, 3}, got[name])
			} else {
				requireElements(t, mlxtest.Elements(t, a), a.Shape(), got[name])
			}
		}
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "x.gguf")
	require.NoError(t, mlxio.SaveGGUF(path, arrays, ggufMetadata))
	mlxtest.RequireFiles(t, dir, "x.gguf")
	got, metadata, err := mlxio.LoadGGUF(path)
	require.False(t, got["float32"].IsReady(), "it is lazy")
	check(t, got, metadata, err)

	var b bytes.Buffer
	require.NoError(t, mlxio.WriteGGUF(&b, arrays, ggufMetadata))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, data, b.Bytes(), "equal arrays give equal bytes")
	got, metadata, err = mlxio.ReadGGUF(&b)
	check(t, got, metadata, err)

	b.Reset()
	for _, d := range []string{"bool", "uint8", "complex"} {
		require.ErrorContains(t, mlxio.WriteGGUF(&b, named{d: all[d]}, nil), "AsType")
	}
	for _, v := range []any{nil, 1, uint(1), []int{1}, []any{}, [][]string{}, struct{}{}} {
		require.ErrorContains(t, mlxio.WriteGGUF(&b, nil, map[string]any{"a": v}), `"a"`)
	}
	require.ErrorContains(t, mlxio.WriteGGUF(&b, nil, map[string]any{"general.alignment": uint32(12)}), "alignment")
	require.ErrorContains(t, mlxio.WriteGGUF(&b, named{"a": mlxc.Zeros(mlxc.Int8, 1, 1, 1, 1, 1, 1, 1, 1, 1)}, nil),
		"axes")
	require.ErrorContains(t, mlxio.WriteGGUF(&b, named{"\xff": mlxc.Zeros(mlxc.Int8)}, nil), "UTF-8")
	require.Zero(t, b.Len())
}

// ggufFile builds files by hand.
type ggufFile struct{ b []byte }

func gguf(tensors, values int) *ggufFile {
	f := &ggufFile{[]byte("GGUF")}
	return f.u32(3).u64(uint64(tensors)).u64(uint64(values))
}

func (f *ggufFile) u32(n uint32) *ggufFile {
	f.b = binary.LittleEndian.AppendUint32(f.b, n)
	return f
}

func (f *ggufFile) u64(n ...uint64) *ggufFile {
	for _, n := range n {
		f.b = binary.LittleEndian.AppendUint64(f.b, n)
	}
	return f
}

func (f *ggufFile) text(s string) *ggufFile {
	f.u64(uint64(len(s)))
	return f.data([]byte(s)...)
}

func (f *ggufFile) data(b ...byte) *ggufFile {
	f.b = append(f.b, b...)
	return f
}

func (f *ggufFile) tensor(name string, kind uint32, offset uint64, dims ...uint64) *ggufFile {
	return f.text(name).u32(uint32(len(dims))).u64(dims...).u32(kind).u64(offset)
}

func (f *ggufFile) pad() *ggufFile {
	for len(f.b)%32 != 0 {
		f.b = append(f.b, 0)
	}
	return f
}

func half(v float32) []byte {
	return binary.LittleEndian.AppendUint16(nil, float16.Fromfloat32(v).Bits())
}

// nibbles returns the 32 numbers from 0 to 15 of a block as Q4_0 stores them: number i in the low half of byte i,
// number i+16 in its high half.
func nibbles(q func(i int) byte) []byte {
	b := make([]byte, 16)
	for i := range b {
		b[i] = q(i) | q(i+16)<<4
	}
	return b
}

// The test builds the blocks of each type from known numbers. The arrays that MLX unpacks must represent the same
// numbers: weight·scale + bias, in groups of 32.
func TestGGUFOfQuantizedTensors(t *testing.T) {
	const rows, width = 2, 512
	q4 := func(row, i int) byte { return byte((i*7 + row*3 + i/32) % 16) }
	f := gguf(7, 0)
	sizes := map[uint32]int{2: 18, 3: 20, 8: 34, 12: 144, 10: 84, 14: 210}
	blocks := map[uint32]int{2: 32, 3: 32, 8: 32, 12: 256, 10: 256, 14: 256}
	var at uint64
	kinds := []uint32{2, 3, 8, 12, 10, 14}
	names := []string{"q4_0.weight", "q4_1.weight", "q8_0.weight", "q4_k.weight", "q2_k.weight", "q6_k"}
	for i, kind := range kinds {
		f.tensor(names[i], kind, at, width, rows)
		at += uint64(rows * width / blocks[kind] * sizes[kind])
		at = (at + 31) / 32 * 32
	}
	f.tensor("plain", 0, at, 2)
	f.pad()
	want := map[string][]float32{}
	add := func(name string, v float32) { want[name] = append(want[name], v) }
	scale := func(block int) float32 { return float32(block%5+1) / 8 }
	for k, kind := range kinds {
		for row := range rows {
			for block := range width / blocks[kind] {
				d := scale(block)
				at := func(i int) int { return block*blocks[kind] + i }
				switch kind {
				case 2: // w = d·(q−8)
					f.data(half(d)...).data(nibbles(func(i int) byte { return q4(row, at(i)) })...)
					for i := range 32 {
						add(names[k], d*(float32(q4(row, at(i)))-8))
					}
				case 3: // w = d·q + m
					f.data(half(d)...).data(half(-d * 3)...).data(nibbles(func(i int) byte {
						return q4(row,
							at(i))
					})...)
					for i := range 32 {
						add(names[k], d*float32(q4(row, at(i)))-d*3)
					}
				case 8: // w = d·q, q signed
					f.data(half(d)...)
					for i := range 32 {
						q := int8(i*8 - 128 + row)
						f.data(byte(q))
						add(names[k], d*float32(q))
					}
				case 12: // w = d·scale·q − dmin·min, eight scales and mins of six bits
					f.data(half(d)...).data(half(d / 2)...)
					var s, m [8]byte
					for j := range 8 {
						s[j], m[j] = byte(j*8+row), byte(63-j*7)
					}
					packed := make([]byte, 12)
					for j := range 4 {
						packed[j] = s[j] | s[j+4]>>4<<6
						packed[j+4] = m[j] | m[j+4]>>4<<6
						packed[j+8] = s[j+4]&15 | m[j+4]&15<<4
					}
					f.data(packed...)
					for j := 0; j < 256; j += 64 {
						for i := range 32 {
							f.data(q4(row, at(j+i)) | q4(row, at(j+32+i))<<4)
						}
					}
					for i := range 256 {
						add(names[k], d*float32(s[i/32])*float32(q4(row, at(i)))-d/2*float32(m[i/32]))
					}
				case 10: // w = d·scale·q − dmin·min, sixteen scales and mins of four bits
					scales := make([]byte, 16)
					for j := range scales {
						scales[j] = byte(j) | byte(15-j)<<4
					}
					f.data(scales...)
					q2 := func(i int) byte { return byte((i*5 + i/16 + row) % 4) }
					for half := 0; half < 256; half += 128 {
						for i := range 32 {
							f.data(q2(half+i) | q2(half+32+i)<<2 | q2(half+64+i)<<4 | q2(half+96+i)<<6)
						}
					}
					f.data(half(d)...).data(half(d / 2)...)
					for i := range 256 {
						s := scales[i/16]
						add(names[k], d*float32(s&15)*float32(q2(i))-d/2*float32(s>>4))
					}
				case 14: // w = d·scale·(q−32), sixteen scales of eight bits
					q6 := func(i int) byte { return byte((i*11 + row) % 64) }
					low, high := make([]byte, 128), make([]byte, 64)
					for half := range 2 {
						for i := range 32 {
							q := func(j int) byte { return q6(half*128 + j*32 + i) }
							low[half*64+i] = q(0)&15 | q(2)&15<<4
							low[half*64+32+i] = q(1)&15 | q(3)&15<<4
							high[half*32+i] = q(0)>>4 | q(1)>>4<<2 | q(2)>>4<<4 | q(3)>>4<<6
						}
					}
					f.data(low...).data(high...)
					for j := range 16 {
						f.data(byte(int8(j - 8)))
					}
					f.data(half(d)...)
					for i := range 256 {
						add(names[k], d*float32(i/16-8)*(float32(q6(i))-32))
					}
				}
			}
		}
		f.pad()
	}
	f.data(0, 0, 0x80, 0x3f, 0, 0, 0, 0x40)
	path := filepath.Join(t.TempDir(), "x.gguf")
	require.NoError(t, os.WriteFile(path, f.b, 0o400)) // read-only, as models often are
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	lazy, metadata, err := mlxio.LoadGGUF(path)
	require.NoError(t, err)
	require.Empty(t, metadata)
	streamed, _, err := mlxio.ReadGGUF(bytes.NewReader(f.b))
	require.NoError(t, err)
	mlxtest.RequireFiles(t, temporary)
	for _, got := range []named{lazy, streamed} {
		require.Len(t, got, 4*3+2+1)
		requireElements(t, []float32{1, 2}, []int{2}, got["plain"])
		for i, name := range names {
			bits := 4
			switch kinds[i] {
			case 8:
				bits = 8
			case 10, 14:
				require.Equal(t, mlxc.Float16, got[name].DType())
				require.Equal(t, []int{rows, width}, got[name].Shape())
				for k, v := range mlxtest.Read[float16.Float16](t, got[name]) {
					require.Equal(t, float16.Fromfloat32(want[name][k]), v, "%s %d", name, k)
				}
				continue
			}
			stem := strings.TrimSuffix(name, ".weight")
			scales, biases := mlxtest.Read[float32](t,
				got[stem+".scales"].AsType(mlxc.Float32)), mlxtest.Read[float32](t, got[stem+".biases"].AsType(mlxc.Float32))
			words := mlxtest.Read[uint32](t, got[name])
			require.Equal(t, []int{rows, width * bits / 32}, got[name].Shape())
			require.Equal(t, []int{rows, width / 32}, got[stem+".scales"].Shape())
			var w []float32
			for i := range rows * width {
				q := words[i*bits/32] >> (i * bits % 32) & (1<<bits - 1)
				w = append(w, float32(q)*scales[i/32]+biases[i/32])
			}
			for k := range w {
				require.Equal(t, want[name][k], w[k], "%s %d", name, k)
			}
		}
	}
}

func TestGGUFEmptyTensorBeyondTheEnd(t *testing.T) {
	for _, kind := range []uint32{0, 2, 14} {
		data := gguf(1, 0).tensor("t.weight", kind, 1<<20, 0).pad().b
		path := filepath.Join(t.TempDir(), "x")
		require.NoError(t, os.WriteFile(path, data, 0o600))
		lazy, _, err := mlxio.LoadGGUF(path)
		require.NoError(t, err)
		read, _, err := mlxio.ReadGGUF(bytes.NewReader(data))
		require.NoError(t, err)
		require.Equal(t, []int{0}, lazy["t.weight"].Shape())
		require.Equal(t, []int{0}, read["t.weight"].Shape())
		require.NoError(t, mlxc.Eval(lazy["t.weight"]))
	}
}

func TestMalformedGGUF(t *testing.T) {
	key := func(kind uint32) *ggufFile { return gguf(0, 1).text("k").u32(kind) }
	for name, c := range map[string]struct {
		file *ggufFile
		want string
	}{
		"empty file":        {&ggufFile{}, "truncated"},
		"another format":    {&ggufFile{[]byte("PK\x03\x04........................")}, "not a GGUF file"},
		"version is 1":      {&ggufFile{[]byte("GGUF\x01\x00\x00\x00")}, "version is 1"},
		"big-endian":        {&ggufFile{[]byte("GGUF\x00\x00\x00\x03")}, "little-endian"},
		"many values":       {gguf(0, math.MaxInt), "truncated"},
		"many tensors":      {gguf(math.MaxInt, 0), "truncated"},
		"long key":          {gguf(0, 1).u64(1 << 40), "a name has"},
		"key not UTF-8":     {gguf(0, 1).text("\xff").u32(7).data(1), "UTF-8"},
		"long text":         {key(8).u64(math.MaxUint64), "length of"},
		"long text, cut":    {key(8).u64(1 << 40), `the metadata "k": the file is truncated`},
		"unknown type":      {key(13).u64(0), "type 13"},
		"huge type":         {key(math.MaxUint32).u64(0), "type 4294967295"},
		"array of arrays":   {key(9).u32(9).u64(1), "arrays of arrays"},
		"array of type 99":  {key(9).u32(99).u64(1), "type 99"},
		"long array":        {key(9).u32(10).u64(1 << 61), "elements"},
		"long array, cut":   {key(9).u32(0).u64(1 << 40), `the metadata "k": the file is truncated`},
		"long texts":        {key(9).u32(8).u64(math.MaxUint64), "truncated"},
		"bool of 2":         {key(7).data(2), "bool"},
		"value twice":       {gguf(0, 2).text("k").u32(0).data(1).text("k").u32(0).data(1), "is not unique"},
		"alignment 0":       {gguf(0, 1).text("general.alignment").u32(4).u32(0), "alignment"},
		"alignment of text": {gguf(0, 1).text("general.alignment").u32(8).text("x"), "alignment"},
		"huge alignment":    {gguf(0, 1).text("general.alignment").u32(4).u32(0xfffffff8), "alignment"},
		"many axes":         {gguf(1, 0).text("t").u32(math.MaxUint32), "axes"},
		"long axis":         {gguf(1, 0).tensor("t", 0, 0, 1<<31).pad(), "2³¹−1"},
		"overflow":          {gguf(1, 0).tensor("t", 0, 0, 1<<30, 1<<30, 1<<30).pad(), "address space"},
		"unknown elements":  {gguf(1, 0).tensor("t", 6, 0, 32).pad(), "type 6"},
		"part of a block":   {gguf(1, 0).tensor("t", 2, 0, 16, 2).pad().data(make([]byte, 64)...), "blocks of 32"},
		"block of a scalar": {gguf(1, 0).tensor("t", 2, 0).pad().data(make([]byte, 64)...), "blocks of 32"},
		"not aligned":       {gguf(1, 0).tensor("t", 0, 4, 1).pad().data(make([]byte, 64)...), "alignment"},
		"far away":          {gguf(1, 0).tensor("t", 0, 1<<62, 1).pad(), "offset"},
		"beyond the end":    {gguf(1, 0).tensor("t", 0, 1<<40, 1).pad(), "unexpected EOF"},
		"truncated":         {gguf(1, 0).tensor("t", 0, 0, 1<<30).pad().data(1, 2, 3), "unexpected EOF"},
		"quantized, cut":    {gguf(1, 0).tensor("t", 2, 0, 1<<20).pad().data(1, 2, 3), "unexpected EOF"},
		"overlap": {
			gguf(2, 0).tensor("t", 0, 0, 16).tensor("u", 0, 32, 1).pad().data(make([]byte, 64)...),
			"before the end of the preceding ones",
		},
		"tensor twice": {
			gguf(2, 0).tensor("t", 24, 0, 1).tensor("t", 24, 32, 1).pad().data(make([]byte, 64)...),
			"is not unique",
		},
		"name of a scale": {gguf(2, 0).tensor("t.weight", 2, 0, 32).tensor("t.scales", 24, 32,
			1).pad().data(make([]byte, 64)...), "is not unique"},
	} {
		t.Run(name, func(t *testing.T) {
			requireSmallAllocations(t)
			_, _, err := mlxio.ReadGGUF(bytes.NewReader(c.file.b))
			require.Error(t, err)
			require.Regexp(t, c.want, err.Error())
			path := filepath.Join(t.TempDir(), "x")
			require.NoError(t, os.WriteFile(path, c.file.b, 0o600))
			_, _, err = mlxio.LoadGGUF(path)
			require.Error(t, err)
			require.Regexp(t, c.want, err.Error())
		})
	}
	_, _, err := mlxio.ReadGGUF(io.MultiReader())
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

// Metadata may have the type of a named slice.
func TestGGUFMetadataOfNamedSlices(t *testing.T) {
	type names []string
	type sizes []int32
	var b bytes.Buffer
	require.NoError(t, mlxio.WriteGGUF(&b, nil, map[string]any{"n": names{"a", "bc"}, "s": sizes{1, 2}}))
	_, metadata, err := mlxio.ReadGGUF(&b)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"n": []string{"a", "bc"}, "s": []int32{1, 2}}, metadata)
}
